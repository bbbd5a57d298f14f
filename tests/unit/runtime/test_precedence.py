"""When the daemon goes before other programs: while it steers, and as long as it computes little."""

from __future__ import annotations

from dataclasses import dataclass, field

from netqos.runtime.precedence import REST_S, WINDOW_S, Precedence


@dataclass(slots=True)
class World:
    """A clock, the processor time used, and what was asked of the scheduler."""

    problem: str = ""
    now_s: float = 100.0
    cpu_s: float = 5.0
    said: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def precedence(self) -> Precedence:
        return Precedence(
            before=self._before,
            among=lambda: self.said.append("among"),
            told=self.told.append,
            monotonic=lambda: self.now_s,
            cpu_s=lambda: self.cpu_s,
        )

    def _before(self) -> str:
        self.said.append("before")
        return self.problem

    def spend(self, precedence: Precedence, *, share: float, seconds: float) -> None:
        """Tick every 50 ms for a while, with so much of a processor used."""
        for _ in range(round(seconds / 0.05)):
            self.now_s += 0.05
            self.cpu_s += share * 0.05
            precedence.tick()


def test_a_modest_daemon_goes_ahead_with_its_first_tick_and_stays_there() -> None:
    world = World()
    precedence = world.precedence()
    world.spend(precedence, share=0.3, seconds=30)
    assert (world.said, world.told, precedence.is_ahead) == (["before"], [""], True)


def test_who_computes_too_much_steps_back_within_two_windows_and_returns_after_a_rest() -> None:
    world = World()
    precedence = world.precedence()
    world.spend(precedence, share=0.01, seconds=1)
    world.spend(precedence, share=0.9, seconds=2 * WINDOW_S + 0.05)
    assert (world.said, precedence.is_ahead) == (["before", "among"], False)
    world.spend(precedence, share=0.01, seconds=REST_S - 0.6)
    assert not precedence.is_ahead
    world.spend(precedence, share=0.01, seconds=0.7)
    assert (world.said, world.told) == (["before", "among", "before"], [""])


def test_one_who_may_not_is_told_why_once_and_asks_no_more() -> None:
    world = World(problem="Operation not permitted")
    precedence = world.precedence()
    world.spend(precedence, share=0.01, seconds=10)
    precedence.rest()
    assert (world.said, world.told, precedence.is_ahead) == (["before"], ["Operation not permitted"], False)


def test_with_nothing_to_steer_it_steps_back_until_the_next_tick() -> None:
    world = World()
    precedence = world.precedence()
    precedence.tick()
    precedence.rest()
    precedence.rest()
    assert (world.said, precedence.is_ahead) == (["before", "among"], False)
    precedence.tick()
    assert precedence.is_ahead
