"""`--check-config`: what the daemon would say of the files, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from netqos.runtime import modes
from netqos.runtime.modes import DONE, FAILED, REJECTED, check_config

BACKENDS = """\
foo: 1
backends: [tc, zap]
backendOptions:
  tc: {zap: 1, takeover: [foo, htb]}
  nix: {a: 1}
  terway: {folder: rel, x: 1}
"""


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tmp_path / "netqos.yaml"


def check(main: Path, text: str) -> tuple[int, list[str]]:
    main.write_text(text)
    code, told = check_config(main)
    return code, told.splitlines()


def places(lines: list[str]) -> list[str]:
    return [": ".join(one.split(": ")[:2]) for one in lines]


def test_a_right_file(main: Path) -> None:
    assert check(main, "backends: [tc]\n") == (DONE, [f"{main}: the configuration is right"])


def test_everything_wrong_with_backends_beside_everything_else(main: Path) -> None:
    code, told = check(main, BACKENDS)
    assert code == REJECTED
    assert places(told) == [
        "netqos.yaml:1:1: foo",
        "netqos.yaml:2:16: backends[1]",
        "netqos.yaml:4:13: backendOptions.tc.zap",
        "netqos.yaml:4:27: backendOptions.tc.takeover[0]",
        "netqos.yaml:5:3: backendOptions.nix",
        "netqos.yaml:6:20: backendOptions.terway.folder",
        "netqos.yaml:6:28: backendOptions.terway.x",
    ]


@pytest.mark.parametrize("content", [None, "", "{{{", "a: 1\n"])
def test_a_right_file_whose_kubeconfig_is_none(main: Path, content: str | None) -> None:
    kubeconfig = main.with_name("kubeconfig")
    if content is not None:
        kubeconfig.write_text(content, encoding="utf-8")
    code, told = check(main, f"kubernetes: {{enable: true, kubeconfig: {kubeconfig}}}\n")
    assert (code, len(told)) == (FAILED, 2)
    assert told[1].startswith(f"error: kubernetes: no usable credentials in {kubeconfig}: ")
    code, told = check(main, "kubernetes: {enable: true}\n")
    assert (code, told[1].split(": ")[:2]) == (DONE, ["warning", "kubernetes"]), "it may be meant for a pod"
    assert check(main, f"kubernetes: {{enable: false, kubeconfig: {kubeconfig}}}\n")[0] == DONE


@pytest.mark.parametrize(
    ("levels", "place"),
    [
        ("{l1: {txMin: 700M}, l2: {txMin: 400M}}", "policy.levels.l2.txMin"),
        ("{l1: {txMax: 2G}}", "policy.levels.l1.txMax"),
        ("{l0: {txMin: 99%}}", "policy.levels.l0.txMin"),
        ("{l2: {rxMax: 0%}}", "policy.levels.l2.rxMax"),
    ],
)
def test_amounts_that_the_daemon_would_not_take(main: Path, levels: str, place: str) -> None:
    code, told = check(main, f"node: {{bandwidth: {{tx: 1G, rx: 1G}}}}\npolicy: {{levels: {levels}}}\n")
    assert code == REJECTED
    [line] = told
    assert line.startswith("netqos.yaml:2:")
    assert line.split(": ")[1] == place


def test_a_file_that_cannot_be_read_hides_nothing(main: Path) -> None:
    broken = main.parent / "conf.d" / "10-a.yaml"
    broken.mkdir(parents=True)
    (broken.parent / "20-b.yml").write_text("{}\n")
    code, told = check(main, "foo: 1\nbackends: [zap]\n")
    assert code == REJECTED
    assert [one.partition(": ")[0] for one in told] == [
        str(broken),
        "netqos.yaml:1:1",
        "netqos.yaml:2:12",
        "info",
    ]


def test_what_the_total_of_a_fallback_does_not_hold_is_a_doubt(
    main: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(modes, "credentials_missing", lambda _settings, **_more: ())
    text = "node: {bandwidth: {tx: 1G}}\npolicy:\n  levels: {l1: {txMax: 2G}}\n"
    code, (right, doubt) = check(main, text)
    assert code == DONE
    assert right == f"{main}: the configuration is right"
    assert doubt.startswith("warning: netqos.yaml line 3: policy.levels.l1.txMax: under node.bandwidth")
