from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netqos.testing.namespaces import scratch_folder, sweep_folders

HOLDER = """
import signal
from netqos.testing.namespaces import scratch_folder

with scratch_folder("held") as folder:
    (folder / "inner").mkdir()
    print(folder, flush=True)
    signal.pause()
"""


def test_a_folder_goes_with_its_block_whatever_ends_it() -> None:
    made: list[Path] = []

    def fill() -> None:
        with scratch_folder("short") as folder:
            made.append(folder)
            (folder / "file").write_text("some", encoding="ascii")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert [one.exists() for one in made] == [False]


def test_a_folder_of_a_killed_owner_is_swept_and_that_of_a_living_one_stays() -> None:
    with scratch_folder("mine") as mine:
        holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        sweep_folders()
        assert (held / "inner").is_dir()
        holder.kill()
        holder.communicate()
        sweep_folders()
        assert (held.exists(), mine.exists()) == (False, True)
