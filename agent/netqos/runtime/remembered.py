"""Finding what was remembered before the configuration can be read: where the state folder is.

Normally the configuration names it. When the files are broken, the last accepted texts in that very folder are needed
to go on; then its place is looked for in the broken text, in what systemd says, and in the default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from netqos.backend import StateStore
from netqos.errors import Rejected
from netqos.host.clock import Clock
from netqos.host.memory import AgentMemory, Documents
from netqos.host.state import StateFolder
from netqos.runtime.judging import parse_and_judge
from netqos.settings.values import PathSettings
from netqos.sources.configfiles import read_documents
from netqos.sources.localfile import LocalFile

OWNER = "configuration-owner"
"""The document that names the main file whose accepted texts are remembered."""

_STATE_KEY = re.compile(r"""\bstate["']?\s*:\s*["']?(/[^\s,}"']+)""")


def open_source(config: Path, clock: Clock) -> LocalFile:
    """The configuration source, with what was accepted before a restart to stand in for broken files."""
    return LocalFile(config, clock=clock, remembered=remembered_documents(config), parse=parse_and_judge)


def remembered_documents(config: Path, environ: Mapping[str, str] = os.environ) -> Documents:
    """The texts accepted before the restart; empty when the files are right, or nothing is remembered."""
    documents = _texts(config)
    try:
        if documents:
            parse_and_judge(documents)
            return ()
    except Rejected:
        pass
    for folder in _candidates(documents, environ):
        state = StateFolder(folder)
        if state.load(OWNER) == str(config.absolute()):
            return AgentMemory(state).configuration.load()
    return ()


def remember_owner(state: StateStore, config: Path) -> None:
    """Keep whose texts the folder remembers, so that a broken file never brings those of another one in force."""
    state.save(OWNER, str(config.absolute()))


def with_places_searched(
    problem: Rejected, config: Path, environ: Mapping[str, str] = os.environ
) -> Rejected:
    """The same refusal, which also tells where an earlier configuration was looked for in vain."""
    places = ", ".join(map(str, _candidates(_texts(config), environ)))
    told = (
        f"no earlier configuration is remembered in {places} (a file that is broken before its "
        "`paths.state` hides that place)"
    )
    return Rejected(
        problem.message,
        subject=problem.subject,
        hint=problem.hint,
        problems=(*(problem.problems or (str(problem),)), told),
    )


def _texts(config: Path) -> Documents:
    """The files as they are, none where one of them cannot be read."""
    try:
        return read_documents(config)
    except Rejected:
        return ()


def _candidates(documents: Documents, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders that may hold the state: those that the text names; else systemd's, else the default."""
    named = [match[1] for _, text in documents for match in _STATE_KEY.finditer(text)]
    by_systemd = [one for one in environ.get("STATE_DIRECTORY", "").split(":") if one]
    return tuple(Path(one) for one in dict.fromkeys(named or by_systemd or [str(PathSettings().state)]))
