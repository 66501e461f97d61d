"""CUDA MPS: nodetune-mps.service runs the control daemon, and nodetune-gpu.service keeps the GPUs in exclusive process mode.

The value says as which user and where: {"user": "root", "pipe_directory": "/tmp/nvidia-mps"}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.api.remedies import gpu as gpu_remedy
from nodetune.remediation.builders import gpu
from nodetune.remediation.builders._own import named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

UNIT = "nodetune-mps.service"
FILE = f"/etc/systemd/system/{UNIT}"
NEEDS = (*gpu.NEEDS, "services.nodetune-mps", "mps.daemons", "gpu.mig_mode")
DEFAULTS = {"user": "root", "pipe_directory": "/tmp/nvidia-mps", "log_directory": "/var/log/nvidia-mps"}  # noqa: S108
USER, PATH = r"[a-z_][\w-]{0,31}", r"/[\w.+-]+(/[\w.+-]+)+"
SHAPES = {"user": USER, "pipe_directory": PATH, "log_directory": PATH}


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    if len(fixes) > 1:
        raise UnfixableError("two checks want different MPS settings: keep one of them")
    wanted = _wanted(fixes[0].value)
    _refuse_others(host)
    file = gpu_remedy("compute_mode").file
    exclusive = Fix("gpu", "compute_mode", "exclusive_process", disruption="idle GPU", file=file)
    return [
        *gpu.changes([exclusive], host),
        own_file(host, FILE, "mps.service.j2", wanted, _allowed),
        {"change": "run", "run": "daemon-reload"},
        {"change": "unit", "unit": UNIT, "enabled": "enabled", "active": "started", "checks": host.checks(fixes[0])},
        {"change": "run", "run": f"restart {UNIT}"},
    ]


def _wanted(value: Any) -> dict[str, str]:
    """Return who runs the daemon and its folders. Raise UnfixableError for what cannot be written safely."""
    if not isinstance(value, Mapping) or not set(value) <= set(DEFAULTS):
        raise UnfixableError(f"MPS accepts {', '.join(DEFAULTS)}, not {value!r}: fix `set` in the site file")
    wanted = DEFAULTS | {name: str(each) for name, each in value.items()}
    return {name: named(text, name, SHAPES[name]) for name, text in wanted.items()}


def _refuse_others(host: HostView) -> None:
    """Raise UnfixableError if another daemon runs or a GPU is divided: MPS needs exclusive GPUs."""
    others = [each for each in host.get("mps.daemons") or [] if each["unit"] != UNIT]
    if others:
        pids = ", ".join(str(each["pid"]) for each in others)
        raise UnfixableError(
            f"an MPS daemon that is not nodetune's runs (process {pids}): echo quit | nvidia-cuda-mps-control with "
            "its CUDA_MPS_PIPE_DIRECTORY, remove it from what starts it, then plan again"
        )
    divided = [name for name, mode in (host.readable("gpu.mig_mode") or {}).items() if mode == "enabled"]
    if divided:
        raise UnfixableError(f"MIG is on ({', '.join(divided)}): exclusive process mode cannot be combined with MIG")


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    return len(keys) == 1 and keys[0] in SHAPES and plain_line(value, SHAPES[keys[0]])
