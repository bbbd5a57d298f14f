"""The earlier roots in a real state folder: under any name of a device, and made good when somebody takes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netqos.host.state import StateFolder
from netqos_tc.kept import KeptRoots, document_name
from netqos_tc.links import Link
from netqos_tc.root import Root, to_document

TBF = Root(kind="tbf", handle=0x770000, options=b"\x01\x02")
MQ = Root(kind="mq", handle=0)


def links(**names: str) -> dict[int, Link]:
    return {int(key[1:]): Link(ifindex=int(key[1:]), name=name, mtu=1500) for key, name in names.items()}


@pytest.mark.parametrize("device", ["eth0", "enP2p1s0", "eth0.100", "a@b:c", "größe0", "\udcff0"])
def test_any_device_has_a_document(tmp_path: Path, device: str) -> None:
    state = StateFolder(tmp_path / "state")
    state.save(document_name(device), to_document(TBF))
    assert KeptRoots(state).learn(links(i7=device)) == {device: TBF}


def test_two_devices_that_swap_names_keep_their_own(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.save(document_name("a0"), to_document(TBF))
    state.save(document_name("b0"), to_document(MQ))
    kept = KeptRoots(state)
    assert kept.learn(links(i1="a0", i2="b0")) == {"a0": TBF, "b0": MQ}
    assert kept.learn(links(i1="b0", i2="a0")) == {"b0": TBF, "a0": MQ}
    assert KeptRoots(state).learn(links(i1="b0", i2="a0")) == {"b0": TBF, "a0": MQ}


def test_a_folder_that_went_comes_back_and_a_tree_that_went_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state = StateFolder(folder)
    state.save(document_name("up0"), to_document(TBF))
    kept = KeptRoots(state)
    kept.learn(links(i1="up0"))
    shutil.rmtree(folder)
    kept.renew()
    assert [path.name for path in folder.iterdir()] == ["root-up0.json"]
    kept.learn({})
    shutil.rmtree(folder)
    kept.renew()
    assert not folder.exists()
