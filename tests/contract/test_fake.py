"""The fake keeps the contract that the real ones keep."""

from __future__ import annotations

import pytest

from netqos.backend import Backend
from netqos.testing.contract import BackendContract, Harness
from netqos.testing.fakekernel import FakeKernel
from netqos.testing.fakes import FakeBackend
from tests.contract.broken import BrokenHarness


class FakeHarness(Harness):
    def __init__(self, *, lends: bool) -> None:
        self.kernel = FakeKernel(foreign={"eth9": "fq_codel"})
        self.lends = lends

    def backend(self) -> Backend:
        return FakeBackend(self.kernel, lends=self.lends)

    def drift(self) -> None:
        self.kernel.behind_your_back()

    def fail_next(self, times: int) -> None:
        self.kernel.fail_next(times)

    def foreign(self) -> object:
        return self.kernel.foreign


class TestLendingFake(BackendContract):
    max_examples = 15

    def make(self) -> Harness:
        return FakeHarness(lends=True)


class TestNotLendingFake(BackendContract):
    max_examples = 15

    def make(self) -> Harness:
        return FakeHarness(lends=False)


def test_the_suite_runs_without_a_test_runner() -> None:
    suite = TestLendingFake()
    suite.max_examples = 2
    passed = suite.check_all()
    assert len(passed) >= 10
    assert "test_planning_is_pure" in passed


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("never notices", "test_drift_is_noticed_and_repaired"),
        ("swallows failures", "test_a_failure_is_told_and_survived"),
        ("deletes early", "test_an_incomplete_state_only_adds"),
        ("plans again", "test_what_is_applied_needs_no_second_plan"),
        ("remembers plans", "test_planning_is_pure"),
        ("leaves things", "test_nothing_removes_all_of_ours_and_nothing_else"),
        ("writes always", "test_the_fast_path_moves_ceilings_and_is_no_drift"),
    ],
)
def test_the_suite_sees_a_broken_backend(fault: str, check: str) -> None:
    class Broken(BackendContract):
        def make(self) -> Harness:
            return BrokenHarness(fault)

    with pytest.raises(AssertionError):
        getattr(Broken(), check)()
