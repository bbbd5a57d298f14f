"""Which cgroup hierarchy this host has, and where (case E1).

Told by the file systems that are mounted at and below the root, as /proc/self/mountinfo lists them: unified (v2),
hybrid (v2 beside v1, in `unified`), legacy (v1 alone) or nothing. Packets are told apart by cgroup in v2 only.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NET_CLS = "net_cls"


class Mode(enum.Enum):
    """The way cgroups are mounted on this host."""

    UNIFIED = "v2"
    HYBRID = "hybrid"
    LEGACY = "v1"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Where the trees are. `tree` is the v2 tree, in LEGACY systemd's own (to find units), None where there is none.

    `prefix` is what nft wants before a path: it looks up below /sys/fs/cgroup, which in HYBRID is not the tree.
    `net_cls` is the v1 tree of that controller. `is_whole` False: only a part is visible from this cgroup namespace.
    `begins_at` is how deep in the tree this process' cgroup namespace begins, 0 in the host's: nft can match none that
    is less deep from there, and any other.
    """

    mode: Mode
    tree: Path | None = None
    prefix: str = ""
    net_cls: Path | None = None
    is_whole: bool = True
    begins_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    kind: str
    root: str
    options: frozenset[str]


def detect(root: Path, *, proc_root: Path = Path("/proc")) -> Hierarchy:
    """Look at what is mounted at `root`, usually /sys/fs/cgroup."""
    mounts = _mounts(proc_root / "self/mountinfo")
    net_cls = next((root / one for one in _v1_names(root, mounts, NET_CLS)), None)
    if _kind(mounts, root) == "cgroup2":
        return Hierarchy(
            mode=Mode.UNIFIED,
            tree=root,
            net_cls=net_cls,
            is_whole=_is_whole(mounts, root),
            begins_at=_begins_at(mounts, root),
        )
    unified = root / "unified"
    if _kind(mounts, unified) == "cgroup2":
        return Hierarchy(
            mode=Mode.HYBRID,
            tree=unified,
            prefix="unified",
            net_cls=net_cls,
            is_whole=_is_whole(mounts, unified),
            begins_at=_begins_at(mounts, unified),
        )
    systemd = next((root / one for one in _v1_names(root, mounts, "name=systemd")), None)
    if systemd or any(_kind(mounts, path) == "cgroup" for path in mounts if path.parent == root):
        return Hierarchy(mode=Mode.LEGACY, tree=systemd, net_cls=net_cls)
    return Hierarchy(mode=Mode.NONE)


def _mounts(path: Path) -> dict[Path, _Mount]:
    """Mounts by their place; of several at one place the last covers the others. proc_pid_mountinfo(5)."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found: dict[Path, _Mount] = {}
    for line in text.splitlines():
        words, _, rest = line.partition(" - ")
        fields, more = words.split(" "), rest.split(" ")
        if len(fields) >= 5 and len(more) >= 3:
            place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
            found[place] = _Mount(kind=more[0], root=fields[3], options=frozenset(more[2].split(",")))
    return found


def _kind(mounts: dict[Path, _Mount], path: Path) -> str:
    """The type of the file system mounted exactly there; a symlink to it counts as it."""
    found = mounts.get(path) or mounts.get(_resolved(path))
    return found.kind if found else ""


def _v1_names(root: Path, mounts: dict[Path, _Mount], option: str) -> list[str]:
    return [
        path.name
        for path, one in mounts.items()
        if path.parent == root and one.kind == "cgroup" and option in one.options
    ]


def _is_whole(mounts: dict[Path, _Mount], tree: Path) -> bool:
    """Whether the real root is seen: it alone has no cgroup.type (cgroup-v2.rst), and is mounted from `/`.

    From a cgroup namespace below it, as a container has, the same mount reads `/../..` (cgroup_show_path in
    kernel/cgroup/cgroup.c).
    """
    found = mounts.get(tree) or mounts.get(_resolved(tree))
    return not (tree / "cgroup.type").exists() and (
        found is None or set(PurePosixPath(found.root).parts) <= {"/", ".."}
    )


def _begins_at(mounts: dict[Path, _Mount], tree: Path) -> int:
    """The levels between the tree's root and the namespace's: as many as the mount shows `..` (`/../..`)."""
    found = mounts.get(tree) or mounts.get(_resolved(tree))
    return found.root.split("/").count("..") if found is not None else 0


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
