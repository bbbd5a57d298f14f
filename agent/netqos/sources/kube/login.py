"""Who we are to the API server, and the connections to it. The one home of the `kubernetes` package.

It is loaded with the first request, in the thread that makes it, and for a kubeconfig alone: a node without Kubernetes
never pays for it, nor does a pod, whose credentials `netqos.sources.kube.account` reads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from netqos.sources.kube import account

POOL_SIZE = 8
"""Three watches, as many lists, Events and the node's annotation."""

SOCKET_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Where the server is, the connections to it, the headers that authenticate, and the file of its authority."""

    url: str
    pool: Any
    headers: Callable[[], dict[str, str]]
    ca_file: object


def of_pod() -> Login:
    """As the service account that a pod has. OSError or ValueError where one of its parts is not there."""
    import urllib3  # noqa: PLC0415 - as the module's docstring says

    folder = account.SERVICE_ACCOUNT
    ca_file = str(account.authority(folder))
    headers = partial(account.headers, folder)
    headers()
    pool = urllib3.PoolManager(
        cert_reqs="CERT_REQUIRED",
        ca_certs=ca_file,
        maxsize=POOL_SIZE,
        retries=False,
        socket_options=SOCKET_OPTIONS,
    )
    return Login(url=account.server_url(), pool=pool, headers=headers, ca_file=ca_file)


def of_kubeconfig(path: Path) -> Login:
    """As the user of a kubeconfig; whatever the client of Kubernetes raises for one that is none."""
    from kubernetes import client, config  # noqa: PLC0415 - as the module's docstring says

    loaders: Any = config
    configuration = client.Configuration()
    loaders.load_kube_config(str(path), client_configuration=configuration, persist_config=False)
    configuration.retries = False
    configuration.socket_options = list(SOCKET_OPTIONS)
    configuration.connection_pool_maxsize = POOL_SIZE

    def headers() -> dict[str, str]:
        settings: Any = configuration.auth_settings()
        return {one["key"]: one["value"] for one in settings.values() if one["in"] == "header"}

    return Login(
        url=configuration.host,
        pool=client.ApiClient(configuration).rest_client.pool_manager,
        headers=headers,
        ca_file=configuration.ssl_ca_cert,
    )
