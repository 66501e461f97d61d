"""Whether a container of the guard's pod lives, and whether it does its work: for the probes of the kubelet.

Both containers leave a result with a time. `alive`: it is new; `ready`: it also judges something. The kubelet counts: three
in a row make a container not ready.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nodetune.foundation import text as plain_text
from nodetune.guard.node import records
from nodetune.guard.node.invocation import HOLD, RUN, say

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

OLDEST_SECONDS = 420.0
"""Beyond the longest pause between two looks (300 s), the longest policy (60 s), and a busy machine."""


def run(asked: Arguments, job: Job) -> int:  # noqa: ARG001  (every sub-command has the same parameters)
    """Return HOLD, and say why, if it is not. Raise OSError."""
    path = os.path.join(asked.result, "health.json")
    age = time.time() - os.stat(path).st_mtime
    found = plain_text.json_object(records.read(path))
    if age > OLDEST_SECONDS:
        say(f"the last result is {age:.0f} seconds old")
        return HOLD
    if asked.doing == "ready" and found.get("verdict") not in ("pass", "fail"):
        say(f"inconclusive: {found.get('reason')}")
        return HOLD
    return RUN
