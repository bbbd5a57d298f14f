"""Options, names of owners, kept roots, and the table's text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.errors import Rejected
from netqos_tc import classify, options, root, tabletext
from netqos_tc.keys import ElementMap
from netqos_tc.options import Options
from netqos_tc.root import Child, Root
from netqos_tc.spec import ChainSpec


def test_options_in_words() -> None:
    given_options = {"queue": {"target": "5ms"}, "takeover": ["tbf", "cake"]}
    assert options.parse(given_options) == Options(queue_ms=5, takeover=frozenset({"tbf", "cake"}))
    assert options.parse({}) == Options(queue_ms=20)


@pytest.mark.parametrize(
    ("queue", "wanted"),
    [
        ("bfifo", Options()),
        ("fq_codel", Options(codel_ms=5)),
        ({"kind": "fq_codel"}, Options(codel_ms=5)),
        ({"kind": "fq_codel", "target": "12ms"}, Options(codel_ms=12)),
        ({"kind": "bfifo", "target": "12ms"}, Options(queue_ms=12)),
    ],
)
def test_a_queue_by_its_kind(queue: object, wanted: Options) -> None:
    assert options.parse({"queue": queue}) == wanted


@pytest.mark.parametrize(
    ("given_options", "problems"),
    [
        ({"queues": 1}, ["queues: unknown option"]),
        ({"queue": {"target": "20"}}, ["queue.target"]),
        ({"queue": {"target": "0ms"}}, ["queue.target"]),
        ({"queue": {"target": "1001ms"}}, ["queue.target"]),
        ({"queue": {"target": 20}}, ["queue.target"]),
        ({"queue": {"target": "20ms", "kind": "pie"}}, ['queue.kind: "pie" is no queue of leaves']),
        ({"queue": {"kind": "fq_codel", "target": "0ms"}}, ["queue.target"]),
        ({"queue": {"kind": "fq_codel", "ecn": False}}, ["queue:"]),
        ({"queue": {}}, ["queue:"]),
        ({"queue": ["fq_codel"]}, ["queue:"]),
        ({"queue": "20ms"}, ["queue:"]),
        ({"takeover": "tbf"}, ["takeover:"]),
        ({"takeover": ["tbf", 7, "a b"]}, ["takeover[1]", "takeover[2]"]),
        ({"takeover": ["foo", "htb"]}, ['takeover[0]: "foo" is no kind of qdisc; allowed']),
        (
            {"takeover": ["cake", "fq_code"]},
            ['takeover[1]: "fq_code" is no kind of qdisc (did you mean fq_codel?)'],
        ),
        ({"queue": 1, "takeover": 2, "x": 3}, ["x: unknown option", "queue:", "takeover:"]),
    ],
)
def test_all_that_is_wrong_with_options_is_told_at_once(
    given_options: dict[str, object], problems: list[str]
) -> None:
    with pytest.raises(Rejected) as caught:
        options.parse(given_options)
    assert len(caught.value.problems) == len(problems)
    for told, wanted in zip(caught.value.problems, problems, strict=True):
        assert told.startswith(wanted)
        assert "allowed" in told


@given(st.text(max_size=300))
def test_an_owners_name_fits_into_a_comment_and_is_one_pods_alone(uid: str) -> None:
    owner = classify.owner_of(uid)
    assert 0 < len(owner.encode()) <= 120
    assert owner.isprintable()
    assert owner != classify.CRITICAL_OWNER
    assert owner == uid or owner.startswith("sha256:")


def test_two_long_names_are_two_owners() -> None:
    assert classify.owner_of("workload:" + "x" * 200) != classify.owner_of("workload:" + "x" * 201)
    assert classify.owner_of("workload:web") == "workload:web"
    assert classify.owner_of('workload:"; flush ruleset') != 'workload:"; flush ruleset'


def test_the_text_makes_what_the_shape_says() -> None:
    for cgroups in (True, False):
        text, spec = tabletext.setup_text(cgroups=cgroups), classify.table_spec(cgroups=cgroups)
        for name in spec.maps:
            assert f"add map inet netqos {name} " in text
        for chain in spec.chains:
            end = " {" if chain.hook >= 0 else "\n"
            assert f"add chain inet netqos {chain.name}{end}" in text
        made = [line.split(' comment "')[1].rstrip('"') for line in text.splitlines() if "add rule" in line]
        assert made == [rule.comment for rule in spec.rules]
        assert classify.has_cgroups(spec) is cgroups


def test_a_probe_never_names_the_real_table() -> None:
    lines = tabletext.probe_text(cgroups=True).splitlines()
    assert not [line for line in lines if " netqos " in line.partition("comment")[0]]


def test_the_deepest_cgroup_is_looked_up_last() -> None:
    comments = [rule.comment for rule in classify.table_spec(cgroups=True).rules if rule.chain == "output"]
    known = ["reset", *(f"cg{depth}" for depth in range(1, 7)), "tx4", "tx6", "host", "sent", "inwards"]
    assert comments == [f"netqos 4 {name}" for name in known]
    assert [classify.cgroup_map(depth) for depth in (0, 1, 6, 7)] == [
        None,
        ElementMap.CG1,
        ElementMap.CG6,
        None,
    ]


ROOTS = st.builds(
    Root,
    kind=st.sampled_from(["mq", "tbf", "fq_codel"]),
    handle=st.integers(0, 2**32 - 1),
    options=st.binary(max_size=40),
    children=st.lists(
        st.builds(
            Child,
            parent=st.integers(0, 2**32 - 1),
            kind=st.just("fq"),
            handle=st.integers(1, 2**32 - 1),
            options=st.binary(max_size=9),
        ),
        max_size=3,
    ).map(tuple),
)


@given(ROOTS)
def test_a_root_is_kept_and_read_back(kept: Root) -> None:
    assert root.from_document(root.to_document(kept)) == kept


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "mq",
        {},
        {"kind": "mq", "handle": "1", "options": "", "children": []},
        {"kind": "mq", "handle": 1, "options": "zz", "children": []},
        {"kind": "mq", "handle": 1, "options": "", "children": [{}]},
        {
            "kind": "mq",
            "handle": 1,
            "options": "",
            "children": [{"parent": 1, "kind": "fq", "handle": 1, "options": "0"}],
        },
    ],
)
def test_a_damaged_document_is_none(document: object) -> None:
    assert root.from_document(document) is None


def test_a_repair_empties_every_chain_before_one_goes_and_leaves_the_maps() -> None:
    spec = classify.table_spec(cgroups=True)
    met = replace(spec, chains=spec.chains | {ChainSpec(name="evil", hook=3, priority=0, policy=0)})
    lines = tabletext.repair_text(met, spec).splitlines()
    assert lines[:6] == [
        "flush chain inet netqos evil",
        "flush chain inet netqos forward",
        "flush chain inet netqos inwards",
        "flush chain inet netqos lead",
        "flush chain inet netqos output",
        "delete chain inet netqos evil",
    ]
    assert lines[6:] == tabletext.setup_text(cgroups=True).splitlines()


def test_a_repair_takes_away_the_maps_that_no_rule_reads_any_more() -> None:
    met, spec = classify.table_spec(cgroups=True), classify.table_spec(cgroups=False)
    lines = tabletext.repair_text(met, spec).splitlines()
    gone = [line for line in lines if line.startswith("delete")]
    assert gone == [f"delete map inet netqos cg{depth}" for depth in range(1, 7)]
    assert max(map(lines.index, gone)) < lines.index("add table inet netqos")
    assert not any(line.startswith("delete") for line in tabletext.repair_text(spec, met).splitlines())


@pytest.mark.parametrize("name", ["x; delete table ip filter", "a b", "1", "", "a\nflush ruleset", '"'])
def test_the_name_of_somebodys_chain_is_never_read_as_a_command(name: str) -> None:
    spec = classify.table_spec(cgroups=True)
    met = replace(spec, chains=spec.chains | {ChainSpec(name=name, hook=-1, priority=-1, policy=-1)})
    assert tabletext.repair_text(met, spec) == tabletext.removal_text() + tabletext.setup_text(cgroups=True)
