"""Lines of /etc/nccl.conf: comments and the lines of others stay. Programs read it when they start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.fixes import Host
from nodetune.fixes._own import named, text_of
from nodetune.model import Fix

PATH = "/etc/nccl.conf"


def changes(fixes: Sequence[Fix], host: Host) -> list[dict[str, Any]]:
    return [
        {
            "change": "edit",
            "path": PATH,
            "how": "assignments",
            "with": {"values": {named(fix.target, "NCCL variable", r"[A-Z]\w*"): text_of(fix.value)}},
            "checks": host.checks(fix),
        }
        for fix in fixes
    ]
