"""Discovery with real distributions on sys.path: order, laziness, isolation."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import cast

import pytest

from netqos.backend import BackendContext, FileStore, NftRunner, StateStore
from netqos.backend.registry import BackendInfo, installed_names, list_backends, load
from netqos.errors import Unsupported
from netqos.model.health import Finding, Severity

GOOD = """
    class Good:
        def __init__(self, context): self.name = context.name
        async def probe(self): ...
        async def observe(self): ...
        def plan(self, desired, observed): ...
        async def apply(self, plan): ...
        async def is_untouched(self): ...
        def fast_path(self): ...
        async def counters(self): ...
        async def close(self): ...
    create = Good
"""
BROKEN = {
    "unimportable": "import a_module_that_nobody_has",
    "exits": "raise SystemExit(3)",
    "raises": "def create(context): raise ValueError('first line\\nsecond line')",
    "newer": "    NETQOS_API = 2" + GOOD,
    "half": "class Half:\n    name = 'half'\n    def probe(self): ...\ncreate = lambda context: Half()",
    "misnamed": GOOD + "\n    Good.name = property(lambda self: 'other', lambda self, value: None)",
    "nofactory": "create = 7",
    "refuses": """
        from netqos.errors import Rejected
        def create(context):
            raise Rejected("unknown option 'foldr'", subject="backendOptions.refuses.foldr", hint="folder")
    """,
    "elsewhere": """
        from netqos.errors import Unsupported
        def create(context): raise Unsupported("needs a newer kernel", hint="5.10")
    """,
}
LACKING = ("observe", "apply", "is_untouched", "counters", "close", "plan", "fast_path")

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a distribution with one backend and its module on sys.path."""
    before = set(sys.modules)

    def put(name: str, code: str, *, distribution: str = "", version: str = "1.0") -> None:
        distribution = distribution or f"netqos-{name}"
        module = f"plugin_{distribution.replace('-', '_')}_{name}"
        root = tmp_path / distribution
        metadata = root / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        (metadata / "entry_points.txt").write_text(f"[netqos.backends]\n{name} = {module}:create\n")
        (root / f"{module}.py").write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(root)

    yield put
    for module in set(sys.modules) - before:
        del sys.modules[module]


def context(name: str) -> BackendContext:
    def nft() -> NftRunner:
        raise Unsupported("not here")

    return BackendContext(
        name=name,
        options={},
        state=cast("StateStore", None),
        files=cast("FileStore", None),
        nft=nft,
        log=lambda *_: None,
        monotonic=lambda: 0.0,
        cgroup_root=PurePath("/sys/fs/cgroup"),
    )


def summary(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.subject, finding.message) for finding in findings]


def test_names_are_known_without_an_import(install: Install) -> None:
    install("zeta", "raise AssertionError")
    install("alpha", "raise AssertionError")
    assert installed_names() == tuple(sorted({*installed_names(), "alpha", "zeta", "tc", "terway"}))
    assert not any(module.startswith("plugin_") for module in sys.modules)


def test_backends_come_in_the_order_asked_for_and_once(install: Install) -> None:
    for name in ("alpha", "beta", "gamma"):
        install(name, GOOD)
    backends, findings = load(["gamma", "alpha", "gamma"], context)
    assert [backend.name for backend in backends] == ["gamma", "alpha"]
    assert findings == []
    assert not any("beta" in module for module in sys.modules)


def test_what_is_missing_names_what_is_there(install: Install) -> None:
    install("alpha", GOOD)
    backends, (finding,) = load(["alhpa", "alpha"], context)
    assert [backend.name for backend in backends] == ["alpha"]
    assert finding.code == "backend-missing"
    assert finding.severity is Severity.ERROR
    assert finding.message == "is asked for but not installed; installed are: " + ", ".join(installed_names())


def test_a_failing_plugin_takes_no_other_with_it(install: Install) -> None:
    install("first", GOOD)
    install("last", GOOD)
    for name, code in BROKEN.items():
        install(name, code)
    failed: list[tuple[str, type[BaseException]]] = []
    backends, findings = load(
        ["first", *BROKEN, "last"],
        context,
        on_failure=lambda name, problem: failed.append((name, type(problem))),
    )
    assert [backend.name for backend in backends] == ["first", "last"]
    assert {finding.severity for finding in findings} == {Severity.ERROR}
    assert all(finding.hint for finding in findings)
    assert failed == [("unimportable", ModuleNotFoundError), ("exits", SystemExit), ("raises", ValueError)]
    assert summary(findings) == [
        (
            "backend-broken",
            "backend unimportable",
            "cannot be loaded: ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
        ),
        ("backend-broken", "backend exits", "cannot be loaded: SystemExit: 3"),
        ("backend-broken", "backend raises", "cannot be loaded: ValueError: first line"),
        (
            "backend-api-version",
            "backend newer",
            "is written for version 2 of the plugin surface, this netqos has version 1",
        ),
        (
            "backend-incomplete",
            "backend half",
            "; ".join([*(f"has no method {method}" for method in LACKING), "probe is not async"]),
        ),
        (
            "backend-incomplete",
            "backend misnamed",
            "calls itself 'other', its entry point 'misnamed'",
        ),
        (
            "backend-broken",
            "backend nofactory",
            "its entry point 'plugin_netqos_nofactory_nofactory:create' is no factory",
        ),
        ("backend-options", "backendOptions.refuses.foldr", "unknown option 'foldr'"),
        ("backend-unsupported", "backend elsewhere", "needs a newer kernel"),
    ]


def test_of_two_with_one_name_the_choice_does_not_depend_on_the_path(install: Install) -> None:
    chosen = set()
    for distributions in (["aardvark", "zebra"], ["zebra2", "aardvark2"]):
        name = "twice" if "zebra" in distributions else "again"
        for distribution in distributions:
            install(name, GOOD, distribution=distribution, version="2.1")
        (backend,), (finding,) = load([name], context)
        chosen.add(type(backend).__module__)
        assert finding.code == "backend-ambiguous"
        assert finding.severity is Severity.WARNING
    assert chosen == {"plugin_aardvark_twice", "plugin_aardvark2_again"}


def test_list_backends_says_where_each_comes_from_and_how_it_is(install: Install) -> None:
    install("alpha", GOOD, distribution="aardvark", version="2.1")
    install("newer", BROKEN["newer"])
    listed = [info for info in list_backends() if info.name in {"alpha", "newer"}]
    assert listed == [
        BackendInfo(name="alpha", distribution="aardvark", version="2.1", state="loads"),
        BackendInfo(
            name="newer",
            distribution="netqos-newer",
            version="1.0",
            state="broken: is written for version 2 of the plugin surface, this netqos has version 1",
        ),
    ]
