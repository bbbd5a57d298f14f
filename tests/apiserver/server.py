"""A real API server under a test's control: start, stop, kill, freeze, compact, and what it was asked."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import urllib3

from tests.apiserver.client import Api, Document
from tests.apiserver.launch import Access, Launched, Ports, end, launch
from tests.apiserver.programs import Programs

STORE = "etcd"
"""The folder of the store in a server's own."""

AUDIT_POLICY = '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}'


class ApiServer:
    """One data folder, started as often as wanted; it keeps keys, token, data and ports over all its starts."""

    def __init__(
        self, programs: Programs, folder: Path, *, flags: Sequence[str] = (), audit: bool = False
    ) -> None:
        """Nothing runs yet. `flags` are added to kube-apiserver's own; `audit` records all requests."""
        self._programs = programs
        self.folder = folder
        self._audit_log = folder.with_name(f"{folder.name}-audit.log") if audit else None
        self._flags = (*self._audit_flags(), *flags)
        self._launched: Launched | None = None
        self._ports = Ports()
        self._admin: Api | None = None

    # -------------------------------------------------------------- life

    def start(self) -> None:
        """Start and wait until it is ready (2 to 4 s on two idle cores)."""
        assert self._launched is None, "it runs"
        self._launched = launch(self._programs, self.folder, self._ports, self._flags)
        access = self._launched.access
        self._ports = Ports(api=_port(access.url), etcd=_port(access.etcd_url))
        if self._admin is None:
            self._admin = Api(access.url, access.ca_file, access.token)

    def stop(self) -> None:
        """SIGTERM: open watches are ended within about a second. Nothing where it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: every connection is reset."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop, and start again on the same ports; resource versions of before are 410 Gone then."""
        self.stop()
        self.start()

    def back_up(self) -> Path:
        """Stop, copy the store, and start again; the copy, for `go_back`."""
        self.stop()
        copy = self.folder.with_name(f"{self.folder.name}-backup")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / STORE, copy)
        self.start()
        return copy

    def go_back(self, copy: Path) -> None:
        """Stop, put the copy in the store's place, and start again: resource versions are those of then."""
        self.stop()
        shutil.rmtree(self.folder / STORE)
        shutil.copytree(copy, self.folder / STORE)
        self.start()

    def freeze(self) -> None:
        """SIGSTOP: connections stay, connecting works, and nothing is answered until `thaw`."""
        for process in self._running.processes:
            os.kill(process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on after `freeze`."""
        for process in self._running.processes:
            os.kill(process.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it for good."""
        self.stop()
        if self._admin is not None:
            self._admin.close()

    def _end(self, number: int) -> None:
        if self._launched is not None:
            end(self._launched.processes, number)
            self._launched = None
        if self._admin is not None:
            self._admin.close()

    # -------------------------------------------------------------- access

    @property
    def is_running(self) -> bool:
        """Whether all its processes live."""
        return self._launched is not None and all(one.poll() is None for one in self._launched.processes)

    @property
    def access(self) -> Access:
        """URL, CA file, token and kubeconfig of the administrator."""
        return self._running.access

    @property
    def admin(self) -> Api:
        """The administrator's client; it lasts over restarts."""
        assert self._admin is not None, "it was never started"
        return self._admin

    @property
    def _running(self) -> Launched:
        assert self._launched is not None, "it does not run"
        return self._launched

    # -------------------------------------------------------------- trouble

    def revision(self) -> int:
        """The revision of the store, as an int."""
        answer = self._etcd("kv/range", {"key": base64.b64encode(b"/").decode()})
        return int(answer["header"]["revision"])

    def compact(self) -> int:
        """Forget all earlier revisions; the revision that is kept.

        An older version is 410 Gone after this only for a resource without watch cache: start the server with
        `--watch-cache-sizes=pods#0` (and others), or use `restart`.
        """
        revision = self.revision()
        self._etcd("kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def requests(self) -> Iterator[Document]:
        """The audit events of the requests that ended so far, the oldest first; `audit` must be on."""
        assert self._audit_log is not None, "the server was started without audit"
        with self._audit_log.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def _etcd(self, call: str, body: Document) -> Document:
        with urllib3.HTTPConnectionPool("127.0.0.1", self._ports.etcd, retries=False) as pool:
            response = pool.request("POST", f"/v3/{call}", json=body, timeout=10)
            assert response.status == 200, response.data
            answer: Document = response.json()
            return answer

    def _audit_flags(self) -> tuple[str, ...]:
        if self._audit_log is None:
            return ()
        policy = self.folder.with_name(f"{self.folder.name}-audit-policy.json")
        policy.write_text(AUDIT_POLICY, encoding="utf-8")
        return (f"--audit-policy-file={policy}", f"--audit-log-path={self._audit_log}")


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
