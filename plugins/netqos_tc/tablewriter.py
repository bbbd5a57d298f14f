"""Writes our nft table: the table itself, workloads' rules with their sets, and elements."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Final

from netqos.errors import NetqosError, Rejected
from netqos_tc import classify, nfwire, podrules, rulematch, tabletext
from netqos_tc.edits import Edit
from netqos_tc.jobs import Job, Outcome
from netqos_tc.keys import ElementKey, ElementMap, RulesKey, SetKey
from netqos_tc.netlink import Refused
from netqos_tc.netmsg import Request
from netqos_tc.spec import ElementSpec, RulesSpec, SetSpec, TableSpec
from netqos_tc.tools import ABSENT, Tools, alone

_ELEMENTS: Final = 500
"""Elements in one transaction; a pod's move is two messages next to each other, never cut apart."""

_CHAINS: Final = 100
"""Workloads' chains in one transaction."""


class TableWriter:
    """Writes what is in the table, and what stands for elements where cgroups are of version 1."""

    def __init__(self, tools: Tools) -> None:
        """`tools` stay the caller's."""
        self._tools = tools

    def write_table(self, edit: Edit) -> Refused | None:
        """The table as it must be, or away with it."""
        nft = self._tools.nft()
        if edit.after is None:
            nft.run(tabletext.removal_text())
            self._tools.contents.read([])
            self._tools.contents.keep(self._tools.state)
            return None
        before, after = edit.before, edit.after
        assert isinstance(after, TableSpec)
        text = tabletext.text_of(after)
        try:
            nft.run(tabletext.repair_text(before, after) if isinstance(before, TableSpec) else text)
        except Rejected:
            if not isinstance(before, TableSpec):
                raise
            # a map of another type, say: its elements follow in the next round
            nft.run(tabletext.removal_text() + text)
        self._tools.contents.forget(classify.CHAIN_NAMES)
        return None

    def write_rules(self, outcome: Outcome, jobs: Sequence[Job]) -> None:
        """A batch of chains, or of sets, in one transaction; where it is refused, each by itself."""
        ready = [job for job in jobs if not outcome.skips(job)]
        for start in range(0, len(ready), _CHAINS):
            some = ready[start : start + _CHAINS]
            try:
                self._write_chains([job.edit for job in some])
            except NetqosError:
                alone(outcome, some, lambda edit: self._write_chains([edit]))
            else:
                for job in some:
                    outcome.add(job, None)

    def _write_chains(self, edits: Sequence[Edit]) -> None:
        self._tools.nft().run("".join(map(_rules_text, edits)))
        chains = [podrules.chain_name(edit.key) for edit in edits if isinstance(edit.key, RulesKey)]
        self._tools.contents.forget(chains)

    def write_elements(self, outcome: Outcome, jobs: Sequence[Job]) -> None:
        """Elements by the hundred, and the folders of cgroup v1 that stand for some."""
        ready = [job for job in jobs if not outcome.skips(job)]
        for job in ready:
            if is_net_class(job):
                outcome.add(job, self._write_net_class(job.edit))
        ready = [job for job in ready if not is_net_class(job)]
        for start in range(0, len(ready), _ELEMENTS):
            self._write_some_elements(outcome, ready[start : start + _ELEMENTS])

    def _write_some_elements(self, outcome: Outcome, jobs: list[Job]) -> None:
        """One transaction; it is repeated without those that the kernel refuses."""
        while jobs:
            requests = [(job, request) for job in jobs for request in _element_requests(job.edit)]
            answers = self._tools.netfilter.transact(
                [request for _job, request in requests], begin=nfwire.batch_begin(), end=nfwire.batch_end()
            )
            refused = {
                id(job): answer
                for (job, _), answer in zip(requests, answers, strict=True)
                if answer is not None
            }
            for job in jobs:
                answer = refused.get(id(job))
                is_gone = answer is not None and job.edit.after is None and answer.code in ABSENT
                if not refused or is_gone:
                    outcome.add(job, None)
                elif answer is not None:
                    outcome.add(job, answer)
            jobs = [job for job in jobs if refused and id(job) not in refused]

    def _write_net_class(self, edit: Edit) -> Refused | None:
        assert isinstance(edit.key, ElementKey)
        if self._tools.net_classes is None:
            return Refused(code=errno.ENOENT)
        element = edit.after if isinstance(edit.after, ElementSpec) else None
        return self._tools.net_classes.write(str(edit.key.value), element)


def _rules_text(edit: Edit) -> str:
    if isinstance(edit.key, SetKey):
        if isinstance(edit.after, SetSpec):
            return rulematch.set_text(edit.key, edit.after)
        return rulematch.unset_text(edit.key)
    assert isinstance(edit.key, RulesKey)
    before, after = (one if isinstance(one, RulesSpec) else None for one in (edit.before, edit.after))
    return podrules.change_text(edit.key, before, after)


def is_net_class(job: Job) -> bool:
    """Whether a job is about a folder of cgroup v1."""
    return isinstance(job.edit.key, ElementKey) and job.edit.key.map is ElementMap.NC


def _element_requests(edit: Edit) -> list[Request]:
    assert isinstance(edit.key, ElementKey)
    requests = []
    if edit.before is not None:
        requests.append(nfwire.delete_element(edit.key))
    if isinstance(edit.after, ElementSpec):
        requests.append(nfwire.add_element(edit.key, edit.after))
    return requests
