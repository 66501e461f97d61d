"""Which checks can gate: those that need nothing on a node but the guard's program. Pure."""

from __future__ import annotations

from pathlib import Path

from nodetune.config.profile import Overlay, Profile
from nodetune.foundation import yaml_lines


def require(resolved: Profile, site: Overlay | None) -> None:
    """Raise FileError for a check of a site file that gates but reads nccl.conf, which only the controller does."""
    if site is None:
        return
    for check in resolved.checks:
        if (
            check.area == "site"
            and "nccl.settings" in check.needs
            and check.id in resolved.gates
            and check.accept is not None
        ):
            yaml_lines.load(Path(site.file)).fail(
                f"{check.id} cannot gate: it needs what reads nccl.conf, which the guard's program on a node does not have; "
                "let it not gate (gate: false)",
                "checks",
                check.id,
                "gate",
            )
