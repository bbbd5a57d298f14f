"""Where the amounts of a policy stand, in whichever shape."""

from __future__ import annotations

from netqos.model.levels import Direction, Level
from netqos.settings.file import parse_documents
from netqos.settings.values import Bound

OWN = """\
policy:
  levels:
    l1:
      txMin: 30%
      rxMax: null
    l2: {rxMax: 80%}
"""
PROPOSAL = """\
policy:
  networkQOSStrategy:
    nodeBandwidthLimit:
      l1: {tx: 9000, rxMin: 3000}
"""
UPSTREAM = """\
policy:
  resourceQOSStrategy:
    lsClass: {networkQOS: null}
    lsrClass:
      networkQOS: {enable: true, egressRequest: 30}
    beClass:
      networkQOS:
        enable: true
        ingressLimit: 80
"""


def places(*texts: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    """By level, direction and bound: the last key of the path, and the place in words."""
    documents = [(f"{number}.yaml", text) for number, text in enumerate(texts, 1)]
    found = parse_documents(documents).places
    return {
        (level.name, direction.value, bound.value): (str(place.path[-1]), str(place))
        for (level, direction, bound), place in found.items()
    }


def test_the_own_shape() -> None:
    assert places(OWN) == {
        ("L1", "tx", "guarantee"): ("txMin", "1.yaml line 4"),
        ("L2", "rx", "ceiling"): ("rxMax", "1.yaml line 6"),
    }


def test_a_later_file_that_says_it_again_is_the_place() -> None:
    later = "# later\npolicy: {levels: {l1: {txMin: 20%}}}\n"
    assert places(OWN, later)["L1", "tx", "guarantee"] == ("txMin", "2.yaml line 2")
    assert places(OWN, later)["L2", "rx", "ceiling"] == ("rxMax", "1.yaml line 6")


def test_the_shapes_of_a_nodeslo() -> None:
    assert places(PROPOSAL) == {
        ("L1", "tx", "ceiling"): ("tx", "1.yaml line 4"),
        ("L1", "rx", "guarantee"): ("rxMin", "1.yaml line 4"),
    }
    assert places(UPSTREAM) == {
        ("L1", "tx", "guarantee"): ("egressRequest", "1.yaml line 5"),
        ("L2", "rx", "ceiling"): ("ingressLimit", "1.yaml line 9"),
    }


def test_the_path_is_that_of_the_key() -> None:
    found = parse_documents([("f", UPSTREAM)]).places[Level.L2, Direction.RX, Bound.CEILING]
    assert found.path == ("policy", "resourceQOSStrategy", "beClass", "networkQOS", "ingressLimit")
