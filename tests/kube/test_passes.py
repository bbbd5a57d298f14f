"""`netqosd --once` and `--dry-run` on a node of a real API server: what they say of it, and what they end with."""

from __future__ import annotations

import subprocess

import pytest

from netqos.testing.faultreplies import NoAnswer, status
from tests.apiserver.kube import Kube
from tests.kube.kubenode import EGRESS, Node

pytestmark = pytest.mark.kernel("htb", "nft")


Outcome = tuple[int, list[str]]


def run(node: Node, *modes: str) -> list[Outcome]:
    """The exit code of each mode, all at once, and what it printed."""
    commands = [[*node.daemon.command, mode] for mode in modes]
    processes = [node.rig.node.popen(one, stdout=subprocess.PIPE, own_sysfs=True) for one in commands]
    printed = [process.communicate(timeout=40)[0].decode().splitlines() for process in processes]
    return [(process.returncode, lines) for process, lines in zip(processes, printed, strict=True)]


def about(lines: list[str], subject: str) -> list[str]:
    """The severities of the findings about it."""
    return [line.split(":")[0] for line in lines if f": {subject}:" in line]


@pytest.mark.parametrize("mode", ["--dry-run", "--once"])
def test_a_rejected_annotation_is_printed_and_no_failure(node: Node, kube: Kube, mode: str) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    ((code, lines),) = run(node, mode)
    told = [line for line in lines if "12Mbps" in line]
    assert (code, about(told, f"pod {kube.namespace}/bad"), len(told)) == (0, ["warning"], 1)
    assert ("ceil 11Mbit" in node.classes()) == (mode == "--once")


@pytest.mark.parametrize("mode", ["--dry-run", "--once"])
def test_a_class_that_cannot_be_in_force_is_printed_and_a_failure(node: Node, kube: Kube, mode: str) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "x"}}}}
    )
    ((code, lines),) = run(node, mode)
    assert (code, about(lines, f"nodeslo {kube.node}")) == (1, ["warning"])
    assert [line for line in lines if line.startswith("error: policy L2")]
    assert ("ceil 11Mbit" in node.classes()) == (mode == "--once")


def test_a_cluster_without_the_kind_is_told_and_no_failure(node: Node, kube: Kube) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    node.proxy.answer(status(404), path="/nodeslos")
    ((code, lines),) = run(node, "--once")
    assert (code, about(lines, "source nodeslo")) == (0, ["info"])
    assert "ceil 11Mbit" in node.classes()


def test_a_source_that_does_not_deliver_is_an_error_and_what_stands_stays(node: Node, kube: Kube) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    assert run(node, "--once")[0][0] == 0
    kube.annotate_pod("good", {EGRESS: "13M"})
    node.proxy.answer(NoAnswer(), path="/api/v1/pods")
    for code, lines in run(node, "--dry-run", "--once"):
        assert (code, about(lines, "source pods"), about(lines, "source node")) == (1, ["error"], [])
    assert "ceil 11Mbit" in node.classes()
