"""Rules for all tests: what a kernel test needs, which skips count, and the counts that `dev test` adds up.

In CI a skipped test fails, unless it was skipped for a feature that this kernel was shown to lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest

from tests.features import find

pytest_plugins = ["tests.apiserver.fixtures", "tests.node.fixtures"]

IN_CI = os.environ.get("CI", "") not in {"", "0", "false"}

# A shared machine stalls now and then: a slow example is no finding, and a failing one must be repeatable.
hypothesis.settings.register_profile("netqos", deadline=None, print_blob=True)
hypothesis.settings.load_profile("netqos")


# Reasons that were found to be the kernel's: the only skips that CI accepts.
_proven: set[str] = set()


def _require(*features: str) -> None:
    for finding in map(find, features):
        if not finding.is_present:
            if finding.is_conclusive:
                _proven.add(finding.reason)
            pytest.skip(finding.reason)


@pytest.fixture
def require_kernel() -> Callable[..., None]:
    """Skip from within a test: `require_kernel("fq", "tool:iperf3")`; see tests/features.py for the names."""
    return _require


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("kernel"):
        _require("netns", *marker.args)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not {"kernel", "system"}.isdisjoint(item.path.parts):
            item.add_marker("kernel")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that still tells the reason."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"skipped in CI without a proof that this kernel cannot run it: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    is_proven = call.excinfo is not None and str(call.excinfo.value) in _proven
    if IN_CI and report.skipped and not is_proven and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if IN_CI and report.skipped:
        _refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add this run's counts (passed, failed, skipped) to the file that `dev test` reads."""
    tally = os.environ.get("NETQOS_TALLY")
    if not tally or hasattr(terminalreporter.config, "workerinput"):
        return  # a worker of pytest-xdist, whose counts are the controller's too
    count = {name: len(reports) for name, reports in terminalreporter.stats.items()}
    failed = count.get("failed", 0) + count.get("error", 0)
    skipped = count.get("skipped", 0) + count.get("xfailed", 0)
    with Path(tally).open("a", encoding="utf-8") as file:
        file.write(f"{count.get('passed', 0)} {failed} {skipped}\n")
