"""Reads what is at the egress hooks of devices. Decides nothing.

Five hundred devices are five hundred dumps, so what was read is kept until somebody says that it has changed: the
kernel tells of every change that others make (`netqos_tc.surroundings`), the backend of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netqos_tc import answers, hooks, uapi, wire
from netqos_tc.answers import Qdisc
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message
from netqos_tc.places import Hook
from netqos_tc.spec import RedirectSpec

Met = tuple[Hook, RedirectSpec | None]
"""What others have at a hook, and what stands there with our preference."""


class HookReader:
    """Reads through a channel, and keeps what it has read."""

    def __init__(self, route: Channel) -> None:
        """The channel stays the caller's."""
        self._route = route
        self._kept: dict[int, Met] = {}

    def forget(self, changed: Iterable[int] | None) -> None:
        """Read the hooks of these devices anew the next time, and of all for None."""
        for ifindex in list(self._kept) if changed is None else changed:
            self._kept.pop(ifindex, None)

    def read(self, qdiscs: Iterable[Qdisc]) -> Mapping[int, Met]:
        """What is at the hook of each device that has one, by the qdiscs of all devices."""
        hooked = [one for one in qdiscs if one.parent == uapi.CLSACT]
        self._kept = {one.ifindex: self._kept.get(one.ifindex) or self._read(one) for one in hooked}
        return self._kept

    def has_hook(self, ifindex: int) -> bool:
        """Whether a device has a hook for filters (clsact)."""
        try:
            found = self._route.find(wire.get_qdisc_at(ifindex, uapi.CLSACT))
        except RequestRefused:
            return False
        return found is not None and answers.read_qdisc(found).kind == "clsact"

    def is_ours_alone(self, ifindex: int) -> bool:
        """Whether nothing is at a device's hook but what has our preference."""
        try:
            others = hooks.preferences(self._route.dump(hooks.dump_filters(ifindex)))
            return not others and not self._route.dump(hooks.dump_ingress_filters(ifindex))
        except RequestRefused:
            return False

    def _read(self, qdisc: Qdisc) -> Met:
        if qdisc.kind != "clsact":
            return Hook(has_ingress=True), None
        messages = self._egress_filters(qdisc.ifindex)
        preferences = hooks.preferences(messages)
        hook = Hook(has_clsact=True, has_block=bool(qdisc.egress_block), preferences=preferences)
        return hook, hooks.read_redirect(messages)

    def _egress_filters(self, ifindex: int) -> list[Message]:
        try:
            return self._route.dump(hooks.dump_filters(ifindex))
        except RequestRefused:
            return []
