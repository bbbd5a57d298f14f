"""The terway backend: netqos decides, terway-qos enforces, by the two files that it watches (contract 2.1)."""

from __future__ import annotations

from netqos.backend import Backend, BackendContext

NETQOS_API = 1


def create(context: BackendContext) -> Backend:
    """The factory that the entry point names. Raises `Rejected` with every problem of the options."""
    from netqos_terway.backend import TerwayBackend  # noqa: PLC0415 - imported when it is asked for, not when listed
    from netqos_terway.options import parse  # noqa: PLC0415

    return TerwayBackend(context, parse(context.options))
