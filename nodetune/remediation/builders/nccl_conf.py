"""Lines of /etc/nccl.conf: comments and the lines of others stay. Programs read it when they start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders import HostView
from nodetune.remediation.builders._own import named, text_of

PATH = "/etc/nccl.conf"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
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
