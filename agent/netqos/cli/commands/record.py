"""netqosctl record: the loop's rounds from now on, into a file that `netqosctl replay` runs again.

The daemon makes the lines, this only keeps them: for a time, up to a size, or until Ctrl-C. A daemon that goes away and
comes back leaves a gap in the recording; so does a disk that is too slow.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from netqos.cli.client import StatusClient, Unreachable
from netqos.cli.commands.common import DONE, Call, known_shape
from netqos.cli.linestream import LineStream
from netqos.cli.recordfile import RecordFile
from netqos.cli.units import count, size, span

TARGET = "/v1/record"
AGAIN_S = 0.5
GONE = b'{"gap":"the daemon was not there","rounds":null}\n'


@dataclass(slots=True, kw_only=True)
class Recording:
    """What has come so far. `forms` are those of the first head, without which nothing else can be read."""

    forms: object = None
    rounds: int = 0
    gaps: int = 0
    ended: str = "time"


class _Lines:
    """The daemon's lines, over its restarts."""

    def __init__(self, client: StatusClient) -> None:
        """A daemon that is not there at the start is an error."""
        self._client = client
        self._stream: LineStream | None = LineStream(client, TARGET)

    def read(self, until_s: float) -> list[bytes]:
        """What has come, none when nothing did until then; a gap when the daemon has gone."""
        try:
            if self._stream is None:
                self._stream = LineStream(self._client, TARGET)
            return self._stream.read(until_s)
        except Unreachable:
            gone = [GONE] if self._stream is not None else []
            self.close()
            time.sleep(max(0.0, min(AGAIN_S, until_s - time.monotonic())))
            return gone

    def close(self) -> None:
        """Ask for no more."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None


def run(call: Call) -> int:
    """Record, then say what there is."""
    started_s = time.monotonic()
    recording = Recording()
    with (
        closing(_Lines(call.client)) as lines,  # first: where no daemon is, no file is made
        RecordFile(Path(call.arguments.file), replaces=call.arguments.force) as file,
    ):
        try:
            _record(call, file, recording, lines)
        except KeyboardInterrupt:
            recording.ended = "interrupt"
    _tell(call, file, recording, time.monotonic() - started_s)
    return DONE


def _record(call: Call, file: RecordFile, recording: Recording, source: _Lines) -> None:
    until_s = time.monotonic() + call.arguments.duration
    while time.monotonic() < until_s and recording.ended == "time":
        lines = _fitting(source.read(until_s), recording, call.arguments.most - file.size)
        file.write(lines)
        recording.rounds += sum(line.startswith(b'{"round":') for line in lines)
        recording.gaps += sum(line.startswith(b'{"gap":') for line in lines)


def _fitting(lines: list[bytes], recording: Recording, room: int) -> list[bytes]:
    """Those of the lines that there is room for, up to a head of another netqos, whose values could not be read."""
    for place, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            recording.ended = "size"
        elif line.startswith(b'{"recording":') and not _is_known(line, recording):
            recording.ended = "version"
        if recording.ended != "time":
            return lines[:place]
    return lines


def _is_known(head: bytes, recording: Recording) -> bool:
    with known_shape():
        forms = json.loads(head)["forms"]
    recording.forms = recording.forms or forms
    return bool(recording.forms == forms)


ENDS = {
    "time": "",
    "interrupt": ", ended by Ctrl-C",
    "size": ", ended at its size (--most)",
    "version": ", ended as another version of netqosd came",
}


def _tell(call: Call, file: RecordFile, recording: Recording, took_s: float) -> None:
    if call.wants_json:
        answer = {"file": str(file.path), "bytes": file.size, "seconds": round(took_s, 3)}
        told = {"rounds": recording.rounds, "gaps": recording.gaps, "ended": recording.ended}
        call.screen.json("record", {**answer, **told})
        return
    gaps = f", {count(recording.gaps, 'gap')}" if recording.gaps else ""
    rounds = f"{count(recording.rounds, 'round')} in {span(took_s)}, {size(file.size)}{gaps}"
    call.screen.prose(f"{file.path}: {rounds}{ENDS[recording.ended]}", hang=2)
    if not recording.rounds:
        hint = "netqosctl status says whether network QoS is on and which backend enforces it"
        call.screen.say("nothing was steered in this time", hint=hint)
