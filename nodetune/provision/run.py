"""Provision hosts after the preflight: carry it out, or show what packages would change."""

import contextlib
from dataclasses import dataclass
from typing import Any

from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.foundation.stage_output import Show
from nodetune.history.keeping import keep
from nodetune.provision import STAGES, stages, steps, upgrade
from nodetune.provision.preflight import Preflight
from nodetune.provision.record import Record
from nodetune.provision.request import ProvisionRequest
from nodetune.provision.steps import Steps
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.play import PlayOptions
from nodetune.remediation.runs import actions
from nodetune.remediation.runs.connection import lasting_inventory, login_record
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import recorded


@dataclass(frozen=True)
class ProvisionReport:
    """The result of a provision: its document, the hosts that stay drained with the reason, and the exit code."""

    document: dict[str, Any]
    drained: dict[str, str]
    code: int


def dry_run(found: Preflight, show: Show) -> tuple[dict[str, Outcome], int]:
    """Run Ansible in check mode for the packages. Return the outcomes and the exit code."""
    outcomes: dict[str, Outcome] = {}
    going = [target for target in found.targets if target.name in found.decisions]
    if going and found.request.runs("packages"):
        connection = found.request.connection
        variables = {host: {**each.variables(), "nodetune_guard": {}} for host, each in found.decisions.items()}
        options = PlayOptions(connection.options, connection.forks, steps.PLAY_SECONDS, check=True)
        with show.phase("dry run", len(going)) as phase:
            outcomes = play.play("provision", going, variables, options, on_event=phase.heard)
    lost = max((each.code for each in found.came.values()), default=OK)
    wrong = any(each.state != "ok" for each in outcomes.values())
    return outcomes, max(lost, END_STATE_MISSED if wrong else OK)


def carry_out(found: Preflight, show: Show) -> ProvisionReport:
    """Run the stages, or the upgrade, and record them."""
    request, hosts = found.request, [target.name for target in found.targets]
    options, inventory = _recorded(request), lasting_inventory(request.connection.inventory)
    with recorded("provision", options, hosts, inventory, request.runs_folder) as run:
        stage_names = upgrade.STAGES if request.upgrade else STAGES
        record = Record(run, sorted(hosts), stage_names, request.resume_command, request.upgrade)
        count = 0 if request.upgrade else sum(map(request.runs, STAGES))
        with show.phase("provision", len(hosts), stages=count, plays=False) as phase:
            work = Steps(found, run, phase)
            code = upgrade.Upgrade(work, record).run() if request.upgrade else stages.provision(work, record)
            for host in sorted(hosts):
                broke = record.broke_at(host)
                phase.done(host, f"{broke} failed" if broke else "ok")
        drained = work.operations.left_drained
        run.code = max(code, END_STATE_MISSED if drained else OK)
    if request.history:
        with contextlib.suppress(RunError):  # a journal that cannot be read
            keep(request.history, show, actions=actions.of_run(run))
    return ProvisionReport(record.document(), drained, run.code)


def _recorded(request: ProvisionRequest) -> dict[str, Any]:
    """Return the options that the record keeps."""
    selection = request.selection
    names = ("drain_wait", "reboot_wait", "assume_drained", "upgrade", "canary", "batch")
    return {
        **login_record(request.connection),
        "failed_of": request.connection.failed_of or None,
        "profiles": selection.profiles,
        "site": " ".join(map(str, selection.files)),
        "lock": str(request.lock),
        **{name: getattr(request, name) for name in names},
        "drain": bool(request.drain),
        "first": request.first or "",
        "only": request.only or "",
    }
