"""Prove a host and give it back to its scheduler: the stages of other commands, one after the other, and their results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import document as audit_document
from nodetune.audit import run as audit_run
from nodetune.audit.selection import Selection
from nodetune.facts import document as facts_document
from nodetune.foundation import UserError, json_document, sealed, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.foundation.stage_output import Show
from nodetune.guard.deploy import cluster
from nodetune.guard.deploy.cluster import ClusterError
from nodetune.guard.node import drain
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.provision import results as stage_results
from nodetune.provision.readmit import STEPS, exchanged, judged, neighbours, resuming
from nodetune.provision.readmit.exchanged import SERIALS, Inventory
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.provision.record import DONE, LEFT_OUT, StageResult, failed
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.verify import baseline
from nodetune.verify import document as verify_document
from nodetune.verify.find_slow import document as slow_document
from nodetune.verify.find_slow.run import find_slow
from nodetune.verify.request import VerifyRequest
from nodetune.verify.verify_hosts import verify_hosts

MORE_ROUNDS = 6
"""Rounds beyond the usual limit: of three simulated hosts, one that loses 5 % is then named in 25 of 60 fleets, not in none."""

HISTORY_DAYS = 30
"""How far back the history is asked about parts: before the drain about lost ones, without one about all."""


@dataclass(frozen=True)
class Prepared:
    """The facts before anything is measured. `node`: the host in Slurm (None: no Slurm here, for the reason in `no_slurm`)."""

    request: ReadmitRequest
    node: SlurmNode | None
    no_slurm: str
    before: HostFacts | None
    neighbours: tuple[str, ...]
    alone: str
    """Why there are no neighbours."""

    @property
    def may_be_ours(self) -> bool:
        return self.node is not None and drain.claimed(self.node)


@dataclass
class Readmission:
    """The result of each step, and the documents that prove it: name of a file → content."""

    host: str
    steps: dict[str, StageResult] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    inventory: Inventory = field(default_factory=Inventory)
    began: float = field(default_factory=time.time)

    @property
    def missing(self) -> list[str]:
        """All that keeps the host away."""
        return [f"{step}: {each.message}" for step, each in self.steps.items() if not each.ok]

    @property
    def is_back(self) -> bool:
        return STEPS[-1] in self.steps and self.steps[STEPS[-1]].state == DONE

    @property
    def code(self) -> int:
        return max((each.code for each in self.steps.values()), default=OK)


@dataclass(frozen=True)
class Probing(Selection):
    """The audit's facts, and the serial numbers of all parts."""

    def facts(self) -> set[str]:
        return super().facts() | set(SERIALS)


def prepare(request: ReadmitRequest, show: Show) -> Prepared:
    """Look at Slurm and at the files; measure nothing. Raise UserError, also for a host that is in service."""
    if request.key:
        sealed.signature(b"", request.key)  # a key that cannot sign is found before the load
    if request.baseline:
        baseline.read(request.baseline)
    before = _facts_before(request)
    nodes, no_slurm = _nodes(show)
    node = nodes.get(request.host)
    if nodes and node is None:
        raise ClusterError(f"Slurm has no node {text.plain(request.host)}")
    if node and not node.out_of_service:
        raise UserError(f"{node.name} is in service ({node.state}): nothing to readmit")
    near, alone = neighbours.chosen(request, nodes, show)
    selected_hosts(request.to(request.host, *near), show.detail)
    return Prepared(request, node, no_slurm, before, near, alone)


def _nodes(show: Show) -> tuple[dict[str, SlurmNode], str]:
    """Return the nodes of Slurm by name, or none and why: the proof is worth having without Slurm too."""
    try:
        return {node.name: node for node in cluster.nodes(cluster.here(), ())}, ""
    except ClusterError as problem:
        show.warn(f"{problem}: nothing will be resumed")
        return {}, str(problem)


def _facts_before(request: ReadmitRequest) -> HostFacts | None:
    if request.before is None:
        return None
    facts = facts_document.load(request.before)
    if facts.host != request.host:
        raise UserError(f"--before {request.before}: contains facts for {facts.host}, not for {request.host}")
    return facts


def carry_out(prepared: Prepared, show: Show, keep: Callable[[Readmission], None]) -> Readmission:
    """Take all steps. `keep` writes the evidence: before the host is resumed, and at the end."""
    work = _Work(prepared, show)
    found = work.found
    try:
        for do in (work.audit, work.inventory, work.verify, work.find_slow, work.audit_again):
            begun = time.monotonic()
            result = _taken(do)
            found.steps[STEPS[len(found.steps)]] = replace(result, seconds=time.monotonic() - begun)
            if work.after is None:  # the host was not reached
                break
    except KeyboardInterrupt:
        found.steps[STEPS[len(found.steps)]] = failed("stopped by Ctrl-C", INCOMPLETE)
    keep(found)
    found.steps[STEPS[-1]] = _taken(work.resume)
    keep(found)
    return found


def _taken(do: Callable[[], StageResult]) -> StageResult:
    """Take a step. What it cannot do on this machine is missing like all else."""
    try:
        return do()
    except (UserError, OSError) as problem:
        return failed(str(problem), INCOMPLETE)


def _stop_if(state: str) -> None:
    """Raise KeyboardInterrupt after a stage that took Ctrl-C: no further one begins."""
    if state == "interrupted":
        raise KeyboardInterrupt


class _Work:
    """The steps. Each returns its result, and leaves its document in `found`."""

    def __init__(self, prepared: Prepared, show: Show) -> None:
        self._prepared, self._request, self._show = prepared, prepared.request, show
        self.found = Readmission(prepared.request.host)
        self.after: HostFacts | None = None
        if prepared.before:
            self.found.documents["facts-before.json"] = facts_document.dump(prepared.before)

    def audit(self) -> StageResult:
        return self._audited("")

    def audit_again(self) -> StageResult:
        """Judge once more what the load has left: Xids, errors, throttling."""
        return self._audited("-after-load")

    def _audited(self, when: str) -> StageResult:
        connection = self._request.to(self._request.host)
        asked = self._request.selection
        probing = Probing(asked.profiles, asked.site, asked.select, asked.ignore, files=asked.files)
        _, (result,) = audit_run.selected_with_facts(probing, connection, self._show)
        _stop_if(result.state)
        if result.facts:
            self.after = result.facts
            self.found.documents[f"facts{when}.json"] = facts_document.dump(result.facts)
            result = judged.remembered(self._request.history, result, self._show)
        self._keep(f"audit{when}", audit_document.audit([replace(result, facts=None)]))
        came = stage_results.audited(result, gating_only=True)
        return came if came.ok or came.code == INCOMPLETE else replace(came, code=FINDINGS)

    def inventory(self) -> StageResult:
        before, after = self._prepared.before, self.after
        if before and after:
            found = exchanged.against(before, after)
        elif self._request.history:
            node = self._prepared.node
            since = node.since if node and node.since else time.time()
            known = judged.changes(self._request.history, self._request.host, since - HISTORY_DAYS * 86_400)
            found = exchanged.by_history(known, since if node and node.since else 0)
        else:
            return StageResult(LEFT_OUT, "no earlier facts: --before FILE or --history")
        self.found.inventory = found
        return judged.inventory(found)

    def verify(self) -> StageResult:
        request, asked = self._request, self._request.measured
        wanted = VerifyRequest(request.to(request.host), asked, history=request.history, baseline=request.baseline)
        (measured,) = verify_hosts(wanted, self._show)
        self._keep("verify", verify_document.document([measured], asked, ""))
        _stop_if(measured.state)
        return judged.proved(measured)

    def find_slow(self) -> StageResult:
        near = self._prepared.neighbours
        if not near:
            return StageResult(LEFT_OUT, self._prepared.alone)
        wanted = VerifyRequest(self._request.to(self._request.host, *near), find_slow=True, more_rounds=MORE_ROUNDS)
        search = find_slow(wanted, self._show)
        self._keep("find-slow", slow_document.document(search, wanted.connection.words))
        return judged.compared(search, self._request.host)

    def resume(self) -> StageResult:
        """Resume the drain of the guard, if nothing is missing."""
        if self.found.missing:
            return StageResult(LEFT_OUT, "only once nothing is missing")
        if self._prepared.node is None:
            return resuming.without_slurm(self.after, self._prepared.no_slurm)
        return resuming.resumed(self._request, self._show)

    def _keep(self, name: str, document: Any) -> None:
        self.found.documents[f"{name}.json"] = json_document.text(document)
