"""Workloads on the host's network where only cgroup v1 is mounted: their class in `net_cls.classid`. Does.

The number is the class's own, so that one rule of the table is enough, and folders that are made below later inherit it
(cgrp_css_online in net/core/netclassid_cgroup.c). The owner stands beside it as an extended attribute, as the elements
of a map have it as their comment. A number of somebody else is never overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from netqos_tc import numbers
from netqos_tc.keys import ElementKey, ElementMap, Key
from netqos_tc.netlink import Refused
from netqos_tc.spec import ElementSpec, Spec

FILE: Final = "net_cls.classid"
_OWNER: Final = "user.netqos.owner"
_MOST_FOLDERS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NetClassesSeen:
    """The tree as it was read: the number of every folder, by path, and the owners of those that have one."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def elements(self) -> dict[Key, Spec]:
        """What is ours: the folders that have an owner, or the topmost of each number where the kernel keeps none.

        (Attributes of cgroups are from 5.7 on.) What is below inherits the number, and no owner.
        """
        ours = {path: number for path, number in self.numbers.items() if is_ours(number)}
        return {
            ElementKey(ElementMap.NC, path): ElementSpec(
                minor=numbers.minor_of(number), owner=self.owners.get(path, "")
            )
            for path, number in ours.items()
            if path in self.owners or (not self.owners and ours.get(path.rpartition("/")[0]) != number)
        }


def is_ours(number: int) -> bool:
    """Whether a number is one of our egress classes."""
    return numbers.major_of(number) == numbers.MAJOR


class NetClasses:
    """The tree of the controller net_cls."""

    def __init__(self, root: Path) -> None:
        """`root` is where it is mounted."""
        self._root = root

    @classmethod
    def found(cls, cgroup_root: Path) -> NetClasses | None:
        """The tree below /sys/fs/cgroup; None where none may be written, or one of version 2 tells packets apart."""
        if any((cgroup_root / name / "cgroup.controllers").exists() for name in ("", "unified")):
            return None
        names = ("net_cls", "net_cls,net_prio", "net_prio,net_cls")
        trees = [cgroup_root / name for name in names]
        return next((cls(tree) for tree in trees if os.access(tree / FILE, os.W_OK)), None)

    def look(self) -> NetClassesSeen:
        """Read every folder."""
        found = {path: number for path, number in self._walk() if number is not None}
        ours = [path for path, number in found.items() if is_ours(number)]
        owners = {path: self._owner(path) for path in ours}
        return NetClassesSeen(numbers=found, owners={path: one for path, one in owners.items() if one})

    def is_still(self, seen: NetClassesSeen) -> bool:
        """Whether those of ours are as they were."""
        return all(self._read(path) == number for path, number in seen.numbers.items() if is_ours(number))

    def write(self, path: str, element: ElementSpec | None) -> Refused | None:
        """Give a folder and those below it their class, or take it away; only where there is none of somebody else."""
        number = numbers.class_id(element.minor) if element is not None else 0
        try:
            for here in (path, *self._below(path)):
                met = self._read(here)
                if met is not None and met != number and (met == 0 or is_ours(met)):
                    self._file(here).write_text(str(number), encoding="ascii")
            self._name(path, element)
        except OSError as problem:
            is_gone = element is None and problem.errno in {errno.ENOENT, errno.ENODEV}
            return None if is_gone else Refused(code=problem.errno or errno.EIO)
        return None

    def _name(self, path: str, element: ElementSpec | None) -> None:
        folder = self._folder(path)
        try:
            if element is not None:
                os.setxattr(folder, _OWNER, element.owner.encode())
            elif self._owner(path):
                os.removexattr(folder, _OWNER)
        except OSError as problem:
            if problem.errno != errno.ENOTSUP:
                raise

    def _walk(self) -> Iterator[tuple[str, int | None]]:
        yield "/", self._read("/")
        for path in self._below("/"):
            yield path, self._read(path)

    def _below(self, path: str) -> Iterator[str]:
        front = [path]
        for here in front:
            with contextlib.suppress(OSError), os.scandir(self._folder(here)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                front += [f"{here.rstrip('/')}/{name}" for name in names]
            if len(front) > _MOST_FOLDERS:
                break
        yield from front[1:]

    def _read(self, path: str) -> int | None:
        try:
            return int(self._file(path).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def _owner(self, path: str) -> str:
        try:
            return os.getxattr(self._folder(path), _OWNER).decode(errors="replace")
        except OSError:
            return ""

    def _folder(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _file(self, path: str) -> Path:
        return self._folder(path) / FILE
