"""The annotation `koordinator.sh/networkQOS`: a JSON object with one limit for each direction (contract 1.2 line 2).

Keys are taken in any case, as Go's decoder takes them. A text is a quantity in bits per second, a whole number a
percentage of the node's total; null and an empty text are as good as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.inputs import Amount, Percent
from netqos.model.levels import Direction, PerDirection
from netqos.model.quantities import parse_limit
from netqos.model.texts import shown
from netqos.settings.candidates import LimitCandidate, limit_candidate
from netqos.settings.issues import Code, unknown_key
from netqos.settings.jsontext import REPEATED, load_json

NETWORK_QOS = "koordinator.sh/networkQOS"
SOURCE = f"annotation {NETWORK_QOS}"

_KEYS = {Direction.TX: "egresslimit", Direction.RX: "ingresslimit"}
# Of the same Go type, but with no meaning for a pod here.
_UNUSED = {
    "egressrequest": "a minimum is bandwidth_min of koordinator.sh/qos-config",
    "ingressrequest": "a minimum is bandwidth_min of koordinator.sh/qos-config",
    "qosclass": "the level is koordinator.sh/net-qos-class or the label koordinator.sh/qosClass",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkQos:
    """What the annotation asks for; a direction that it does not mention is None. `findings` are beside the limits'."""

    limits: PerDirection[LimitCandidate | None]
    findings: tuple[Finding, ...] = ()


NOTHING = NetworkQos(limits=PerDirection(tx=None, rx=None))


def parse_network_qos(text: object, *, subject: str) -> NetworkQos:
    """The annotation's text; nothing for null and for an empty text, both directions rejected for what is no object."""
    if text is None or text == "":
        return NOTHING
    try:
        tree = _object(text)
    except Rejected as problem:
        finding = warning(Code.LIMIT.value, subject, f"{SOURCE}: {problem.message}", hint=problem.hint)
        rejected = LimitCandidate(source=SOURCE, value=shown(text), amount=None, finding=finding)
        return NetworkQos(limits=PerDirection(tx=rejected, rx=rejected))
    fields = _lower_keys(tree)
    limits = PerDirection(
        tx=_limit(fields.get(_KEYS[Direction.TX]), "egressLimit", subject),
        rx=_limit(fields.get(_KEYS[Direction.RX]), "ingressLimit", subject),
    )
    return NetworkQos(limits=limits, findings=tuple(_remarks(fields, subject)))


def parse_pod_amount(value: object) -> Amount:
    """A text as `parse_limit`; a whole number 1 to 100 as a percentage, 0 as "no limit"."""
    if not isinstance(value, int) or isinstance(value, bool):
        return parse_limit(value)
    if not 0 <= value <= 100:
        raise Rejected(
            f"{shown(value)} is no percentage; allowed: a whole number 1 to 100 for a percentage of the total, "
            'or a text such as "10M" in bits per second',
            hint="put quotes around a quantity",
        )
    return Percent(value) if value else 0


def _object(text: object) -> Mapping[str, object]:
    tree = load_json(text) if isinstance(text, str) else text
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise Rejected(
            f"{shown(tree)} is no object; allowed: a JSON object with ingressLimit and egressLimit",
            hint='write {"egressLimit": "10M"}',
        )
    return tree


def _lower_keys(tree: Mapping[str, object]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in tree.items():
        name = str(key).lower()
        fields[name] = REPEATED if name in fields else value
    return fields


def _limit(value: object, key: str, subject: str) -> LimitCandidate | None:
    if value is None or value == "":
        return None
    return limit_candidate(value, source=f"{SOURCE} {key}", subject=subject, parse=parse_pod_amount)


def _remarks(fields: Mapping[str, object], subject: str) -> list[Finding]:
    found = []
    for key, value in fields.items():
        if key in _UNUSED:
            if value not in (None, "", 0):
                message = f"{SOURCE}: {key} is not used for a pod"
                found.append(warning(Code.NOT_ENFORCED.value, subject, message, hint=_UNUSED[key]))
        elif key not in _KEYS.values():
            message = f"{SOURCE}: {unknown_key(key, ('ingressLimit', 'egressLimit'))}"
            found.append(warning(Code.UNKNOWN_KEY.value, subject, message, hint="correct or remove it"))
    return found
