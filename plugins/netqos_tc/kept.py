"""The roots that were there before ours: in the state folder over restarts, and in memory while the daemon runs.

Memory makes good what happens to the folder meanwhile: a document that somebody deleted is written again, and that of
a device which got another name goes to its new one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from netqos.backend import StateStore
from netqos_tc.links import Link
from netqos_tc.root import Root, from_document, to_document

_PLAIN: Final = re.compile(r"[a-z0-9_.-]+")


def document_name(device: str) -> str:
    """Under which name the state folder, which takes few characters, keeps the earlier root of a device."""
    is_plain = _PLAIN.fullmatch(device) is not None
    return f"root-{device}" if is_plain else f"root-hex-{device.encode(errors='surrogateescape').hex()}"


class KeptRoots:
    """The earlier root of every device that has a tree of ours."""

    def __init__(self, state: StateStore) -> None:
        """Nothing is known until the first `learn`."""
        self._state = state
        self._known: dict[int, tuple[str, Root]] = {}

    def learn(self, links: Mapping[int, Link]) -> dict[str, Root]:
        """The earlier roots by device name; `links` are the devices that have a tree of ours now, by index."""
        before, self._known = self._known, {}
        for ifindex, link in links.items():
            _name, root = before.get(ifindex, ("", self._load(link.name)))
            if root is not None:
                self._known[ifindex] = link.name, root
        names = {name for name, _root in self._known.values()}
        for ifindex, (old, _root) in before.items():
            if ifindex in self._known and old not in names:
                self._state.delete(document_name(old))
        self.renew()
        return dict(self._known.values())

    def renew(self) -> None:
        """Write again what is known and no longer kept."""
        for name, root in self._known.values():
            if self._load(name) != root:
                self._state.save(document_name(name), to_document(root))

    def _load(self, device: str) -> Root | None:
        return from_document(self._state.load(document_name(device)))
