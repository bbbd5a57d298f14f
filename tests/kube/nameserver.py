"""A name server in a rig's node that answers, fails or says nothing, and how a daemon is led to it."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

from netqos.testing.netns import Rig
from tests.kube.site import BIND, site

ADDRESS = "127.0.0.53"
ANSWERS, SERVFAIL, SILENT = "answers", "servfail", "silent"

_CODES = {ANSWERS: 0, SERVFAIL: 2}
_A = 1
_HEAD = struct.Struct(">HHHHHH")
_SITE = """
for name in ("resolv.conf", "nsswitch.conf"):
    mount({folder!r} + "/" + name, "/etc/" + name, None, {bind})
"""


class NameServer:
    """Every name is 127.0.0.1 while `mode` is ANSWERS. Use it as a context."""

    def __init__(self, rig: Rig) -> None:
        """It listens inside the rig's node, on its loopback."""
        self.mode = ANSWERS
        self.asked = 0
        self._folder = rig.folder / "names"
        self._folder.mkdir()
        with rig.node.entered():
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.bind((ADDRESS, 53))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        (self._folder / "resolv.conf").write_text(f"nameserver {ADDRESS}\n", encoding="ascii")
        (self._folder / "nsswitch.conf").write_text("hosts: dns\n", encoding="ascii")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    @property
    def env(self) -> dict[str, str]:
        """Makes a daemon ask this server alone."""
        return site(self._folder, _SITE.format(folder=str(self._folder), bind=BIND))

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                query, asker = self._socket.recvfrom(512)
                if len(query) <= _HEAD.size:
                    return
                self.asked += 1
                if self.mode != SILENT:
                    self._socket.sendto(_answer(query, _CODES[self.mode]), asker)


def _answer(query: bytes, code: int) -> bytes:
    """Its question again, and one address where it asks for one and `code` is 0 (RFC 1035 4.1)."""
    number = _HEAD.unpack_from(query)[0]
    end = query.index(b"\0", _HEAD.size) + 5
    (kind,) = struct.unpack_from(">H", query, end - 4)
    count = int(code == 0 and kind == _A)
    record = struct.pack(">HHHIH4B", 0xC00C, _A, 1, 0, 4, 127, 0, 0, 1) * count
    return _HEAD.pack(number, 0x8180 | code, 1, count, 0, 0) + query[_HEAD.size : end] + record
