from __future__ import annotations

import json

import pytest

from tests.bench.figures import Figure, at_least, at_most, markdown, number, table

KEPT = Figure(
    bench="guarantee",
    what="cubic 200M",
    unit="%",
    runs=(98.5, 99.1, 97.0),
    target=at_least(98),
    baseline=(99.5,),
    baseline_name="static HTB",
)
BROKEN = Figure(
    bench="latency", what="p99", unit="ms", runs=(float("inf"),), target=at_most(1), note="3 lost"
)


def test_the_median_counts() -> None:
    assert (KEPT.value, KEPT.is_met) == (98.5, True)
    assert BROKEN.is_met is False
    assert Figure(bench="x", what="y", unit="", runs=(1.0,)).is_met is None


def test_nothing_measured_is_no_claim_kept() -> None:
    assert Figure(bench="x", what="y", unit="", runs=(), target=at_most(1)).is_met is False


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (99.4567, "99.5"),
        (0.12345, "0.123"),
        (1234.5, "1234"),
        (0, "0"),
        (100.0, "100"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_shows_claims_and_what_is_not_kept() -> None:
    lines = table([KEPT, BROKEN]).splitlines()
    assert lines[2].split() == [
        *(
            "guarantee",
            "cubic",
            "200M",
            "98.5",
            "%",
            "97..99.1",
            ">=",
            "98",
            "yes",
            "99.5",
            "(static",
            "HTB)",
        ),
    ]
    assert lines[3].split() == ["latency", "p99", "inf", "ms", "<=", "1", "NO", "3", "lost"]


def test_programs_get_every_run_and_no_infinity() -> None:
    text = json.dumps([figure.as_json() for figure in (KEPT, BROKEN)], allow_nan=False)
    assert json.loads(text)[0] == {
        "bench": "guarantee",
        "what": "cubic 200M",
        "unit": "%",
        "median": 98.5,
        "runs": [98.5, 99.1, 97.0],
        "target": ">= 98",
        "met": True,
        "baseline": {"static HTB": [99.5]},
        "note": "",
    }
    assert json.loads(text)[1]["median"] is None


def test_the_page_for_the_docs_names_each_command() -> None:
    assert markdown([KEPT, BROKEN]).splitlines()[:7] == [
        "## guarantee",
        "",
        "    ./dev bench guarantee",
        "",
        "| figure | median | runs | claimed | met | baseline | note |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| cubic 200M | 98.5 % | 97..99.1 | >= 98 | yes | 99.5 (static HTB) |  |",
    ]
