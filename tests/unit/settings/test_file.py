"""Configuration files: the whole of them as settings, or every problem at its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from netqos.errors import Rejected
from netqos.model.ids import CgroupPath, IfName
from netqos.model.inputs import NO_LIMITS, LevelPolicy, NamespaceRule, NodePolicy, Percent
from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.model.rules import PortMatch, PortRange, Rule
from netqos.settings.file import parse_documents
from netqos.settings.problems import InvalidConfiguration, Problem
from netqos.settings.values import (
    DEFAULT_CLASSES,
    ConfiguredUplink,
    KubernetesSettings,
    LogSettings,
    LoopSettings,
    OnExit,
    PathSettings,
    Settings,
    Toggle,
    WorkloadMatch,
    WorkloadSettings,
)

ON = LevelPolicy(enabled=True)

WHOLE = """
node:
  name: worker-1
  uplinks: [eth0, {name: eth1, bandwidth: {tx: 25G}}]
  bandwidth: {tx: 10G, rx: 20G}
policy:
  enable: true
  levels:
    l1: {txMin: 30%, txMax: 100%, rxMin: 25%, rxMax: 90%}
    l2: {txMin: 20%, txMax: 80%, rxMin: 12.5%, rxMax: 0}
  systemNamespaces: [kube-system, infra]
  systemPods: no
  namespaces:
    - {match: ["prod-*"], levels: [l0, L1], minimum: true, dscp: [0-63]}
    - {match: [test], dscp: [8, ef, cs1-af13]}
classes: {LS: L0, GPU: l2}
workloads:
  - name: web
    match: {addresses: [10.88.0.10, "FD00:88::0010"]}
    level: l0
    limits: {egress: 10M, ingress: 0}
    rules:
      egress:
        - matchs: [{type: port, expr: "=443"}]
          actions: [{action: dscp, value: ef}]
  - name: backup
    match: {cgroup: /system.slice/backup.service}
    rules: {ingress: [{matchs: [{type: ip}], actions: [{action: bandwidth_max, value: 30M}]}]}
  - {name: mail, match: {unit: postfix@-.service}}
backends: [terway, tc]
backendOptions: {tc: {takeover: [tbf], depth: 3}, terway: null}
loop: {interval: 100ms, contendedInterval: 10ms, enter: 90%, enterBacklogged: 87.5%, leave: 80%, hold: 1.5s}
kubernetes: {enable: on, kubeconfig: /etc/kube.conf, annotations: false}
paths: {net: /srv/net, socket: /srv/sock, state: /srv/state, cgroup: /srv/cgroup}
metrics: {listen: "[::]:9469"}
log: {level: DEBUG, format: json}
onExit: restore
"""

EXPECTED = Settings(
    node_name="worker-1",
    uplinks=(
        ConfiguredUplink(name=IfName("eth0")),
        ConfiguredUplink(name=IfName("eth1"), bandwidth=PerDirection(tx=25_000_000_000, rx=None)),
    ),
    bandwidth=PerDirection(tx=10_000_000_000, rx=20_000_000_000),
    policy=NodePolicy(
        source="file",
        enabled=True,
        levels=PerLevel(
            ON,
            LevelPolicy(
                enabled=True,
                guarantee=PerDirection(tx=Percent(30), rx=Percent(25)),
                ceiling=PerDirection(tx=Percent(100), rx=Percent(90)),
            ),
            LevelPolicy(
                enabled=True,
                guarantee=PerDirection(tx=Percent(20), rx=Percent(12.5)),  # type: ignore[arg-type] # equals 25/2
                ceiling=PerDirection(tx=Percent(80), rx=Percent(100)),
            ),
        ),
    ),
    system_namespaces=("kube-system", "infra"),
    system_pods=False,
    namespaces=(
        NamespaceRule(
            match=("prod-*",), levels=frozenset({Level.L0, Level.L1}), minimum=True, dscp=((0, 63),)
        ),
        NamespaceRule(match=("test",), dscp=((8, 8), (46, 46), (8, 14))),
    ),
    classes={**DEFAULT_CLASSES, "LS": Level.L0, "GPU": Level.L2},
    workloads=(
        WorkloadSettings(
            name="web",
            match=WorkloadMatch(addresses=("10.88.0.10", "fd00:88::10")),
            level=Level.L0,
            limits=PerDirection(tx=10_000_000, rx=None),
            rules=PerDirection(
                tx=(
                    Rule(
                        matches=(PortMatch(ranges=(PortRange(low=443, high=443),), expression="=443"),),
                        dscp=46,
                    ),
                ),
                rx=(),
            ),
        ),
        WorkloadSettings(
            name="backup",
            match=WorkloadMatch(cgroup=CgroupPath("/system.slice/backup.service")),
            limits=PerDirection(tx=None, rx=30_000_000),
        ),
        WorkloadSettings(name="mail", match=WorkloadMatch(unit="postfix@-.service")),
    ),
    backends=("terway", "tc"),
    backend_options={"tc": {"takeover": ["tbf"], "depth": 3}, "terway": {}},
    loop=LoopSettings(
        interval_s=0.1, contended_interval_s=0.01, enter=0.9, enter_backlogged=0.875, leave=0.8, hold_s=1.5
    ),
    kubernetes=KubernetesSettings(enable=Toggle.ON, kubeconfig="/etc/kube.conf", annotations=False),
    paths=PathSettings(
        net=PurePosixPath("/srv/net"),
        socket=PurePosixPath("/srv/sock"),
        state=PurePosixPath("/srv/state"),
        cgroup=PurePosixPath("/srv/cgroup"),
    ),
    metrics_listen="[::]:9469",
    log=LogSettings(level="debug", format="json"),
    on_exit=OnExit.RESTORE,
)


CONTRACT = """
node:
  name: worker-1
  uplinks: [eth0]
  bandwidth: {tx: 10G, rx: 10G}
policy:
  enable: true
  levels:
    l1: {txMin: 30%, txMax: 100%, rxMin: 30%, rxMax: 100%}
    l2: {txMin: 30%, txMax: 80%, rxMin: 30%, rxMax: 80%}
  systemNamespaces: [kube-system]
  namespaces:
    - {match: ["prod-*"], levels: [l0, l1, l2], minimum: true, dscp: [0-63]}
classes: {LS: L1, BE: L2}
workloads:
  - name: web
    match: {addresses: [10.88.0.10, "fd00:88::10"]}
    level: l0
    limits: {egress: 10M, ingress: 20M}
    rules: {egress: [], ingress: []}
backends: [tc]
loop: {interval: 50ms, enter: 95%, enterBacklogged: 90%, leave: 85%, hold: 1s}
kubernetes: {enable: auto, kubeconfig: null, annotations: true}
paths: {net: /var/run/koordinator/net, socket: /run/netqos/netqosd.sock, state: /var/lib/netqos, cgroup: /sys/fs/cgroup}
metrics: {listen: "127.0.0.1:9469"}
log: {level: info, format: auto}
onExit: keep
"""
"""The example that the project's contract gives."""


def read(*texts: str) -> Settings:
    return parse_documents([(f"{number}.yaml", text) for number, text in enumerate(texts, start=1)])


def refused(*texts: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidConfiguration) as caught:
        read(*texts)
    assert caught.value.problems == tuple(map(str, caught.value.located))
    return caught.value.located


def places(*texts: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.path) for problem in refused(*texts)]


def only(*texts: str) -> Problem:
    (problem,) = refused(*texts)
    return problem


def test_a_file_with_every_key() -> None:
    assert replace(read(WHOLE), places={}) == EXPECTED


def test_the_example_of_the_contract() -> None:
    settings = read(CONTRACT)
    assert settings.policy.levels.l2 == LevelPolicy(
        enabled=True,
        guarantee=PerDirection(tx=Percent(30), rx=Percent(30)),
        ceiling=PerDirection(tx=Percent(80), rx=Percent(80)),
    )
    assert settings.namespaces == (NamespaceRule(match=("prod-*",), minimum=True, dscp=((0, 63),)),)
    assert settings.workloads[0].match == WorkloadMatch(addresses=("10.88.0.10", "fd00:88::10"))
    assert replace(
        settings, node_name=None, uplinks=None, bandwidth=NO_LIMITS, namespaces=None, workloads=(), places={}
    ) == (replace(Settings(), policy=settings.policy))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "~",
        "{}",
        "node:\npolicy:\nworkloads:\nclasses:\n",
        "loop: {hold: null}",
        "node: {name: ~}",
    ],
    ids=repr,
)
def test_an_empty_file_and_empty_keys_are_the_defaults(text: str) -> None:
    assert read(text) == read() == Settings()


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    assert read("\ufeffonExit: restore").on_exit is OnExit.RESTORE


def test_metrics_are_switched_off_by_null() -> None:
    assert read("metrics: {listen: null}").metrics_listen is None
    assert read("metrics:").metrics_listen == "127.0.0.1:9469"


@pytest.mark.parametrize(
    ("text", "toggle"),
    [
        ("auto", Toggle.AUTO),
        ("Auto", Toggle.AUTO),
        ("true", Toggle.ON),
        ("no", Toggle.OFF),
        ("'on'", Toggle.ON),
    ],
)
def test_a_source_may_find_out_for_itself(text: str, toggle: Toggle) -> None:
    assert read(f"kubernetes: {{enable: {text}}}").kubernetes.enable is toggle


@pytest.mark.parametrize(("text", "enabled"), [("true", True), ("false", False), ("~", None)])
def test_the_switch_of_the_file_is_that_of_all_levels(text: str, *, enabled: bool | None) -> None:
    policy = read(f"policy: {{enable: {text}}}").policy
    levels = ON if enabled else LevelPolicy()
    assert policy == NodePolicy(source="file", enabled=enabled, levels=PerLevel(levels, levels, levels))


@pytest.mark.parametrize("text", ["0", '"0"'])
def test_a_ceiling_of_0_is_none(text: str) -> None:
    levels = read(f"policy: {{levels: {{l1: {{txMax: {text}}}}}}}").policy.levels
    assert levels.l1.ceiling == PerDirection(tx=Percent(100), rx=None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("policy: {enable: 1}", "write true"),
        ("policy: {systemPods: 0}", "write false"),
        ("node: {allowSmallTotal: maybe}", "write true or false"),
        ("policy: {enable: [true]}", "write true or false"),
        ("kubernetes: {annotations: 'truee'}", "write true or false"),
        ("kubernetes: {enable: 1}", "write true, false or auto"),
        ("policy: {networkQOSStrategy: {enable: 1}}", "write true"),
        ("policy: {networkQOSStrategy: {enable: 'true'}}", "write true, without quotes"),
        ("policy: {resourceQOSStrategy: {lsClass: {networkQOS: {enable: off}}}}", "write false"),
        ("policy: {resourceQOSStrategy: {lsClass: {networkQOS: {enable: maybe}}}}", "write true or false"),
    ],
)
def test_the_hint_for_a_switch_fits_what_was_written(text: str, hint: str) -> None:
    problem = only(text)
    assert "allowed: " in problem.message
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("text", "value"),
    [("no", False), ("off", False), ('"true"', True), ("Yes", True), ("'ON'", True), ("FALSE", False)],
)
def test_a_switch_may_be_a_word(text: str, *, value: bool) -> None:
    assert read(f"policy: {{enable: {text}}}").policy.enabled is value


def test_either_shape_of_a_node_slo_stands_in_for_levels() -> None:
    proposal = read(
        "policy: {networkQOSStrategy: {enable: true, nodeBandwidthLimit: {hw: {tx: 10000, rx: 25G}, l2: {tx: 800}}}}"
    )
    assert proposal.policy.levels.l2.ceiling == PerDirection(tx=800_000_000, rx=None)
    assert (proposal.policy.enabled, proposal.bandwidth) == (True, PerDirection(tx=10**10, rx=25 * 10**9))
    upstream = read(
        """
        node: {bandwidth: {rx: 5G}}
        policy:
          resourceQOSStrategy:
            policies: {netQOSPolicy: terway-qos, cpuPolicy: x}
            lsClass: {networkQOS: {enable: true, egressRequest: 30}, cpuQOS: {}}
          systemStrategy: {totalNetworkBandwidth: 10G, minFreeKbytesFactor: 100}
        """
    )
    assert upstream.policy.levels.l1 == LevelPolicy(
        enabled=True, guarantee=PerDirection(tx=Percent(30), rx=None)
    )
    assert upstream.bandwidth == PerDirection(tx=10_000_000_000, rx=5_000_000_000)
    assert upstream.backends == ("terway",)


def test_the_switch_of_the_file_beats_the_one_of_a_foreign_shape() -> None:
    text = "policy: {{enable: {}, resourceQOSStrategy: {{lsClass: {{networkQOS: {{enable: {}}}}}}}}}"
    on = read(text.format("true", "false")).policy
    assert (on.enabled, [level.enabled for level in on.levels]) == (True, [True, False, True])
    off = read(text.format("false", "true")).policy
    assert (off.enabled, [level.enabled for level in off.levels]) == (False, [None, True, None])


def test_several_files_merge_key_by_key_and_workloads_join() -> None:
    merged = read(
        "node: {name: a, bandwidth: {tx: 10G, rx: 20G}}\nbackends: [tc]\n"
        "workloads: [{name: one, match: {unit: one.service}}]\nclasses: {LS: l0}\nlog: {level: debug}",
        "node: {bandwidth: {tx: 5G}}\nbackends: [terway]\n"
        "workloads: [{name: two, match: {unit: two.service}}]\nclasses: {BE: l1}",
        "node:\nworkloads:\nlog: {level: null}",
    )
    assert merged == replace(
        Settings(),
        node_name="a",
        bandwidth=PerDirection(tx=5_000_000_000, rx=20_000_000_000),
        backends=("terway",),
        workloads=(
            WorkloadSettings(name="one", match=WorkloadMatch(unit="one.service")),
            WorkloadSettings(name="two", match=WorkloadMatch(unit="two.service")),
        ),
        classes={**DEFAULT_CLASSES, "LS": Level.L0, "BE": Level.L1},
    )


def test_every_problem_of_every_file_is_told_at_its_line() -> None:
    problems = refused(
        "nod: 1\nnode:\n  name: A_b\n  bandwith: {tx: 1G}\nloop:\n  interval: 50\n  leave: 97%\n",
        "workloads:\n  - name: web\n    level: l9\nonExit: kep\n",
    )
    assert [(one.file, one.line, one.column, one.path) for one in problems] == [
        ("1.yaml", 1, 1, "nod"),
        ("1.yaml", 3, 9, "node.name"),
        ("1.yaml", 4, 3, "node.bandwith"),
        ("1.yaml", 6, 13, "loop.interval"),
        ("1.yaml", 7, 10, "loop.leave"),
        ("2.yaml", 2, 5, "workloads[0].match"),
        ("2.yaml", 3, 12, "workloads[0].level"),
        ("2.yaml", 4, 9, "onExit"),
    ]
    assert all(one.message and one.hint for one in problems)


def test_a_problem_reads_as_one_line_with_the_value_the_allowed_and_the_next_step() -> None:
    assert str(only("loop:\n  interval: 50\n")) == (
        "1.yaml:2:13: loop.interval: 50 has no unit; allowed: a number with ms, s, m or h "
        "(write 50ms, 1s, 10m or 1h30m)"
    )


def test_the_error_is_a_rejected_input_that_shows_its_first_problem() -> None:
    with pytest.raises(Rejected, match=r"the configuration is wrong: 1\.yaml:1:1: .*, and 1 more"):
        read("a: 1\nb: 2")


@pytest.mark.parametrize(
    ("text", "guess"),
    [("backend: [tc]", "backends"), ("on_exit: keep", "onExit"), ("node: {uplink: [eth0]}", "uplinks")],
)
def test_an_unknown_key_names_the_similar_one_and_all_others(text: str, guess: str) -> None:
    message = only(text).message
    assert f"did you mean {guess}?" in message
    assert "allowed: " in message


@pytest.mark.parametrize(
    "text",
    ["- a", "hello", "5", "true"],
)
def test_a_file_that_is_no_map_is_refused(text: str) -> None:
    assert only(text).message == "no map; allowed: keys such as node: and policy:"


def test_a_file_that_cannot_be_read_hides_no_problem_of_another_one() -> None:
    problems = refused("node: [", "onExit: kep")
    assert [(one.file, one.path) for one in problems] == [("1.yaml", ""), ("2.yaml", "onExit")]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("node: 5", "node"),
        ("node: {uplinks: []}", "node.uplinks"),
        ("node: {uplinks: eth0}", "node.uplinks"),
        ("node: {uplinks: [5]}", "node.uplinks[0]"),
        ("node: {uplinks: [a/b]}", "node.uplinks[0].name"),
        ("node: {uplinks: [averylonginterface]}", "node.uplinks[0].name"),
        ("node: {uplinks: [eth0, {name: eth0}]}", "node.uplinks[1].name"),
        ("node: {bandwidth: 10G}", "node.bandwidth"),
        ("node: {bandwidth: {tx: 0}}", "node.bandwidth.tx"),
        ("node: {bandwidth: {tx: 50%}}", "node.bandwidth.tx"),
        ("node: {bandwidth: {tx: 10m}}", "node.bandwidth.tx"),
        ("node: {bandwidth: {tx: 1_000M}}", "node.bandwidth.tx"),
        ("node: {bandwidth: {tx: 9M}}", "node.bandwidth.tx"),
        ("node: {uplinks: [{name: a, bandwidth: {rx: 1000}}]}", "node.uplinks[0].bandwidth.rx"),
        ("node: {allowSmallTotal: 1}", "node.allowSmallTotal"),
        ("policy: {enable: maybe}", "policy.enable"),
        ("policy: {levels: {l3: {}}}", "policy.levels.l3"),
        ("policy: {levels: {l1: {txMin: 30}}}", "policy.levels.l1.txMin"),
        ("policy: {levels: {l1: {txMin: 101%}}}", "policy.levels.l1.txMin"),
        ("policy: {levels: {l1: {txMin: 50%, txMax: 40%}}}", "policy.levels.l1.txMin"),
        ("policy: {levels: {l0: {txMax: 0%}}}", "policy.levels.l0.txMax"),
        ("policy: {levels: {l2: {rxMin: 0%, rxMax: 0.0%}}}", "policy.levels.l2.rxMax"),
        ("policy: {levels: {l1: {rxMin: 100%}}}", "policy.levels.l1.rxMin"),
        ("policy: {levels: {l1: {rxMin: 5G, rxMax: 4G}}}", "policy.levels.l1.rxMin"),
        ("policy: {levels: {l1: {rxMin: 5G, rxMax: 40%}}}", "policy.levels.l1"),
        ("policy: {levels: {l1: {rxMin: 50%}, l2: {rxMin: 50%}}}", "policy.levels.l2.rxMin"),
        ("policy: {levels: {}, networkQOSStrategy: {}}", "policy.networkQOSStrategy"),
        ("policy: {networkQOSStrategy: {enabled: true}}", "policy.networkQOSStrategy.enabled"),
        ("policy: {networkQOSStrategy: []}", "policy.networkQOSStrategy"),
        (
            "policy: {resourceQOSStrategy: {beClass: {networkQOS: {egresRequest: 1}}}}",
            "policy.resourceQOSStrategy.beClass.networkQOS.egresRequest",
        ),
        ("policy: {systemStrategy: {totalNetworkBandwidth: -1}}", "policy.systemStrategy.totalNetworkBandwidth"),
        ("policy: {systemNamespaces: [Kube]}", "policy.systemNamespaces[0]"),
        ("policy: {namespaces: [{match: []}]}", "policy.namespaces[0].match"),
        ("policy: {namespaces: [{levels: [l0]}]}", "policy.namespaces[0].match"),
        ("policy: {namespaces: [{match: [a], dscp: [63-0]}]}", "policy.namespaces[0].dscp[0]"),
        ("policy: {namespaces: [{match: [a], dscp: [0-64]}]}", "policy.namespaces[0].dscp[0]"),
        ("classes: {LS: l3}", "classes.LS"),
        ("classes: {'a b': l1}", "classes.a b"),
        ("classes: [LS]", "classes"),
        ("workloads: {}", "workloads"),
        ("workloads: [{name: a, match: {unit: a.service}, limits: {egress: -5}}]", "workloads[0].limits.egress"),
        ("workloads: [{name: a, match: {unit: a.service}, limits: {egress: 5%}}]", "workloads[0].limits.egress"),
        ("workloads: [{name: A, match: {unit: a.service}}]", "workloads[0].name"),
        (f"workloads: [{{name: {'a' * 63}b, match: {{unit: a.service}}}}]", "workloads[0].name"),
        (f"workloads: [{{name: {'a' * 60}.{'b' * 60}, match: {{unit: a.service}}}}]", "workloads[0].name"),
        ("workloads: [{name: a, match: {}}]", "workloads[0].match"),
        ("workloads: [{name: a, match: {unit: a.service, cgroup: /a}}]", "workloads[0].match"),
        ("workloads: [{name: a, match: {unit: nginx}}]", "workloads[0].match.unit"),
        ("workloads: [{name: a, match: {cgroup: /}}]", "workloads[0].match.cgroup"),
        ("workloads: [{name: a, match: {cgroup: a/b}}]", "workloads[0].match.cgroup"),
        ("workloads: [{name: a, match: {cgroup: /a/../b}}]", "workloads[0].match.cgroup"),
        ("workloads: [{name: a, match: {cgroup: /sys/fs/cgroup/a}}]", "workloads[0].match.cgroup"),
        ("workloads: [{name: a, match: {addresses: []}}]", "workloads[0].match.addresses"),
        ("workloads: [{name: a, match: {addresses: 10.0.0.1}}]", "workloads[0].match.addresses"),
        ("workloads: [{name: a, match: {unit: a.service}, rules: {egres: []}}]", "workloads[0].rules.egres"),
        (
            "workloads: [{name: a, match: {unit: a.service}, rules: {egress: [{matchs: [{type: ip}]}]}}]",
            "workloads[0].rules.egress[0].actions",
        ),
        ("backends: tc", "backends"),
        ("backends: [TC]", "backends[0]"),
        ("backends: [tc, tc]", "backends[1]"),
        ("backendOptions: {tc: 5}", "backendOptions.tc"),
        ("backendOptions: {TC: {}}", "backendOptions.TC"),
        ("loop: {interval: 4ms}", "loop.interval"),
        ("loop: {interval: 11s}", "loop.interval"),
        ("loop: {interval: 10ms}", "loop.contendedInterval"),
        ("loop: {hold: 2m}", "loop.hold"),
        ("loop: {hold: -1s}", "loop.hold"),
        ("loop: {enter: 0.95}", "loop.enter"),
        ("loop: {enter: 0%}", "loop.enter"),
        ("loop: {enter: 101%}", "loop.enter"),
        ("loop: {enter: 89%}", "loop.enterBacklogged"),
        ("loop: {leave: 90%}", "loop.leave"),
        ("kubernetes: {enable: maybe}", "kubernetes.enable"),
        ("kubernetes: {kubeconfig: kube.conf}", "kubernetes.kubeconfig"),
        ("paths: {net: net}", "paths.net"),
        ("paths: {state: /a/../b}", "paths.state"),
        (f"paths: {{socket: /{'a' * 107}}}", "paths.socket"),
        ("metrics: {listen: 9469}", "metrics.listen"),
        ("metrics: {listen: ':9469'}", "metrics.listen"),
        ("metrics: {listen: '::1:9469'}", "metrics.listen"),
        ("metrics: {listen: '[10.0.0.1]:9469'}", "metrics.listen"),
        ("metrics: {listen: '127.0.0.1:70000'}", "metrics.listen"),
        ("metrics: {listen: off}", "metrics.listen"),
        ("log: {level: loud}", "log.level"),
        ("log: {format: xml}", "log.format"),
        ("onExit: maybe", "onExit"),
    ],
)  # fmt: skip
def test_one_wrong_value_is_one_problem(text: str, path: str) -> None:
    problem = only(text)
    assert problem.path == path
    assert "allowed" in problem.message or "missing" in problem.message or "again" in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.0/24",
        "10.0.0.256",
        "010.0.0.1",
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "fe80::1",
        "169.254.10.1",
        "web",
        "1_0.0.0.1",
    ],
)
def test_a_workload_has_addresses_of_its_own(address: str) -> None:
    problem = only(f"workloads: [{{name: a, match: {{addresses: ['{address}']}}}}]")
    assert problem.path == "workloads[0].match.addresses[0]"


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ("{name: a, match: {unit: a.service}}", "{name: a, match: {unit: b.service}}", "workloads[1].name"),
        (
            "{name: a, match: {unit: a.service}}",
            "{name: b, match: {unit: a.service}}",
            "workloads[1].match.unit",
        ),
        ("{name: a, match: {cgroup: /a}}", "{name: b, match: {cgroup: /a}}", "workloads[1].match.cgroup"),
        (
            "{name: a, match: {addresses: ['fd00::1']}}",
            "{name: b, match: {addresses: [10.0.0.1, 'FD00:0::1']}}",
            "workloads[1].match.addresses[1]",
        ),
    ],
)
def test_what_only_one_workload_can_have_is_told_with_both_places(first: str, second: str, path: str) -> None:
    problem = only(f"\nworkloads: [{first}]", f"\n\n\nworkloads: [{second}]")
    assert (problem.file, problem.line, problem.path) == ("2.yaml", 4, path)
    assert "stands in 1.yaml line 2 already" in problem.message


def test_a_problem_of_one_workload_hides_none_of_another_one() -> None:
    assert places(
        "workloads:\n"
        "- {name: a, level: l9, match: {unit: a.service}}\n"
        "- {name: a, match: {unit: b.service},\n"
        "   rules: {egress: [{matchs: [{type: ip}], actions: [{action: dscp, value: 99}]}]}}\n"
    ) == [
        (2, "workloads[0].level"),
        (3, "workloads[1].name"),
        (4, "workloads[1].rules.egress[0].actions[0].value"),
    ]


def test_a_guarantee_may_be_as_high_as_its_ceiling() -> None:
    text = "policy: {levels: {l1: {txMin: 40%, txMax: 40%}, l2: {txMin: 59%}}}"
    assert read(text).policy.levels.l1.guarantee.tx == Percent(40)
    assert read("policy: {levels: {l1: {rxMin: 4G, rxMax: 4G}}}").policy.levels.l1.ceiling.rx == 4_000_000_000


def test_two_shapes_in_two_files_are_told_with_both_places() -> None:
    problem = only("policy:\n  levels: {}\n", "policy:\n  resourceQOSStrategy: {}\n")
    assert (problem.file, problem.line) == ("2.yaml", 2)
    assert "levels stands in 1.yaml line 2" in problem.message


def test_a_small_total_can_be_allowed_by_another_file() -> None:
    assert read("node: {bandwidth: {tx: 1M}}", "node: {allowSmallTotal: true}").bandwidth.tx == 1_000_000


def test_numbers_and_words_of_older_yaml_stay_what_was_written() -> None:
    settings = read("workloads: [{name: 10, match: {unit: a.service}}, {name: no, match: {unit: b.service}}]")
    assert [workload.name for workload in settings.workloads] == ["10", "no"]


def test_a_garbage_file_tells_a_bounded_number_of_problems() -> None:
    assert len(refused("\n".join(f"key{number}: x" for number in range(20_000)))) == 100
