"""Packages that unattended-upgrades leaves alone: nodetune's own file in apt.conf.d, which adds to the list of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/apt/apt.conf.d/zz-nodetune"
NEEDS = ("updates.apt",)
SHAPE = r"[a-z0-9][a-z0-9.-]*"
OF_KERNELS = ("linux-modules-nvidia-", "linux-objects-nvidia-", "linux-signatures-nvidia-")
"""Built for one kernel each: left behind, the next kernel has no driver."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    packages = (host.readable("updates.apt") or {}).get("driver_packages", {})
    if not packages:
        raise UnfixableError(
            "not updated by apt: write excludepkgs=nvidia-*,kmod-nvidia*,libnvidia-* into the [base] section of "
            "/etc/dnf/automatic.conf"
        )
    built = [name for name in packages if name.startswith(OF_KERNELS)]
    if built:
        raise UnfixableError(
            f"{built[0]} must come with its kernel, or the next one has no driver: hold the driver and the kernel together "
            "(apt-mark hold), or update both manually"
        )
    made = []
    for fix in fixes:
        kept = {named(name, "package", SHAPE): fix.value for name in fix.subjects}
        made.append(own_file(host, PATH, "apt.conf.j2", kept, _allowed) | {"checks": host.checks(fix)})
    return made


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    return len(keys) == 1 and plain_line(keys[0], SHAPE) and value == "kept"
