"""A host for the terway backend: a folder that terway-qos would watch, and a net_cls hierarchy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netqos.backend import Backend, BackendContext, NftRunner
from netqos.host.files import AtomicFiles
from netqos.testing.filehosts import FolderHarness, no_nft
from netqos_terway.backend import TerwayBackend
from netqos_terway.options import parse


class TerwayHost(FolderHarness):
    """`settle_s` is how long a file stays after its parting content; the suite removes it at once."""

    def __init__(self, *, settle_s: float = 0.0, nft: Callable[[], NftRunner] = no_nft) -> None:
        self.settle_s = settle_s
        super().__init__(
            "terway", self.make_backend, AtomicFiles(), lambda folder: {"folder": str(folder)}, nft=nft
        )
        (self.root / "cgroup" / "net_cls").mkdir(parents=True)
        (self.root / "cgroup" / "net_cls" / "net_cls.classid").write_text("0\n")

    def make_backend(self, context: BackendContext) -> Backend:
        return TerwayBackend(context, parse(context.options), settle_s=self.settle_s)

    def terway(self) -> TerwayBackend:
        backend = self.backend()
        assert isinstance(backend, TerwayBackend)
        return backend

    @property
    def global_file(self) -> Path:
        return self.folder / "global_bps_config"

    @property
    def pod_file(self) -> Path:
        return self.folder / "pod.json"
