from __future__ import annotations

import io

import pytest

from netqos.cli.demo.show import Moment, Screen, bar, megabits, opening, panel, plain_line, table
from netqos.cli.demo.verdict import judge
from netqos.model.levels import Level
from tests.unit.cli.demo.demodata import RX, SCENARIO, TX, M, record


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def moment(elapsed_s: float = 3.0) -> Moment:
    phase = SCENARIO.phases[1]
    return Moment(
        phase=phase,
        number=2,
        elapsed_s=elapsed_s,
        promises={way: SCENARIO.promises(phase, way) for way in (TX, RX)},
        rates_bps={
            TX: {Level.L0: 0.0, Level.L1: 799.5e6, Level.L2: 200.04e6},
            RX: {Level.L0: 0.0, Level.L1: 471.25e6, Level.L2: 120.5e6},
        },
    )


def test_the_panel_shows_rates_against_promises() -> None:
    assert panel(SCENARIO, moment(), fancy=False) == [
        "  3.0 of 12 s   2/5 L1 joins",
        "  egress  L0 web    |............................................    0.00 Mbit/s  idle",
        "  egress  L1 api    ###################################|.........   799.5 Mbit/s  of 800.0",
        "  egress  L2 batch  #########|...................................   200.0 Mbit/s  of 200.0",
        "  ingress L0 web    |............................................    0.00 Mbit/s  idle",
        "  ingress L1 api    ###################################|.........   471.2 Mbit/s  of 480.0",
        "  ingress L2 batch  #########|...................................   120.5 Mbit/s  of 120.0",
    ]


@pytest.mark.parametrize("bps", [0, 1, 500 * M, 1000 * M, 5000 * M])
def test_a_bar_is_always_as_long(bps: int) -> None:
    assert len(bar(bps, 300 * M, 1000 * M, fancy=True)) == 45


def test_a_terminal_redraws_the_panel_in_place() -> None:
    out = Terminal()
    screen = Screen(out, SCENARIO, colors=True)
    screen.update(moment())
    screen.update(moment(3.2))
    screen.close()
    first, second, rest = out.getvalue().split("\x1b[7F\x1b[J")
    assert first.count("\n") == second.count("\n") == 7
    assert first.count("\x1b[32m") == 2
    assert "█" in first
    assert "\x1b[32m" in first
    assert rest == ""


def test_without_a_terminal_there_is_one_plain_line_a_second() -> None:
    out = io.StringIO()
    screen = Screen(out, SCENARIO, colors=True)
    for tenth in range(25):
        screen.update(moment(tenth / 10))
    assert out.getvalue().splitlines() == [plain_line(moment(at)) for at in (0.0, 1.0, 2.0)]
    assert "\x1b" not in out.getvalue()


def test_the_table_compares_promised_and_measured() -> None:
    lines = table(judge(SCENARIO, record())).splitlines()
    assert lines[0].split("  ")[0] == "phase"
    assert lines[2].split() == [
        *("L2", "alone", "fills", "the", "link", "egress", "L2", "200.0", "1000", "1000", "1000"),
        *("0.0", "s", "0.10", "/", "0.10", "ms", "yes"),
    ]
    assert lines[3].split() == ["ingress", "L2", "120.0", *["330.0"] * 3, "0.0", "s", "yes"]
    assert lines[4].split()[:4] == ["L1", "joins", "egress", "L1"]
    assert lines[5].split() == ["L2", "200.0", "200.0", "200.0", "200.0", "yes"]
    assert lines[7].split() == ["L2", "120.0", "120.0", "120.0", "120.0", "yes"]
    assert lines[-3:] == [
        lines[-3],
        "",
        "Every promise was kept: guarantees and ceilings in every second, shares on average.",
    ]


def test_an_unsteady_phase_is_explained_beside_the_verdict_that_it_does_not_change() -> None:
    verdict = judge(SCENARIO, record(scale={(2, Level.L0): 1.2}))
    assert (verdict.kept, [phase.sides[TX].settled_after_s for phase in verdict.phases].count(None)) == (
        True,
        1,
    )
    lines = table(verdict).splitlines()
    assert sum("unsteady  " in line for line in lines) == 1
    assert lines[-3].startswith("unsteady: to the phase's end a rate left its share by over 10%")
    assert lines[-1].startswith("Every promise was kept:")
    assert "never" not in "".join(lines)


def test_the_table_names_what_was_broken() -> None:
    text = table(judge(SCENARIO, record(scale={(3, Level.L2): 0.5})))
    assert "no: its worst second is under 95% of its guarantee" in text
    assert text.splitlines()[-1] == "Not every promise was kept: L2 egress in 'L0 stops'."
    text = table(judge(SCENARIO, record(scale={(1, Level.L1): 0.5}, way=RX)))
    assert text.splitlines()[-1] == "Not every promise was kept: L1 ingress in 'L1 joins'."


def test_the_opening_tells_the_policy() -> None:
    assert opening(SCENARIO).splitlines()[1:] == [
        "egress   L0 500M (up to 1G), L1 300M (up to 800M), L2 200M (up to 1G) of 1Gbit/s",
        "ingress  L0 420M (up to 600M), L1 60M (up to 600M), L2 120M (up to 330M) of 600Mbit/s",
    ]


def test_small_rates_have_more_digits() -> None:
    assert [megabits(rate) for rate in (0, 1.234e6, 12.34e6, 123.4e6, 1234e6)] == [
        *("0.00", "1.23", "12.3", "123.4", "1234"),
    ]
