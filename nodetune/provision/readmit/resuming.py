"""Resume the drain that the guard owns, by the proof that `nodetune guard resume` takes."""

from nodetune.api.model import HostFacts, Value
from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE
from nodetune.foundation.stage_output import Show
from nodetune.guard.deploy import cluster, resume
from nodetune.guard.deploy.request import ResumeRequest
from nodetune.guard.deploy.resume import BACK
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.provision.record import DONE, LEFT_OUT, StageResult, failed


def resumed(request: ReadmitRequest, show: Show) -> StageResult:
    """Resume the node if its drain is the guard's and its gating checks pass."""
    judged = resume.prepare(ResumeRequest(request.to(request.host), request.selection, (request.host,)), show)
    if not judged:
        (node,) = cluster.nodes(cluster.here(), (request.host,))
        why = f"the drain is not the guard's ({node.state}: {text.plain(node.reason, 80) or 'no reason'})"
        return failed(f"{why}: who drained it resumes it: scontrol update NodeName={node.name} State=RESUME")
    (fate,) = resume.carry_out(judged)
    if fate.state == BACK:
        return StageResult(DONE, fate.why)
    return failed(fate.why, fate.code or END_STATE_MISSED)


def without_slurm(facts: HostFacts | None, why: str) -> StageResult:
    """Return the result on a machine without Slurm's commands."""
    fact = facts.facts.get("slurm.present") if facts else None
    if isinstance(fact, Value) and fact.value is False:
        return StageResult(LEFT_OUT, "no Slurm on the host: whatever keeps jobs away from it is yours to end")
    return failed(why, INCOMPLETE)
