"""The root qdiscs that are not ours: which may be taken over, and how one is put back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from netqos_tc import numbers, wire
from netqos_tc.netmsg import Request

DEFAULT_KINDS: Final = frozenset({"noqueue", "noop", "pfifo_fast", "fq_codel", "fq", "mq"})
"""What the kernel or a distribution puts there by itself; whatever else is somebody's."""

CLASSFUL_KINDS: Final = frozenset(
    {"htb", "hfsc", "prio", "ets", "drr", "qfq", "cbq", "mqprio", "taprio", "multiq"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A qdisc below a root, made by somebody (those that the kernel makes have handle 0 and come by themselves)."""

    parent: int
    kind: str
    handle: int
    options: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A root qdisc. `handle` 0: the kernel's default for the device, which `qdisc del root` brings back."""

    kind: str
    handle: int
    options: bytes = b""
    children: tuple[Child, ...] = ()
    has_filters: bool = False
    """Whether the device has an egress hook for programs (clsact): one may set departure times, which fq keeps."""

    @property
    def is_default(self) -> bool:
        """Whether the kernel made it by itself."""
        return self.handle == 0

    @property
    def text(self) -> str:
        """`mq 100:` for people; a default has no handle."""
        return self.kind if self.is_default else f"{self.kind} {numbers.text(self.handle)}"


def why_foreign(root: Root, allowed: frozenset[str]) -> str | None:
    """Why a root is not taken over, None when it is; `allowed` are kinds that the configuration gives free."""
    kinds = [root.kind, *(child.kind for child in root.children)]
    odd = [kind for kind in kinds if kind not in DEFAULT_KINDS | allowed]
    if odd:
        return f"{odd[0]} was set up by somebody"
    if "fq" in kinds and root.has_filters and "fq" not in allowed:
        return "fq under an egress program keeps departure times that the program sets"
    return None


def is_lossy(root: Root) -> bool:
    """Whether putting it back would lose something: classes and filters are not kept."""
    return root.kind in CLASSFUL_KINDS or any(child.kind in CLASSFUL_KINDS for child in root.children)


def restore(ifindex: int, saved: Root | None) -> list[Request]:
    """What puts a root back: removing ours brings the default; one that somebody made is made again over ours."""
    if saved is None or saved.is_default:
        return [wire.delete_root(ifindex)]
    own = Child(parent=numbers.PARENT_ROOT, kind=saved.kind, handle=saved.handle, options=saved.options)
    return [
        wire.make_qdisc(ifindex, parent=one.parent, handle=one.handle, kind=one.kind, options=one.options)
        for one in (own, *saved.children)
    ]


def to_document(root: Root) -> dict[str, object]:
    """As it is kept in the state folder."""
    return {
        "kind": root.kind,
        "handle": root.handle,
        "options": root.options.hex(),
        "children": [
            {"parent": one.parent, "kind": one.kind, "handle": one.handle, "options": one.options.hex()}
            for one in root.children
        ],
    }


def from_document(document: object) -> Root | None:
    """A kept root, None when the document is not one."""
    match document:
        case {"kind": str(kind), "handle": int(handle), "options": str(options), "children": list(children)}:
            below = [_child(child) for child in children]
            content = _unhex(options)
            if content is None or None in below:
                return None
            return Root(
                kind=kind,
                handle=handle,
                options=content,
                children=tuple(one for one in below if one is not None),
            )
        case _:
            return None


def _child(document: object) -> Child | None:
    match document:
        case {"parent": int(parent), "kind": str(kind), "handle": int(handle), "options": str(options)}:
            content = _unhex(options)
            if content is None:
                return None
            return Child(parent=parent, kind=kind, handle=handle, options=content)
        case _:
            return None


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
