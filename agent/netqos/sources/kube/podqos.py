"""The Kubernetes QoS class of a pod's spec, as the API server computes it. Pure.

From ComputePodQOS in pkg/apis/core/v1/helper/qos/qos.go (1.36): cpu and memory count, zero is as good as absent, init
containers count (so sidecars do), ephemeral ones do not, and resources of the pod as a whole stand for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from netqos.model.inputs import KubernetesQos

_COUNTED = ("cpu", "memory")
_QUANTITY = re.compile(
    r"([+-]?)([0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})([a-zA-Z]{1,2}|[eE][+-]?[0-9]{1,3})?"
)
_SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m"), start=-3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}

Amounts = dict[str, Fraction]


def qos_of_name(name: object) -> KubernetesQos | None:
    """The class that a status names."""
    return next((one for one in KubernetesQos if one.value == name), None)


def qos_of_spec(spec: Mapping[str, object]) -> KubernetesQos:
    """The class that follows from the spec; what cannot be understood in it counts as absent."""
    whole = spec.get("resources")
    holders = [spec] if isinstance(whole, Mapping) else list(_containers(spec))
    requests: Amounts = {}
    limits: Amounts = {}
    is_guaranteed = True
    for holder in holders:
        _add(requests, _amounts(holder, "requests"))
        own = _amounts(holder, "limits")
        _add(limits, own)
        is_guaranteed = is_guaranteed and len(own) == len(_COUNTED)
    if not requests and not limits:
        return KubernetesQos.BEST_EFFORT
    if is_guaranteed and requests == limits:
        return KubernetesQos.GUARANTEED
    return KubernetesQos.BURSTABLE


def _containers(spec: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for key in ("containers", "initContainers"):
        listed = spec.get(key)
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, Mapping))


def _amounts(holder: Mapping[str, object], kind: str) -> Amounts:
    resources = holder.get("resources")
    said = resources.get(kind) if isinstance(resources, Mapping) else None
    if not isinstance(said, Mapping):
        return {}
    read = {name: _quantity(said.get(name)) for name in _COUNTED}
    return {name: amount for name, amount in read.items() if amount > 0}


def _add(sums: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, Fraction(0)) + amount


def _quantity(value: object) -> Fraction:
    """A quantity; 0 for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[1] == "-":
        return Fraction(0)
    suffix = found[3] or ""
    scale = _SUFFIXES.get(suffix)
    if scale is None:
        scale = Fraction(10) ** int(suffix[1:]) if suffix[1:].lstrip("+-").isdigit() else Fraction(0)
    return Fraction(found[2].rstrip(".")) * scale
