"""Prove a host and give it back to its scheduler: the stages one after the other."""

import contextlib
import time
from collections.abc import Callable

from nodetune.api.conclusion import Action
from nodetune.facts import document as facts_document
from nodetune.foundation import UserError
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.foundation.stage_output import Show
from nodetune.history import keeping
from nodetune.history.connection import HistoryError
from nodetune.history.history import History
from nodetune.provision.readmit import conclude
from nodetune.provision.readmit.preparation import Prepared
from nodetune.provision.readmit.readmission import STOPPED, Readmission, StageOutput
from nodetune.provision.readmit.stages import PROOFS, RESUME, Stage
from nodetune.provision.record import DONE, failed


def carry_out(prepared: Prepared, show: Show, keep: Callable[[Readmission], None]) -> Readmission:
    """Take all stages. `keep` writes the evidence: before the host is resumed, and at the end."""
    request = prepared.request
    found = Readmission(request.host)
    if prepared.before:
        found.documents["facts-before.json"] = facts_document.dump(prepared.before)
    for stage in PROOFS:
        begun = time.monotonic()
        try:
            output = _taken(stage, prepared, found, show)
        except KeyboardInterrupt:
            output = StageOutput(STOPPED)
        found.add(stage.name, output, time.monotonic() - begun)
        if output.result is STOPPED or found.facts is None:  # without facts, the host was not reached
            break
    keep(found)
    found.add(RESUME.name, _taken(RESUME, prepared, found, show))
    found.is_back = found.steps[RESUME.name].state == DONE
    keep(found)
    if request.history:
        keeping.keep(request.history, show, concluded=found.concluded, actions=_news(found, request.history))
    return found


def _news(found: Readmission, history: str) -> list[Action]:
    """Return what was done, without repairs that an earlier readmission has kept."""
    known: set[tuple[str, str]] = set()
    with contextlib.suppress(HistoryError), History(history, make=False) as kept:  # which warns as it keeps
        known = {(each.device, each.reason) for each in kept.actions([found.host]) if each.kind == conclude.REPAIRED}
    done = conclude.actions(found, int(time.time()))
    return [each for each in done if each.kind != conclude.REPAIRED or (each.device, each.reason) not in known]


def _taken(stage: Stage, prepared: Prepared, found: Readmission, show: Show) -> StageOutput:
    """Take a stage. What it cannot do on this machine is missing like all else."""
    try:
        return stage.take(prepared, found, show)
    except (UserError, OSError) as problem:
        return StageOutput(failed(str(problem), INCOMPLETE))
