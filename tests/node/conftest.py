"""netqos in a cluster of one node: what test_deployment.py and test_life.py begin with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.testing.traffic import Traffic
from tests.apiserver.fixtures import needed
from tests.apiserver.kube import Kube
from tests.kube.manifests import helm, kustomize
from tests.node.cluster import NAMESPACE, Cluster
from tests.node.footprint import footprint, wait_as_before
from tests.node.image import built_image, previous_image
from tests.node.managers import find_controllers
from tests.node.pods import Pods
from tests.node.programs import NodePrograms
from tests.node.realnode import RealNode


@pytest.fixture(scope="session")
def image_archive() -> Path:
    """The image of the checkout, built now where need be; without it the test is skipped."""
    return needed("image to test", built_image)


@pytest.fixture(scope="session")
def previous_archive() -> Path:
    """The image of earlier sources."""
    return needed("earlier image to update from", previous_image)


@pytest.fixture(scope="session")
def controllers() -> Path:
    """The program of the cluster's controllers, built now where need be; without it the test is skipped."""
    return needed("controllers to test with", find_controllers)


@pytest.fixture(scope="session")
def cluster(node_programs: NodePrograms, controllers: Path, image_archive: Path) -> Iterator[Cluster]:
    """A node of these tests' own with controllers and netqos's image; nothing of netqos is deployed."""
    with RealNode(node_programs, accounts=True) as node:
        node.containerd.import_image(image_archive)
        yield Cluster(node, controllers)


@pytest.fixture(scope="session")
def deployed(cluster: Cluster, renderer: Path) -> Iterator[Cluster]:
    """netqos, rolled out; at the end it is uninstalled, and the node must be as it was."""
    cluster.show_pods()
    before = footprint(cluster.node)
    cluster.switch_on()
    cluster.deploy(kustomize(renderer, "plain"))
    yield cluster
    cluster.uninstall(helm(renderer, NAMESPACE))
    cluster.remove_empty_folders()
    wait_as_before(cluster.node, before)


@pytest.fixture(scope="session")
def pair(deployed: Cluster) -> Iterator[Pods]:
    """Two pods that stay, one of L1 and one of L2."""
    kube = Kube(deployed.node.api, "pair", node=deployed.node.name)
    deployed.wait_for_account(kube.namespace)
    pods = Pods(deployed.node, kube)
    try:
        pods.start("quiet", labels={"koordinator.sh/qosClass": "LS"})
        pods.start("bulk", labels={"koordinator.sh/qosClass": "BE"})
        yield pods
    finally:
        pods.close()
        kube.close()


@pytest.fixture
def pods(pair: Pods) -> Iterator[Pods]:
    """Both, while that of L2 fills the link in both directions; what a test adds to them goes with it."""
    stay = pair.names
    traffic = Traffic(pair)
    try:
        traffic.tcp("bulk").start()
        traffic.tcp("bulk", towards_pod=True).start()
        time.sleep(0.5)
        yield pair
    finally:
        traffic.stop()
        pair.delete(*pair.names - stay)
