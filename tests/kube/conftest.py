from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from netqos.testing.faultproxy import FaultProxy
from tests.apiserver.fixtures import MakeProxy
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer
from tests.kube.followed import Followed
from tests.kube.kubenode import Node, following

Follow = Callable[..., Followed]


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Follow]:
    """Follow a node: `follow(server, node)`, or `follow(server, node, proxy=proxy)`; ended with the test."""
    with ExitStack() as stack:

        def start(server: ApiServer, node: str, *, proxy: FaultProxy | None = None, **more: Any) -> Followed:
            kubeconfig = Path(server.access.kubeconfig)
            if proxy is not None:
                path = tmp_path / "proxy.kubeconfig"
                token = server.access.token
                kubeconfig = write_kubeconfig(path, proxy.url, proxy.ca_file, token=token)
            return stack.enter_context(Followed(kubeconfig, node, **more))

        yield start


@pytest.fixture
def node(kube: Kube, apiserver: ApiServer, make_proxy: MakeProxy) -> Iterator[Node]:
    with following(kube, make_proxy(apiserver)) as node:
        yield node
