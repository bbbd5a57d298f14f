"""What is asked of an API server next, and how long and how often. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long and how often, in seconds where nothing else is said.

    A watch asks for `watch_s` to twice that. Without any sign of life it is checked by a list after `quiet_s`, since
    servers send bookmarks each 60 s when anything changes in the cluster; where the list says that nothing was missed,
    only after four times as long, until a bookmark comes. Every `relist_s` to twice that it is checked all the same.
    After `trust_s` without the server the list is read as a whole: another history may have reached our version by
    then. Back-off: from `first_s` doubling to `lost_most_s` where nobody answers (which costs
    the server nothing), to `refused_most_s` where it refuses. `absent_s`: when to look again for a kind of object
    that the server does not know, or up to a quarter later.
    """

    watch_s: float = 600.0
    quiet_s: float = 90.0
    relist_s: float = 2700.0
    trust_s: float = 30.0
    first_s: float = 0.05
    lost_most_s: float = 1.0
    refused_most_s: float = 10.0
    absent_s: float = 240.0
    first_page: int = 20
    largest_page: int = 500
    page_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """Ask for a page; `limit` 0: for everything at once."""

    token: str
    limit: int


@dataclass(frozen=True, slots=True)
class AskVersion:
    """Ask what the list's version is now: by a page of one item, which is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWatch:
    """Watch from a version; the server is asked to end it after `timeout_s`."""

    version: str
    timeout_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Wait. `reload`: read the credentials anew before the next request."""

    seconds: float
    reload: bool = False


Action = ListPage | AskVersion | OpenWatch | Rest


def has_reached(version: str, ours: str) -> bool:
    """Whether a version is ours or a later one: they are decimal numbers that grow; of others only equal ones are."""
    if not (version.isascii() and version.isdigit() and ours.isascii() and ours.isdigit()):
        return version == ours
    theirs, ours = version.lstrip("0"), ours.lstrip("0")
    return (len(theirs), theirs) >= (len(ours), ours)
