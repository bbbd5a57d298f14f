from __future__ import annotations

import pytest

from netqos.errors import Rejected
from netqos.runtime.environment import METRICS_LISTEN, metrics_listen
from netqos.runtime.judging import judge
from netqos.settings.issues import Issue
from netqos.settings.values import Settings


@pytest.mark.parametrize(
    ("asked", "said", "listen"),
    [
        ("0.0.0.0:9469", None, "0.0.0.0:9469"),
        ("0.0.0.0:9469", "", "0.0.0.0:9469"),
        ("0.0.0.0:9469", "10.0.0.7:9999", "10.0.0.7:9999"),
        ("0.0.0.0:9469", "[10.0.0.7]:9469", "10.0.0.7:9469"),
        ("0.0.0.0:9469", "[fd00::7]:9469", "[fd00::7]:9469"),
        (None, "10.0.0.7:9469", None),
    ],
)
def test_the_variable_beats_the_file_but_does_not_switch_metrics_on(
    asked: str | None, said: str | None, listen: str | None
) -> None:
    assert metrics_listen(asked, {} if said is None else {METRICS_LISTEN: said}) == listen


@pytest.mark.parametrize("said", ["[]:9469", "fd00::7:9469", "10.0.0.7", "10.0.0.7:99999", "null"])
def test_a_variable_that_is_no_address_is_refused_by_name(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Rejected, match=METRICS_LISTEN):
        metrics_listen("0.0.0.0:9469", {METRICS_LISTEN: said})
    monkeypatch.setenv(METRICS_LISTEN, said)
    found = [issue for issue in judge(Settings()) if METRICS_LISTEN in issue.message]
    assert [(type(one), one.path) for one in found] == [(Issue, ("metrics", "listen"))]
