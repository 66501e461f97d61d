"""From the status of guarded nodes to what it concludes, and what was done to them. Pure."""

from collections.abc import Iterable

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import (
    CERTAIN,
    UNKNOWN,
    Action,
    Conclusion,
    Examination,
    Examined,
    Judged,
    Next,
    joined,
    unreached,
)
from nodetune.guard.deploy.status import NOT_IN_INVENTORY, Guard, Status

SOURCE = "guard"
HELD, INCONCLUSIVE = "node-held-by-guard", "guard-inconclusive"


def concluded(nodes: Iterable[Status], now: int) -> Examined:
    """Return what the guards of nodes conclude, each at the time of its last run. `now`: Unix time."""
    return joined(
        _of_status(node, now) for node in nodes if node.problem != NOT_IN_INVENTORY
    )  # nobody tried to reach those


def _of_status(node: Status, now: int) -> Examined:
    state, _, message = node.problem.partition(": ")
    reached = unreached([(node.name, state if node.guard is None else "ok", message, now)], __version__)
    return reached + _of_node(node, node.guard) if node.guard and node.guard.last_run else reached


def _of_node(node: Status, guard: Guard) -> Examined:
    assert guard.last_run  # noqa: S101  (for the type checker)
    at, _, verdict = guard.last_run
    passed = verdict.startswith("pass")
    inconclusive = "inconclusive" in verdict
    looked = Examination(
        SOURCE,
        node.name,
        at,
        __version__,
        (Judged(HELD), Judged(INCONCLUSIVE)) if passed else (),
        {HELD: "the last run was inconclusive"} if inconclusive else {},
    )
    if passed:
        return Examined((), (looked,))
    row = faults.row(INCONCLUSIVE if inconclusive else HELD)
    drained = f", {node.state.lower()}" if node.out_of_service else ""
    return Examined(
        (
            Conclusion(
                row.id,
                SOURCE,
                (node.name,),
                row.severity,
                f"The guard's last run: {guard.last_reason or verdict}{drained}",
                at,
                state=UNKNOWN if inconclusive else "open",
                sure=CERTAIN,
                observed=verdict,
                who=row.who,
                next=Next("audit", (), (node.name,)) if inconclusive else Next("readmit", (node.name,)),
                gates=not inconclusive,
                reason=guard.last_reason if inconclusive else "",
            ),
        ),
        (looked,),
    )


def actions(nodes: Iterable[Status]) -> list[Action]:
    """Return the drains that nodes have now: who drained them, and why, before the next boot or resume loses it."""
    return [
        Action("drained", node.name, node.since, "guard" if node.guard and node.guard.ours else "Slurm", node.reason)
        for node in nodes
        if node.out_of_service and node.since
    ]


def resumed(nodes: Iterable[Status], known: Iterable[Action], now: int) -> list[Action]:
    """Return the nodes in service that are drained by what is `known` of them (the oldest first): someone resumed them meanwhile."""
    drained: dict[str, bool] = {}
    for each in known:
        if each.kind in ("drained", "resumed", "readmitted"):
            drained[each.host] = each.kind == "drained"
    return [
        Action("resumed", node.name, now, "Slurm", "in service again")
        for node in nodes
        if drained.get(node.name) and not node.out_of_service
    ]
