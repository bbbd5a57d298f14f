"""The image of daemonset/Containerfile: what is in it, what is not, how large it is, and that it can be made again."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from netqos.testing.namespaces import sweep
from tests.apiserver.gobuild import ROOT
from tests.node.image import build
from tests.node.realnode import wait_until
from tests.node.test_killed import descendants, left_overs, running

MIB = 1 << 20
LARGEST = 120 * MIB
"""What the image may have over its base."""

SBOM = "usr/share/netqos/sbom.cdx.json"
BUILDERS = re.compile(r"(^|/)(pip|pip3|ensurepip|uv|gcc|cc|cpp|ld|as|make|g\+\+|cargo|rustc|go)$")


class Archive:
    """An image as a runtime takes it: the layers of its base, and one of ours."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path)  # noqa: SIM115 - closed with the archive
        (manifest,) = json.loads(self._read("manifest.json"))
        self._layers: list[str] = manifest["Layers"]
        self.config: dict[str, Any] = json.loads(self._read(manifest["Config"]))
        self.files = self._files()

    def close(self) -> None:
        self._tar.close()

    @property
    def layers(self) -> list[str]:
        """The digests of their content, the base's first."""
        digests: list[str] = self.config["rootfs"]["diff_ids"]
        return digests

    def layer(self, number: int) -> tarfile.TarFile:
        return tarfile.open(fileobj=self._tar.extractfile(self._layers[number]))

    def _files(self) -> set[str]:
        """Names of all that a container sees, without folders."""
        names: set[str] = set()
        for number in range(len(self._layers)):
            with self.layer(number) as layer:
                for one in layer:
                    folder, _, name = one.name.rpartition("/")
                    if name.startswith(".wh."):
                        gone = f"{folder}/{name.removeprefix('.wh.')}".lstrip("/")
                        names = {seen for seen in names if seen != gone and not seen.startswith(f"{gone}/")}
                    elif not one.isdir():
                        names.add(one.name)
        return names

    def read(self, name: str) -> bytes:
        """A file of our layer."""
        with self.layer(-1) as layer:
            file = layer.extractfile(name)
            assert file is not None, name
            return file.read()

    def _read(self, name: str) -> bytes:
        file = self._tar.extractfile(name)
        assert file is not None, name
        return file.read()


@pytest.fixture(scope="module")
def image(image_archive: Path) -> Iterator[Archive]:
    archive = Archive(image_archive)
    yield archive
    archive.close()


def bill_of(image: Archive) -> dict[str, Any]:
    bill: dict[str, Any] = json.loads(image.read(SBOM))
    return bill


def test_it_adds_little_to_its_base(image: Archive) -> None:
    assert len(image.layers) == 2
    with image.layer(-1) as layer:
        size = sum(one.size for one in layer)
    assert 20 * MIB < size <= LARGEST


def test_nothing_that_builds_is_left_in_it(image: Archive) -> None:
    assert {name for name in image.files if BUILDERS.search(name)} == set()
    assert {
        name for name in image.files if name.startswith(("src/", "root/.cache", "run/secrets", "opt/uv"))
    } == set()


def test_every_module_is_compiled_and_no_date_decides_over_it(image: Archive) -> None:
    ours = {name for name in image.files if name.startswith("opt/netqos/lib/")}
    modules = {name for name in ours if name.endswith(".py")}
    compiled = {re.sub(r"__pycache__/(.*)\.cpython-\d+\.pyc$", r"\1.py", name) for name in ours}
    assert modules - compiled == set()
    sample = next(name for name in ours if name.endswith("netqos/__pycache__/__init__.cpython-311.pyc"))
    assert image.read(sample)[4:8] == b"\x01\0\0\0"


def test_its_bill_of_materials_is_what_is_installed(image: Archive) -> None:
    told = {one["purl"].partition("?")[0] for one in bill_of(image)["components"]}
    status = image.read("var/lib/dpkg/status").decode()
    entries = [dict(re.findall(r"^(\S+): (.*)$", text, re.MULTILINE)) for text in status.split("\n\n")]
    debian = {f"pkg:deb/debian/{one['Package']}@{quote(one['Version'], safe='')}" for one in entries if one}
    installed = {
        f"pkg:pypi/{found[1].lower().replace('_', '-')}@{found[2]}"
        for name in image.files
        if (found := re.search(r"/([^/]+)-([^/-]+)\.dist-info/METADATA$", name))
    }
    assert told == debian | (installed - {"pkg:pypi/netqos@0.1.0"})


def test_what_it_runs_is_what_the_lock_names(image: Archive) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for one in bill_of(image)["components"]:
        if one["purl"].startswith("pkg:pypi/"):
            assert f"\n{one['name']}=={one['version']} " in f"\n{lock}"
            accepted = [entry["value"].replace("sha256:", "--hash=sha256:") for entry in one["properties"]]
            assert accepted
            assert all(entry in lock for entry in accepted)


_BUILDER = """
import sys
from pathlib import Path
from tests.node import image

getattr(image, sys.argv[1])(Path(sys.argv[2]))
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("step", "at"),
    [("build", "storage-untar"), ("make_base", "/usr/lib/apt/methods/")],
    ids=["image", "base"],
)
def test_a_killed_build_leaves_nothing(image: Archive, tmp_path: Path, step: str, at: str) -> None:
    before = temporary()
    builder = subprocess.Popen([sys.executable, "-c", _BUILDER, step, tmp_path / "never.tar"], cwd=ROOT)
    wait_until(lambda: any(at in one for one in commands(builder.pid)), "it is being made", 60)
    of_it = descendants(builder.pid)
    builder.kill()
    builder.wait()
    wait_until(lambda: of_it.isdisjoint(dict(running())), "no process is left", 2)
    sweep()
    assert left_overs(builder.pid) == []
    assert temporary() - before == set()


def temporary() -> set[Path]:
    """What builders' own programs make where nobody tells them another place."""
    names = ("mmdebstrap*", "buildah*", "storage*", "container_images_*")
    places = (Path(tempfile.gettempdir()), Path("/var/tmp"))
    return {found for place in places for name in names for found in place.glob(name)}


def commands(ancestor: int) -> list[str]:
    found = []
    for pid in descendants(ancestor):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace"))
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_builds_give_the_same_content(image: Archive, tmp_path: Path) -> None:
    build(tmp_path / "again.tar")
    again = Archive(tmp_path / "again.tar")
    assert again.layers == image.layers
    assert again.config == image.config
    again.close()
