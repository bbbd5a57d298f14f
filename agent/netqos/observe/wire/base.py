"""What every resource of the wire is made of: names, findings, errors, and the encoder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

API = "v1"
SCOPE = "traffic that crosses an uplink; not traffic between pods of this node, or between a pod and the node"
T = TypeVar("T")

Way = Literal["tx", "rx"]
Word = Literal["egress", "ingress"]
LevelName = Literal["L0", "L1", "L2"]
Asked = Literal["level", "limit", "rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWire:
    """What is wrong or noteworthy (`severity`: info, warning or error), about what, and the next step."""

    code: str
    severity: str
    subject: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemWire:
    """What went wrong; programs compare `code`, people read the rest."""

    code: str
    message: str
    hint: str
    problems: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorWire:
    """The body of every answer with a status of 400 or more."""

    error: ProblemWire


def encode(answer: object) -> bytes:
    """One JSON text in ASCII, without a line break, from a model of this package or a list or dict of them."""
    return _ENCODER.encode(answer).encode("ascii")


def _as_dict(model: Any) -> dict[str, object]:
    return {name: getattr(model, name) for name in model.__slots__}


_ENCODER = json.JSONEncoder(default=_as_dict, separators=(",", ":"), allow_nan=False)
