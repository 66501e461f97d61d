"""Before the containers of a pod: the gating checks on the GPUs that it was given. For an init container.

It needs no privileges and sees only its own GPUs, so only checks count that ask NVML and nothing else. The reason is where
Kubernetes shows it: in the termination message.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodetune.audit import devices
from nodetune.guard.node import gating_checks, log, policy, read
from nodetune.guard.node.invocation import HOLD, RUN, InconclusiveError, say

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

READ_SHARE = 0.9
"""Of the whole time: until when to read."""


def run(asked: Arguments, job: Job) -> int:  # noqa: ARG001  (every sub-command has the same parameters)
    """Return whether the pod may start. Raise InconclusiveError or OSError: then it may."""
    chosen = policy.load(asked.policy)
    left = asked.started + chosen.total * READ_SHARE - time.monotonic()
    checks = [each for each in chosen.checks if _asks_nvml_only(each) and each["id"] not in chosen.waived()]
    names = {name for check in checks for name in check["facts"]}
    reading = read.start(names, left, chosen.step, chosen.stuck, asked).finish()
    if "gpu" in reading.failed:
        checks = [each for each in chosen.checks if each["id"] == gating_checks.NVML]
    host = gating_checks.host_facts(reading.facts, reading.failed)
    found = gating_checks.findings(checks, host, reading.failed)
    failed = [each for each in found if each.status == "fail"]
    if failed:
        reason = log.reason(failed, devices.named(failed, host))
        with open(asked.result, "w", encoding="ascii") as file:
            file.write(reason + "\n")
        say(reason)
        return HOLD
    unknown = [each for each in found if each.status == "unknown"]
    if unknown:
        raise InconclusiveError(log.unknown(unknown))
    if all(each.status == "skip" for each in found):
        raise InconclusiveError("no NVIDIA GPU to judge: request the pod's GPUs for the init container, too")
    say("nodetune: pass")
    return RUN


def _asks_nvml_only(check: Mapping[str, Any]) -> bool:
    return all(name.startswith("gpu.") for name in check["facts"])
