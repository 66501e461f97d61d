"""What sets a value at boot, nodetune's unit or tuned, and why it is not set: the unit failed, or the kernel lacks the parameter."""

from __future__ import annotations

import re

from nodetune.api.facts_view import FactsView
from nodetune.api.model import Check
from nodetune.foundation import text

UNIT = re.compile(r"/etc/systemd/system/(nodetune-(\w+))\.service")
FAULTS = {
    "failed": "has failed: journalctl -b -u {}.service",
    "activating": "is still starting: systemctl status {}.service",
}

TUNED = "derived.tuned_settings"
LACKING = "does not exist on this host: no fix writes it. Correct the name, or load the kernel module that has it"
"""Of a kernel parameter: what a finding says instead of a fix."""


def needs(check: Check) -> tuple[str, ...]:
    """Return the facts about what sets the value again at boot: nodetune's unit, and tuned."""
    return (*_unit(check), *([TUNED] if _by_sysctl(check) else []))


def _by_sysctl(check: Check) -> bool:
    return check.remedy.kind == "sysctl" and check.remedy.boot_default is not None


def kept_by_tuned(check: Check, view: FactsView) -> bool:
    """Return whether tuned sets the check's kernel parameter at the next boot, as it did at this one."""
    return _by_sysctl(check) and check.remedy.target in view.readable(TUNED, {}).get("sysctl", {})


def _unit(check: Check) -> tuple[str, ...]:
    """Return the facts about nodetune's unit that sets it again at boot: its state, and what it sets (nodetune-irq: all)."""
    found = UNIT.fullmatch(check.remedy.file)
    if found is None or check.set is None:
        return ()
    return (f"services.{found[1]}", *([f"file./etc/nodetune/{found[2]}.conf"] if found[2] != "irq" else []))


def why_not_set(check: Check, view: FactsView) -> str:
    """Return that the unit did not do its work; empty if it did, if there is none, or if that is not known."""
    state, *settings = _unit(check) or ("",)
    unit = view.readable(state) if state else None
    fault = FAULTS.get(str(unit.get("active")), "") if isinstance(unit, dict) else ""
    if not fault or not all(check.remedy.target in text.own_settings(str(view.readable(name))) for name in settings):
        return ""
    name = state.removeprefix("services.")
    return f"{name}.service, which sets it at boot, {fault.format(name)}"


def lacking(check: Check) -> str:
    """Return why no fix can set what is absent; empty if a fix may bring it."""
    target = check.remedy.target
    return f"{target} {LACKING}" if check.fact == f"sysctl.{target}" else ""
