"""Resource limits in every place that they come from: PAM for sessions, drop-ins for the services that start work.

PAM's limits do not reach services, and a service's do not reach sessions. Bytes here as in the checks; limits.d counts
memory in KiB.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.model import Fix
from nodetune.checks.shared.limit_sides import SESSIONS
from nodetune.foundation.json_document import merge
from nodetune.remediation.builders import _dropin
from nodetune.remediation.builders._own import own_file
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/security/limits.d/zz-nodetune.conf"
UNITS = {"slurmd": "slurmd", "containerd": "containerd", "crio": "crio", "dockerd": "docker", "kubelet": "kubelet"}
"""Daemon → the unit that runs it."""

ITEMS = ("memlock", "nofile", "stack", "nproc", "rtprio", "core")
IN_KIB = ("memlock", "stack", "core")
CAPPED = ("rtprio",)
"""Items where the hard limit is what is wrong: both sides come down. Otherwise the hard one only ever goes up."""

LOWERED = ("core", "stack")
"""Items whose soft limit comes down; a user may still raise it as far as the hard one allows today."""

FOR_ALL_SERVICES = ("memlock",)
"""Items that systemd's default gives as well, so that what starts without PAM and our drop-ins has them."""

NEEDS = (
    "sysctl.fs.nr_open",
    "services.default_memlock",
    *(f"limits.{item}" for item in ITEMS),
    *(f"services.{unit}" for unit in UNITS.values()),
)
Sections = Mapping[str, Mapping[str, str]]


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    sessions: dict[str, Any] = {}
    units: dict[str, Sections] = {}
    checks: dict[str, list[str]] = {}
    for fix in fixes:
        if fix.target not in ITEMS:
            raise UnfixableError(f"the limit {fix.target} is not one of {', '.join(ITEMS)}")
        mine: dict[str, Sections] = {}
        problems = {subject: _add(fix, subject, host, sessions, mine) for subject in fix.subjects}
        reached = [subject for subject, problem in problems.items() if not problem]
        if not reached:
            raise UnfixableError(" ".join(problems.values()))
        for problem in filter(None, problems.values()):
            host.note(problem)
        units = dict(merge(units, mine))
        for place in (*mine, *([SESSIONS] if SESSIONS in reached else [])):
            checks.setdefault(place, []).extend(host.checks(fix))
    files = (
        {SESSIONS: own_file(host, PATH, "limits.conf.j2", sessions, _allowed, {"in_kib": IN_KIB})} if sessions else {}
    )
    files |= {unit: _dropin.change(host, unit, sections) for unit, sections in units.items()}
    tagged = [change | {"checks": checks[place]} for place, change in files.items()]
    return [*tagged, *_in_order(_dropin.handlers(sorted(units)))]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    known = len(keys) == 2 and keys[0] in ITEMS and keys[1] in ("soft", "hard")
    return known and (value == "unlimited" or (type(value) is int and 0 <= value < 1 << 64))


def _in_order(handlers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order the handlers: systemd reads new files before it restarts a unit, and a re-execution includes a reload."""
    reexecuted = any(handler["run"] == "daemon-reexec" for handler in handlers)
    left = [handler for handler in handlers if not (reexecuted and handler["run"] == "daemon-reload")]
    return sorted(left, key=lambda handler: not str(handler["run"]).startswith("daemon-"))


def _add(fix: Fix, subject: str, host: HostView, sessions: dict[str, Any], units: dict[str, Sections]) -> str:
    """Note what to set for one subject. Return why a file of nodetune's would have no effect there."""
    item, now = fix.target, _now(host, fix.target, subject)
    problem = _in_the_way(item, subject, now, host)
    if problem:
        return problem
    soft = _below_ceiling(item, fix.value if fix.value == "unlimited" else int(fix.value), host)
    hard = _hard(item, soft, now.get("hard"))
    if subject != SESSIONS:
        _set(units, f"{UNITS.get(subject, subject)}.service", "Service", _key(item), _of_systemd(soft, hard))
        return ""
    sessions[item] = {"soft": soft} if hard == now.get("hard", hard) else {"soft": soft, "hard": hard}
    if item in FOR_ALL_SERVICES:
        _set(units, "system.conf", "Manager", f"Default{_key(item)}", _of_systemd(soft, hard))
        _say_who_sets_default(host)
    _say_who_else_sets(item, str(now.get("source", "")), host)
    return ""


def _in_the_way(item: str, subject: str, now: Mapping[str, Any], host: HostView) -> str:
    """Return why a file of nodetune's would not change the limit of a subject; empty if nothing is known."""
    if subject.startswith(SESSIONS):
        reason = now.get("in_the_way")
        return f"{subject}: {reason}. {PATH} has no effect there: fix this first, then plan again." if reason else ""
    name = UNITS.get(subject, subject)
    unit = host.get(f"services.{name}")
    if not unit or unit["active"] != "active":
        return f"{subject} does not run in {name}.service: raise {_key(item)} in its unit."
    ours = PurePosixPath(_dropin.path_of(f"{name}.service"))
    later = re.search(r"/etc/systemd/system/[\w.@-]+\.service\.d/([\w.@-]+) line \d+", str(now.get("source", "")))
    if later and later.group(1) > ours.name:
        return f"{later.group(0)} sets {_key(item)} of {subject} and is read after {ours}: it wins. Remove that line."
    if (subject, item) == ("slurmd", "core"):
        return (
            f"slurmd raises its limit of core files to its hard one ({now.get('hard')}), and jobs get that: leave CORE in "
            "PropagateResourceLimits of slurm.conf, or lower LimitCORE= in slurmd's unit, which users cannot raise again."
        )
    return ""


def _below_ceiling(item: str, value: int | str, host: HostView) -> int | str:
    """Return what may be set: above fs.nr_open, logins and services fail."""
    ceiling = host.readable("sysctl.fs.nr_open") if item == "nofile" else None
    if value == "unlimited" or type(ceiling) is not int or int(value) <= ceiling or host.sets_sysctl("fs.nr_open"):
        return value
    host.note(f"fs.nr_open = {ceiling} limits open files: {ceiling} is set instead of {value}.")
    return ceiling


def _now(host: HostView, item: str, subject: str) -> Mapping[str, Any]:
    """Return the subject's current limit {soft, hard, source}; empty if unknown."""
    seen: Mapping[str, Any] = host.readable(f"limits.{item}") or {}
    return seen.get(subject) or {}


def _hard(item: str, soft: int | str, now: int | str | None) -> int | str:
    """Return the hard limit to have afterwards."""
    if item in CAPPED:
        return soft
    if item in LOWERED:
        return "unlimited" if now is None else now
    return max((soft, now or 0), key=_size)


def _size(limit: int | str) -> float:
    return float("inf") if limit == "unlimited" else float(limit)


def _say_who_else_sets(item: str, source: str, host: HostView) -> None:
    """Add a note with the line that decides today if its file is read after ours."""
    file = source.partition(" line ")[0]
    if file.startswith("/etc/security/limits.d/") and PurePosixPath(file).name > PurePosixPath(PATH).name:
        host.note(f"{source} sets {item} too and is read after {PATH}: it wins. Remove that line.")


def _say_who_sets_default(host: HostView) -> None:
    """Add a note with the line that sets the limit of all services if its file is read after ours."""
    ours = _dropin.path_of("system.conf")
    found = host.readable("services.default_memlock") or {}
    file = str(found.get("file", ""))
    if "/system.conf.d/" in file and PurePosixPath(file).name > PurePosixPath(ours).name:
        host.note(
            f"{file} line {found['line']} sets DefaultLimitMEMLOCK too and is read after {ours}: it wins for services. "
            "Remove that line."
        )


def _set(units: dict[str, Sections], unit: str, section: str, key: str, value: str) -> None:
    units[unit] = merge(units.get(unit, {}), {section: {key: value}})


def _key(item: str) -> str:
    return f"Limit{item.upper()}"


def _of_systemd(soft: int | str, hard: int | str) -> str:
    first, second = ("infinity" if side == "unlimited" else str(side) for side in (soft, hard))
    return first if first == second else f"{first}:{second}"
