"""The audit that came before: read from its JSON document or its HTML page, and held against a host of today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune import factfile, show
from nodetune.located import BadFile
from nodetune.model import HostResult
from nodetune.report import audit_file

LARGEST = 2 << 30
DATA = re.compile(rb'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Change:
    """Of one host: checks that fail now and did not, those that failed and do not any more with what they are now."""

    new: tuple[str, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    added: bool = False


@dataclass(frozen=True)
class Before:
    """`hosts`: for each host that was audited, the checks that were judged and, of these, those that failed."""

    time: int
    hosts: Mapping[str, tuple[frozenset[str], frozenset[str]]]

    def change(self, result: HostResult) -> Change:
        """What is not known now, or was not judged then, is no change."""
        if result.state != "ok":
            return Change()
        was = self.hosts.get(show.plain(result.host))
        if was is None:
            return Change(added=True)
        judged, failed = was
        new = (each.check for each in result.failing() if each.check in judged and each.check not in failed)
        gone = (
            (each.check, each.status)
            for each in result.findings
            if each.check in failed and each.status not in ("fail", "unknown")
        )
        return Change(tuple(new), tuple(gone))


def read(path: Path) -> Before:
    """The audit in a file. Raises located.BadFile."""
    try:
        by_hosts = audit_file.read(path, {}) if path.is_file() else None  # a pipe can be read but once
        if not by_hosts and path.stat().st_size > LARGEST:
            raise BadFile(f"{path}: larger than {show.size(LARGEST)}: compare with the HTML page of that audit instead")
        content = b"" if by_hosts else path.read_bytes()
    except OSError as problem:
        raise BadFile(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    page = DATA.search(content)
    try:
        data = by_hosts or factfile.parse(page[1] if page else content, str(path))
        return _of_page(data) if page else _of_audit(data)
    except factfile.BadFacts as problem:
        raise BadFile(str(problem)) from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise BadFile(f"{path}: neither an audit (--format json) nor the HTML page of one") from None


def _of_audit(data: Any) -> Before:
    if data["schema"] != "nodetune.audit/1":
        raise ValueError
    alike: dict[frozenset[str], frozenset[str]] = {}  # most hosts were judged by the same checks: held once
    hosts = {}
    for host in data["hosts"]:
        if host["state"] == "ok":
            judged = _checks(host)
            hosts[show.plain(host["name"])] = alike.setdefault(judged, judged), _checks(host, "fail")
    return Before(int(data["time"]), hosts)


def _checks(host: Mapping[str, Any], only: str = "") -> frozenset[str]:
    """The checks of a host that came to a verdict; of these, if wanted, only those with that one."""
    return frozenset(
        str(found["check"])
        for found in host["findings"]
        if found["status"] != "unknown" and (not only or found["status"] == only)
    )


def _of_page(data: Any) -> Before:
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
    return Before(int(data["time"]), hosts)
