"""The image of daemonset/Containerfile, really built, on a base that is assembled from Debian's packages.

Both are kept in the cache folder (tests/apiserver/gobuild.py): the base until its recipe changes, the image until
something that goes into it does. A build has a pid and a mount namespace of its own, so that no process and no mount
outlives who asked for it, and one folder for all that it makes meanwhile, which `sweep` finds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from netqos.testing.namespaces import scratch_folder, sweep
from netqos.testing.processes import CommandFailed, run_tool, tool_environment
from tests.apiserver.gobuild import ROOT, Unavailable, cache_folder

NAME = "docker.io/library/netqos:0.1.0"
"""What the manifests call it, as a container runtime reads that."""

PREVIOUS = "09d86cc"
PREVIOUS_NAME = "docker.io/library/netqos:previous"
"""Sources of before, from which a node is updated; raised with every release."""

TIMESTAMP = 1_700_000_000
"""Of every file that a build makes, so that two builds of the same sources are the same."""

CONTAINERFILE = ROOT / "daemonset" / "Containerfile"
BASE = "localhost/netqos-base"
_TREES = ("agent", "plugins")
_CONTEXT = ("requirements.lock", "pyproject.toml", "README.md", "LICENSE", *_TREES)
_FILES = (*_CONTEXT[:-2], ".dockerignore", "daemonset/sbom.py")
_KEPT = 3
_BUILD_TIMEOUT_S = 900
# As in the usual slim images: nobody reads manuals and translations there.
_LEFT_OUT = ("doc", "man", "locale", "info")
_BASE_RECIPE = (
    "mmdebstrap",
    "--quiet",
    "--variant=apt",
    "--include=python3",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT),
    "bookworm",
)
_ALONE = ("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation=private")
_BASE_IMAGE = "FROM scratch\nADD base.tar /\n"
_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE")


def built_image(*, context: Path = ROOT, name: str = NAME) -> Path:
    """An archive with the image under that name, for `ctr images import`; built where it is not there.

    `context` is a checkout; of this one $NETQOS_TEST_IMAGE may name an archive. `Unavailable` where none can be built.
    """
    if context == ROOT and (given := os.environ.get("NETQOS_TEST_IMAGE")):
        return Path(given)
    archive = _folder() / f"image-{_digest_of(context, name)}.tar"
    with _alone():
        if archive.exists():
            os.utime(archive)
        else:
            build(archive, context=context, name=name)
            _prune()
    return archive


def previous_image() -> Path:
    """The same of an earlier state of the sources, as PREVIOUS_NAME."""
    with scratch_folder("previous") as context:
        _run(
            "git",
            ("sh", "-euc", f"git -C {ROOT} archive {PREVIOUS} {' '.join(_CONTEXT)} | tar -C {context} -x"),
        )
        (context / "daemonset").mkdir()
        for name in (".dockerignore", "daemonset/sbom.py"):  # younger than those sources
            shutil.copy(ROOT / name, context / name)
        return built_image(context=context, name=PREVIOUS_NAME)


def build(archive: Path, *, context: Path = ROOT, name: str = NAME) -> None:
    """Build the image into an archive, whatever the cache has of it."""
    base, fresh = _built_base(), archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    sweep()
    with scratch_folder("image") as folder:
        common = ("--quiet", "--isolation=chroot", "--network=host", f"--timestamp={TIMESTAMP}")
        secrets = _secrets(folder, os.environ)
        which = (f"--build-arg=BASE={BASE}", f"--file={CONTAINERFILE}", f"--tag={name}", str(context))
        _run_buildah(
            folder,
            ("bud", *common, f"--tag={BASE}", str(base)),
            ("bud", *common, *secrets, "--pull-never", *which),
            ("push", "--quiet", name, f"docker-archive:{fresh}:{name}"),
        )
    fresh.rename(archive)


def _built_base() -> Path:
    """The build context of the base: a file system and what makes an image of it."""
    recipe = "\n".join((*_BASE_RECIPE, _BASE_IMAGE))
    place = _folder() / f"base-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if not (place / "Containerfile").exists():
        place.mkdir(parents=True, exist_ok=True)
        make_base(place / "base.tar")
        (place / "Containerfile").write_text(_BASE_IMAGE, encoding="utf-8")
    return place


def make_base(archive: Path) -> None:
    """Assemble the base's file system."""
    with scratch_folder("base") as folder:
        folder.chmod(0o755)  # apt reads there as a user of its own
        _run("mmdebstrap", ("env", f"TMPDIR={folder}", *_ALONE, *_BASE_RECIPE, str(archive)))


def _run_buildah(folder: Path, *steps: Sequence[str]) -> None:
    """Several commands of buildah on a storage that goes with them, and with their mounts."""
    options = (f"--root={folder / 'root'}", f"--runroot={folder / 'run'}", "--storage-driver=overlay")
    script = " && ".join(shlex.join(("buildah", *options, *step)) for step in steps)
    _run("buildah", ("env", f"TMPDIR={folder}", *_ALONE, "sh", "-euc", script))


def _run(program: str, command: Sequence[str]) -> None:
    """Run a command that the kernel ends when this process ends. `Unavailable`, with what it said, where it fails."""
    if shutil.which(program, path=tool_environment()["PATH"]) is None:
        raise Unavailable(f"the program {program} is not installed")
    try:
        run_tool(("setpriv", "--pdeathsig", "KILL", *command), timeout_s=_BUILD_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{program} took more than {_BUILD_TIMEOUT_S} s") from None
    except CommandFailed as problem:
        said = "; ".join(problem.message.splitlines()[-3:])
        raise Unavailable(f"{program} failed: {said}") from problem


def _secrets(folder: Path, env: Mapping[str, str]) -> list[str]:
    """Options that let the build reach the package index as this machine does; nothing of it gets into the image."""
    settings = {name: env[name] for name in _INDEXES if env.get(name)}
    options = []
    if found := next((env[name] for name in _CERTIFICATES if env.get(name)), None):
        settings |= dict.fromkeys(_CERTIFICATES, "/run/secrets/ca")
        options.append(f"--secret=id=ca,src={found}")
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    (folder / "env").write_text(text, encoding="utf-8")
    return [*options, f"--secret=id=env,src={folder / 'env'}"]


def _digest_of(context: Path, name: str) -> str:
    """Sixteen hex digits that change with what goes into an image."""
    whole = hashlib.sha256(f"{name}\n{BASE}\n{_BASE_RECIPE}\n{CONTAINERFILE.read_text()}".encode())
    trees = [one for tree in _TREES for one in sorted((context / tree).rglob("*")) if one.is_file()]
    for path in (*(context / file for file in _FILES), *trees):
        if path.suffix != ".pyc":
            content = path.read_bytes() if path.exists() else b""
            whole.update(f"{path.relative_to(context)} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


def _prune() -> None:
    """Keep the last few images that were used."""
    archives = sorted(_folder().glob("image-*.tar"), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        old.unlink()


def _folder() -> Path:
    folder = cache_folder() / "image"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Of several processes that ask at once, one builds and the others wait."""
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
