"""Resource limits in every place that they come from: PAM for sessions, drop-ins for the services that start work.

PAM's limits do not reach services, and a service's do not reach sessions. Bytes here as in the checks; limits.d counts
memory in KiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.model import Fix
from nodetune.checks.limits._sides import SESSIONS
from nodetune.remediation.builders import HostView, UnfixableError, _dropin
from nodetune.remediation.builders._own import merge, own_file

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

NEEDS = (*(f"limits.{item}" for item in ITEMS), *(f"services.{unit}" for unit in UNITS.values()))
Sections = Mapping[str, Mapping[str, str]]


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    sessions: dict[str, Any] = {}
    units: dict[str, Sections] = {}
    for fix in fixes:
        if fix.target not in ITEMS:
            raise UnfixableError(f"the limit {fix.target} is not one of {', '.join(ITEMS)}")
        reached = [subject for subject in fix.subjects if _add(fix, subject, host, sessions, units)]
        if not reached:
            raise UnfixableError(
                f"nothing here starts {', '.join(fix.subjects)} in a known way: raise its limit manually"
            )
    files = [own_file(host, PATH, "limits.conf.j2", sessions, in_kib=IN_KIB)] if sessions else []
    drop_ins = [_dropin.change(host, unit, sections) for unit, sections in units.items()]
    return [*files, *drop_ins, *_in_order(_dropin.handlers(sorted(units)))]


def _in_order(handlers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order the handlers: systemd reads new files before it restarts a unit, and a re-execution includes a reload."""
    reexecuted = any(handler["run"] == "daemon-reexec" for handler in handlers)
    left = [handler for handler in handlers if not (reexecuted and handler["run"] == "daemon-reload")]
    return sorted(left, key=lambda handler: not str(handler["run"]).startswith("daemon-"))


def _add(fix: Fix, subject: str, host: HostView, sessions: dict[str, Any], units: dict[str, Sections]) -> bool:
    """Note what is to be set for one subject. False where nobody knows what starts it."""
    item, now = fix.target, _now(host, fix.target, subject)
    soft = fix.value if fix.value == "unlimited" else int(fix.value)
    hard = _hard(item, soft, now.get("hard"))
    if subject == SESSIONS:
        sessions[item] = {"soft": soft} if hard == now.get("hard", hard) else {"soft": soft, "hard": hard}
        if item in FOR_ALL_SERVICES:
            _set(units, "system.conf", "Manager", f"Default{_key(item)}", _of_systemd(soft, hard))
        _say_who_else_sets(item, str(now.get("source", "")), host)
        return True
    name = UNITS.get(subject, subject)
    unit = host.get(f"services.{name}")
    if not unit or unit["active"] != "active":
        host.note(f"{subject} is not run by {name}.service: raise {_key(item)} of the unit that runs it.")
        return False
    _set(units, f"{name}.service", "Service", _key(item), _of_systemd(soft, hard))
    return True


def _now(host: HostView, item: str, subject: str) -> Mapping[str, Any]:
    """Return the subject's current limit {soft, hard, source}; empty if not known."""
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
        host.note(f"{source} sets {item} too and is read after {PATH}: it wins. Take that line out.")


def _set(units: dict[str, Sections], unit: str, section: str, key: str, value: str) -> None:
    units[unit] = merge(units.get(unit, {}), {section: {key: value}})


def _key(item: str) -> str:
    return f"Limit{item.upper()}"


def _of_systemd(soft: int | str, hard: int | str) -> str:
    first, second = ("infinity" if side == "unlimited" else str(side) for side in (soft, hard))
    return first if first == second else f"{first}:{second}"
