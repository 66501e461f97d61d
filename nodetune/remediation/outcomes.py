"""The outcome of each fix of an apply, and when the apply stops. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodetune.api.model import DISRUPTIONS, FREE, Finding, Fix, HostResult, fix_of
from nodetune.remediation import plan

FIXED, PENDING, FAILING, NOT_APPLIED, SKIPPED = "fixed", "pending reboot", "still failing", "not applied", "skipped"
OUTCOMES = (FIXED, PENDING, FAILING, NOT_APPLIED, SKIPPED)
"""The outcomes of a fix. The second audit decides, never what Ansible reports as changed."""


@dataclass(frozen=True)
class StepOutcome:
    """The outcome of one fix on one host, with the reason if not fixed. The documents of a run contain it unchanged."""

    host: str
    check: str
    outcome: str
    reason: str
    disruption: str
    before: str
    after: str

    @classmethod
    def of(cls, host: str, found: Finding, outcome: str, reason: str = "") -> StepOutcome:
        """Return the outcome of fixing this finding."""
        return cls(host, found.check, outcome, reason, fix_of(found).disruption, found.observed, plan.after(found))


def within(disruption: str, limit: str) -> bool:
    return DISRUPTIONS.index(disruption) <= DISRUPTIONS.index(limit)


def takes_a_reboot(fix: Fix) -> bool:
    """Return whether a fix only takes effect at the next boot.

    A pending ECC mode may also take effect by a GPU reset.
    """
    return fix.disruption == "reboot" or (fix.kind, fix.target) == ("gpu", "ecc_mode")


def outcome(
    host: str,
    found: Finding,
    after: HostResult | None,
    *,
    problem: str = "",
    waits: str = "",
    message: str = "",
    kept: bool = True,
) -> StepOutcome:
    """Return the outcome of a fix by the audit afterwards (None: nothing was changed there).

    From Ansible: `problem` says what went wrong for this check (`kept`: not with a file), `waits` why disruptive changes
    were left out on the host, and `message` why the play stopped early there.
    """
    judged, reason = _judged(found, after, problem, waits, message)
    return StepOutcome.of(host, found, judged if kept or judged != FIXED else NOT_APPLIED, reason)


def _judged(found: Finding, after: HostResult | None, problem: str, waits: str, message: str) -> tuple[str, str]:
    """Return (outcome, reason)."""
    if after is None or after.state != "ok":
        unknown = f"unknown: {after.state}: {after.message}" if after else "nothing was done there"
        return NOT_APPLIED, message or unknown
    now = next((each for each in after.findings if each.check == found.check), None)
    if now is not None and now.status in ("pass", "skip", "waived"):  # skip: what was wrong is no longer there
        return FIXED, problem
    if waits and fix_of(found).disruption not in FREE:
        return SKIPPED, waits
    if message or problem:
        return NOT_APPLIED, problem or message
    if now is not None and now.not_installed:
        return FAILING, f"{_still(now)}; {now.not_installed}"
    if takes_a_reboot(fix_of(found)):
        return PENDING, "written; takes effect at the next boot"
    return FAILING, _still(now)


def _still(found: Finding | None) -> str:
    if found is None:
        return "the second audit did not judge it"
    if found.status == "fail":
        return f"{found.observed}, wanted {found.wanted}" + (f" ({found.reason})" if found.reason else "")
    return f"{found.status}: {found.reason}"


def reached(done: Iterable[StepOutcome], limit: str) -> bool:
    """Return whether everything that the limit allowed is fixed, without new problems."""
    return all(each.outcome == FIXED and not _went_wrong(each) for each in done if within(each.disruption, limit))


def failed_hosts(done: Iterable[StepOutcome]) -> set[str]:
    """Return hosts that count against --max-failures: a change was tried there and failed."""
    return {each.host for each in done if each.outcome in (FAILING, NOT_APPLIED) or _went_wrong(each)}


def _went_wrong(done: StepOutcome) -> bool:
    """Return whether a fix passed its audit with a problem: the setting is in place, but its service fails."""
    return done.outcome == FIXED and bool(done.reason)


def tally(done: Iterable[StepOutcome]) -> dict[str, int]:
    """Count the steps by outcome."""
    outcomes = [each.outcome for each in done]
    return {name: outcomes.count(name) for name in OUTCOMES}
