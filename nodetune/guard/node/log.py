"""Messages of the guard: the reason for Slurm, a readable line, and a structured line to syslog or the journal."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nodetune.api.model import Finding
from nodetune.audit import devices
from nodetune.foundation import text as plain_text
from nodetune.guard.node import records

if TYPE_CHECKING:
    from nodetune.api.device import Device
    from nodetune.guard.node.invocation import Job
    from nodetune.guard.node.policy import Policy

MAX_REASON_LENGTH = 200
MAX_TEXT_LENGTH = 300
MAX_LINE_LENGTH = 6000
SYSLOG = "/dev/log"
DAEMON = 3 << 3
PRIORITY = {"fail": 3, "inconclusive": 4, "pass": 6}
"""Of syslog: error, warning, information."""


def reason(blamed: Iterable[Finding], of_host: Sequence[Device]) -> str:
    """Return the faults in one plain line that begins with `nodetune:`. `of_host`: the devices that they name."""
    return _cut("nodetune: " + "; ".join(devices.line(each, of_host) for each in blamed), MAX_REASON_LENGTH)


def unknown(found: Iterable[Finding]) -> str:
    """Return what could not be judged, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for finding in found:
        by_reason.setdefault(finding.reason, []).append(finding.check)
    return _cut("; ".join(f"{', '.join(checks)}: {why}" for why, checks in by_reason.items()), MAX_TEXT_LENGTH)


def _cut(text: str, longest: int) -> str:
    """Cut to one line of plain ASCII: it passes through slurmctld, sinfo and other scripts."""
    plain = plain_text.plain(" ".join(text.split()), 4 * longest).replace(" · ", ", ").replace("…", "...")
    plain = plain.encode("ascii", "replace").decode("ascii")
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."


def as_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as data, with bounded texts."""
    texts = {
        "observed": finding.observed,
        "wanted": finding.wanted,
        "reason": finding.reason,
        "subjects": plain_text.folded(finding.subjects),
    }
    said = {key: plain_text.plain(text, MAX_TEXT_LENGTH) for key, text in texts.items() if text}
    return {"check": finding.check, "status": finding.status, "severity": finding.severity, **said}


def record(
    nonce: str, job: Job, chosen: Policy, blamed: Sequence[Finding], of_host: Sequence[Device]
) -> dict[str, Any]:
    """Return the record of why a job is held, or its node drained.

    The entry script reads the first two members, in this order: see guard-entry.sh.j2.
    """
    return {
        "nonce": nonce,
        "mode": chosen.mode,
        "act": chosen.act,
        "job": job.id,
        "node": job.node,
        "boot": records.boot_id(),
        "time": int(time.time()),
        "reason": reason(blamed, of_host),
        "checks": [finding.check for finding in blamed],
        "findings": [as_data(finding) for finding in blamed],
    }


def log(data: Mapping[str, Any], path: str = SYSLOG) -> None:
    """Send `nodetune-guard: {…}` as one datagram. Never wait and never raise if nobody listens."""
    if not os.path.exists(path):
        return
    import socket

    line = json.dumps(data)
    if len(line) > MAX_LINE_LENGTH:
        line = json.dumps({**data, "findings": [], "peers": [], "unknown": [], "cut": True})
    priority = DAEMON | PRIORITY.get(str(data.get("verdict")), 5)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
            there.setblocking(False)
            there.connect(path)
            there.send(f"<{priority}>nodetune-guard: {line}".encode())
    except OSError:
        pass  # no syslog here, or one that does not keep up; the verdict does not depend on it
