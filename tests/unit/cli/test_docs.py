"""The console examples of docs/cli.md and docs/status-api.md are run, and print what the documents say.

`python -m tests.unit.cli.test_docs` writes what they print into the documents.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from netqos.cli.arguments import COMMANDS
from netqos.cli.client import StatusClient
from netqos.cli.ctl import main
from netqos.observe.statusroutes import ROUTES
from tests.unit.cli.daemon import running
from tests.unit.engine.rounds import busy_course, written
from tests.unit.observe.sample import SampleAgent

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_EXAMPLES = ("cli.md", "status-api.md")


class Shell:
    """Runs what the examples type, against one daemon; remembers the last exit code."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.code = 0

    def run(self, line: str) -> str:
        words = shlex.split(line)
        if words == ["echo", "$?"]:
            return f"{self.code}\n"
        return self.curl(words[1:]) if words[0] == "curl" else self.netqosctl(words[1:])

    def netqosctl(self, words: list[str]) -> str:
        data = io.BytesIO()
        shown = io.TextIOWrapper(data, encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            self.code = main(["--socket", str(self.path), *words])
        return data.getvalue().decode()

    def curl(self, words: list[str]) -> str:
        options = dict(zip(words[:-1:2], words[1:-1:2], strict=True))
        assert options["--unix-socket"] == "/run/netqos/netqosd.sock"
        client = StatusClient(str(self.path))
        body = json.loads(options["-d"]) if "-d" in options else None
        target = words[-1].removeprefix("http://netqos")
        answers = []
        with mock.patch.object(
            StatusClient, "_checked", lambda _self, _status, answer: answers.append(answer)
        ):
            client._request(options.get("-X", "GET"), target, body, 10)
        return json.dumps(answers[0], indent=2) + "\n"


def rewritten(text: str, shell: Shell) -> str:
    """The document with what its commands print now."""

    def block(found: re.Match[str]) -> str:
        commands = [line for line in found[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{line}\n{shell.run(line[2:])}" for line in commands) + "```"

    return BLOCK.sub(block, text)


OTHER = "policy: {enable: true, levels: {l1: {txMin: 300M, txMax: 800M}, l2: {txMin: 400M}}}\n"


@contextlib.contextmanager
def shell() -> Iterator[Shell]:
    surroundings = {
        name: value for name, value in os.environ.items() if name not in {"NETQOS_SOCKET", "NO_COLOR"}
    }
    with (
        running(SampleAgent()) as path,
        mock.patch.dict(os.environ, {**surroundings, "COLUMNS": "110"}, clear=True),
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
    ):
        Path("other.yaml").write_text(OTHER, encoding="ascii")
        Path("loop.jsonl").write_text(
            "".join(f"{line}\n" for line in written(busy_course())), encoding="ascii"
        )
        yield Shell(path)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_the_document_says(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    with shell() as found:
        assert rewritten(text, found) == text, "run: python -m tests.unit.cli.test_docs"


def test_every_command_and_route_is_described() -> None:
    cli = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [command.name for command in COMMANDS if f"`{command.name}" not in cli] == []
    api = (DOCS / "status-api.md").read_text(encoding="utf-8")
    described = [f"`{route.method} {route.path}" for route in ROUTES]
    assert [one for one in described if one not in api] == []


def update() -> None:
    for name in WITH_EXAMPLES:
        path = DOCS / name
        with shell() as found:
            path.write_text(rewritten(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    update()
