"""`netqosctl slo apply` against a real API server, and what the nodes make of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from netqos.cli.ctl import main
from netqos.model.inputs import Percent
from netqos.model.levels import Level
from tests.apiserver.client import ApiError
from tests.apiserver.fixtures import StartServer
from tests.apiserver.kube import NODESLOS, Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer
from tests.kube.conftest import Follow

DOCS = Path(__file__).parents[2] / "docs" / "kubernetes.md"
RIGHTS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {"apiGroups": ["slo.koordinator.sh"], "resources": ["nodeslos"], "verbs": ["list", "create", "patch"]},
]


class Ctl:
    """netqosctl with the rights that docs/kubernetes.md names, and no other."""

    def __init__(self, kube: Kube, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kube = kube
        self.file = kubeconfig.with_name("slo.yaml")
        self._kubeconfig = kubeconfig
        self._capsys = capsys

    def apply(self, text: str, *options: str, nodes: str | None = None) -> tuple[int, str, str]:
        self.file.write_text(text, encoding="utf-8")
        selector = nodes or f"test={self.kube.node}"
        where = ["--nodes", selector, "--kubeconfig", str(self._kubeconfig)]
        code = main(["slo", "apply", str(self.file), *where, *options])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def results(self, text: str, *options: str, nodes: str | None = None) -> tuple[int, dict[str, str]]:
        code, out, _ = self.apply(text, "--json", *options, nodes=nodes)
        return code, {one["name"]: one["result"] for one in json.loads(out)["nodes"]}

    def spec(self, node: str) -> dict[str, Any] | None:
        try:
            return dict(self.kube.api.get(f"{NODESLOS}/{node}")["spec"])
        except ApiError:
            return None


@pytest.fixture
def ctl(kube: Kube, apiserver: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ctl:
    kube.create_service_account("writer", rules=RIGHTS)
    for number in (1, 2, 3):
        kube.create_node(f"{kube.node}-{number}", labels={"test": kube.node, "number": str(number)})
    path, access = tmp_path / "kubeconfig", apiserver.access
    token = kube.request_token("writer")
    return Ctl(kube, write_kubeconfig(path, access.url, access.ca_file, token=token), capsys)


def documented() -> str:
    """The file that docs/kubernetes.md shows."""
    return DOCS.read_text(encoding="utf-8").partition("```yaml\napiVersion: slo")[2].partition("```")[0]


FILE = f"apiVersion: slo{documented()}"
OTHER = FILE.replace("egressLimit: 50", "egressLimit: 60")


def test_the_nodes_of_a_selector_get_it_and_follow_it(ctl: Ctl, follow: Follow, apiserver: ApiServer) -> None:
    one, two, three = (f"{ctl.kube.node}-{number}" for number in (1, 2, 3))
    followed = follow(apiserver, one).ready()
    selector = f"test={ctl.kube.node},number!=3"
    assert ctl.results(FILE, "--dry-run", nodes=selector) == (0, {one: "created", two: "created"})
    assert ctl.spec(one) is None
    assert ctl.results(FILE, nodes=selector) == (0, {one: "created", two: "created"})
    assert (ctl.spec(one), ctl.spec(three)) == (ctl.spec(two), None)
    followed.until(lambda: followed.slo is not None)
    assert followed.slo is not None
    assert followed.slo.levels[Level.L2].ceiling.tx == Percent(50)
    assert followed.findings == ()
    assert ctl.results(FILE) == (0, {one: "unchanged", two: "unchanged", three: "created"})
    assert ctl.results(OTHER, "--dry-run") == (0, dict.fromkeys((one, two, three), "changed"))
    assert ctl.results(OTHER) == (0, dict.fromkeys((one, two, three), "changed"))
    followed.until(
        lambda: followed.slo is not None and followed.slo.levels[Level.L2].ceiling.tx == Percent(60)
    )


def test_values_of_another_writer_are_taken_over_only_by_force(ctl: Ctl) -> None:
    one = f"{ctl.kube.node}-1"
    theirs = {"cpuQOS": {"enable": True}, "networkQOS": {"enable": True, "egressLimit": 30}}
    ctl.kube.create_slo({"resourceQOSStrategy": {"beClass": theirs}}, node=one)
    code, out, err = ctl.apply(FILE, nodes="number=1")
    assert (code, "failed" in out, "409" in out, "--force" in err) == (1, True, True, True)
    assert ctl.spec(one) == {"resourceQOSStrategy": {"beClass": theirs}}
    assert ctl.results(FILE, "--force", nodes="number=1") == (0, {one: "changed"})
    spec = ctl.spec(one)
    assert spec is not None
    assert spec["resourceQOSStrategy"]["beClass"]["cpuQOS"] == {"enable": True}
    assert spec["resourceQOSStrategy"]["beClass"]["networkQOS"]["egressLimit"] == 50


def test_a_wrong_file_is_refused_before_anybody_is_asked(ctl: Ctl) -> None:
    code, out, err = ctl.apply(FILE.replace("egressLimit: 50", "egressLimit: 5000"))
    assert (code, out) == (5, "")
    assert "slo.yaml:" in err
    assert "nothing was written" in err
    assert ctl.spec(f"{ctl.kube.node}-1") is None


@pytest.mark.parametrize(
    ("nodes", "told"), [("test=nobody", "no node matches"), ("a=b=c", "400"), ("a in (", "400")]
)
def test_a_selector_without_nodes(ctl: Ctl, nodes: str, told: str) -> None:
    code, out, err = ctl.apply(FILE, nodes=nodes)
    assert (code, out, told in err) == (1, "", True), err


def test_without_the_right_to_write_each_node_is_told(ctl: Ctl, kube: Kube, apiserver: ApiServer) -> None:
    kube.create_service_account("reader", rules=[{**rule, "verbs": ["list"]} for rule in RIGHTS])
    path, access = ctl.file.with_name("reader"), apiserver.access
    token = kube.request_token("reader")
    reader = Ctl(kube, write_kubeconfig(path, access.url, access.ca_file, token=token), ctl._capsys)
    code, results = reader.results(FILE)
    assert (code, set(results.values())) == (1, {"failed"})


def test_a_server_that_is_away_and_one_without_the_kind(
    start_apiserver: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start_apiserver(crd=False)
    kube = Kube(server.admin, "bare")
    kube.api.patch(f"/api/v1/nodes/{kube.node}", {"metadata": {"labels": {"test": kube.node}}})
    access = server.access
    path = write_kubeconfig(tmp_path / "kubeconfig", access.url, access.ca_file, token=access.token)
    ctl = Ctl(kube, path, capsys)
    code, _, err = ctl.apply(FILE)
    assert (code, "daemonset/crd" in err) == (1, True)
    server.kill()
    code, _, err = ctl.apply(FILE)
    assert (code, "could not be asked" in err) == (1, True)


def test_no_kubeconfig_and_no_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["slo", "apply", str(file), "--nodes", "a=b"]) == 1
    assert "--kubeconfig" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["slo", "apply", str(file)])
    assert ended.value.code == 2
    assert "--nodes" in capsys.readouterr().err
