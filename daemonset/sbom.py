"""The bill of materials of the image that this runs in, as CycloneDX 1.5 JSON on stdout.

    sbom.py requirements.lock

Every Debian package by dpkg, every Python package of this environment by its own metadata, each Python package with the
digests of the files that the lock accepts. The same packages and lock give the same bytes: there is no time in it, and
its serial number follows from its content.
"""

import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]

_PINNED = re.compile(r"^([\w.-]+)==(\S+)((?:.*\\\n)*.*)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_FORMAT = (
    "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
)


def main() -> int:
    """Print the document; exit code 2 where the lock does not know what is installed."""
    lock = Path(sys.argv[1]).read_text(encoding="utf-8")
    try:
        document = bill(lock)
    except ValueError as problem:
        print(f"sbom: {problem}", file=sys.stderr)
        return 2
    print(json.dumps(document, indent=1, sort_keys=True))
    return 0


def bill(lock: str) -> Component:
    """The whole document. ValueError for a Python package that the lock does not have in that version."""
    ours = importlib.metadata.distribution("netqos")
    components = [*python_packages(accepted(lock)), *debian_packages()]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "netqos",
                "name": "netqos",
                "version": ours.version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"pkg:pypi/netqos@{ours.version}",
            },
            "properties": [
                {"name": "netqos:lock:sha256", "value": hashlib.sha256(lock.encode()).hexdigest()},
                {"name": "netqos:python", "value": platform.python_version()},
            ],
        },
        "components": components,
        "dependencies": [{"ref": "netqos", "dependsOn": [one["bom-ref"] for one in components]}],
    }
    seed = json.dumps(body, sort_keys=True)
    return {**body, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}"}


def accepted(lock: str) -> dict[tuple[str, str], list[str]]:
    """The sha256 of the files that the lock accepts, by name and version."""
    return {(name(found[1]), found[2]): _HASH.findall(found[3]) for found in _PINNED.finditer(lock)}


def python_packages(known: dict[tuple[str, str], list[str]]) -> list[Component]:
    """What is installed beside this interpreter, without netqos itself."""
    found = {name(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    del found["netqos"]
    strangers = [f"{key} {one.version}" for key, one in found.items() if (key, one.version) not in known]
    if strangers:
        raise ValueError(f"not in the lock: {', '.join(sorted(strangers))}")
    return [python_package(key, one, known[key, one.version]) for key, one in sorted(found.items())]


def python_package(key: str, one: importlib.metadata.Distribution, digests: list[str]) -> Component:
    """One component; its files are told as the distribution that they come from."""
    purl = f"pkg:pypi/{key}@{one.version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": key,
        "version": one.version,
        "purl": purl,
        **licence(one),
        "properties": [{"name": "netqos:lock:accepts", "value": f"sha256:{digest}"} for digest in digests],
    }


def licence(one: importlib.metadata.Distribution) -> Component:
    """What the package says of its licence: an expression, else the words of its classifiers."""
    if "License-Expression" in one.metadata:
        return {"licenses": [{"expression": one.metadata["License-Expression"]}]}
    said = [
        text.split(" :: ")[-1]
        for text in one.metadata.get_all("Classifier", [])
        if text.startswith("License")
    ]
    return {"licenses": [{"license": {"name": text}} for text in said]} if said else {}


def debian_packages() -> list[Component]:
    """What dpkg has installed; nothing where the base has no dpkg."""
    try:
        shown = subprocess.run(
            ["dpkg-query", "--show", "--showformat", _FORMAT], capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError:
        return []
    lines = [line.split("\t") for line in shown.splitlines()]
    return [debian_package(words) for status, *words in sorted(lines) if status == "installed"]


def debian_package(words: Sequence[str]) -> Component:
    """One component, with the source package that vulnerabilities are told of."""
    package, version, architecture, source, source_version = words
    purl = f"pkg:deb/debian/{package}@{quote(version, safe='')}?arch={architecture}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package,
        "version": version,
        "purl": purl,
        "properties": [{"name": "netqos:debian:source", "value": f"{source} {source_version}"}],
    }


def name(text: str) -> str:
    """A Python package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", text).lower()


if __name__ == "__main__":
    sys.exit(main())
