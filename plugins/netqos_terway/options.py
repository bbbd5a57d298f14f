"""The backend's own section of the configuration, `backendOptions.terway`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.errors import Rejected
from netqos.model.texts import shown

DEFAULT_FOLDER = "/var/lib/terway/qos"
SECTION = "backendOptions.terway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`folder`: where terway-qos looks for its files, an absolute path on this host."""

    folder: str = DEFAULT_FOLDER


def parse(options: Mapping[str, object]) -> Options:
    """The options, defaults filled in; raises `Rejected` with every problem at once."""
    problems = [f"{name}: unknown option; allowed: folder" for name in options if name != "folder"]
    folder = options.get("folder", DEFAULT_FOLDER)
    parts = folder.split("/") if isinstance(folder, str) else []
    is_path = isinstance(folder, str) and folder.startswith("/") and folder.strip("/") != ""
    if not is_path or ".." in parts or "\0" in str(folder):
        problems.append(f"folder: {shown(folder)}; allowed: an absolute path such as {DEFAULT_FOLDER}")
    if problems:
        raise Rejected(
            "; ".join(problems),
            subject=SECTION,
            hint="the only option is `folder`, the folder that terway-qos watches",
            problems=tuple(problems),
        )
    return Options(folder=str(folder).rstrip("/"))
