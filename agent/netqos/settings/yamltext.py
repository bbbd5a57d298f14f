"""YAML text -> `Node`, without the parts of YAML that surprise: no tags, no merge keys, no duplicate keys.

A plain scalar is null, a boolean (`true`, `false`) or a decimal integer when it can be nothing else, and text
otherwise: `10M`, `1_000`, `010`, `10:20`, `1.5` and `no` are texts, and what takes them decides. Size, depth and what
aliases expand to are bounded, so that no text costs more than a fraction of a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from netqos.model.texts import shown
from netqos.settings.nodes import Mark, Node, Scalar
from netqos.settings.problems import Problem

LONGEST_BYTES = 1 << 20
DEEPEST = 24
MOST_VALUES = 50_000

_INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
# The C parser is ten times as fast; it is missing where PyYAML was built without libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, name: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The tree of one file and what is wrong with it; None where the text could not be read to its end.

    An empty file is an empty map. Nothing but problems comes out of a text that is no YAML.
    """
    builder = _Builder(name)
    try:
        _check_text(text, name)
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        builder.complain(mark, f"no YAML: {error.problem or error.context}", hint=_yaml_hint(error.problem))
    except yaml.reader.ReaderError as error:
        message = f"no YAML: {error.reason} (code {error.character})"
        builder.complain_at(
            Mark(name, _line(text, error.position), 1), message, hint="write plain UTF-8 text"
        )
    except _Unreadable as error:
        builder.complain_at(error.mark, error.message, hint=error.hint)
    else:
        return builder.root, tuple(builder.problems)
    return None, tuple(builder.problems)


class _Place(Protocol):
    """A mark of either parser; both count from 0."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class _Unreadable(Exception):
    """The text is not worth reading on."""

    def __init__(self, mark: Mark, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.mark, self.message, self.hint = mark, message, hint


@dataclass(slots=True)
class _Open:
    """A list or map that is being read. `key` is the map's key whose value comes next."""

    mark: Mark
    anchor: str | None
    is_map: bool
    items: list[Node] = field(default_factory=list)
    fields: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Mark] = field(default_factory=dict)
    key: str | None = None
    size: int = 1

    def closed(self) -> Node:
        """The finished node."""
        if self.is_map:
            return Node(mark=self.mark, value=self.fields, keys=self.keys, size=self.size)
        return Node(mark=self.mark, value=tuple(self.items), size=self.size)


class _Builder:
    """Makes nodes of parser events, without recursion."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.root = Node(mark=Mark(name, 1, 1), value={})
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """The next event of the parser."""
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._start(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                closed = self._open.pop()
                self._place(closed.closed(), closed.anchor)
            case yaml.DocumentStartEvent():
                self._document(event)
            case _:
                pass

    def complain(self, mark: _Place | None, message: str, *, hint: str = "") -> None:
        """A problem at a mark of the parser."""
        self.complain_at(self._mark(mark), message, hint=hint)

    def complain_at(self, mark: Mark, message: str, *, hint: str = "") -> None:
        """A problem at a place of ours."""
        self.problems.append(
            Problem(file=mark.file, line=mark.line, column=mark.column, path="", message=message, hint=hint)
        )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        mark = self._mark(event.start_mark)
        if self._takes_key():
            self._key(event.value, mark, is_plain=event.implicit[0])
            return
        if event.tag not in _TEXT_TAGS:
            self.complain_at(mark, f"tag {shown(event.tag)}; allowed: no tags", hint="write the plain value")
        is_plain = event.implicit[0] and event.tag is None
        self._place(Node(mark=mark, value=_resolve(event.value) if is_plain else event.value), event.anchor)

    def _key(self, key: str, mark: Mark, *, is_plain: bool) -> None:
        inner = self._open[-1]
        if is_plain and key == "<<":
            self.complain_at(mark, "merge key <<; allowed: aliases of whole values", hint="repeat the keys")
        elif key in inner.keys:
            first = inner.keys[key].line
            self.complain_at(
                mark, f"key {shown(key)} again; it stands in line {first} already", hint="remove one"
            )
        inner.key = key
        inner.keys.setdefault(key, mark)

    def _alias(self, event: yaml.AliasEvent) -> None:
        mark = self._mark(event.start_mark)
        if event.anchor not in self._anchors:
            message = f"alias *{event.anchor} without an anchor before it"
            raise _Unreadable(mark, message, hint="define the anchor first")
        if self._takes_key():
            raise _Unreadable(mark, "an alias as a key", hint="write the key out")
        self._place(self._anchors[event.anchor], None)

    def _start(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent) -> None:
        mark = self._mark(event.start_mark)
        if self._takes_key():
            raise _Unreadable(mark, "a list or map as a key; allowed: texts", hint="write a plain key")
        if len(self._open) >= DEEPEST:
            raise _Unreadable(
                mark, f"more than {DEEPEST} levels of nesting", hint="flatten the configuration"
            )
        if event.tag is not None:
            self.complain_at(mark, f"tag {shown(event.tag)}; allowed: no tags", hint="write the plain value")
        is_map = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open(mark=mark, anchor=event.anchor, is_map=is_map))

    def _document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            mark = self._mark(event.start_mark)
            raise _Unreadable(mark, "a second document; allowed: one a file", hint="use a file of its own")

    def _place(self, node: Node, anchor: str | None) -> None:
        """Put a finished node into what is open, or make it the root."""
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        inner = self._open[-1]
        inner.size += node.size
        if inner.size > MOST_VALUES:
            raise _Unreadable(inner.mark, f"more than {MOST_VALUES} values", hint="shorten the configuration")
        if inner.is_map and inner.key is not None:
            inner.fields.setdefault(inner.key, node)
            inner.key = None
        else:
            inner.items.append(node)

    def _takes_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_map and self._open[-1].key is None

    def _mark(self, mark: _Place | None) -> Mark:
        return Mark(self.name, 1, 1) if mark is None else Mark(self.name, mark.line + 1, mark.column + 1)


def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _check_text(text: str, name: str) -> None:
    start = Mark(name, 1, 1)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        mark = Mark(name, _line(text, error.start), 1)
        raise _Unreadable(mark, "text that is no Unicode", hint="write plain UTF-8 text") from None
    if size > LONGEST_BYTES:
        raise _Unreadable(
            start, f"{size} bytes; allowed: {LONGEST_BYTES}", hint="split or shorten the configuration"
        )


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _yaml_hint(problem: str | None) -> str:
    is_tab = problem is not None and "cannot start any token" in problem
    return "indent with spaces, never with tabs" if is_tab else "check the indentation and the quotes above"
