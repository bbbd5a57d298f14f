"""What the environment says of this one process, where the configuration is shared by many nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from netqos.errors import Rejected
from netqos.settings.names import listen_address

METRICS_LISTEN = "NETQOS_METRICS_LISTEN"

_BRACKETED_V4 = re.compile(r"\[([0-9.]+)\]")


def metrics_listen(asked: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Where metrics are served: as the variable says, else as `asked` by the configuration; None stays off.

    `[address]:port` is taken with either kind of address: a manifest does not know which one its pod gets. Raises
    `Rejected` for a variable that is no address to listen on.
    """
    said = environ.get(METRICS_LISTEN, "").strip()
    if asked is None or not said:
        return asked
    try:
        return listen_address(_BRACKETED_V4.sub(r"\1", said))
    except Rejected as problem:
        raise Rejected(
            f"the variable {METRICS_LISTEN}: {problem.message}",
            subject="environment",
            hint="correct or remove the variable; then metrics.listen of the configuration counts",
        ) from None
