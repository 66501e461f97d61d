"""What an apply does with its hosts: in which waves, what each step came to, and when to stop. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodetune.fixes import FREE
from nodetune.model import DISRUPTIONS, Finding, HostResult, Step

FIXED, PENDING, FAILING, NOT_APPLIED, SKIPPED = "fixed", "pending reboot", "still failing", "not applied", "skipped"
OUTCOMES = (FIXED, PENDING, FAILING, NOT_APPLIED, SKIPPED)
"""What became of a step. What counts is the audit afterwards, never what Ansible says that it changed."""


class BadBatch(ValueError):
    """A --batch that means nothing."""


@dataclass(frozen=True)
class Done:
    """What became of one step, and why it is not simply fixed."""

    step: Step
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Carried:
    """What Ansible reported of one host: `message` says why it stopped early, `waits` why disruptive groups were left
    out, `touched` whether anything was changed; `problems` maps a check to what went wrong for it.
    """

    message: str = ""
    waits: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
    touched: bool = False


def within(disruption: str, limit: str) -> bool:
    return DISRUPTIONS.index(disruption) <= DISRUPTIONS.index(limit)


def waves(hosts: Sequence[str], canary: int, batch: str) -> list[list[str]]:
    """The hosts in the order in which they are worked on: the canaries first, then batches ("10", "25%", "" = all).

    Raises BadBatch.
    """
    first = list(hosts[:canary]) if canary and len(hosts) > canary else []
    rest = list(hosts[len(first) :])
    size = _size(batch, len(hosts))
    return [wave for wave in [first, *(rest[at : at + size] for at in range(0, len(rest), size))] if wave]


def _size(batch: str, hosts: int) -> int:
    if not batch:
        return max(hosts, 1)
    found = re.fullmatch(r"(\d{1,6})(%?)", batch.strip())
    number = int(found[1]) if found else 0
    if not found or number < 1 or (found[2] and number > 100):
        raise BadBatch(f"--batch {batch!r}: give a number of hosts such as 10, or a share such as 25%")
    return max(1, math.ceil(hosts * number / 100)) if found[2] else number


def takes_a_reboot(step: Step) -> bool:
    """Whether what the step wrote is only in force after the next boot (a pending ECC mode may also be reset into force)."""
    return step.fix.disruption == "reboot" or (step.fix.kind, step.fix.target) == ("gpu", "ecc_mode")


def outcome(step: Step, after: HostResult | None, carried: Carried) -> Done:
    """What became of a step that was to be done on a host, by the audit afterwards (None: nothing was changed there)."""
    problem = carried.problems.get(step.check, "")
    if after is None or after.state != "ok":
        unknown = f"not known: {after.state}: {after.message}" if after else "nothing was done there"
        return Done(step, NOT_APPLIED, carried.message or unknown)
    found = next((each for each in after.findings if each.check == step.check), None)
    if found is not None and found.status in ("pass", "skip", "waived"):  # skip: what was wrong is no longer there
        return Done(step, FIXED, problem)
    if carried.waits and step.fix.disruption not in FREE:
        return Done(step, SKIPPED, carried.waits)
    if carried.message or problem:
        return Done(step, NOT_APPLIED, problem or carried.message)
    if takes_a_reboot(step):
        return Done(step, PENDING, "written; in force after the next boot")
    return Done(step, FAILING, _still(found))


def _still(found: Finding | None) -> str:
    if found is None:
        return "the audit afterwards did not judge it"
    if found.status == "fail":
        return f"{found.observed}, wanted {found.wanted}" + (f" ({found.reason})" if found.reason else "")
    return f"{found.status}: {found.reason}"


def reached(done: Iterable[Done], limit: str) -> bool:
    """Whether the end state was reached: everything that the limit allowed is fixed, and nothing went wrong by it."""
    return all(
        each.outcome == FIXED and not _went_wrong(each) for each in done if within(each.step.fix.disruption, limit)
    )


def failed_hosts(done: Iterable[Done]) -> set[str]:
    """Hosts that count against --max-failures: something was tried there and did not come out."""
    return {each.step.host for each in done if each.outcome in (FAILING, NOT_APPLIED) or _went_wrong(each)}


def _went_wrong(done: Done) -> bool:
    """The audit is content and the way there was not: the setting is in place, and its service no longer starts."""
    return done.outcome == FIXED and bool(done.reason)
