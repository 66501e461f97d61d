"""Settings of GPUs: through NVML now, and by nodetune-gpu.service at boot. The GPU itself persists ECC.

Persistence mode belongs to nvidia-persistenced where that is installed: it is enabled and started, and a drop-in takes
--no-persistence-mode from its command line. The running daemon is not restarted, which would let go of idle GPUs for a
moment: NVML passes the mode to it now, and the drop-in counts from the next boot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.foundation import paths
from nodetune.remediation.builders import _boot, _gpu_models
from nodetune.remediation.builders._own import named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = (
    *_boot.NEEDS,
    *_gpu_models.NEEDS,
    "services.nodetune-gpu",
    "services.nvidia-persistenced",
    "gpu.uuid",
)

ORDER = (
    "persistence_mode",
    "ecc_mode",
    "mig_mode",
    "mig_devices",
    "compute_mode",
    "accounting_mode",
    "power_limit",
    "applications_clocks",
    "locked_clocks",
    "locked_memory_clocks",
)
ONHOST = tuple(f"onhost/{name}" for name in ("__init__", "files", "nvml", "worker"))
MODULES = ("resources/gpu", "clocks", "mig", "nvml", "settings", *ONHOST)
PROFILE = re.compile(r"(\d+c\.)?\d+g\.\d+gb([+-]\w+(\.\w+)?)?")

DAEMON = "nvidia-persistenced"
DROP_IN = f"/etc/systemd/system/{DAEMON}.service.d/zz-nodetune-persistence.conf"
OFF, ON = "--no-persistence-mode", "--persistence-mode"
COMMAND = re.compile(r"/[\w ./:=-]+")
"""A command line without anything that systemd would read in a way of its own."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    at_boot: dict[str, dict[str, Any]] = {}
    now: list[dict[str, Any]] = []
    checks: list[str] = []
    for fix in sorted(fixes, key=lambda fix: _place(fix.target)):
        gpus = _gpus(fix, host)
        if fix.target == "persistence_mode" and _daemon(host):
            now += [change | {"checks": host.checks(fix)} for change in _by_daemon(host)]
        elif fix.target != "ecc_mode":
            checks += host.checks(fix)
        for value, same in _gpu_models.values(fix, gpus, host) or [(_value(fix), gpus)]:
            if fix.target != "ecc_mode" and not (fix.target == "persistence_mode" and _daemon(host)):
                _keep(at_boot, fix.target, same, value)
            now.append(
                {"change": "gpu", "setting": fix.target, "gpus": same, "value": value, "checks": host.checks(fix)}
            )
    return [*now, *(change | {"checks": checks} for change in _boot_changes(at_boot, host))]


def _place(setting: str) -> int:
    if setting not in ORDER:
        raise UnfixableError(f"nodetune cannot set {setting} of GPUs, only {', '.join(ORDER)}")
    return ORDER.index(setting)


def _gpus(fix: Fix, host: HostView) -> list[int]:
    """Return GPU numbers as NVML counts. Persistence is for all: a GPU set manually loses it at the next boot."""
    every = list(host.readable("gpu.uuid") or {})
    names = every if every and (fix.target == "persistence_mode" or not fix.subjects) else fix.subjects
    if not names:
        raise UnfixableError("the list of GPUs could not be read: audit again with the driver loaded")
    return sorted({int(named(name, "GPU", r"GPU\d{1,4}").removeprefix("GPU")) for name in names})


def _value(fix: Fix) -> Any:
    """Return the value as JSON that is merged as a whole: a layout as a list of pairs."""
    if fix.target != "mig_devices":
        good = isinstance(fix.value, str | int) or _two_clocks(fix.value)
        if not good or isinstance(fix.value, bool):
            raise UnfixableError(f"{fix.target} cannot be {fix.value!r}: fix the site file")
        return fix.value
    if not isinstance(fix.value, dict) or not all(_of_profile(*pair) for pair in fix.value.items()):
        raise UnfixableError(f"{fix.value!r} is not a valid MIG layout: write it like {{1g.18gb: 7}}")
    return [[name, count] for name, count in sorted(fix.value.items())]


def _two_clocks(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(type(each) is int for each in value)


def _of_profile(name: Any, count: Any) -> bool:
    return isinstance(name, str) and bool(PROFILE.fullmatch(name)) and type(count) is int and count >= 0


def _keep(at_boot: dict[str, dict[str, Any]], setting: str, gpus: list[int], value: Any) -> None:
    """Add to what is set at boot. A GPU's MIG mode and its layout do not contradict each other there."""
    layout = setting == "mig_devices"
    at_boot.setdefault(setting, {}).update({str(gpu): value or None for gpu in gpus})
    if layout and value:
        at_boot.setdefault("mig_mode", {}).update({str(gpu): "enabled" for gpu in gpus})
    if setting == "mig_mode" and value == "disabled":
        at_boot.setdefault("mig_devices", {}).update({str(gpu): None for gpu in gpus})


def _boot_changes(at_boot: dict[str, dict[str, Any]], host: HostView) -> list[dict[str, Any]]:
    if not at_boot:
        return []
    return [
        _boot.settings(host, "gpu", at_boot, _allowed),
        *_boot.changes("gpu", MODULES, {"pynvml.py": paths.source_of("pynvml", "nvidia-ml-py")}, late=True),
    ]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    if value == {}:
        return len(keys) == 1 and keys[0] in ORDER
    if len(keys) != 2 or keys[0] not in ORDER or not plain_line(keys[1], r"\d{1,4}"):
        return False
    if keys[0] == "mig_devices":
        return isinstance(value, list) and all(
            isinstance(pair, list) and len(pair) == 2 and _of_profile(*pair) for pair in value
        )
    return type(value) is int or plain_line(value, r"\w+") or _two_clocks(value)


# --- nvidia-persistenced


def _daemon(host: HostView) -> dict[str, Any]:
    """Return what is known of the unit; empty if it is not installed or masked."""
    found: dict[str, Any] = host.get(f"services.{DAEMON}") or {}
    return {} if found.get("enabled") in ("masked", "masked-runtime") else found


def _by_daemon(host: HostView) -> list[dict[str, Any]]:
    unit = _daemon(host)
    enabled = "enabled" if unit.get("enabled") in ("enabled", "disabled", "") else None
    start = {"change": "unit", "unit": f"{DAEMON}.service", "enabled": enabled, "active": "started"}
    words = unit.get("exec", "").split()
    if OFF not in words:
        return [start]
    command = " ".join(ON if word == OFF else word for word in words)
    if not COMMAND.fullmatch(command):
        raise UnfixableError(f"the command line of {DAEMON}.service is not plain: remove {OFF} manually")
    host.note(f"{DAEMON} runs with {OFF}: a drop-in changes this from its next start on.")
    return [own_file(host, DROP_IN, "gpu-persistenced.conf.j2", {"ExecStart": command}, _command), start]


def _command(keys: tuple[str, ...], value: Any) -> bool:
    return keys == ("ExecStart",) and isinstance(value, str) and bool(COMMAND.fullmatch(value))
