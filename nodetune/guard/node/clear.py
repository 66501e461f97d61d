"""Remove the condition from all nodes, after the guard was deleted from a cluster of Kubernetes.

A condition does not age: without this, a bad node keeps it, and a rule that acts on it keeps acting. Reporters that are
about to end may write it again, so it is over once nothing was found twice.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nodetune.foundation import text as plain_text
from nodetune.guard.node.invocation import HOLD, RUN
from nodetune.guard.node.node_status import ApiRefusedError
from nodetune.guard.node.report import say, server

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

ROUNDS, PAUSE_SECONDS = 20, 10.0


def run(asked: Arguments, job: Job) -> int:  # noqa: ARG001  (every sub-command has the same parameters)
    """Clear it. Return the exit code. Raise InconclusiveError."""
    there, nothing = server(), 0
    for _ in range(ROUNDS):
        try:
            nodes = there.with_condition()
            for node in nodes:
                there.clear(node)
        except ApiRefusedError as problem:
            say(str(problem))
            nodes = [""]
        else:
            say(f"cleared on {plain_text.count(len(nodes), 'node')}" if nodes else "no node has the condition")
        nothing = 0 if nodes else nothing + 1
        if nothing == 2:
            return RUN
        time.sleep(PAUSE_SECONDS)
    return HOLD
