from __future__ import annotations

import pytest

from netqos.runtime.judging import parse_and_judge
from netqos.settings.problems import InvalidConfiguration


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_and_judge((("netqos.yaml", text),))
    return [f"{one.line}: {one.path}: {one.message}" for one in caught.value.located]


def test_right_backends_with_right_options_pass() -> None:
    text = "backends: [tc, terway]\nbackendOptions:\n  tc: {queue: {target: 30ms}}\n  terway: {folder: /srv/qos}\n"
    settings = parse_and_judge((("netqos.yaml", text),))
    assert settings.backends == ("tc", "terway")


def test_everything_wrong_with_backends_is_told_at_its_line() -> None:
    text = (
        "foo: 1\n"
        "backends: [tc, zap]\n"
        "backendOptions:\n"
        "  tc:\n"
        "    zip: 1\n"
        "    queue: {target: 5s}\n"
        "  terway: {folder: rel}\n"
        "  nix: {a: 1}\n"
    )
    told = problems(text)
    assert [one.split(": ")[0:2] for one in told] == [
        ["1", "foo"],
        ["2", "backends[1]"],
        ["5", "backendOptions.tc.zip"],
        ["6", "backendOptions.tc.queue.target"],
        ["7", "backendOptions.terway.folder"],
        ["8", "backendOptions.nix"],
    ]
    assert all("allowed" in one or "installed" in one or "unknown" in one for one in told)
