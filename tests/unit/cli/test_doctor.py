"""Each check against a host made of files, and the whole against this one."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from netqos.backend import Capabilities
from netqos.cli.client import StatusClient
from netqos.cli.commands import doctor as command
from netqos.cli.ctl import main
from netqos.cli.doctor import daemon, host, network, others, scheduling
from netqos.cli.doctor.check import Check, Host, Verdict, of_findings, ok, warn
from netqos.cli.local import NoSuchFile
from netqos.cli.render import Screen
from netqos.host.links import LinkReport
from netqos.model.health import error, info, warning
from netqos.model.ids import IfName
from netqos.model.inputs import UplinkFacts
from netqos.model.levels import Direction, PerDirection
from netqos.settings.values import Settings
from netqos.testing.fakes import FakeBackend
from tests.unit.cli.daemon import answering, running
from tests.unit.cli.test_ctl import json_answer, sends
from tests.unit.observe.sample import EMPTY, SampleAgent

Files = dict[str, str]


@pytest.fixture
def make_host(tmp_path: Path) -> Callable[[Files], Host]:
    def make(files: Files) -> Host:
        for name, text in files.items():
            path = tmp_path / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Host(root=tmp_path)

    return make


def verdicts(checks: list[Check]) -> list[str]:
    return [one.verdict.value for one in checks]


def status_file(capabilities: int) -> Files:
    return {"/proc/self/status": f"Name:\tx\nCapEff:\t{capabilities:016x}\nSeccomp:\t0\n"}


@pytest.mark.parametrize(
    ("files", "verdict", "part"),
    [
        (status_file(0), "fail", "CAP_NET_ADMIN is missing"),
        (status_file(1 << 12), "ok", "CAP_SYS_ADMIN is not"),
        (status_file(1 << 12 | 1 << 21), "ok", "may be configured"),
        ({}, "unknown", "does not tell"),
    ],
)
def test_rights(make_host: Callable[[Files], Host], files: Files, verdict: str, part: str) -> None:
    (found,) = host.rights(make_host(files))
    assert (found.verdict.value, part in found.text) == (verdict, True)


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        ({}, "warn"),
        ({"/proc/sys/user/max_user_namespaces": "0"}, "warn"),
        ({"/proc/sys/user/max_user_namespaces": "1000"}, "ok"),
        (
            {"/proc/sys/user/max_user_namespaces": "9", "/proc/sys/kernel/unprivileged_userns_clone": "0"},
            "warn",
        ),
        (
            {
                "/proc/sys/user/max_user_namespaces": "9",
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
            },
            "warn",
        ),
    ],
)
def test_user_namespaces(make_host: Callable[[Files], Host], files: Files, verdict: str) -> None:
    assert verdicts(host.user_namespaces(make_host(files))) == [verdict]


def test_kernel_options_from_the_running_kernel_or_from_boot(make_host: Callable[[Files], Host]) -> None:
    everything = "".join(f"CONFIG_{option}=y\n" for _, option, _ in host.OPTIONS)
    release = {"/proc/sys/kernel/osrelease": "6.1.0-x\n"}
    assert verdicts(host.kernel_options(make_host(release))) == ["unknown"]
    found = make_host({"/boot/config-6.1.0-x": everything.replace("CONFIG_IFB=y", "# CONFIG_IFB is not set")})
    (missing,) = host.kernel_options(found)
    assert (missing.verdict, missing.text) == (
        Verdict.WARN,
        "ifb is missing, which shapes ingress",
    )
    (found.root / "proc/config.gz").write_bytes(gzip.compress(everything.encode()))
    assert verdicts(host.kernel_options(found)) == ["ok"]
    (found.root / "proc/config.gz").write_bytes(b"no gzip")
    assert verdicts(host.kernel_options(found)) == ["warn"]


def test_cgroups_that_are_not_mounted_are_said(make_host: Callable[[Files], Host], tmp_path: Path) -> None:
    assert verdicts(host.cgroups(make_host({}), tmp_path / "cgroup")) == ["warn"]


# ------------------------------------------------------------------ the network


def uplink(**changes: Any) -> UplinkFacts:
    return UplinkFacts(**{"name": IfName("eth0"), "index": 2, "speed_bps": 10_000_000_000, **changes})


@pytest.mark.parametrize(
    ("facts", "settings", "verdict", "part"),
    [
        (uplink(), Settings(), "ok", "eth0 is up, 10 Gbit/s"),
        (uplink(present=False), Settings(), "fail", "is not there"),
        (uplink(is_up=False), Settings(), "fail", "is down"),
        (uplink(speed_bps=None), Settings(), "warn", "speed is unknown"),
        (
            uplink(speed_bps=None),
            Settings(bandwidth=PerDirection(tx=2_000_000_000, rx=None)),
            "ok",
            "total 2 Gbit/s by configuration",
        ),
    ],
)
def test_an_uplink(facts: UplinkFacts, settings: Settings, verdict: str, part: str) -> None:
    found = network._uplink(facts, settings)
    assert (found.verdict.value, part in found.text) == (verdict, True)


def qdisc(kind: str, device: str, handle: str = "0:", **options: object) -> dict[str, object]:
    return {"kind": kind, "dev": device, "handle": handle, "options": options}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([qdisc("noqueue", "lo")], ["ok"]),
        ([qdisc("htb", "up0", "4e51:", direct_packets_stat=0)], ["ok"]),
        ([qdisc("htb", "up0", "4e51:", direct_packets_stat=3)], ["warn"]),
        ([qdisc("htb", "up0", "1:", direct_packets_stat=3)], ["ok"]),
    ],
)
def test_qdiscs(monkeypatch: pytest.MonkeyPatch, found: list[dict[str, object]], wanted: list[str]) -> None:
    monkeypatch.setattr(Host, "run", lambda *_words: json.dumps(found))
    assert verdicts(network.qdiscs(Host())) == wanted


@pytest.mark.parametrize("text", [None, "", "no json", "[]"])
def test_qdiscs_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr(Host, "run", lambda *_words: text)
    assert verdicts(network.qdiscs(Host())) == ["unknown"]


def ruleset(*items: Mapping[str, object]) -> dict[str, Any]:
    return {"nftables": [{"metainfo": {}}, *items]}


def rule(table: str, *expressions: object) -> dict[str, object]:
    return {"rule": {"family": "inet", "table": table, "chain": "y", "expr": list(expressions)}}


SETS_PRIORITY = {"mangle": {"key": {"meta": {"key": "priority"}}, "value": "1:2"}}
SETS_MARK = {"mangle": {"key": {"meta": {"key": "mark"}}, "value": 1}}
SETS_DSCP = {"mangle": {"key": {"payload": {"protocol": "ip", "field": "dscp"}}, "value": 1}}
AT_OUR_PLACE = {"chain": {"family": "inet", "table": "x", "name": "y", "hook": "forward", "prio": -150}}


@pytest.mark.parametrize(
    ("found", "verdict", "part"),
    [
        (ruleset(), "ok", "nobody else"),
        (ruleset(rule("netqos", SETS_PRIORITY)), "ok", "nobody else"),
        (ruleset(rule("x", {"counter": None}, SETS_PRIORITY), AT_OUR_PLACE), "warn", "inet x sets"),
        (ruleset(rule("x", SETS_MARK, SETS_DSCP), AT_OUR_PLACE), "ok", "inet x runs at our place"),
        (ruleset(rule("x", "accept", {"mangle": {"key": "odd"}})), "ok", "nobody else"),
        ({}, "ok", "nobody else"),
    ],
)
def test_a_ruleset(found: dict[str, Any], verdict: str, part: str) -> None:
    check = network.judge_ruleset(found)
    assert (check.verdict.value, part in check.text) == (verdict, True)


@pytest.mark.parametrize(
    ("everywhere", "fresh", "verdict"),
    [("0", "1", "ok"), ("1", "0", "ok"), ("2", "2", "warn"), ("0", "0", "warn")],
)
def test_source_checks(make_host: Callable[[Files], Host], everywhere: str, fresh: str, verdict: str) -> None:
    conf = "/proc/sys/net/ipv4/conf"
    files = {f"{conf}/all/rp_filter": everywhere, f"{conf}/default/rp_filter": fresh}
    assert verdicts(network.source_checks(make_host(files))) == [verdict]


def test_source_checks_that_cannot_be_told(make_host: Callable[[Files], Host]) -> None:
    assert verdicts(network.source_checks(make_host({}))) == ["unknown"]


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("/etc/hosts", "", "no terway-qos"),
        (f"{others.TERWAY}/pod.json", "{}", "terway-qos has a folder"),
        (f"{others.TERWAY}/per_cgroup_bps_limit", "", "fights with"),
        ("/sys/fs/bpf/tc/globals/cilium_ipcache", "", "Cilium is here"),
        ("/sys/fs/bpf/cilium/x", "", "Cilium is here"),
        ("/sys/fs/bpf/tc/globals/other", "", "no terway-qos"),
        ("/etc/cni/net.d/10-x.conflist", '{"plugins": [{"type": "bandwidth"}]}', "bandwidth plugin"),
        ("/etc/cni/net.d/10-x.conflist", '{"plugins": []}', "no terway-qos"),
    ],
)
def test_other_agents(make_host: Callable[[Files], Host], name: str, text: str, part: str) -> None:
    (found,) = others.others(make_host({name: text}))
    assert part in found.text


# ------------------------------------------------------------------ configuration, daemon, backends


def test_a_configuration_is_right_wrong_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "netqos.yaml"
    path.write_text("node: {name: x}\n", encoding="utf-8")
    checks, settings = daemon.configuration(str(path))
    assert (verdicts(checks), settings.node_name) == (["ok"], "x")
    path.write_text("nod: 1\nloop: {interval: soon}\n", encoding="utf-8")
    checks, settings = daemon.configuration(str(path))
    assert verdicts(checks) == ["fail", "fail", "fail"]
    assert settings == Settings()
    assert "netqos.yaml:1:1" in checks[0].text


def test_only_the_default_configuration_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = tmp_path / "netqos.yaml"
    monkeypatch.setattr("netqos.cli.local.CONFIG", str(default))
    (found,), settings = daemon.configuration(None)
    assert (found.verdict, found.text) == (Verdict.WARN, f"there is no {default}; the defaults hold")
    assert settings == Settings()
    with pytest.raises(NoSuchFile):
        daemon.configuration(str(default))
    default.symlink_to("nowhere")
    assert verdicts(daemon.configuration(None)[0]) == ["fail", "fail"]


@pytest.mark.parametrize("words", [["doctor"], ["cleanup", "--dry-run"], ["doctor", "--json"]])
def test_a_named_configuration_that_is_missing_is_5_and_nothing_else_is_said(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netqos.cli.commands.cleanup._need_rights", lambda: None)
    path = tmp_path / "none.yaml"
    assert main([*words, "--config", str(path)]) == 5
    captured = capsys.readouterr()
    assert (captured.out, captured.err.splitlines()) == (
        *("",),
        [
            f"netqosctl: there is no configuration file {path}",
            "  correct --config, or leave it out for /etc/netqos/netqos.yaml",
        ],
    )


def test_the_daemon_is_asked() -> None:
    with running() as path:
        assert verdicts(daemon.daemon(StatusClient(str(path)))) == ["ok", "fail"]
    with running(SampleAgent(EMPTY)) as path:
        assert verdicts(daemon.daemon(StatusClient(str(path)))) == ["ok", "warn"]
    assert verdicts(daemon.daemon(StatusClient(str(path)))) == ["warn"]
    with answering(sends(json_answer({"other": 1}))) as path:
        assert verdicts(daemon.daemon(StatusClient(str(path)))) == ["fail"]
    older = {"version": "0.0.9", "ready": True, "findings": []}
    with answering(sends(json_answer(older))) as path:
        assert [one.text for one in daemon.daemon(StatusClient(str(path)))][1:] == [
            "it is 0.0.9, this is 0.1.0"
        ]


def test_it_is_told_how_the_daemon_is_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as path:
        assert verdicts(scheduling.scheduling(str(path))) == ["warn"]
        monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: os.SCHED_RR)
        assert verdicts(scheduling.scheduling(str(path))) == ["ok"]
    assert scheduling.scheduling(str(path)) == []


class Probed(FakeBackend):
    """A fake whose probe says what the test wants."""

    answer: Capabilities | Exception

    async def probe(self) -> Capabilities:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


LACKS = Capabilities(
    available=False, findings=(error("no-htb", "backend fake", "sch_htb is missing", hint="modprobe"),)
)
SHAPES = Capabilities(
    available=True,
    enforces=frozenset({Direction.TX}),
    lends=True,
    findings=(warning("w", "backend fake", "no u32"),),
)


@pytest.mark.parametrize(
    ("answer", "used", "wanted"),
    [
        (SHAPES, ("fake",), ["ok", "warn"]),
        (LACKS, ("fake",), ["fail", "fail"]),
        (LACKS, (), ["ok"]),
        (ZeroDivisionError("x"), ("fake",), ["fail"]),
    ],
)
def test_backends_are_probed_each_on_its_own(
    monkeypatch: pytest.MonkeyPatch,
    answer: Capabilities | Exception,
    used: tuple[str, ...],
    wanted: list[str],
) -> None:
    fake = Probed()
    fake.answer = answer
    monkeypatch.setattr(daemon, "all_backends", lambda _settings: ([fake], []))
    found = daemon.backends(Settings(backends=used), LinkReport())
    assert [one.verdict.value for one in found if one.name == "backend fake"][: len(wanted)] == wanted


def test_findings_keep_their_words() -> None:
    found = of_findings("backend tc", [info("a", "backend tc", "m"), error("b", "eth0", "n", hint="h")])
    assert [(one.verdict.value, one.text, one.hint) for one in found] == [
        ("ok", "m", ""),
        ("fail", "eth0: n", "h"),
    ]


# ------------------------------------------------------------------ the whole


def test_the_doctor_runs_on_this_host_and_stumbles_over_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text("{}\n", encoding="ascii")
    words = ["--socket", str(tmp_path / "s"), "doctor", "--config", str(config)]
    code = main([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is (code == 0)
    assert not [one for one in answer["checks"] if "stumbled" in one["text"]]
    assert main(words) == code
    assert "versions" in capsys.readouterr().out


def test_a_long_check_is_broken_beside_its_name() -> None:
    out = io.StringIO()
    checks = [
        warn("daemon", "it is " + "very " * 30 + "slow", "see " + "what " * 30 + "it does"),
        ok("rights", "all"),
    ]
    command.show(Screen(out=out, talk=out), checks)
    *shown, last, _, _ = out.getvalue().splitlines()
    assert last == "ok      rights  all"
    assert max(map(len, shown)) <= 80
    assert {line[:16].strip() for line in shown[1:]} == {""}
    assert [line[16:20] for line in shown] == ["it i", "very", "very", "-> s", "   w", "   w"]


def test_a_check_that_stumbles_hides_no_other() -> None:
    def stumble() -> list[Check]:
        raise ZeroDivisionError("x")

    (found,) = command._attempt("thing", stumble)
    assert (found.verdict, found.name) == (Verdict.UNKNOWN, "thing")
