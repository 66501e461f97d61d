"""Plan what would be fixed on hosts, or on those of saved facts."""

from __future__ import annotations

from nodetune.api.model import HostResult
from nodetune.audit import run
from nodetune.foundation.stage_output import Show
from nodetune.remediation import plan
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.request import BY_NAME, PlanRequest


def plan_hosts(request: PlanRequest, show: Show) -> tuple[list[HostResult], list[HostPlan]]:
    """Return the results with their facts and the plans without, both by host name."""
    selection, connection = PlanSelection.of(request.selection, _more(request)), request.connection
    if request.facts_path:
        found = run.saved_with_facts(request.facts_path, selection, connection)
    else:
        _, found = run.selected_with_facts(selection, connection, show)
    return found, [
        plan.plan(each, BY_NAME[request.max_disruption], site=plan.added(selection)).without_facts() for each in found
    ]


def _more(request: PlanRequest) -> tuple[str, ...]:
    if not request.fabric:
        return ()
    from nodetune.remediation import topology_diff  # most plans have no fabric

    return topology_diff.NEEDS
