"""The daemon as a pod: the API server by environment, the service account by its folder, both of which are renewed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netqos.testing.faultreplies import status
from tests.apiserver.kube import Kube
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.kube.site import site
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")

SITE = """
import os

mount("tmpfs", "/run", "tmpfs")
os.makedirs("/run/secrets/kubernetes.io")
os.symlink({folder!r}, "/run/secrets/kubernetes.io/serviceaccount")
"""


@pytest.fixture
def account(node: Node, kube: Kube) -> Path:
    """The folder of the service account of a daemon that follows."""
    folder = node.rig.folder / "account"
    folder.mkdir()
    (folder / "token").write_text(kube.request_token("netqos"), encoding="ascii")
    (folder / "ca.crt").symlink_to(node.proxy.ca_file)
    document = json.loads(node.daemon.paths.config.read_text(encoding="utf-8"))
    node.daemon.configure({**document, "kubernetes": {}})
    kube.create_pod("web", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    host, _, port = node.proxy.url.removeprefix("https://").rpartition(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    node.daemon.start(env={**env, **site(node.rig.folder / "site", SITE.format(folder=str(folder)))})
    wait_until(lambda: fresh(node) and "ceil 11Mbit" in node.classes())
    return folder


def renew(account: Path, kube: Kube) -> str:
    """A new token in the place of the old one, as the kubelet does it."""
    token = kube.request_token("netqos", seconds=7200)
    (account / "fresh").write_text(token, encoding="ascii")
    (account / "fresh").rename(account / "token")
    return token


def test_a_token_that_was_renewed(node: Node, kube: Kube, account: Path) -> None:
    token = renew(account, kube)
    node.proxy.answer(status(401), times=3)
    node.proxy.reset()
    kube.annotate_pod("web", {EGRESS: "12M"})
    wait_until(lambda: "ceil 12Mbit" in node.classes() and fresh(node), 5)
    assert node.proxy.requests[-1].headers["authorization"].endswith(token)


def test_a_certificate_of_another_authority(node: Node, kube: Kube, account: Path) -> None:
    """Refused as long as the folder has the old authority, whatever else is there."""
    node.proxy.change_certificate(trusted=False)
    node.proxy.reset()
    wait_until(lambda: node.sources()["pods"] == "stale")
    kube.annotate_pod("web", {EGRESS: "12M"})
    renew(account, kube)
    assert "ceil 11Mbit" in node.classes()
    node.proxy.change_certificate(trusted=True, forget=True)
    wait_until(lambda: "ceil 12Mbit" in node.classes() and fresh(node), 5)
