"""Taking a run back: the revert play over what its record holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remediation import ansible
from nodetune.remediation.ansible import OnEvent, Outcome, PlayOptions
from nodetune.remediation.builders import FREE
from nodetune.remediation.host_operations import out_of_use
from nodetune.remediation.runs import Run


@dataclass(frozen=True)
class RollbackOptions:
    """How a run is rolled back: `force` also overwrites what someone changed since."""

    force: bool = False
    assume_drained: bool = False


def roll_back(
    of: Run,
    targets: Sequence[Target],
    reach: ConnectionOptions,
    options: RollbackOptions,
    run: Run | None,
    on_event: OnEvent,
) -> dict[str, Outcome]:
    """Roll back run `of` on hosts; `run` keeps the record (None: check mode, nothing is written)."""
    groups = {target.name: of.changes(target.name) for target in targets}
    for host, changes in groups.items():
        if run and changes is not None:
            run.save_changes(host, changes)  # so that taking this back in its turn knows what disturbs
    given = {
        target.name: {
            "nodetune_of": of.id,
            "nodetune_entries": of.entries(target.name),
            "nodetune_force": options.force,
            **(_guard_of(of, groups[target.name], options) if run else {}),
        }
        for target in targets
    }
    play_options = PlayOptions(reach.options, reach.forks, check=run is None)
    return ansible.play("revert", targets, given, play_options, run, on_event)


def _guard_of(of: Run, groups: Any, options: RollbackOptions) -> dict[str, Any]:
    """Return what must be true before disruptive changes are undone: undoing them disrupts again.

    The host knows best which groups changed something.
    """
    if groups is None and of.about.get("command") == "rollback":  # by a version that did not keep them: any may disturb
        return {"nodetune_guard": out_of_use(options.assume_drained)}
    disturb = [group.get("group") for group in ansible.objects(groups) if group.get("disruption") not in FREE]
    return {"nodetune_guard": out_of_use(options.assume_drained), "nodetune_guarded": disturb} if disturb else {}
