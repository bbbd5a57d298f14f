"""libnftables in a namespace: transactions, queries, errors, threads, memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.errors import Rejected, Retryable
from netqos.host.nftables import Nftables
from netqos.testing.namespaces import Namespace
from netqos_tc import nfwire
from netqos_tc.netlink import Channel

pytestmark = pytest.mark.kernel("nft")


@pytest.fixture
def inside() -> Iterator[tuple[Namespace, Nftables]]:
    namespace = Namespace("nft")
    with namespace.entered():
        nft = Nftables()
    yield namespace, nft
    nft.close()
    namespace.remove()


def test_a_script_is_one_transaction(inside: tuple[Namespace, Nftables]) -> None:
    namespace, nft = inside
    with pytest.raises(Retryable, match="No such file"):
        nft.run("add table inet one\nadd rule inet one nosuch accept\n")
    assert namespace.run(["nft", "list", "ruleset"]).stdout == ""
    nft.run("add table inet one\nadd chain inet one some\n")
    assert "chain some" in namespace.run(["nft", "list", "ruleset"]).stdout


def test_a_check_is_judged_by_the_kernel_and_changes_nothing(inside: tuple[Namespace, Nftables]) -> None:
    """Not even the generation; and what is run afterwards is in force."""
    namespace, nft = inside
    text = "add table inet one\nadd chain inet one some { type filter hook output priority 0; }\n"
    nft.run("add table inet kept")
    before = namespace.call(_generation)
    nft.check(text)
    with pytest.raises(Retryable, match="No such file"):
        nft.check(f"{text}add rule inet one nosuch accept\n")
    assert namespace.run(["nft", "list", "ruleset"]).stdout == "table inet kept {\n}\n"
    assert namespace.call(_generation) == before
    nft.run(text)
    assert "chain some" in namespace.run(["nft", "list", "ruleset"]).stdout
    assert namespace.call(_generation) > before


def _generation() -> int:
    channel = Channel.netfilter()
    try:
        return nfwire.read_generation(channel.get(nfwire.get_generation()))
    finally:
        channel.close()


def test_a_query_is_json_and_what_is_missing_may_come(inside: tuple[Namespace, Nftables]) -> None:
    _namespace, nft = inside
    with pytest.raises(Retryable):
        nft.query("list table inet one")
    nft.run("add table inet one")
    listed = nft.query("list table inet one")["nftables"]
    assert isinstance(listed, list)
    assert {"table": {"family": "inet", "name": "one"}}.items() <= {
        "table": {key: listed[1]["table"][key] for key in ("family", "name")}
    }.items()


@pytest.mark.parametrize("commands", ["nonsense", "add table inet", "add table inet a\0; flush ruleset"])
def test_wrong_commands_are_rejected(inside: tuple[Namespace, Nftables], commands: str) -> None:
    namespace, nft = inside
    nft.run("add table inet kept")
    with pytest.raises(Rejected):
        nft.run(commands)
    assert namespace.run(["nft", "list", "tables"]).stdout == "table inet kept\n"


def test_a_closed_context_is_said_so_and_closing_twice_is_fine(inside: tuple[Namespace, Nftables]) -> None:
    _namespace, nft = inside
    nft.close()
    nft.close()
    with pytest.raises(Retryable, match="closed"):
        nft.run("add table inet one")


def test_threads_share_a_context(inside: tuple[Namespace, Nftables]) -> None:
    namespace, nft = inside
    problems: list[Exception] = []

    def work(number: int) -> None:
        try:
            for step in range(20):
                nft.run(f"add table inet t{number}x{step}")
        except Exception as problem:  # noqa: BLE001 - shown by the test
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(namespace.run(["nft", "list", "tables"]).stdout.splitlines()) == 80


def test_ten_thousand_passes_need_no_more_memory(inside: tuple[Namespace, Nftables]) -> None:
    _namespace, nft = inside
    nft.run("add table inet one")

    def passes(count: int) -> int:
        for _ in range(count):
            nft.run("add table inet one")
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * 4096

    before = passes(2000)
    assert passes(8000) - before < 4_000_000
