from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from netqos.errors import Rejected
from tests.bench.compare.chart import draw
from tests.bench.compare.judge import compare
from tests.bench.compare.measures import evaluate
from tests.bench.compare.page import changes, markdown, summary, table, unlike
from tests.bench.compare.results import Contestant, Result, as_text, picture_of, policy_json, read
from tests.bench.compare.script import NODE
from tests.unit.bench.runs import POLICY, recording

RUN = evaluate(recording(), POLICY)


def contestant(name: str, **changed: float) -> Contestant:
    runs = tuple(
        {**RUN, **{key.replace("_", "."): value for key, value in changed.items()}} for _ in range(3)
    )
    return Contestant(name=name, how=f"{name} & co", runs=runs, picture=picture_of(recording()))


RESULT = Result(
    policy=policy_json(POLICY),
    contestants=(
        contestant("static HTB", tx_used=98.0),
        contestant("1 s stepper", tx_settled=2400.0, rx_settled=math.inf),
        contestant("netqos", rx_onset_L1=150.0, request_p50=0.2),
        Contestant(name="broken", how="never ran"),
    ),
    about={"runs": 3, "kernel": "6.18", "watched_s": 5.0},
)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(as_text(RESULT))
    found = read(path)
    assert (found.policy, dict(found.about)) == (RESULT.policy, dict(RESULT.about))
    for one, other in zip(found.contestants, RESULT.contestants, strict=True):
        assert (one.name, one.how) == (other.name, other.how)
        assert [pytest.approx(run) for run in other.runs] == list(one.runs)
    assert found.contestants[1].median("rx.settled") == math.inf
    assert [one for one in compare(found, found) if one.change.value != "same"] == []


def test_the_file_has_medians_and_what_each_measure_is() -> None:
    document = json.loads(as_text(RESULT))
    assert document["enforcers"][0]["medians"]["tx.used"] == 98.0
    assert document["enforcers"][1]["medians"]["rx.settled"] is None
    assert document["enforcers"][3]["medians"] == {}
    assert set(document["measures"]["tx.used"]) == {"title", "unit", "less_is_better", "how"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("[1]", "is no result of this comparison"),
        ('{"kind": "netqos-bench-compare", "version": 2}', "is no result of this comparison"),
        ('{"kind": "netqos-bench-compare", "version": 1}', "is damaged: KeyError"),
        ('{"kind": "netqos-bench-compare", "version": 1, "policy": {}, "enforcers": [3]}', "is damaged: KeyError"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_result_says_so(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(Rejected, match=said):
        read(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("policy", "tx", "total_bps"), 0),
        (("policy", "rx", "levels", "L1", "ceiling_bps"), "80M"),
        (("enforcers",), [3]),
        (("enforcers", 0, "runs", 1, "tx.used"), math.nan),
        (("enforcers", 0, "runs", 1, "tx.used"), True),
        (("enforcers", 0, "picture", "bin_s"), math.inf),
        (("enforcers", 1, "picture", "rates_bps"), {}),
        (("enforcers", 1, "picture", "rates_bps", NODE, 3), 10**400),
        (("enforcers", 1, "picture", "marks", 0), [-math.inf, "+L0"]),
    ],
)
def test_a_damaged_result_says_so(tmp_path: Path, place: tuple[str | int, ...], value: object) -> None:
    document = json.loads(as_text(RESULT))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    with pytest.raises(Rejected, match="is damaged"):
        read(path)


def test_the_table_has_a_column_for_each_and_never_for_infinity() -> None:
    lines = table(RESULT).splitlines()
    assert lines[0].split()[-7:] == ["static", "HTB", "1", "s", "stepper", "netqos", "broken"]
    settled = next(line for line in lines if line.startswith("ingress: L0 joins, steady"))
    assert settled.split()[-4:] == ["ms", "0", "never", "0"]


def test_the_summary_tells_better_and_worse_beyond_the_runs_and_the_ratio_to_the_stepper() -> None:
    assert list(summary(RESULT)) == [
        "netqos against static HTB in 34 rows: better in 1, worse in 1, no further apart than their own runs in 31",
        "moved: egress: use of the total: 100 against 98 %",
        "WORSE: ingress: L1 joins, all within 10 % of their share after: 150 against 0 ms",
        "better: 64-byte request of an L0 pod, p50: 0.2 against 1 ms",
        "egress: netqos is steady after 100 ms, the 1 s stepper after 2500 ms: 25 times faster",
        "ingress: netqos is steady after 100 ms, the 1 s stepper not within 5000 ms: more than 50 times faster",
    ]


def test_the_page_says_how_every_row_was_measured() -> None:
    text = markdown(RESULT, "./dev bench compare")
    assert text.startswith("    ./dev bench compare\n\nTotals: tx 600M, rx 300M. 3 runs of each")
    assert "| egress: use of the total | % | 98 | 100 | 100 |  |" in text
    assert "- *broken*: never ran" in text
    assert "64-byte request of an L0 pod, p50; 64-byte request of an L0 pod, p99" in text


def test_what_moved_is_shown_and_counted() -> None:
    after = Result(policy={}, contestants=(contestant("static HTB", tx_used=97.9, request_p99=40.0),))
    found = list(compare(RESULT, after))
    shown = changes(found, everything=False).splitlines()
    assert shown[2].split()[-5:] == ["ms", "20", "40", "2", "WORSE"]
    assert shown[-1] == f"1 of {len(found)} figures moved beyond the spread of their runs"
    assert len(changes(found, everything=True).splitlines()) == len(found) + 4
    assert changes([], everything=True) == "0 of 0 figures moved beyond the spread of their runs"


def test_what_keeps_two_results_from_being_compared_is_told() -> None:
    assert list(unlike(RESULT, RESULT)) == ["broken: 0 and 0 runs; figures are told apart from 3 of each on"]
    rare = Contestant(name="netqos", how="", runs=(RUN, RUN))
    after = Result(
        policy={}, contestants=(rare, contestant("mine")), about={**RESULT.about, "watched_s": 2.5, "runs": 2}
    )
    assert list(unlike(RESULT, after)) == [
        "watched_s was 5.0, then 2.5",
        "the policies are not the same",
        "only before: static HTB, 1 s stepper, broken",
        "only after: mine",
        "netqos: 3 and 2 runs; figures are told apart from 3 of each on",
    ]


def test_a_run_or_two_are_not_told_apart() -> None:
    rare = Result(
        policy=RESULT.policy, contestants=(RESULT.contestants[0], replace(RESULT.contestants[2], runs=(RUN,)))
    )
    assert list(summary(rare)) == ["netqos and static HTB are not told apart: that takes 3 runs of each"]


def test_the_chart_is_xml_with_a_line_for_each_level_and_direction_that_stays_inside() -> None:
    root = ET.fromstring(draw(RESULT))
    space = "{http://www.w3.org/2000/svg}"
    lines = root.findall(f"{space}polyline")
    assert len(lines) == 3 * (3 + 4)  # what the node itself receives is in the ingress panel
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert len(points) == 150
        assert all(0 < x < width and 0 < y < height for x, y in points)
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"static HTB", "netqos", "egress, total 600 Mbit/s", "ingress, total 300 Mbit/s"} <= set(texts)
    assert "broken" not in texts
