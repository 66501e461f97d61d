"""One look at the whole node, printed as JSON, for a program on the node that decides by itself. Nothing is drained."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from nodetune.guard.node import check_loop, records
from nodetune.guard.node.invocation import RUN

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job


def run(asked: Arguments, job: Job) -> int:
    """Print it. Raise OSError."""
    records.prepare(asked.run)
    sys.stdout.write(json.dumps(check_loop.look(asked, job.node)) + "\n")
    sys.stdout.flush()
    return RUN
