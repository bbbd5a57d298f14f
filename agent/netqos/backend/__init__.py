"""The plugin surface: everything that a backend may import and must provide. See docs/writing-a-backend.md."""

from netqos.backend.api import (
    API_VERSION,
    Backend,
    BackendContext,
    Capabilities,
    FastPath,
    FileSignature,
    FileStore,
    LeafCounters,
    NftRunner,
    PacketWay,
    StateStore,
)

__all__ = [
    "API_VERSION",
    "Backend",
    "BackendContext",
    "Capabilities",
    "FastPath",
    "FileSignature",
    "FileStore",
    "LeafCounters",
    "NftRunner",
    "PacketWay",
    "StateStore",
]
