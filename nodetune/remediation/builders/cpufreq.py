"""Frequency and idle states of CPUs: written now, and by nodetune-cpu.service at boot; by tuned where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import _boot, _tuned
from nodetune.remediation.builders._own import plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

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
    for fix in fixes:
        _check(fix)
    ordered = sorted(fixes, key=lambda fix: ORDER.index(fix.target))
    now = [{"change": "cpu", "setting": fix.target, "value": fix.value, "checks": host.checks(fix)} for fix in ordered]
    by_tuned = (host.get("services.tuned") or {}).get("active") == "active"
    owner = "tuned" if by_tuned else _boot.unit("cpu")
    if by_tuned:
        return [*_hand_over(host, owner), *now, *_of_tuned(ordered, host)]
    at_boot = _boot.changes("cpu", ["resources/cpu", "settings", *_boot.CPU_LIST], late=True)
    return [*_hand_over(host, owner), *now, _settings(ordered, host), *at_boot]


def _settings(fixes: Sequence[Fix], host: HostView) -> dict[str, Any]:
    return _boot.settings(host, "cpu", {fix.target: fix.value for fix in fixes}, _allowed)


def _of_tuned(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    """Return the changes that have tuned set this, and nodetune-cpu.service as well if it is there. Raise UnfixableError."""
    profile = _tuned.active(host)
    alien = sorted({fix.target for fix in fixes} - set(_tuned.CPU_KEYS))
    if alien or not profile:
        raise UnfixableError(
            f"tuned ({'profile ' + profile['name'] if profile else 'without a profile'}) owns the CPUs' "
            f"frequency{' and has no key for ' + ', '.join(alien) if alien else ''}: activate a tuned profile with "
            "the wanted values, or: systemctl disable --now tuned, then plan again"
        )
    wanted = [(_tuned.of_cpus(profile, fix.target, fix.value), host.checks(fix)) for fix in fixes]
    ours = [_settings(fixes, host)] if host.own(_boot.settings_file("cpu")) else []
    return [*ours, *_tuned.changes(host, wanted)]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    return len(keys) == 1 and type(value) is KINDS.get(keys[0]) and (type(value) is not str or plain_line(value, WORD))


def _check(fix: Fix) -> None:
    if fix.target not in KINDS:
        raise UnfixableError(f"nodetune cannot set {fix.target} of CPUs, only {', '.join(ORDER)}")
    if type(fix.value) is not KINDS[fix.target]:
        raise UnfixableError(f"{fix.target} cannot be {fix.value!r}: fix the site file")


def _hand_over(host: HostView, owner: str) -> list[dict[str, Any]]:
    """Return the changes that come first: cpupower sets its own governor again when it is stopped."""
    made: list[dict[str, Any]] = []
    for name, wanted in OWNERS.items():
        known = host.get(f"services.{name}") or {}
        if known.get("active") == "active" or known.get("enabled") in ("enabled", "enabled-runtime", "generated"):
            # a script of System V's has no unit file that could be disabled
            enabled = "masked" if known.get("enabled") == "generated" else wanted
            made.append({"change": "unit", "unit": f"{name}.service", "enabled": enabled, "active": "stopped"})
            host.note(f"{name}.service also sets CPU frequencies: it is stopped and {enabled}, and {owner} takes over.")
    return made
