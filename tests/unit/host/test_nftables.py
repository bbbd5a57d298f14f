"""What libnftables says, as our errors; and a library that is not there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from netqos.errors import NetqosError, Rejected, Retryable, Unsupported
from netqos.host.nftables import Nftables, error_for


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOENT, Retryable),
        (errno.EBUSY, Retryable),
        (errno.EAGAIN, Retryable),
        (errno.ENOBUFS, Retryable),
        (errno.EPERM, Unsupported),
        (errno.EOPNOTSUPP, Unsupported),
        (errno.EEXIST, Rejected),
        (errno.EINVAL, Rejected),
    ],
)
def test_the_errno_behind_the_words_decides(code: int, kind: type[NetqosError]) -> None:
    words = os.strerror(code)
    told = error_for(f"internal:0:0-0: Error: Could not process rule: {words}\nadd rule x\n^^^^\n")
    assert type(told) is kind
    assert told.message == f"nft: Could not process rule: {words}"


@pytest.mark.parametrize("said", ["", "\n", "Error: syntax error, unexpected newline\nfoo\n^\n", "odd words"])
def test_words_without_an_errno_are_a_mistake_in_the_commands(said: str) -> None:
    told = error_for(said)
    assert type(told) is Rejected
    assert told.message


def test_only_the_first_of_several_errors_is_told() -> None:
    told = error_for("a: Error: first: No such file or directory\nb: Error: second: File exists\n")
    assert isinstance(told, Retryable)
    assert "second" not in told.message


def test_a_missing_library_is_unsupported_and_says_what_to_install() -> None:
    with pytest.raises(Unsupported) as caught:
        Nftables("libnftables-that-is-not-there.so.1")
    assert "libnftables1" in caught.value.hint


def test_a_process_without_the_right_is_told_so_and_nothing_is_written_to_stderr() -> None:
    code = (
        "from netqos.host.nftables import Nftables\n"
        "from netqos.errors import Unsupported\n"
        "try: Nftables().query('list ruleset')\n"
        "except Unsupported as problem: print(problem)"
    )
    lay_down = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*lay_down, sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )
    if "libnftables" in done.stdout:
        pytest.skip("libnftables is not installed")
    assert (done.returncode, done.stdout, done.stderr) == (
        *(0, "this process may not use nftables (it needs CAP_NET_ADMIN)\n", ""),
    )
