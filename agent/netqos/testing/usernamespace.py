"""Network namespaces without root: the same command again, as root of a user namespace."""

from __future__ import annotations

import os
import sys

from netqos.errors import Unsupported
from netqos.testing.processes import run_tool, tool_environment

_REEXECUTED = "NETQOS_IN_USER_NAMESPACE"
_ENTER = ("unshare", "-Urnm")
_PREPARE = "mount -t tmpfs tmpfs /run && ip link set lo up"


def can_make_namespaces() -> bool:
    """Whether this process may make network namespaces with names as it is: one is made and removed again."""
    name = f"nq-try-{os.getpid()}"
    made = run_tool(["ip", "netns", "add", name], check=False).returncode == 0
    run_tool(["ip", "netns", "del", name], check=False)
    return made


def reexec_in_user_namespace() -> None:
    """Return where namespaces can be made; else run this very command again as root of a user namespace.

    There /run is an empty tmpfs, since `ip netns` keeps its names in it. `Unsupported` where neither is allowed.
    Signals that the caller blocks stay blocked in the command that runs again; a shell on the way would let them in.
    """
    if can_make_namespaces():
        return
    is_inside = _REEXECUTED in os.environ
    prepare = ["sh", "-c", _PREPARE]
    tried = run_tool(prepare if is_inside else [*_ENTER, *prepare], check=False)
    if tried.returncode == 0 and not is_inside:
        again = [*_ENTER, sys.executable, *sys.orig_argv[1:]]
        os.execvpe(again[0], again, {**tool_environment(), _REEXECUTED: "1"})  # noqa: S606 - no shell is wanted
    if tried.returncode != 0 or not can_make_namespaces():
        raise Unsupported(
            f"neither root nor user namespaces are allowed here: {tried.stderr.strip()}",
            hint="run it as root, or allow user namespaces (sysctl user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
        )


def must_end_with_us() -> bool:
    """Whether no later sweep can find what a killed owner leaves: its names are in a /run of its own.

    Then the kernel kills its processes. Not so elsewhere, as it would do that at the end of the thread that started
    them already (prctl(2), PR_SET_PDEATHSIG).
    """
    return _REEXECUTED in os.environ
