"""The processes of one API server: how they are started, awaited and ended. They never outlive the tests."""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netqos.testing.certificates import write_private_key
from netqos.testing.processes import tool_environment
from tests.apiserver.programs import OneProgram, Programs, TwoPrograms

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


class ServerFailed(Exception):
    """It ended or did not get ready; the message holds the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a running server is and how to get in as its administrator (group system:masters)."""

    url: str
    ca_file: Path
    token: str
    etcd_url: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports to listen on, 0 for any free one."""

    api: int = 0
    etcd: int = 0


class Launched(Protocol):
    """A server's processes."""

    @property
    def access(self) -> Access:
        """Where it is."""

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        """In the order in which they are ended."""


def launch(programs: Programs, folder: Path, ports: Ports, flags: Sequence[str]) -> Launched:
    """Start a server on a folder, new or used before, and wait until it is ready. `ServerFailed` otherwise."""
    match programs:
        case OneProgram():
            return _Single(programs, folder, ports, flags)
        case TwoPrograms():
            return _Pair(programs, folder, ports, flags)


def end(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    """Signal the processes one after the other, each after the one before has ended."""
    for process in processes:
        process.send_signal(number)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _start(command: Sequence[str], log: Path, *, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Start a program that the kernel ends when this process ends, its talk appended to a log."""
    tied = ["setpriv", "--pdeathsig", "KILL", *command]
    with log.open("ab") as file:
        return subprocess.Popen(
            tied, stdin=subprocess.DEVNULL, stdout=stdout or file, stderr=file, env=tool_environment()
        )


def _failure(what: str, log: Path) -> ServerFailed:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
    return ServerFailed("\n".join([f"{what}; its log ends with", *lines]))


class _Single:
    """The program of this folder, which says by one JSON line that it is ready."""

    def __init__(self, program: OneProgram, folder: Path, ports: Ports, flags: Sequence[str]) -> None:
        self._log = folder.with_name(f"{folder.name}.log")
        command = [str(program.path), "--dir", str(folder)]
        command += ["--port", str(ports.api), "--etcd-port", str(ports.etcd), "--", *flags]
        process = _start(command, self._log, stdout=subprocess.PIPE)
        self.processes = (process,)
        try:
            told = json.loads(self._first_line(process))
        except BaseException:
            end(self.processes, signal.SIGKILL)
            raise
        self.access = Access(
            url=told["server"],
            ca_file=Path(told["ca"]),
            token=told["token"],
            etcd_url=told["etcd"],
            kubeconfig=Path(told["kubeconfig"]),
        )

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
        line: bytes = process.stdout.readline() if ready else b""
        if not line:
            raise _failure(f"not ready after {START_TIMEOUT_S:.0f} s" if not ready else "it ended", self._log)
        return line


class _Pair:
    """A released etcd and a released kube-apiserver, with the flags that main.go gives."""

    def __init__(self, programs: TwoPrograms, folder: Path, ports: Ports, flags: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder.with_name(f"{folder.name}.log")
        token = _written_once(folder / "admin-token", secrets.token_hex(16))
        _written_once(folder / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
        if not (folder / "sa.key").exists():
            write_private_key(folder / "sa.key")
        self.access = Access(
            url=f"https://127.0.0.1:{ports.api or _free_port()}",
            ca_file=folder / "certs/apiserver.crt",
            token=token,
            etcd_url=f"http://127.0.0.1:{ports.etcd or _free_port()}",
            kubeconfig=folder / "kubeconfig",
        )
        etcd = _start(self._etcd_command(programs.etcd, folder), self._log)
        server = _start(self._server_command(programs.apiserver, folder, flags), self._log)
        self.processes = (server, etcd)
        try:
            self._wait_ready()
        except BaseException:
            end(self.processes, signal.SIGKILL)
            raise
        write_kubeconfig(self.access.kubeconfig, self.access.url, self.access.ca_file, token=token)

    def _etcd_command(self, program: Path, folder: Path) -> list[str]:
        client = self.access.etcd_url
        peer = f"http://127.0.0.1:{_free_port()}"
        return [
            str(program),
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
            "--experimental-watch-progress-notify-interval=1s",
        ]

    def _server_command(self, program: Path, folder: Path, flags: Sequence[str]) -> list[str]:
        defaults = [
            f"--etcd-servers={self.access.etcd_url}",
            f"--secure-port={self.access.url.rpartition(':')[2]}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--cert-dir={folder / 'certs'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'sa.key'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged",
            "--shutdown-watch-termination-grace-period=1s",
        ]
        given = {one.partition("=")[0] for one in flags}
        return [str(program), *(one for one in defaults if one.partition("=")[0] not in given), *flags]

    def _wait_ready(self) -> None:
        end_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end_s:
            for process in self.processes:
                if process.poll() is not None:
                    raise _failure("etcd or kube-apiserver ended", self._log)
            with contextlib.suppress(OSError):
                context = ssl.create_default_context(cafile=str(self.access.ca_file))
                with urllib.request.urlopen(f"{self.access.url}/readyz", timeout=1, context=context):
                    return
            time.sleep(0.05)
        raise _failure(f"not ready after {START_TIMEOUT_S:.0f} s", self._log)


def write_kubeconfig(
    path: Path, url: str, ca_file: Path, *, token: str | None = None, **user: object
) -> Path:
    """Write a kubeconfig; `user` gives other keys of its user, such as tokenFile."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "users": [{"name": "test", "user": user if token is None else {"token": token, **user}}],
    }
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(document), encoding="utf-8")
    fresh.chmod(0o600)
    return fresh.replace(path)


def _written_once(path: Path, text: str) -> str:
    """The text of a file, written first where it is not there: a second start keeps its keys."""
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
    return path.read_text(encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
