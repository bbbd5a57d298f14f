"""nftables through libnftables.so.1: the only place that touches it.

One context is made in the network namespace of the calling thread and kept; it speaks to that namespace for ever. A
lock lets threads share it. The library reports errors as text only, so its final words are compared with what
strerror(3) says for each errno; the message itself is handed on, never interpreted. A process without the right to
nftables is refused before the library is asked, since that would write to stderr by itself.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
import threading
import weakref
from typing import Final

from netqos.errors import NetqosError, Rejected, Retryable, Unsupported

_SONAME: Final = "libnftables.so.1"
_OUTPUT_JSON: Final = 1 << 4
_NETLINK_NETFILTER: Final = 12
_NLMSG_ERROR: Final = 2
# struct nlmsghdr and nfgenmsg of NFT_MSG_GETGEN (subsystem 10, message 16) with NLM_F_REQUEST and NLM_F_ACK.
_GET_GENERATION: Final = struct.pack("=IHHIIBBH", 20, 10 << 8 | 16, 1 | 4, 1, 0, 0, 0, 0)
_SHOWN: Final = 500
_NEEDS_RIGHTS: Final = "it needs CAP_NET_ADMIN"

# What may succeed later; a missing object may be there then, and a full socket is read empty.
_RETRYABLE: Final = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENOBUFS, errno.ENOENT, errno.ENOMEM, errno.ETIMEDOUT}
)
_UNSUPPORTED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT}
)


class Nftables:
    """The nftables of one network namespace (`netqos.backend.NftRunner`)."""

    def __init__(self, library: str = _SONAME) -> None:
        """Open the library and a context; `Unsupported` where the library is missing or may not be used."""
        self._library = _load(library)
        _need_rights()
        self._lock = threading.Lock()
        context = self._library.nft_ctx_new(0)
        if not context:
            raise Unsupported("libnftables gave no context", hint="see whether this process may use netlink")
        self._context: int | None = context
        self._finalizer = weakref.finalize(self, self._library.nft_ctx_free, context)
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)

    def run(self, commands: str) -> None:
        """Execute commands as one transaction; a refused one changes nothing.

        `Rejected`: the commands are wrong for this ruleset. `Retryable`: busy, or an object is missing.
        `Unsupported`: this kernel, this library or this process cannot do it.
        """
        self._execute(commands, flags=0)

    def check(self, commands: str) -> None:
        """Let the kernel judge commands as `run` would have them; errors as there, and nothing is changed either way.

        The library leaves the end of the transaction out, so the kernel takes all of it back (nfnetlink_rcv_batch()):
        not even the number of the ruleset's last change moves.
        """
        self._execute(commands, flags=0, is_trial=True)

    def query(self, command: str) -> dict[str, object]:
        """The JSON answer of a `list` command; errors as those of `run`."""
        answer = self._execute(command, flags=_OUTPUT_JSON)
        try:
            document = json.loads(answer)
        except ValueError as problem:
            raise Rejected(
                f"nft answered {answer[:_SHOWN]!r}, which is no JSON", subject=command
            ) from problem
        if not isinstance(document, dict):
            raise Rejected("nft answered with JSON that is no object", subject=command)
        return document

    def close(self) -> None:
        """Free the context, as its end of life does too; it must not be used afterwards. Twice is no error."""
        with self._lock:
            self._context = None
            self._finalizer()

    def _execute(self, commands: str, *, flags: int, is_trial: bool = False) -> str:
        if "\0" in commands:
            raise Rejected("the commands contain a NUL character, where the library would stop reading")
        with self._lock:
            if not self._context:
                raise Retryable("this nftables context was closed")
            self._library.nft_ctx_output_set_flags(self._context, flags)
            self._library.nft_ctx_set_dry_run(self._context, is_trial)
            code = self._library.nft_run_cmd_from_buffer(self._context, commands.encode())
            output = self._library.nft_ctx_get_output_buffer(self._context)
            complaint = self._library.nft_ctx_get_error_buffer(self._context)
        if code != 0:
            raise error_for(complaint.decode(errors="replace"))
        return str(output.decode(errors="replace"))


def _need_rights() -> None:
    """Ask the kernel what the library asks first; it refuses all of nfnetlink alike (nfnetlink_rcv(), since 3.8)."""
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER
        ) as asked:
            asked.settimeout(1.0)
            asked.send(_GET_GENERATION)
            answer = asked.recv(256)
    except OSError:
        return  # a kernel without nfnetlink: the library finds the words
    kind, code = struct.unpack_from("=4xH10xi", answer)
    if kind == _NLMSG_ERROR and code == -errno.EPERM:
        raise Unsupported("this process may not use nftables", hint=_NEEDS_RIGHTS)


def error_for(complaint: str) -> NetqosError:
    """The error that nft's words stand for. A refusal that names no errno is a mistake in the commands."""
    words = [line for line in complaint.splitlines() if "Error:" in line]
    first = words[0].partition("Error:")[2].strip() if words else complaint.strip() or "no reason given"
    code = _errno_at_end(first)
    message = f"nft: {first[:_SHOWN]}"
    if code in _UNSUPPORTED:
        hint = _NEEDS_RIGHTS if code in {errno.EPERM, errno.EACCES} else "a newer kernel may have it"
        return Unsupported(message, hint=hint)
    return Retryable(message) if code in _RETRYABLE else Rejected(message)


def _errno_at_end(text: str) -> int | None:
    # One of two numbers with the same words is enough (EAGAIN and EWOULDBLOCK).
    ends = (code for code in errno.errorcode if text.endswith(os.strerror(code)))
    return next(ends, None)


def _load(name: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(name)
    except OSError as problem:
        raise Unsupported(
            f"{name} cannot be loaded: {problem}", hint="install libnftables (Debian: libnftables1)"
        ) from problem
    library.nft_ctx_new.argtypes = [ctypes.c_uint32]
    library.nft_ctx_new.restype = ctypes.c_void_p
    library.nft_ctx_free.argtypes = [ctypes.c_void_p]
    library.nft_ctx_free.restype = None
    library.nft_ctx_output_set_flags.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    library.nft_ctx_output_set_flags.restype = None
    library.nft_ctx_set_dry_run.argtypes = [ctypes.c_void_p, ctypes.c_bool]
    library.nft_ctx_set_dry_run.restype = None
    library.nft_run_cmd_from_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for function in ("buffer_output", "buffer_error"):
        getattr(library, f"nft_ctx_{function}").argtypes = [ctypes.c_void_p]
    for function in ("get_output_buffer", "get_error_buffer"):
        getattr(library, f"nft_ctx_{function}").argtypes = [ctypes.c_void_p]
        getattr(library, f"nft_ctx_{function}").restype = ctypes.c_char_p
    return library
