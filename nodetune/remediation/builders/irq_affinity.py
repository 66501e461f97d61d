"""Interrupts of network cards and GPUs on the CPUs near them: written now, and kept there by nodetune-irq.service.

irqbalance looks every ten seconds and moves what it may move, so it must leave these interrupts alone and may keep all
others. Of its options for this, interrupt numbers (--banirq) change from boot to boot and modules (--banmod) were
matched wrongly up to 1.9.0 (its issue 202); a policy script is asked about each interrupt by the device it belongs to,
and is what its maintainer advises for this (issue 199).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import _boot
from nodetune.remediation.builders._own import render, whole_file
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = (*_boot.NEEDS, "services.nodetune-irq", "services.irqbalance", "irq.irqbalance", "irq.static_affinity")

POLICY = f"{_boot.folder('irq')}/irqbalance-policy"
OPTION = f"--policyscript={POLICY}"
POLICY_OF_OTHERS = re.compile(r"(--policyscript|-l)\b")
PLAIN = re.compile(r"[\w ./:,=+@%-]*")
"""Characters that need no escape in double quotes in an environment file."""

SETTINGS_FILES = {"debian": "/etc/default/irqbalance"}
CONFINED = ("rhel", "suse")
"""Families that confine irqbalance (SELinux, a hardened unit): whether it may run a script there was never tried."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    _leave_to_others(host)
    checks = sorted({check for fix in fixes for check in host.checks(fix)})
    unit = _boot.changes("irq", ["resources/irqs", "onhost/files", *_boot.CPU_LIST], started=True)
    return [*_irqbalance(host), {"change": "irqs", "checks": checks}, *unit]


def _leave_to_others(host: HostView) -> None:
    ours = _boot.unit("irq")
    others = [path for path in host.get("irq.static_affinity") or [] if not path.endswith(ours)]
    if others:
        raise UnfixableError(
            f"{', '.join(others)} already places interrupts at boot: change it there, or remove it and plan again"
        )


def _irqbalance(host: HostView) -> list[dict[str, Any]]:
    unit = host.get("services.irqbalance") or {}
    if unit.get("active") != "active" and unit.get("enabled") != "enabled":
        return []
    variable = re.search(r"\$\{?(\w+)", unit.get("exec", ""))
    if host.family in CONFINED or not variable:
        host.note("irqbalance is stopped and disabled: it would move the interrupts that nodetune-irq.service places.")
        return [{"change": "unit", "unit": "irqbalance.service", "enabled": "disabled", "active": "stopped"}]
    return _policy(host, variable.group(1))


def _policy(host: HostView, variable: str) -> list[dict[str, Any]]:
    """Return the changes that make irqbalance leave these interrupts alone and continue with all others.

    `variable` is what its unit takes options from.
    """
    known = host.get("irq.irqbalance") or {}
    script = whole_file(POLICY, render("irq-policy.sh.j2", {}), "0755")
    options = _options(known, variable)
    if OPTION in options.split():
        return [script]
    host.note("irqbalance is configured to ignore the interrupts of network cards and GPUs, and restarted.")
    path = known.get("file") or SETTINGS_FILES.get(host.family, "/etc/sysconfig/irqbalance")
    value = f'"{" ".join([*options.split(), OPTION])}"'
    return [
        script,
        {"change": "edit", "path": path, "how": "assignments", "with": {"values": {variable: value}}},
        {"change": "run", "run": "restart irqbalance.service"},
    ]


def _options(known: Mapping[str, str], variable: str) -> str:
    """Return the current options of irqbalance. Raise UnfixableError if they name another policy."""
    options = known.get(variable, "")
    if POLICY_OF_OTHERS.search(options) and OPTION not in options.split():
        raise UnfixableError(
            f"irqbalance has a policy script already ({variable} in {known.get('file')}): make it print ban=true for "
            "network cards and GPUs, or remove it and plan again"
        )
    if not PLAIN.fullmatch(options):
        raise UnfixableError(
            f"{variable} in {known.get('file')} contains more than plain options: add {OPTION} manually"
        )
    return options
