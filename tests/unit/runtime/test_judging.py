from __future__ import annotations

import pytest

from netqos.runtime.judging import parse_and_judge
from netqos.settings.problems import InvalidConfiguration


@pytest.fixture(autouse=True)
def out_of_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


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


POLICY = """\
node: {bandwidth: {tx: 1G, rx: 1G}}
policy:
  levels:
    l0:
      rxMin: 990M
    l1:
      txMin: 700M
    l2:
      txMin: 400M
"""


def test_amounts_that_the_total_does_not_hold_are_told_at_their_lines() -> None:
    l0, *others = problems(f"{POLICY}      rxMax: 2G\n")
    assert l0.startswith("5: policy.levels.l0.rxMin: a guarantee of 990M is asked for, but")
    assert others == [
        "9: policy.levels.l2.txMin: the guarantees of L1 and L2 add up to 1.1G of 1G; allowed: what leaves L0 1%",
        "10: policy.levels.l2.rxMax: ceiling 2G is over the total; allowed: up to 1G",
    ]


@pytest.mark.parametrize(
    "levels",
    [
        "{l1: {txMin: 60%}, l2: {txMin: 50%}}",
        "{l1: {rxMin: 100%}}",
        "{l2: {txMin: 50%, txMax: 40%}}",
        "{l0: {txMin: 99%}}",
    ],
)
def test_a_mistake_is_told_once(levels: str) -> None:
    assert len(problems(f"node: {{bandwidth: {{tx: 1G, rx: 1G}}}}\npolicy: {{levels: {levels}}}\n")) == 1
    assert len(problems(f"policy: {{levels: {levels}}}\n")) == 1


def test_in_a_cluster_the_total_of_the_file_is_only_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    text = "node: {bandwidth: {tx: 1G}}\npolicy: {levels: {l1: {txMax: 2G}}}\n"
    assert parse_and_judge([("f", text)]).bandwidth.tx == 10**9
    assert len(problems(f"{text}kubernetes: {{enable: false}}\n")) == 1


def test_a_shape_of_a_nodeslo_is_judged_at_its_own_keys() -> None:
    shape = "{networkQOSStrategy: {nodeBandwidthLimit: {hw: {tx: 1000, rx: 2000}, l2: {tx: 1500, rx: 1500}}}}"
    [told] = problems(f"policy: {shape}\n")
    assert told.startswith(
        "1: policy.networkQOSStrategy.nodeBandwidthLimit.l2.tx: ceiling 1.5G is over the total"
    )


def test_no_backend_at_all_is_refused() -> None:
    assert [one.split(": ")[:2] for one in problems("backends: []\n")] == [["1", "backends"]]
