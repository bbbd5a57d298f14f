"""The image of the tests' pods: busybox and iperf3 with its libraries, in the form that `ctr images import` takes."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

NAME = "test.local/pod:1"
PAUSE = "test.local/pause:1"

_FOLDERS = ("bin", "etc", "tmp", "proc", "sys", "dev")
_APPLETS = ("sh", "sleep", "cat", "echo", "dd", "yes", "true", "ls", "nc", "wget", "ip", "ping", "id", "env")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_image(path: Path) -> None:
    """Write the archive with both names."""
    layer = _tar({**dict(_programs()), **{f"bin/{name}": "busybox" for name in _APPLETS}})
    config = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "1000000000"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME, PAUSE], "Layers": ["layer.tar"]}]
    parts = {"config.json": json.dumps(config).encode(), "layer.tar": layer}
    path.write_bytes(_tar({**parts, "manifest.json": json.dumps(manifest).encode()}, folders=()))


def _programs() -> Iterator[tuple[str, bytes]]:
    search = "/usr/bin:/bin:/usr/sbin:/sbin"
    for name in ("busybox", "iperf3"):
        found = shutil.which(name, path=search)
        assert found is not None, f"{name} is not installed"
        yield f"bin/{name}", Path(found).read_bytes()
        for library in _libraries(found):
            yield library.lstrip("/"), Path(library).read_bytes()


def _libraries(program: str) -> list[str]:
    """The loader and every library that a program is linked with; none of a static one, for which ldd fails."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", said)))


def _tar(files: Mapping[str, bytes | str], *, folders: tuple[str, ...] = _FOLDERS) -> bytes:
    """An archive; a text stands for a symbolic link to it."""
    parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for folder in sorted({*folders, *parents}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return raw.getvalue()
