"""Throw-away keys and certificates for servers on the loopback address, made by the program openssl."""

from __future__ import annotations

import itertools
import ssl
from dataclasses import dataclass
from pathlib import Path

from netqos.testing.processes import run_tool

NAME = "kubernetes.test"
"""A name for the loopback address, which no resolver knows but a test's own (RFC 6761 6.2)."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate for 127.0.0.1, ::1, localhost and `NAME` that signed itself, so that it is its own CA."""

    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """What a server that shows it needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_certificate(folder: Path) -> Certificate:
    """Make a new key and certificate in files of their own in a folder; valid for two days."""
    stem = f"throwaway-{next(_numbers)}"
    made = Certificate(certificate=folder / f"{stem}.crt", key=folder / f"{stem}.key")
    run_tool(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-days", "2", "-subj", f"/CN={stem}", "-addext", "basicConstraints=critical,CA:true"),
            *("-addext", f"subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost,DNS:{NAME}"),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        ]
    )
    return made


def write_private_key(path: Path) -> None:
    """Write a new private key for ES256, readable by its owner only, in the form that has its public half (SEC 1)."""
    run_tool(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)])
    path.chmod(0o600)
