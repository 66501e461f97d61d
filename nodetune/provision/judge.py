"""What the answers of probes, plays, audits and measurements mean for a stage. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodetune import apply
from nodetune.model import HostFacts, HostResult
from nodetune.outcome import INCOMPLETE, NOT_REACHED, TOO_SLOW
from nodetune.playbook import Outcome
from nodetune.proof import Proof, exit_code
from nodetune.provision import driver
from nodetune.provision.record import DONE, NOTHING, Came, Results, failed
from nodetune.provision.seen import Refused
from nodetune.transport import Unreachable
from nodetune.verdict import FAILED as NOT_MEASURED


def unreached(problem: Unreachable) -> Came:
    return failed(f"{problem.state}: {problem.message}", INCOMPLETE)


def refused(refused: Refused) -> Came:
    return failed(str(refused), INCOMPLETE if refused.unknown else NOT_REACHED)


def users(facts: HostFacts | Unreachable) -> Came | None:
    """Why a host must not be worked on now: something computes there, or that cannot be told."""
    if isinstance(facts, Unreachable):
        return unreached(facts)
    try:
        found = driver.in_use(facts)
    except Refused as problem:
        return refused(problem)
    return failed(f"its GPUs are in use by {found}: end that first, or use --drain slurm") if found else None


def played(outcomes: Mapping[str, Outcome]) -> Results:
    """What Ansible came to; hosts that it lost on the way count as not reached."""
    found = {}
    for host, outcome in outcomes.items():
        if outcome.state != "ok":
            at = next((each.task for each in reversed(outcome.results) if each.status == "failed"), "")
            told = f"{at}: {outcome.message}" if at and outcome.state == "failed" else outcome.message
            found[host] = failed(told, INCOMPLETE if outcome.state == "unreachable" else NOT_REACHED)
        else:
            found[host] = Came(DONE if any(each.changed for each in outcome.results) else NOTHING)
    return found


def installed(outcome: Outcome, mode: str) -> Came:
    problems = [str(each.get("message")) for each in outcome.gathered("problems")]
    if outcome.state != "ok" or problems:
        return failed(outcome.message or "; ".join(problems))
    changed = any(each.get("changed") for each in outcome.gathered("done"))
    return Came(DONE if changed else NOTHING, mode)


def tuned(result: HostResult, done: Sequence[apply.Done]) -> Came:
    if result.state != "ok":
        return failed(f"{result.state}: {result.message}", INCOMPLETE)
    mine = [each for each in done if each.step.host == result.host]
    wrong = [each for each in mine if each.outcome != apply.FIXED or each.reason]
    if wrong:
        told = "; ".join(f"{each.step.check}: {each.outcome}: {each.reason}" for each in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return failed(f"{len(wrong)} of {len(mine)} steps did not come out: {told}{more}")
    return Came(DONE, f"{len(mine)} steps") if mine else Came(NOTHING)


def audited(result: HostResult, *, gating_only: bool) -> Came:
    if result.state != "ok":
        return failed(f"{result.state}: {result.message}", INCOMPLETE)
    failing = list(result.failing())
    wrong = [found.check for found in failing if found.gates or (found.fix and not gating_only)]
    if wrong:
        return failed(
            f"{', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''}: see nodetune audit, or waive it in the site file"
        )
    unknown = [found.check for found in result.findings if found.status == "unknown" and found.gates]
    if unknown:
        return failed(f"{', '.join(unknown[:5])}: could not be judged: see nodetune audit", INCOMPLETE)
    left = "findings are left" if gating_only else "findings are for a person"
    return Came(DONE, f"{len(failing)} {left}" if failing else "")


def proved(proof: Proof) -> Came:
    code = exit_code([proof])
    if proof.state != "ok":
        return failed(f"{proof.state}: {proof.message}", INCOMPLETE)
    if code == TOO_SLOW:
        short = [f"{each.figure.measurement} {each.figure.metric} {each.figure.subject}" for each in proof.short]
        short += [found.title for found in proof.findings]
        return failed(f"fell short: {'; '.join(short[:4])}{' …' if len(short) > 4 else ''}", TOO_SLOW)
    if code:
        missing = [f"{each.measurement}: {each.reason}" for each in proof.unmeasured if each.status == NOT_MEASURED]
        return failed("; ".join(missing[:3]) or "nothing could be measured", INCOMPLETE)
    return Came(DONE, f"{len(proof.verdicts)} figures")
