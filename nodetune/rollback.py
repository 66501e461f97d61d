"""Taking a run back: the revert play over what its record holds."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nodetune import playbook
from nodetune.field import Recorder, Tell, out_of_use
from nodetune.fixes import FREE
from nodetune.playbook import Outcome, Way
from nodetune.runs import Run, past
from nodetune.transport import Target
from nodetune.workflow import Reach


@dataclass(frozen=True)
class Rollback:
    """How a run is taken back: `force` also overwrites what someone changed since."""

    force: bool = False
    assume_drained: bool = False


def roll_back(
    of: Run, targets: Sequence[Target], reach: Reach, how: Rollback, run: Run | None, tell: Tell
) -> dict[str, Outcome]:
    """Take back run `of` on hosts; `run` keeps the record (None: check mode, nothing is written)."""
    groups = {target.name: of.changes(target.name) for target in targets}
    for host, changes in groups.items():
        if run and changes is not None:
            run.save_changes(host, changes)  # so that taking this back in its turn knows what disturbs
    over = past.over(run) if run else {}
    given = {
        target.name: {
            "nodetune_run": run.id if run else "rehearsal",
            "nodetune_of": of.id,
            "nodetune_entries": of.entries(target.name),
            "nodetune_force": how.force,
            **(_guard_of(of, groups[target.name], how) if run else {}),
            "nodetune_take_over": over.get(target.name, ""),
            "nodetune_controller": platform.node(),
        }
        for target in targets
    }
    way = Way(reach.options, min(reach.forks, playbook.FORKS), check=run is None)
    return playbook.play("revert", targets, given, way, Recorder(run, tell) if run else tell)


def _guard_of(of: Run, groups: Any, how: Rollback) -> dict[str, Any]:
    """Taking back what disturbed work disturbs it again. Which groups did something, the host knows best."""
    if groups is None and of.about.get("command") == "rollback":  # by a version that did not keep them: any may disturb
        return {"nodetune_guard": out_of_use(how.assume_drained)}
    disturb = [group.get("group") for group in playbook.objects(groups) if group.get("disruption") not in FREE]
    return {"nodetune_guard": out_of_use(how.assume_drained), "nodetune_guarded": disturb} if disturb else {}
