"""What is asked of the kernel's scheduler, in a process of its own; where it refuses, nothing changes."""

from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import os, threading, time
from netqos.host.realtime import go_among_others, go_before_others
end = threading.Event()
def policies():
    return {os.sched_getscheduler(int(one)) for one in os.listdir("/proc/self/task")}
early = threading.Thread(target=end.wait); early.start()
problem = go_before_others()
late = threading.Thread(target=end.wait); late.start()
ahead = policies()
go_among_others()
print(repr((problem, ahead, policies())))
end.set()
"""


def test_all_threads_go_ahead_and_back_or_none_does() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    problem, ahead, back = eval(done.stdout)
    assert ahead == ({os.SCHED_OTHER} if problem else {os.SCHED_RR})
    assert back == {os.SCHED_OTHER}
