"""The four kinds of error, and nothing else.

Who catches what: *Rejected* input is reported as a finding and the last good value stays; *Retryable* is retried by
the pacing of its task; *Unsupported* becomes a capability that this host does not have; *Fatal* ends the daemon, and
its supervisor (systemd, kubelet) starts it again.
"""

from __future__ import annotations


class NetqosError(Exception):
    """Base of all errors raised on purpose.

    `subject` names the object concerned ("netqos.yaml line 12", "class 4e51:10 on eth0"); `hint` is the next step for
    the person who reads it. Both may be empty.
    """

    def __init__(self, message: str, *, subject: str = "", hint: str = "") -> None:
        """Keep the three parts apart, so that a status reader can show them apart."""
        super().__init__(message)
        self.message = message
        self.subject = subject
        self.hint = hint

    def __str__(self) -> str:
        """One line for people: subject, message, hint."""
        text = f"{self.subject}: {self.message}" if self.subject else self.message
        return f"{text} ({self.hint})" if self.hint else text


class Rejected(NetqosError):
    """The input is wrong; nothing of it was applied. `problems` lists them one by one where there are several."""

    def __init__(
        self, message: str, *, subject: str = "", hint: str = "", problems: tuple[str, ...] = ()
    ) -> None:
        """As the base, and the problems one by one for readers that show a list."""
        super().__init__(message, subject=subject, hint=hint)
        self.problems = problems


class Retryable(NetqosError):
    """The outside is not ready (busy, away, interrupted); the same call may succeed later."""


class Unsupported(NetqosError):
    """This host cannot do it (kernel option, tool or right missing)."""


class Fatal(NetqosError):
    """The daemon cannot go on."""
