from __future__ import annotations

from pathlib import Path

from netqos.host.state import StateFolder
from netqos.runtime.kubememory import HEARD_S, SAVE_S, KubeMemory
from netqos.sources.kube.pods import KubePod
from netqos.testing.clock import FakeClock
from tests.unit.sources.kube.test_pods import pod, read


def some(*uids: str) -> tuple[KubePod, ...]:
    return tuple(read(pod(uid=uid, name=f"name-{uid}")) for uid in uids)


def stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


def test_pods_come_back_over_a_restart(tmp_path: Path) -> None:
    clock, pods = FakeClock(), some("a", "b")
    KubeMemory(StateFolder(tmp_path), clock).save(pods, {})
    assert KubeMemory(StateFolder(tmp_path), clock).pods() == pods
    assert KubeMemory(StateFolder(tmp_path / "none"), clock).pods() == ()


def test_however_often_pods_change_they_are_written_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    clock = FakeClock()
    memory, path = KubeMemory(StateFolder(tmp_path), clock), tmp_path / "pods.json"
    memory.save(some("a"), {})
    first = stamp(path)
    for _ in range(4):
        clock.advance(SAVE_S / 5)
        memory.save(some("a", "b"), {})
    assert stamp(path) == first
    clock.advance(SAVE_S / 5)
    memory.save(some("a", "b"), {})
    assert memory.pods() == some("a", "b")
    memory.save(some("c"), {}, at_end=True)
    assert memory.pods() == some("c")


def test_what_did_not_change_is_not_written_and_a_lost_document_is(tmp_path: Path) -> None:
    clock, pods = FakeClock(), some("a")
    memory, path = KubeMemory(StateFolder(tmp_path), clock), tmp_path / "pods.json"
    memory.save(pods, {})
    first = stamp(path)
    clock.advance(SAVE_S)
    memory.save(tuple(pods), {})
    assert stamp(path) == first
    path.unlink()
    clock.advance(SAVE_S)
    memory.save(pods, {})
    assert memory.pods() == pods


def test_the_age_of_a_source_counts_on_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    memory = KubeMemory(StateFolder(tmp_path), clock)
    memory.save((), {"pods": clock.monotonic() - 5, "node": clock.monotonic()})
    clock.advance(20)
    later = KubeMemory(StateFolder(tmp_path), clock).heard()
    assert {name: clock.monotonic() - at_s for name, at_s in later.items()} == {"pods": 25.0, "node": 20.0}


def test_the_wall_clock_counts_only_over_a_boot(tmp_path: Path) -> None:
    clock = FakeClock()
    KubeMemory(StateFolder(tmp_path), clock).save((), {"pods": clock.monotonic()})
    clock.set_wall(clock.wall() + 3600)
    clock.advance(10)
    assert KubeMemory(StateFolder(tmp_path), clock).heard() == {"pods": clock.monotonic() - 10}
    clock.reboot()
    aged_s = clock.monotonic() - KubeMemory(StateFolder(tmp_path), clock).heard()["pods"]
    assert aged_s >= 3610


def test_that_all_is_well_is_written_once_a_minute_a_new_source_at_once(tmp_path: Path) -> None:
    clock = FakeClock()
    memory = KubeMemory(StateFolder(tmp_path), clock)
    began_s = clock.monotonic()
    memory.save((), {"pods": began_s})
    clock.advance(HEARD_S / 2)
    memory.save((), {"pods": clock.monotonic()})
    assert memory.heard() == {"pods": began_s}
    memory.save((), {"node": clock.monotonic()})
    assert memory.heard() == {"pods": began_s, "node": clock.monotonic()}
    clock.advance(HEARD_S)
    memory.save((), {"pods": clock.monotonic(), "node": clock.monotonic()})
    assert set(memory.heard().values()) == {clock.monotonic()}


def test_nonsense_in_the_folder_is_no_memory(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.save("pods", {"not": "a list"})
    state.save("heard", {"pods": {"wall_s": "x"}, "node": 3, "x": {"wall_s": 1, "boot_s": 1, "boot_id": "b"}})
    memory = KubeMemory(state, FakeClock())
    assert (memory.pods(), list(memory.heard())) == ((), ["x"])
