"""Hosts for kernel tests of the tc backend: a namespace with one uplink, or a whole rig, and backends that work there.

Channels stay in the namespace in which they were opened, so a backend is opened inside once and used from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import PurePath
from unittest import mock

from netqos.backend import BackendContext, FastPath
from netqos.errors import Retryable
from netqos.host.files import AtomicFiles
from netqos.host.nftables import Nftables
from netqos.model.desired import UNSHAPED, DesiredState
from netqos.model.levels import Direction
from netqos.testing import states
from netqos.testing.filehosts import FailingFiles, MemoryState
from netqos.testing.harness import Harness
from netqos.testing.namespaces import Namespace
from netqos_tc import numbers
from netqos_tc.backend import TcBackend
from netqos_tc.keys import ClassKey, ElementKey, QueueKey
from netqos_tc.netlink import Channel, Refused
from netqos_tc.netmsg import Request
from netqos_tc.spec import ClassSpec, ElementSpec

UPLINK_INDEX = 77
UPLINK = states.uplink(index=UPLINK_INDEX)


def only(state: DesiredState, way: Direction) -> DesiredState:
    """The same node where nothing is asked for in the other direction."""
    other = Direction.RX if way is Direction.TX else Direction.TX
    changed = {other.value: UNSHAPED}
    pods = tuple(
        replace(one, limits_bps=replace(one.limits_bps, **{other.value: None})) for one in state.pods
    )
    return replace(state, directions=replace(state.directions, **changed), pods=pods)


def make_context(
    state: MemoryState | None = None, options: Mapping[str, object] | None = None
) -> BackendContext:
    return BackendContext(
        name="tc",
        options=options or {},
        state=state or MemoryState(),
        files=FailingFiles(AtomicFiles()),
        nft=Nftables,
        log=lambda *_args, **_values: None,
        monotonic=time.monotonic,
        cgroup_root=PurePath("/sys/fs/cgroup"),
    )


class BackendInside(TcBackend):
    """A backend in another namespace than its caller."""

    def __init__(self, context: BackendContext, namespace: Namespace) -> None:
        super().__init__(context)
        self._namespace = namespace

    def fast_path(self) -> FastPath | None:
        with self._namespace.entered():
            return super().fast_path()


def make_backend(
    namespace: Namespace, state: MemoryState | None = None, options: Mapping[str, object] | None = None
) -> TcBackend:
    """A backend whose channels are in the namespace."""
    backend = BackendInside(make_context(state, options), namespace)
    with namespace.entered():
        backend.open()
    return backend


class UplinkHost(Harness):
    """A namespace with the uplink `up0` (index 77), whose other end nobody listens at."""

    def __init__(self) -> None:
        self.namespace = Namespace("node")
        self.state = MemoryState()
        self._failing = contextlib.ExitStack()
        self._made: list[TcBackend] = []
        self.add_uplink()

    def add_uplink(self) -> None:
        peer = f"index {UPLINK_INDEX} name up0 type veth peer name wire0"
        self.namespace.run(["ip", "link", "add", *peer.split()])
        self.namespace.run(["ip", "link", "set", "up0", "up"])
        self.namespace.run(["ip", "link", "set", "wire0", "up"])

    def backend(self) -> TcBackend:
        self._made.append(make_backend(self.namespace, self.state))
        return self._made[-1]

    def drift(self) -> None:
        """Somebody deletes the leaf of a pod."""
        listed = self.namespace.run(["tc", "class", "show", "dev", "up0"]).stdout
        minors = [int(line.split()[2].split(":")[1], 16) for line in listed.splitlines()]
        victim = next(minor for minor in sorted(minors) if numbers.is_pod_minor(minor))
        self.namespace.run(["tc", "class", "del", "dev", "up0", "classid", f"4e51:{victim:x}"])

    def fail_next(self, times: int) -> None:
        """The kernel refuses whatever is written."""
        left = times

        def refuses(self: Channel, requests: list[Request], **_: object) -> list[Refused | None]:
            nonlocal left
            left -= 1
            return [Refused(code=errno.ENOBUFS) for _ in requests]

        def raises(self: Nftables, commands: str) -> None:
            raise Retryable("nft: No buffer space available")

        self._failing.enter_context(mock.patch.object(Channel, "write", refuses))
        self._failing.enter_context(mock.patch.object(Channel, "transact", refuses))
        self._failing.enter_context(mock.patch.object(Nftables, "run", raises))

    def heal(self) -> None:
        self._failing.close()

    def foreign(self) -> object:
        devices = self.namespace.run(["tc", "qdisc", "show"]).stdout
        return devices, self.namespace.run(["nft", "list", "ruleset"]).stdout

    def comparable(self, ours: Mapping[Hashable, object]) -> object:
        """Leaves by the owner of the elements that lead to them; L0 without its ceiling, which is the loop's."""
        owners = {
            spec.minor: spec.owner
            for key, spec in ours.items()
            if isinstance(key, ElementKey) and isinstance(spec, ElementSpec)
        }
        return {_named(key, owners): _without_choices(key, spec) for key, spec in ours.items()}

    def close(self) -> None:
        self._failing.close()
        for backend in self._made:
            asyncio.run(backend.close())
        self.namespace.remove()


def _named(key: Hashable, owners: Mapping[int, str]) -> object:
    if isinstance(key, ClassKey | QueueKey):
        return type(key), key.ifindex, owners.get(key.minor, key.minor)
    return key


def _without_choices(key: Hashable, spec: object) -> object:
    if isinstance(spec, ElementSpec):
        return spec.owner
    if isinstance(spec, ClassSpec) and isinstance(key, ClassKey) and key.minor == numbers.L0:
        return replace(spec, ceil=0, cbuffer=0)
    return spec
