"""Shapes a node's uplinks in the kernel: an HTB tree on the device, one nft table that tells packets to its classes.

This module stays light: nothing of the kernel is touched, and nothing heavy imported, before a backend is made.
"""

from __future__ import annotations

from netqos.backend import Backend, BackendContext


def create(context: BackendContext) -> Backend:
    """The backend; `Rejected` with every problem of `backendOptions.tc`."""
    from netqos_tc.backend import TcBackend  # noqa: PLC0415

    return TcBackend(context)
