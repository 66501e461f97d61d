"""Turn results of probes, plays, audits and measurements into results of a stage. Pure."""

from collections.abc import Mapping, Sequence

from nodetune.api.model import HostFacts, HostResult
from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, TOO_SLOW
from nodetune.hosts.target import UnreachableError
from nodetune.provision import running_driver
from nodetune.provision.decide import VersionDecision
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.record import DONE, NOTHING, Results, StageResult, failed
from nodetune.remediation import outcomes as remediation_outcomes
from nodetune.remediation.ansible.events import Outcome
from nodetune.verify.exit_code import exit_code
from nodetune.verify.model import FAILED as NOT_MEASURED
from nodetune.verify.model import UNKNOWN
from nodetune.verify.run import HostVerification

MAX_NAMED = 8


def unreached(problem: UnreachableError) -> StageResult:
    return failed(f"{problem.state}: {problem.message}", INCOMPLETE)


def refused(refused: HostRefusedError) -> StageResult:
    return failed(str(refused), INCOMPLETE if refused.unknown else END_STATE_MISSED)


def users(facts: HostFacts | UnreachableError) -> StageResult | None:
    """Return why a host must not be worked on now: something computes there, or that is unknown."""
    if isinstance(facts, UnreachableError):
        return unreached(facts)
    try:
        found = running_driver.in_use(facts)
    except HostRefusedError as problem:
        return refused(problem)
    return failed(f"its GPUs are in use by {found}: stop that first, or use --drain slurm") if found else None


def not_upgradable(decision: VersionDecision, facts: HostFacts) -> StageResult | None:
    """Return why a host cannot be upgraded: no driver of NVIDIA's packages is installed and running."""
    installed, running = decision.held.driver, running_driver.version(facts)
    if decision.driver and not installed:
        return failed("no driver from NVIDIA's packages is installed: provision this host without --upgrade")
    if decision.driver and running != installed:
        now = f"driver {installed} is installed but {running or 'none'} is running"
        return failed(f"{now}, as after an interrupted upgrade: provision this host without --upgrade")
    return None


def played(outcomes: Mapping[str, Outcome]) -> Results:
    """Turn the outcomes of a play into results; hosts that Ansible lost count as not reached."""
    found = {}
    for host, outcome in outcomes.items():
        if outcome.state != "ok":
            at = next((each.task for each in reversed(outcome.results) if each.status == "failed"), "")
            told = f"{at}: {outcome.message}" if at and outcome.state == "failed" else outcome.message
            found[host] = failed(told, INCOMPLETE if outcome.state == "unreachable" else END_STATE_MISSED)
        else:
            found[host] = StageResult(DONE if any(each.changed for each in outcome.results) else NOTHING)
    return found


def installed(outcome: Outcome, mode: str) -> StageResult:
    problems = [str(each.get("message")) for each in outcome.gathered("problems")]
    if outcome.state != "ok" or problems:
        return failed(outcome.message or "; ".join(problems))
    changed = any(each.get("changed") for each in outcome.gathered("done"))
    return StageResult(DONE if changed else NOTHING, mode)


def tuned(result: HostResult, done: Sequence[remediation_outcomes.StepOutcome]) -> StageResult:
    if result.state != "ok":
        return failed(f"{result.state}: {result.message}", INCOMPLETE)
    mine = [each for each in done if each.host == result.host]
    wrong = [each for each in mine if each.outcome != remediation_outcomes.FIXED or each.reason]
    if wrong:
        told = "; ".join(f"{each.check}: {each.outcome}: {each.reason}" for each in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return failed(f"{len(wrong)} of {text.count(len(mine), 'step')} failed: {told}{more}")
    return StageResult(DONE, text.count(len(mine), "step")) if mine else StageResult(NOTHING)


def audited(result: HostResult, *, gating_only: bool) -> StageResult:
    if result.state != "ok":
        return failed(f"{result.state}: {result.message}", INCOMPLETE)
    failing = list(result.failing())
    wrong = [found.check for found in failing if found.gates or (found.fix and not gating_only)]
    if wrong:
        named = f"{', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''}"
        return failed(f"{named}: see nodetune audit, or waive it in the site file")
    unknown = [found.check for found in result.findings if found.status == "unknown" and found.gates]
    if unknown:
        return failed(f"{', '.join(unknown[:5])}: cannot be determined: see nodetune audit", INCOMPLETE)
    left = "findings remain" if gating_only else "findings need manual steps"
    return StageResult(DONE, f"{len(failing)} {left}" if failing else "")


def proved(verification: HostVerification) -> StageResult:
    code = exit_code([verification])
    if verification.state != "ok":
        return failed(f"{verification.state}: {verification.message}", INCOMPLETE)
    if code == TOO_SLOW:
        short = [each.figure.name for each in verification.short] + [found.title for found in verification.findings]
        return failed(f"below target: {'; '.join(short[:4])}{' …' if len(short) > 4 else ''}", TOO_SLOW)
    if code:
        not_measured = [each for each in verification.unmeasured if each.status == NOT_MEASURED]
        missing = [f"{each.measurement}: {each.reason}" for each in not_measured]
        missing += [f"{name} is below target, but disturbed: {why}" for name, why in verification.disturbed]
        return failed("; ".join(missing[:3]) or "nothing could be measured", INCOMPLETE)
    return StageResult(DONE, f"{text.count(len(verification.verdicts), 'figure')}{unproven([verification])}")


def unproven(verifications: Sequence[HostVerification]) -> str:
    """Return `, 3 of them without a reference: nccl all_reduce, …`: nobody knows whether these are as they should be."""
    found = [each.figure for verification in verifications for each in verification.verdicts if each.status == UNKNOWN]
    names = list(dict.fromkeys(" ".join(dict.fromkeys((each.measurement, each.metric))) for each in found))
    more = " …" if len(names) > MAX_NAMED else ""
    return f", {len(found)} of them without a reference: {', '.join(names[:MAX_NAMED])}{more}" if found else ""
