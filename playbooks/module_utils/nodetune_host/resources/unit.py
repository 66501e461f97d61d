"""A systemd unit: {"unit", "enabled": enabled | disabled | masked | null, "active": started | stopped | null}.

State: {"enabled": systemctl's name for it, "active": started | stopped}, each only if the change sets it: other
parts may change meanwhile.
"""

import time

from .. import command
from ..problem import ChangeError

SECONDS = 60
SETTLE_SECONDS, MAX_SETTLE_SECONDS = 1, 10
"""Seconds. A service of Type=simple counts as started once forked; many broken ones end within this time. A busy host
is slow at both starting and ending, so there it is a multiple of the time for the start.
"""
WORDS_SECONDS = 2
STARTED = ("active", "reloading", "activating", "refreshing")
MISSING = "not-found"
SWITCHABLE = ("enabled", "enabled-runtime", "disabled", "masked", "masked-runtime", MISSING)
"""States set by enable, disable and mask. The others (static, generated …) come from the unit file itself."""
ALIKE = ({"disabled", MISSING}, {"generated", "", MISSING})
"""States that count as equal when a change to a unit was undone but its file or fstab line comes or goes later."""


def read(change):
    now, state = _show(change["unit"]), {}
    if change.get("enabled"):
        state["enabled"] = _enablement(change["unit"])
    if change.get("active"):
        state["active"] = "started" if now["ActiveState"] in STARTED else "stopped"
    return state


def wanted(change, now):
    """Return the state after the change. A unit that does not exist counts as off.

    A missing unit is an error only if it is enabled or started: the same run may write its file first.
    """
    after = dict(now)
    if change.get("enabled") and not _suffices(change["enabled"], now.get("enabled", "")):
        after["enabled"] = change["enabled"]
    if change.get("active"):
        after["active"] = change["active"]
    return after


def same(one, other):
    pair = {one.get("enabled"), other.get("enabled")}
    return one.get("active") == other.get("active") and (len(pair) == 1 or any(pair <= alike for alike in ALIKE))


def put(change, state):
    """Change the unit. Raise ChangeError if systemd refuses, or with the last log line of a unit that fails."""
    unit, active = change["unit"], state.get("active")
    if active == "stopped":
        _systemctl("stop", unit)
    if "enabled" in state:
        _enable(unit, state["enabled"])
    if active == "started":
        _start(unit)


def show(change, state):
    """Show a unit; a missing one as disabled, so that a dry run is correct if its file comes in the same run."""
    words = (state[key] or "no unit file" for key in ("enabled", "active") if key in state)
    return ", ".join("disabled" if word == MISSING else word for word in words) + "\n"


def label(change):
    return change["unit"]


def _show(unit, names="LoadState,ActiveState,SubState"):
    lines = command.run(["systemctl", "show", "-p", names, "--", unit]).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _enablement(unit):
    """Return the enablement from the files on disk: systemd's own state is older if it was not reloaded."""
    status, out, problem = command.attempt(["systemctl", "is-enabled", "--", unit])
    if not out.strip() and "no such file" not in problem.lower():
        raise ChangeError(f"{unit}: systemctl is-enabled: {command.last_line(problem) or status}")
    return out.strip() or MISSING


def _suffices(asked, found):
    """Return whether the state suffices: a static unit is started by what needs it, a mask is more than disabled."""
    if asked == "enabled":
        return found == "enabled" or found not in SWITCHABLE
    return found in (asked, MISSING) or (asked == "disabled" and found.startswith("masked"))


def _enable(unit, target):
    found = _enablement(unit)
    if found == target:
        return
    if found.startswith("masked"):
        _systemctl("unmask", unit, runtime=found.endswith("-runtime"))
        found = _enablement(unit)
    if target.startswith("masked"):
        _systemctl("mask", unit, runtime=target.endswith("-runtime"))
    elif target.startswith("enabled"):
        _systemctl("enable", unit, runtime=target.endswith("-runtime"))
    elif target in ("disabled", MISSING):
        _disable(unit, found)


def _disable(unit, found):
    if found.startswith("enabled"):
        _systemctl("disable", unit, runtime=found.endswith("-runtime"))
    elif found not in SWITCHABLE:
        raise ChangeError(f"{unit}: it is {found or 'without a file'} and cannot be disabled: mask it instead")


def _systemctl(verb, unit, runtime=False):
    """Run systemctl without the reload that enable, disable and mask would do.

    A reload of systemd can remove the GPUs from running containers: a change must declare that disruption.
    """
    if verb not in ("stop", "unmask", "disable") and _show(unit)["LoadState"] == MISSING:
        raise ChangeError(f"{unit}: the unit does not exist: install its package")
    options = ["--no-reload"] if verb not in ("start", "stop") else []
    command.run(["systemctl", *options, verb] + (["--runtime"] if runtime else []) + ["--", unit], seconds=SECONDS)


def _start(unit):
    now = _show(unit)
    if now["ActiveState"] in ("active", "reloading"):
        return
    if now["LoadState"] == "masked" and not _enablement(unit).startswith("masked"):
        # It booted with the mask: until a reload, systemd knows no other file.
        command.run(["systemctl", "daemon-reload"], seconds=SECONDS)
    begun = time.monotonic()
    try:
        _systemctl("start", unit)
    except ChangeError as problem:
        raise ChangeError(f"{unit}: it does not start: {last_words(unit) or problem}") from None
    took = time.monotonic() - begun
    deadline = time.monotonic() + min(MAX_SETTLE_SECONDS, max(SETTLE_SECONDS, 4 * took))
    while time.monotonic() < deadline:
        now = _show(unit)
        if now["ActiveState"] == "failed" or now["SubState"] == "auto-restart":
            raise ChangeError(f"{unit}: it started and ended at once: {last_words(unit)}")
        time.sleep(0.1)


def last_words(unit):
    """Return the last log line of the unit since its last start, or of systemd about it.

    When systemd has reported the end of a unit, the journal may not have its output yet; for a process that ended at
    once it may know the unit and no longer the invocation.
    """
    known = _show(unit, "InvocationID,InactiveExitTimestampMonotonic")
    start, begun = known.get("InvocationID"), int(known.get("InactiveExitTimestampMonotonic") or 0) / 1e6
    if not start:
        return _last_line("--since=-2min", "--unit=" + unit)
    since = "--since=@{:.0f}".format(time.time() - (time.monotonic() - begun) - 0.5)
    own = [since, "_SYSTEMD_INVOCATION_ID=" + start, "+", "_SYSTEMD_UNIT=" + unit]
    deadline = time.monotonic() + WORDS_SECONDS
    while True:
        found = _last_line(*own)
        if found or time.monotonic() > deadline:
            return found or _last_line("--since=-2min", "INVOCATION_ID=" + start)
        command.attempt(["journalctl", "--sync"])
        time.sleep(0.2)


def _last_line(*match):
    lines = command.run(["journalctl", *match, "-n", "3", "-o", "cat", "-q"]).splitlines()
    return lines[-1][:300] if lines else ""
