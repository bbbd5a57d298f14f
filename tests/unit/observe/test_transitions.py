from __future__ import annotations

from dataclasses import dataclass, field

from netqos.model.health import error, info, warning
from netqos.model.inputs import Freshness, SourceState
from netqos.observe.recorder import REASONS
from netqos.observe.transitions import AGAIN_S, BURST, EVERY_S, Transitions


@dataclass
class Lines:
    said: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)

    def info(self, event: str, **values: object) -> None:
        self.said.append(("info", event, values))

    def warning(self, event: str, **values: object) -> None:
        self.said.append(("warning", event, values))

    def error(self, event: str, **values: object) -> None:
        self.said.append(("error", event, values))

    def take(self) -> list[tuple[str, str]]:
        """Level and event of the lines since the last time."""
        taken, self.said = self.said, []
        return [line[:2] for line in taken]


def state(freshness: Freshness, detail: str = "", since_s: float | None = None) -> SourceState:
    return SourceState(freshness=freshness, detail=detail, since_s=since_s)


FRESH = state(Freshness.FRESH)
BAD = warning(REASONS[0], "pod shop/web", "no quantity: 12Mbps", hint="write 12M")


def test_a_finding_is_a_line_when_it_appears_and_again_after_it_was_gone() -> None:
    lines = Lines()
    log = Transitions(lines)
    log.saw([BAD, info("noted", "x", "y")], 0.0)
    assert lines.said == [
        (
            "warning",
            BAD.code,
            {"subject": BAD.subject, "message": BAD.message, "hint": BAD.hint},
        )
    ]
    lines.take()
    log.saw([BAD], 1.0)
    assert lines.take() == []
    log.saw([], 2.0)
    log.saw([BAD, error("node-unknown", "node n", "no Node n")], 3.0)
    assert sorted(lines.take()) == [("error", "node-unknown"), ("warning", BAD.code)]


def test_a_rejected_input_is_a_line_each_time_it_changes_and_a_figure_that_moves_is_none() -> None:
    lines = Lines()
    log = Transitions(lines)
    for number in range(3):
        moved = warning("direct-packets", "up0", f"{number} packets")
        log.saw([warning(BAD.code, BAD.subject, f"no quantity: {number}Mbps"), moved], float(number))
    assert sorted(lines.take()) == [("warning", "direct-packets"), *[("warning", BAD.code)] * 3]


def test_a_flood_is_cut_and_counted() -> None:
    lines = Lines()
    log = Transitions(lines)
    log.saw([warning(BAD.code, f"pod x/{number}", "bad") for number in range(BURST + 50)], 0.0)
    assert len(lines.take()) == BURST
    log.saw([BAD], EVERY_S)
    assert [(level, event, values.get("count")) for level, event, values in lines.said] == [
        ("warning", "findings-not-logged", 50),
        ("warning", BAD.code, None),
    ]


def test_a_source_is_a_line_when_it_comes_goes_and_is_back() -> None:
    lines = Lines()
    log = Transitions(lines)
    log.sources({"pods": state(Freshness.WAITING, "not listed yet")}, 0.0)
    assert lines.take() == [("info", "source-away")]
    log.sources({"pods": FRESH}, 1.0)
    log.sources({"pods": state(Freshness.FRESH, since_s=2.0)}, 2.0)
    assert lines.take() == [("info", "source-fresh")]
    log.sources({"pods": state(Freshness.STALE, "refused")}, 3.0)
    assert lines.said == [
        ("warning", "source-away", {"source": "pods", "state": "stale", "detail": "refused"})
    ]
    lines.take()
    log.sources({"pods": FRESH}, 4.0)
    assert lines.take() == [("info", "source-fresh")]


def test_a_source_that_stays_away_for_changing_reasons_says_so_now_and_then() -> None:
    lines = Lines()
    log = Transitions(lines)
    log.sources({"pods": FRESH}, 0.0)
    lines.take()
    for tenth in range(200):
        log.sources({"pods": state(Freshness.STALE, f"reason {tenth % 2}")}, tenth / 10)
    assert len(lines.take()) == round(20 / AGAIN_S)


def test_a_start_that_is_refused_is_a_line_at_once() -> None:
    lines = Lines()
    log = Transitions(lines)
    log.sources({"pods": state(Freshness.WAITING, "not listed yet")}, 0.0)
    log.sources({"pods": state(Freshness.WAITING, "403: no")}, 0.1)
    assert lines.take() == [("info", "source-away"), ("warning", "source-away")]
