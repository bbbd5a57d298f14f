"""The stream of the loop's ticks, followed beside other requests: the newest of each device, and what was news."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any

from netqos.cli.client import Problem, StatusClient, Unreachable
from netqos.cli.commands.common import known_shape
from netqos.cli.linestream import LineStream

Json = dict[str, Any]
REMEMBERED = 50


class Ticks:
    """Reads the stream for as long as it is told to; where there is none it says why, and tries again."""

    def __init__(self, client: StatusClient) -> None:
        """Nothing is read yet."""
        self._client = client
        self._stream: LineStream | None = None
        self._contention: dict[tuple[str, str], bool] = {}
        self.newest: dict[tuple[str, str], Json] = {}
        self.news: deque[Json] = deque(maxlen=REMEMBERED)
        self.missed = 0
        self.problem = ""

    def open(self) -> None:
        """Begin to follow, where that is not done already."""
        if self._stream is None:
            try:
                self._stream = LineStream(self._client, "/v1/stream")
                self.problem = ""
            except Problem as problem:
                self.problem = problem.message

    def follow(self, until_s: float) -> list[Json]:
        """Read until then (monotonic); returns what was news in this time."""
        found = []
        while (now_s := time.monotonic()) < until_s:
            try:
                lines = self._stream.read(until_s) if self._stream is not None else []
            except Unreachable as problem:
                self.close()
                self.problem = problem.message
                continue
            if self._stream is None:
                time.sleep(until_s - now_s)
            for line in lines:
                with known_shape():
                    found += self._take(json.loads(line))
        return found

    def close(self) -> None:
        """Follow no more; what is known of devices may be of the past from here on."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self.newest.clear()

    def _take(self, tick: Json) -> list[Json]:
        device = (tick["direction"], tick["device"])
        is_news = (
            tick["changed"] or self._contention.get(device, tick["contention"]) is not tick["contention"]
        )
        self._contention[device] = tick["contention"]
        self.newest[device] = tick
        self.missed += tick["missed"]
        if is_news:
            self.news.append(tick)
        return [tick] if is_news else []
