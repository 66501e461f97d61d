"""Swap off now, and kept off: fstab, and the units that would turn it on without fstab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.host_view import HostView

MAKERS = ("zramswap", "zram-config", "swapspace", "dphys-swapfile")
"""Services that make swap of their own."""

NEEDS = ("memory.swaps", *(f"services.{name}" for name in MAKERS))


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:  # noqa: ARG001  (every builder takes both)
    devices = sorted(host.get("memory.swaps") or {})
    units = [unit for device in devices for unit in _units(device)]
    makers = [name for name in MAKERS if host.readable(f"services.{name}")]
    return [
        {"change": "edit", "path": "/etc/fstab", "how": "fstab_no_swap", "with": {}},
        {"change": "swap", "active": False},
        *(_masked(unit) for unit in units),
        *(_masked(f"{name}.service") for name in makers),
        {"change": "run", "run": "daemon-reload"},
    ]


def _masked(unit: str) -> dict[str, Any]:
    return {"change": "unit", "unit": unit, "enabled": "masked", "active": None}


def _units(device: str) -> list[str]:
    """Return the units that systemd's generators make for a device: for swap partitions that they find, and zram."""
    units = [f"{unit_name(device)}.swap"]
    name = device.removeprefix("/dev/")
    return [f"systemd-zram-setup@{name}.service", *units] if name.startswith("zram") else units


def unit_name(path: str) -> str:
    r"""Escape a path as systemd names units: /dev/md-1 → dev-md\x2d1."""
    parts = [part for part in path.split("/") if part]
    return "-".join("".join(_escaped(sign, at) for at, sign in enumerate(part)) for part in parts)


def _escaped(sign: str, at: int) -> str:
    plain = sign.isascii() and (sign.isalnum() or sign in ":_" or (sign == "." and at > 0))
    return sign if plain else "".join(f"\\x{byte:02x}" for byte in sign.encode())
