"""Configuration text as a tree that remembers where each value stands, and the merging of such trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netqos.settings.issues import Code, Issue, Path, path_text
from netqos.settings.problems import Problem

JOINED: frozenset[Path] = frozenset({("workloads",)})
"""Where the lists of several files join; everywhere else the later file's list replaces the earlier one's."""

Scalar = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value: a scalar, a list of nodes, or a map of nodes. `keys` are the places of a map's keys.

    `size` counts all values below and with this one.
    """

    mark: Mark
    value: Scalar | Sequence[Node] | Mapping[str, Node]
    keys: Mapping[str, Mark] = field(default_factory=dict)
    size: int = 1

    def plain(self) -> object:
        """The value alone, as lists and dicts."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, Sequence) and not isinstance(self.value, str):
            return [node.plain() for node in self.value]
        return self.value

    def get(self, *path: str | int) -> Node | None:
        """The node at a path, None when there is none."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node.child(step)
        return node

    def items(self) -> Sequence[Node]:
        """The nodes of a list; empty for anything else."""
        return self.value if isinstance(self.value, Sequence) and not isinstance(self.value, str) else ()

    def items_at(self, path: Path) -> Sequence[Node]:
        """The nodes of the list at a path; empty when there is none."""
        node = self.get(*path)
        return () if node is None else node.items()

    def locate(self, path: Path, *, at_key: bool = False) -> Mark:
        """Where the value at a path stands, or the innermost thing around it that is there.

        A map or a list stands where its key does; `at_key` asks for the key of a scalar too.
        """
        node, mark = self, self.mark
        for step in path:
            child = node.child(step)
            if child is None:
                break
            wants_key = at_key or not _is_scalar(child.value)
            mark = node.keys.get(str(step), child.mark) if wants_key else child.mark
            node = child
        return mark

    def problem(self, issue: Issue) -> Problem:
        """An issue of this tree at its line."""
        mark = self.locate(issue.path, at_key=issue.code is Code.UNKNOWN_KEY)
        return Problem(
            file=mark.file,
            line=mark.line,
            column=mark.column,
            path=path_text(issue.path),
            message=issue.message,
            hint=issue.hint,
        )

    def child(self, step: str | int) -> Node | None:
        """The node under one key or index, None when there is none."""
        if isinstance(self.value, Mapping) and isinstance(step, str):
            return self.value.get(step)
        items = self.items()
        return items[step] if isinstance(step, int) and 0 <= step < len(items) else None


def merge(earlier: Node, later: Node, path: Path = ()) -> Node:
    """Two trees as one: maps key by key, the lists named in `JOINED` joined, else the later value.

    Null in the later tree leaves a map as it is, and gives any other value back its default.
    """
    if isinstance(earlier.value, Mapping) and isinstance(later.value, Mapping):
        merged = dict(earlier.value)
        for key, node in later.value.items():
            merged[key] = merge(merged[key], node, (*path, key)) if key in merged else node
        return Node(mark=later.mark, value=merged, keys={**earlier.keys, **later.keys})
    if path in JOINED and earlier.items() and later.items():
        return Node(mark=later.mark, value=(*earlier.items(), *later.items()))
    says_nothing = later.value is None and (isinstance(earlier.value, Mapping) or path in JOINED)
    return earlier if says_nothing else later


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, int))
