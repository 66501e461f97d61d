"""Frequency and idle states of CPUs: written now, and by nodetune-cpu.service at boot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.fixes import Host, Unfixable, _boot
from nodetune.model import Fix

OWNERS = {
    "ondemand": "disabled",
    "cpufrequtils": "disabled",
    "loadcpufreq": "disabled",
    "cpupower": "disabled",
    "power-profiles-daemon": "masked",  # D-Bus starts it on demand, disabled or not
}
"""Services that set the governor or the energy preference themselves: what becomes of them where they are on."""

NEEDS = ("services.tuned", "services.tuned_profile", *(f"services.{name}" for name in OWNERS))

ORDER = ("epp", "governor", "boost", "max_perf_pct", "idle_latency_us")
"""As in the lens: a governor of performance refuses every other energy preference, also when both are taken back."""


def changes(fixes: Sequence[Fix], host: Host) -> list[dict[str, Any]]:
    _leave_to_tuned(host)
    for fix in fixes:
        _check(fix)
    ordered = sorted(fixes, key=lambda fix: ORDER.index(fix.target))
    return [
        *_hand_over(host),
        _boot.settings(host, "cpu", {fix.target: fix.value for fix in ordered}),
        *_boot.changes("cpu", ["cpu", "settings"]),
        *({"change": "cpu", "setting": fix.target, "value": fix.value, "checks": host.checks(fix)} for fix in ordered),
    ]


def _check(fix: Fix) -> None:
    kinds = {"epp": str, "governor": str, "boost": bool, "max_perf_pct": int, "idle_latency_us": int}
    if fix.target not in kinds:
        raise Unfixable(f"nodetune sets no {fix.target} of CPUs: it sets {', '.join(ORDER)}")
    if type(fix.value) is not kinds[fix.target]:
        raise Unfixable(f"{fix.target} cannot be {fix.value!r}: mend the site file")


def _leave_to_tuned(host: Host) -> None:
    """tuned writes the same files again whenever it pleases: there is one owner or there is none."""
    if (host.facts.get("services.tuned") or {}).get("active") == "active":
        profile = (host.facts.readable("services.tuned_profile") or {}).get("name") or "without a profile"
        raise Unfixable(
            f"tuned (profile {profile}) owns the CPUs' frequency: set it in its profile, "
            "or: systemctl disable --now tuned, then plan again"
        )


def _hand_over(host: Host) -> list[dict[str, Any]]:
    """First of all: cpupower sets its own governor once more when it is stopped."""
    made: list[dict[str, Any]] = []
    for name, wanted in OWNERS.items():
        known = host.facts.get(f"services.{name}") or {}
        if known.get("active") == "active" or known.get("enabled") in ("enabled", "enabled-runtime", "generated"):
            # a script of System V's has no unit file that could be disabled
            enabled = "masked" if known.get("enabled") == "generated" else wanted
            made.append({"change": "unit", "unit": f"{name}.service", "enabled": enabled, "active": "stopped"})
            host.note(
                f"{name}.service sets CPU frequencies too: it is stopped and {enabled}, nodetune-cpu.service takes over."
            )
    return made
