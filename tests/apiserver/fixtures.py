"""The fixtures of all tests that need an API server. README.md beside this file tells how to use them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import yaml

from netqos.testing.faultproxy import FaultProxy
from tests.apiserver.client import Api, ApiError, Document
from tests.apiserver.gobuild import ROOT, Unavailable, built
from tests.apiserver.kube import NODESLOS, Kube
from tests.apiserver.programs import SOURCES, Programs, find_programs
from tests.apiserver.server import ApiServer

CRD_FILE = ROOT / "daemonset" / "crd" / "crd-nodeslo.yaml"
FIXTURES = frozenset({"apiserver_programs", "renderer"})

T = TypeVar("T")

StartServer = Callable[..., ApiServer]
MakeProxy = Callable[..., FaultProxy]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A build or start is not counted as a test's time."""
    for item in items:
        if isinstance(item, pytest.Function) and not FIXTURES.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.timeout(own_timeout(item), func_only=True), append=False)


def own_timeout(item: pytest.Item) -> float:
    """The seconds that a test asks for by its marker, 60 where it has none."""
    marker = item.get_closest_marker("timeout")
    seconds: float = 60 if marker is None else (*marker.args, marker.kwargs.get("timeout"))[0]
    return seconds


def needed(what: str, find: Callable[[], T]) -> T:
    """What is found; where it is neither there nor can be built, the test is skipped, naming what it needs and why."""
    try:
        return find()
    except Unavailable as problem:
        pytest.skip(f"no {what}: {problem}")


@pytest.fixture(scope="session")
def apiserver_programs() -> Programs:
    """The programs of an API server, built now where need be; without them the test is skipped."""
    return needed("API server to test with", find_programs)


@pytest.fixture(scope="session")
def renderer() -> Path:
    """The program that does what kustomize and helm do (tests/kube/manifests.py), built now where need be."""
    return needed("program to render manifests with", partial(built, SOURCES / "render"))


@pytest.fixture(scope="session")
def apiserver(apiserver_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The session's API server, with the CRD of NodeSLO. Tests leave it running and in order."""
    server = ApiServer(apiserver_programs, tmp_path_factory.mktemp("apiserver") / "data")
    server.start()
    try:
        install_crd(server.admin)
        yield server
    finally:
        server.close()


@pytest.fixture
def kube(apiserver: ApiServer, request: pytest.FixtureRequest) -> Iterator[Kube]:
    """A namespace and a node of the test's own on the session's server."""
    kube = Kube(apiserver.admin, request.node.name)
    try:
        yield kube
    finally:
        kube.close()


@pytest.fixture
def start_apiserver(apiserver_programs: Programs, tmp_path: Path) -> Iterator[StartServer]:
    """Start servers of the test's own: `start_apiserver("--flag=...", crd=True, audit=False)`."""
    servers: list[ApiServer] = []

    def start(*flags: str, crd: bool = True, audit: bool = False) -> ApiServer:
        folder = tmp_path / f"apiserver-{len(servers)}"
        server = ApiServer(apiserver_programs, folder, flags=flags, audit=audit)
        servers.append(server)
        server.start()
        if crd:
            install_crd(server.admin)
        return server

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def make_proxy(tmp_path: Path) -> Iterator[MakeProxy]:
    """Put fault proxies before servers: `make_proxy(server)`, or with `http=False` one that passes TLS through."""
    proxies: list[FaultProxy] = []

    def make(server: ApiServer, *, http: bool = True) -> FaultProxy:
        proxy = FaultProxy(server.access.url, server.access.ca_file, folder=tmp_path, http=http)
        proxies.append(proxy)
        proxy.start()
        return proxy

    yield make
    for proxy in proxies:
        proxy.close()


def install_crd(api: Api, *, timeout_s: float = 20) -> None:
    """Create the CRD of NodeSLO and wait until objects can be written quickly.

    The server delays the first write that comes within 2 s after a CRD is established; that write is made here.
    """
    crd: Document = yaml.safe_load(CRD_FILE.read_text(encoding="utf-8"))
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    warm = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": "warm-up"}}
    end_s = time.monotonic() + timeout_s
    while True:
        try:
            api.create(NODESLOS, warm)
            break
        except ApiError as problem:
            if problem.status != 404 or time.monotonic() > end_s:
                raise
        time.sleep(0.05)
    api.delete(f"{NODESLOS}/warm-up")
