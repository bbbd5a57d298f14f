"""What a pod needs to speak with its API server: the address, by environment, and its service account's token and CA.

Read here and not by the client of Kubernetes, which brings ten MiB of modules that a pod has no use for. The kubelet
renews both files where they are: the CA's is read with each connection, the token's with each request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has the credentials of its service account."""

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def server_url(environ: Mapping[str, str] = os.environ) -> str:
    """Where the API server is. ValueError where the environment does not say."""
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "")
    if not host or not port:
        raise ValueError(f"{_HOST} and {_PORT} are not both set")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def authority(folder: Path) -> Path:
    """The file of the CA that vouches for it. OSError or ValueError where there is none."""
    return _filled(folder / "ca.crt")[0]


def headers(folder: Path) -> dict[str, str]:
    """Those that authenticate. OSError or ValueError without a token."""
    return {"authorization": f"Bearer {_filled(folder / 'token')[1].strip()}"}


def _filled(path: Path) -> tuple[Path, str]:
    text = path.read_text(encoding="ascii")
    if not text.strip():
        raise ValueError(f"{path.name} is empty")
    return path, text
