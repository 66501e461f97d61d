"""Frequency and idle states of CPUs: written now, and by nodetune-cpu.service at boot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import HostView, UnfixableError, _boot
from nodetune.remediation.builders._own import plain_line

OWNERS = {
    "ondemand": "disabled",
    "cpufrequtils": "disabled",
    "loadcpufreq": "disabled",
    "cpupower": "disabled",
    "power-profiles-daemon": "masked",  # D-Bus starts it on demand, disabled or not
}
"""Services that set the governor or the energy preference themselves: what becomes of them where they are on."""

SERVICES = ("nodetune-cpu", "tuned", "tuned_profile", *OWNERS)
NEEDS = (*_boot.NEEDS, *(f"services.{name}" for name in SERVICES))

ORDER = ("epp", "governor", "boost", "max_perf_pct", "idle_latency_us")
"""As in module_utils: the governor performance refuses every other energy preference, also in a rollback of both."""

KINDS = {"epp": str, "governor": str, "boost": bool, "max_perf_pct": int, "idle_latency_us": int}
WORD = r"[\w-]+"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    _leave_to_tuned(host)
    for fix in fixes:
        _check(fix)
    ordered = sorted(fixes, key=lambda fix: ORDER.index(fix.target))
    return [
        *_hand_over(host),
        *({"change": "cpu", "setting": fix.target, "value": fix.value, "checks": host.checks(fix)} for fix in ordered),
        _boot.settings(host, "cpu", {fix.target: fix.value for fix in ordered}, _allowed),
        *_boot.changes("cpu", ["resources/cpu", "settings"], late=True),
    ]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    return len(keys) == 1 and type(value) is KINDS.get(keys[0]) and (type(value) is not str or plain_line(value, WORD))


def _check(fix: Fix) -> None:
    if fix.target not in KINDS:
        raise UnfixableError(f"nodetune sets no {fix.target} of CPUs: it sets {', '.join(ORDER)}")
    if type(fix.value) is not KINDS[fix.target]:
        raise UnfixableError(f"{fix.target} cannot be {fix.value!r}: fix the site file")


def _leave_to_tuned(host: HostView) -> None:
    """Raise UnfixableError if tuned is active: it writes the same files again at any time."""
    if (host.get("services.tuned") or {}).get("active") == "active":
        profile = (host.readable("services.tuned_profile") or {}).get("name") or "without a profile"
        raise UnfixableError(
            f"tuned (profile {profile}) owns the CPUs' frequency: set it in its profile, "
            "or: systemctl disable --now tuned, then plan again"
        )


def _hand_over(host: HostView) -> list[dict[str, Any]]:
    """Return the changes that come first: cpupower sets its own governor again when it is stopped."""
    made: list[dict[str, Any]] = []
    for name, wanted in OWNERS.items():
        known = host.get(f"services.{name}") or {}
        if known.get("active") == "active" or known.get("enabled") in ("enabled", "enabled-runtime", "generated"):
            # a script of System V's has no unit file that could be disabled
            enabled = "masked" if known.get("enabled") == "generated" else wanted
            made.append({"change": "unit", "unit": f"{name}.service", "enabled": enabled, "active": "stopped"})
            host.note(
                f"{name}.service sets CPU frequencies too: it is stopped and {enabled}, nodetune-cpu.service takes over."
            )
    return made
