"""The credentials of a pod: what is read of them, what is wrong with them, and that they cost little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netqos.sources.kube import account


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret\n", encoding="ascii")
    (tmp_path / "ca.crt").write_text("a certificate", encoding="ascii")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
)
def test_the_servers_address_is_the_environments(host: str, url: str) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
    assert account.server_url(environ) == url
    for name in environ:
        with pytest.raises(ValueError, match="not both set"):
            account.server_url({**environ, name: ""})


def test_a_renewed_token_counts_at_once(folder: Path) -> None:
    assert account.headers(folder) == {"authorization": "Bearer secret"}
    (folder / "token").write_text("fresh", encoding="ascii")
    assert account.headers(folder) == {"authorization": "Bearer fresh"}
    assert account.authority(folder) == folder / "ca.crt"


@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_what_is_empty_or_not_there_is_none(folder: Path, name: str) -> None:
    read = {"token": account.headers, "ca.crt": account.authority}[name]
    (folder / name).write_text("\n", encoding="ascii")
    with pytest.raises(ValueError, match=f"{name} is empty"):
        read(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read(folder)


def test_a_pod_loads_no_client_of_kubernetes(folder: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
from netqos.sources.kube import account
from netqos.sources.kube.connection import Connection
account.SERVICE_ACCOUNT = Path({str(folder)!r})
os.environ |= {{"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}}
assert Connection().what_is_missing() == ""
assert Connection().bearer() == {{"authorization": "Bearer secret"}}
assert not {{"kubernetes", "requests", "oauthlib"}} & sys.modules.keys()
(account.SERVICE_ACCOUNT / "token").unlink()
print(Connection().what_is_missing())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"no usable credentials in {folder}: FileNotFoundError: ")
