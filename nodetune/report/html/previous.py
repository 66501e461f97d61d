"""The previous audit, read from its JSON document or HTML page, and what has changed on a host since then."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune.api.model import HostResult
from nodetune.audit import document_reader as audit_reader
from nodetune.facts import document
from nodetune.foundation import text
from nodetune.foundation.yaml_lines import FileError

LARGEST = 2 << 30
DATA = re.compile(rb'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class FindingChange:
    """The changes of one host: checks that began to fail, and those that stopped failing, with their new status."""

    new: tuple[str, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    added: bool = False


@dataclass(frozen=True)
class PreviousAudit:
    """`hosts`: for each audited host, the checks that were judged and those that failed."""

    time: int
    hosts: Mapping[str, tuple[frozenset[str], frozenset[str]]]

    def change(self, result: HostResult) -> FindingChange:
        """Return what changed, except for checks that are unknown now or were not judged then."""
        if result.state != "ok":
            return FindingChange()
        was = self.hosts.get(text.plain(result.host))
        if was is None:
            return FindingChange(added=True)
        judged, failed = was
        new = (each.check for each in result.causes() if each.check in judged and each.check not in failed)
        gone = (
            (each.check, each.status)
            for each in result.findings
            if each.check in failed and each.status not in ("fail", "unknown")
        )
        return FindingChange(tuple(new), tuple(gone))


def read(path: Path) -> PreviousAudit:
    """Read an audit from a file. Raise FileError, FactsError or OSError."""
    by_hosts = audit_reader.read(path, {}) if path.is_file() else None  # a pipe can be read but once
    if not by_hosts and path.stat().st_size > LARGEST:
        raise FileError(f"{path}: larger than {text.size(LARGEST)}: compare with the HTML page of that audit instead")
    content = b"" if by_hosts else path.read_bytes()
    page = DATA.search(content)
    data = by_hosts or document.parse(page[1] if page else content, str(path))
    try:
        return _of_page(data) if page else _of_audit(data)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise FileError(f"{path}: neither an audit (--format json) nor the HTML page of one") from None


def _of_audit(data: Any) -> PreviousAudit:
    if data["schema"] != "nodetune.audit/1":
        raise ValueError
    alike: dict[frozenset[str], frozenset[str]] = {}  # most hosts were judged by the same checks: held once
    hosts = {}
    for host in data["hosts"]:
        if host["state"] == "ok":
            judged = _checks(host)
            hosts[text.plain(host["name"])] = alike.setdefault(judged, judged), _checks(host, "fail")
    return PreviousAudit(text.sound_time(data["time"]), hosts)


def _checks(host: Mapping[str, Any], only: str = "") -> frozenset[str]:
    """Return the checks of a host that have a verdict, optionally only those with a given verdict."""
    return frozenset(
        str(found["check"])
        for found in host["findings"]
        if found["status"] != "unknown"
        and not (only and found.get("part_of"))
        and (not only or found["status"] == only)
    )


def _of_page(data: Any) -> PreviousAudit:
    if data["page"] != 1:
        raise ValueError
    ids = [str(check["id"]) for check in data["checks"]]
    judged = [frozenset(ids[check] for check in each) for each in data["judged"]]
    hosts = {}
    for host in data["hosts"]:
        if data["texts"][host[1]] == "ok":
            told = [data["findings"][number] for number in host[6]]
            unknown = frozenset(ids[found[0]] for found in told if found[1] == 1)
            every = judged[host[4]]
            hosts[str(host[0])] = every - unknown if unknown else every, frozenset(ids[f[0]] for f in told if f[1] == 0)
    return PreviousAudit(text.sound_time(data["time"]), hosts)
