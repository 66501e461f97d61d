"""The guard's files on a node, and their removal, as changes for playbooks/engine/guard.yml. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nodetune.foundation import templates
from nodetune.guard.deploy import archive as deploy_archive
from nodetune.guard.deploy import policy, slurm_conf
from nodetune.guard.deploy.paths import (
    ARCHIVES,
    CHECK,
    ETC,
    HOME,
    KEPT,
    OPT,
    POLICY,
    PYTHONS,
    RUN,
    SCRIPTS,
    SERVICE,
    TIMER,
    UNITS,
)
from nodetune.probe.guard import FILE
from nodetune.remediation import host_changes

SLACK_SECONDS = 1
"""Seconds that the entry waits beyond the program's own budget before it kills the program."""

KILL_SECONDS = 3
"""Seconds that the entry needs to kill the program and report it on standard output and to syslog."""


def most_seconds(policy: Mapping[str, Any]) -> int:
    """Return the most seconds that one call of the guard takes."""
    total: float = policy["seconds"]["total"]
    return math.ceil(total) + SLACK_SECONDS + KILL_SECONDS


@dataclass(frozen=True)
class NodeInstall:
    """The installation on one node.

    `conf`: the slurm.conf to write to (empty: none); `textfile`: the folder for the timer's metrics (empty: no metrics;
    None: no timer); `old`: program folders of earlier installs that can go.
    """

    policy: Mapping[str, Any]
    pythons: Sequence[str] = PYTHONS
    conf: str = ""
    textfile: str | None = None
    old: Sequence[str] = ()


@dataclass(frozen=True)
class GuardPaths:
    """Where the guard's scripts are on a node, the program and interpreter that they run, and what removes them."""

    home: str
    program: str
    python: str
    removal: str = "nodetune guard uninstall"


def install(node_install: NodeInstall, installed: str = "") -> list[dict[str, Any]]:
    """Return the groups of changes of one node: the program before its callers, slurm.conf last."""
    made = deploy_archive.archive()
    place = GuardPaths(HOME, made.folder, f"{made.folder}/python")
    changes = [
        {"change": "program", "path": made.folder, "archive": made.there, "pythons": list(node_install.pythons)},
        _file(POLICY, policy.text(node_install.policy, installed)),
        *(_file(path, text, "0755", "guarded") for path, text in scripts(node_install.policy, place).items()),
        _file(f"{HOME}/{CHECK}", check_script(node_install.policy, place), "0755"),
        *(_no_program(path) for path in node_install.old),
    ]
    groups = [_group("guard", changes)]
    if node_install.textfile is not None:
        groups.append(_group("guard-timer", _timer(place, node_install.textfile)))
    if node_install.conf:
        groups.append(_slurm_conf(node_install.conf, dict(slurm_conf.LINES)))
    return groups


def _group(name: str, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a group of changes that only affects jobs that start afterwards."""
    return host_changes.PlannedChange(name, "new sessions", (), tuple(changes)).data()


def scripts(policy: Mapping[str, Any], place: GuardPaths) -> dict[str, str]:
    """Return the text of each program that Slurm calls, by its path."""
    known = {**_known(policy, place), "off": list(policy["off"])}
    entry = templates.render("guard-entry.sh.j2", **known)
    texts = {**dict.fromkeys(SCRIPTS, entry), "taskprolog": templates.render("guard-taskprolog.sh.j2", **known)}
    return {f"{place.home}/{name}": text for name, text in texts.items()}


def check_script(policy: Mapping[str, Any], place: GuardPaths) -> str:
    """Return the text of the check for the timer and other programs."""
    return templates.render("guard-check.sh.j2", **_known(policy, place))


def units(place: GuardPaths, textfile: str) -> dict[str, str]:
    """Return the text of the timer and of its service, by their names."""
    known = {"home": place.home, "removal": place.removal, "textfile": textfile}
    return {
        SERVICE: templates.render("guard-service.j2", **known),
        TIMER: templates.render("guard-timer.j2", **known),
    }


def _known(policy: Mapping[str, Any], place: GuardPaths) -> dict[str, Any]:
    """Return the values for every script."""
    seconds = math.ceil(policy["seconds"]["total"]) + SLACK_SECONDS
    return {**asdict(place), "run": RUN, "kept": KEPT, "policy": POLICY, "seconds": seconds}


def _timer(place: GuardPaths, textfile: str) -> list[dict[str, Any]]:
    """Return the changes for the timer, without a reload of systemd.

    A reload can take the GPUs away from running containers, and systemd reads a new unit when it starts.
    """
    return [
        *(_file(f"{UNITS}/{name}", text) for name, text in units(place, textfile).items()),
        {"change": "unit", "unit": TIMER, "enabled": "enabled", "active": "started"},
    ]


def _file(path: str, text: str | None, mode: str = "0644", kind: str = "file") -> dict[str, Any]:
    return {"change": kind, "path": path, "content": text, "mode": mode}


def detach(path: str) -> list[dict[str, Any]]:
    """Return the first part of an uninstall: restore slurm.conf (empty: there is none to write to)."""
    return [_slurm_conf(path, {})] if path else []


def _slurm_conf(path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return _group("slurm.conf", [{"change": "slurm", "path": path, "settings": settings}])


def metrics_file(service: str) -> str:
    """Return where the installed timer writes its metrics, from the text of its service."""
    found = re.search(rf"^ExecStart={re.escape(HOME)}/{CHECK} (/.*)$", service, re.MULTILINE)
    return found[1] if found else ""


def remove(folders: Iterable[str], service: str | None) -> list[dict[str, Any]]:
    """Return the second part of an uninstall, for when Slurm no longer calls the guard.

    Callers go first, then the program. `service` is the text of the timer's service, or None if there is none.
    """
    metrics = metrics_file(service or "")
    units = [
        {"change": "unit", "unit": TIMER, "enabled": "disabled", "active": "stopped"},
        {"change": "unit", "unit": SERVICE, "active": "stopped"},
        *(_file(path, None) for path in (f"{UNITS}/{TIMER}", f"{UNITS}/{SERVICE}")),
        *([_file(metrics, None)] if metrics else []),
    ]
    changes = [
        _file(f"{HOME}/{CHECK}", None),
        *(_gone(f"{HOME}/{name}", OPT) for name in SCRIPTS),
        _gone(POLICY, ETC),
        _file(f"{KEPT}/{FILE}", None),
        *(_no_program(path) for path in folders),
    ]
    return [*([_group("guard-timer", units)] if service is not None else []), _group("guard", changes)]


def _gone(path: str, folder: str) -> dict[str, Any]:
    return {**_file(path, None, kind="guarded"), "folder": folder}


def _no_program(path: str) -> dict[str, Any]:
    archive = f"{ARCHIVES}/{path.rpartition('/')[2]}.zip"
    return {"change": "program", "path": path, "archive": archive, "pythons": [], "folder": OPT}
