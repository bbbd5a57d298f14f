"""A folder as a host: what the contract suite needs of backends that write whole files."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from netqos.backend import Backend, BackendContext, FileSignature, FileStore, NftRunner
from netqos.errors import Retryable, Unsupported
from netqos.testing.harness import Harness

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it, with a random name


def quick_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder in memory where there is one: forcing a file to disk costs nothing there."""
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="netqos-", dir=parent)


class MemoryState:
    """A `StateStore` in memory."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self.documents: dict[str, object] = {}

    def load(self, name: str) -> object | None:
        """The document, None when there is none."""
        return self.documents.get(name)

    def save(self, name: str, document: object) -> None:
        """Keep the document."""
        self.documents[name] = document

    def delete(self, name: str) -> None:
        """Forget the document."""
        self.documents.pop(name, None)


class FailingFiles:
    """A `FileStore` that can be told to fail as a full disk does; `store` does the rest."""

    def __init__(self, store: FileStore) -> None:
        """Everything works at first."""
        self.store = store
        self.failures = 0
        self.writes = 0

    def read(self, path: PurePath) -> bytes | None:
        """As the store."""
        return self.store.read(path)

    def replace(self, path: PurePath, content: bytes) -> bool:
        """As the store, unless it is time to fail."""
        self._write(path)
        return self.store.replace(path, content)

    def delete(self, path: PurePath) -> bool:
        """As the store, unless it is time to fail."""
        self._write(path)
        return self.store.delete(path)

    def signature(self, path: PurePath) -> FileSignature | None:
        """As the store."""
        return self.store.signature(path)

    def _write(self, path: PurePath) -> None:
        if self.failures:
            self.failures -= 1
            reason = OSError(errno.ENOSPC, "No space left on device")
            raise Retryable("cannot write it", subject=str(path), hint="free space") from reason
        self.writes += 1


def no_nft() -> NftRunner:
    """A host without libnftables."""
    raise Unsupported("libnftables is missing", hint="install libnftables1")


class FolderHarness(Harness):
    """A temporary folder. `create` is the backend's factory, `options` gives its section of the configuration."""

    def __init__(
        self,
        name: str,
        create: Callable[[BackendContext], Backend],
        store: FileStore,
        options: Callable[[Path], Mapping[str, object]] = lambda _folder: {},
        *,
        nft: Callable[[], NftRunner] = no_nft,
    ) -> None:
        """Make the folder, with somebody else's file in it."""
        self._temporary = quick_folder()
        self.root = Path(self._temporary.name)
        self.folder = self.root / "shared"
        self.folder.mkdir()
        (self.folder / "theirs").write_text("not ours")
        self.files = FailingFiles(store)
        self.state = MemoryState()
        self.now_s = 1000.0
        self._create = create
        self._name = name
        self._options = options
        self._nft = nft

    def context(self) -> BackendContext:
        """What each new backend is given."""
        return BackendContext(
            name=self._name,
            options=self._options(self.folder),
            state=self.state,
            files=self.files,
            nft=self._nft,
            log=lambda *_args, **_values: None,
            monotonic=lambda: self.now_s,
            cgroup_root=self.root / "cgroup",
        )

    def backend(self) -> Backend:
        """A new backend over the same folder."""
        return self._create(self.context())

    def drift(self) -> None:
        """Somebody appends to the first of our files."""
        path = self.ours()[0]
        path.write_bytes(path.read_bytes() + b"\n")

    def fail_next(self, times: int) -> None:
        """The disk is full for this many writes."""
        self.files.failures = times

    def heal(self) -> None:
        """There is space again."""
        self.files.failures = 0

    def foreign(self) -> object:
        """The content of what is not ours."""
        return (self.folder / "theirs").read_bytes()

    def ours(self) -> list[Path]:
        """The backend's files, by name."""
        return sorted(path for path in self.folder.iterdir() if path.name != "theirs")

    def close(self) -> None:
        """Remove the folder."""
        self._temporary.cleanup()
