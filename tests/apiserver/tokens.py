"""Service account tokens that the API server would not give: expired ones, or of any other claims.

The server's own key signs them, so that only the claims decide. The server grants 60 s of leeway and remembers a
token that it accepted for 10 s.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

Claims = dict[str, Any]


def claims_of(token: str) -> Claims:
    """What a token says, unchecked."""
    claims: Claims = json.loads(_decode(token.split(".")[1]))
    return claims


def resign(token: str, key_file: Path, **changed: object) -> str:
    """The same token with claims changed (`exp`, `iat`, `nbf`: seconds since the epoch), signed with ES256."""
    header = token.split(".", maxsplit=1)[0]
    signed = f"{header}.{_encode(json.dumps({**claims_of(token), **changed}).encode())}"
    done = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", str(key_file)],
        input=signed.encode(),
        capture_output=True,
        check=True,
    )
    return f"{signed}.{_encode(_raw_signature(done.stdout))}"


def _raw_signature(der: bytes) -> bytes:
    """The two numbers of an ASN.1 signature (a SEQUENCE of two INTEGERs), 32 bytes each (RFC 7518 3.4)."""
    numbers, at = [], 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(der[at + 2 : at + 2 + length].lstrip(b"\0").rjust(32, b"\0"))
        at += 2 + length
    return b"".join(numbers)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
