"""Making backends from the settings: their context, their order, and what goes wrong on the way."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from netqos.backend import Backend, BackendContext, NftRunner
from netqos.backend.registry import load
from netqos.host.files import AtomicFiles
from netqos.host.state import BACKENDS, StateFolder
from netqos.model.health import Finding
from netqos.observe.logs import get_logger
from netqos.settings.values import Settings


def build_backends(settings: Settings, names: Iterable[str]) -> tuple[list[Backend], list[Finding]]:
    """The named backends in their order, without those that could not be made; a finding tells of each of these."""
    log = get_logger("netqos.backends")

    def on_failure(name: str, problem: BaseException) -> None:
        log.error("backend_broken", backend=name, exc_info=problem)

    return load(names, lambda name: make_context(settings, name), on_failure=on_failure)


def make_context(settings: Settings, name: str) -> BackendContext:
    """What the backend `name` is given."""
    return BackendContext(
        name=name,
        options=settings.backend_options.get(name, {}),
        state=StateFolder(Path(settings.paths.state) / BACKENDS / name),
        files=AtomicFiles(),
        nft=_nft_runner,
        log=get_logger(f"netqos.backend.{name}").info,
        monotonic=time.monotonic,
        cgroup_root=settings.paths.cgroup,
    )


def _nft_runner() -> NftRunner:
    from netqos.host.nftables import Nftables  # noqa: PLC0415 - opens libnftables, which only some backends need

    return Nftables()
