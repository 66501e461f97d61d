"""Find what sets a value now and at the next boot (a file, nodetune's unit or tuned), or why it is not set."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from nodetune.api.facts_view import FactsView
from nodetune.api.model import Check, Unread, Value
from nodetune.foundation import text

UNIT = re.compile(r"/etc/systemd/system/(nodetune-(\w+))\.service")
FAULTS = {
    "failed": "has failed: journalctl -b -u {}.service",
    "activating": "is still starting: systemctl status {}.service",
}

TUNED = "derived.tuned_settings"
ARGUMENTS = ("cmdline.running", "derived.next_arguments")
LOADED = ("sysctl", "sysfs")
"""Remedies whose files a command may load at any time, just as any user may write another value."""

Show = Callable[[Any], str]


def needs(check: Check) -> tuple[str, ...]:
    """Return the facts about what sets the value at boot: nodetune's unit, tuned, the boot loader."""
    return (*_unit(check), *([TUNED] if _by_sysctl(check) else []), *(ARGUMENTS if _by_argument(check) else ()))


def _by_argument(check: Check) -> bool:
    by_argument = check.remedy.kind == "kernel_arg" or bool(check.remedy.alike)
    return by_argument and check.remedy.persisted is not None and check.set is not None


def _by_sysctl(check: Check) -> bool:
    return check.remedy.kind == "sysctl" and (check.remedy.boot_default is not None or bool(check.remedy.alike))


def kept_by_tuned(check: Check, view: FactsView) -> bool:
    """Return whether tuned sets the check's kernel parameter at the next boot, as it did at this one."""
    return _by_sysctl(check) and check.remedy.target in view.readable(TUNED, {}).get("sysctl", {})


def _unit(check: Check) -> tuple[str, ...]:
    """Return the facts about nodetune's boot unit for the value: its state and what it sets (nodetune-irq: all)."""
    found = UNIT.fullmatch(check.remedy.file)
    if found is None or check.set is None:
        return ()
    return (f"services.{found[1]}", *([f"file./etc/nodetune/{found[2]}.conf"] if found[2] != "irq" else []))


def why_not_set(check: Check, view: FactsView) -> str:
    """Return why the unit did not set the value; empty if it did, if there is no unit, or if this is unknown."""
    state, *settings = _unit(check) or ("",)
    unit = view.readable(state) if state else None
    fault = FAULTS.get(str(unit.get("active")), "") if isinstance(unit, dict) else ""
    if not fault or not all(check.remedy.target in text.own_settings(str(view.readable(name))) for name in settings):
        return ""
    name = state.removeprefix("services.")
    return f"{name}.service, which sets it at boot, {fault.format(name)}"


def lacking(check: Check) -> str:
    """Return what to do about a parameter that the kernel lacks, so that no fix can set it; empty for anything else."""
    target = check.remedy.target
    if check.fact != f"sysctl.{target}":
        return ""
    return f"{target} does not exist on this host: no fix writes it. Correct the name, or load its kernel module."


def lost_at_boot(check: Check, view: FactsView, accepts: Callable[[Any], bool], show: Show) -> str:
    """Return why a correct value is lost at the next boot; empty if it is not lost or this is unknown."""
    persisted, default = _persisted(check, view), check.remedy.boot_default
    if isinstance(persisted, Unread):
        return ""
    if persisted is not None:
        kept = accepts(persisted["value"])
        return "" if kept else f"the next boot sets {show(persisted['value'])}: {place(persisted)}"
    if kept_by_tuned(check, view):
        return ""
    if default is None or accepts(default):
        return argument_lost(check, view)
    return f"no file persists it: the next boot starts with {show(default)}"


def argument_lost(check: Check, view: FactsView) -> str:
    """Return which kernel argument makes the value right until the next boot; empty if the next boot has one that does."""
    if not _by_argument(check):
        return ""
    right = {f"{check.remedy.target}={check.set}", *check.remedy.alike}
    now, later = (
        sorted(
            right & {f"{key}={each}" for key, texts in (view.readable(name) or {}).items() for each in texts.split(",")}
        )
        for name in ARGUMENTS
    )
    return f"until the next boot: the boot loader starts that kernel without {now[0]}" if now and not later else ""


def not_installed(check: Check, view: FactsView, value: Any) -> str:
    """Return why the next boot does not have a kernel argument that a fix sets; empty if it does."""
    if check.remedy.kind != "kernel_arg":
        return ""
    wanted = f"{check.remedy.target}={value}" if value != "" else check.remedy.target
    fact = view.fact(check.remedy.persisted or "")
    if isinstance(fact, Unread):
        return f"whether the next boot has {wanted} is unknown: {fact.reason}"
    if not isinstance(fact, Value):
        return f"the boot loader starts the kernel without {wanted}"
    return (
        ""
        if fact.value["value"] == str(value)
        else f"{fact.value['file']} has {check.remedy.target}={fact.value['value']}"
    )


def who_decides(check: Check, view: FactsView, value: Any, show: Show) -> str:
    """Return the file that sets the current value. A file with another value takes effect at the next boot."""
    persisted = _persisted(check, view)
    if value is None or persisted is None or isinstance(persisted, Unread):
        return ""
    shown = show(persisted["value"])
    if persisted["value"] == value:
        return f"set by {place(persisted)} ({shown})"
    if check.remedy.kind not in LOADED:
        why = ""
    elif persisted.get("at_boot"):
        why = "; this boot has read that file, so something sets it later in the boot, or did at run time"
    else:
        why = "; changed at run time or later in the boot, or that file is not loaded yet"
    return f"the next boot sets {shown}: {place(persisted)}{why}"


def _persisted(check: Check, view: FactsView) -> Any:
    """Return what the next boot sets ({value, file, line}); None if no file sets it, Unread if unknown."""
    name = check.remedy.persisted
    if name is None or check.set is None:
        return None
    fact = view.fact(name)
    return fact.value if isinstance(fact, Value) else fact if isinstance(fact, Unread) else None


def place(persisted: Mapping[str, Any]) -> str:
    line = persisted.get("line")
    return f"{persisted['file']} line {line}" if line else str(persisted["file"])
