"""Two audit documents (schema nodetune.audit/1), finding by finding. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodetune.api.model import SEVERITIES
from nodetune.audit.document import WORDS
from nodetune.facts.diff import CHANGED, GONE, NEW, OFF, UNREAD, WAIVED, Change, Diff
from nodetune.foundation import text
from nodetune.foundation.json_document import DocumentError


def checked(data: Any, where: str) -> Mapping[str, Any]:
    """Return the data if it is an audit document with everything to compare. Raise DocumentError if not."""
    hosts = data.get("hosts") if isinstance(data, dict) else None
    good: set[int] = set()
    if not isinstance(hosts, list) or not all(_is_host(host, good) for host in hosts):
        raise DocumentError(f"{where}: not a complete audit document: write one with nodetune audit --format json")
    found: Mapping[str, Any] = data
    return found


def _is_host(host: Any, good: set[int]) -> bool:
    """Return whether this is a valid host. `good` collects findings that are valid, because hosts share them."""
    named = isinstance(host, dict) and all(isinstance(host.get(each), str) for each in ("name", "state"))
    findings = host.get("findings") if named else None
    if not isinstance(findings, list) or not all(id(each) in good or _is_finding(each) for each in findings):
        return False
    good.update(map(id, findings))
    return True


def _is_finding(found: Any) -> bool:
    texts = isinstance(found, dict) and all(isinstance(found.get(each), str) for each in WORDS)
    return bool(texts and found["severity"] in SEVERITIES and isinstance(found.get("subjects"), dict))


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Diff:
    """Return the findings that are new, gone or changed, host by host.

    A host that was unreachable on a side has no findings there: it is named with its states and not compared.
    """
    old, new = ({host["name"]: host for host in document["hosts"]} for document in (before, after))
    both = [(old[name], new[name]) for name in sorted(old.keys() & new.keys())]
    states = {now["name"]: (then["state"], now["state"]) for then, now in both}
    reached = [(then, now) for then, now in both if states[now["name"]] == ("ok", "ok")]
    changes = [change for then, now in reached for change in _findings(then, now)]
    return Diff(
        "audits",
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(new.keys() - old.keys())),
        {name: each for name, each in states.items() if each != ("ok", "ok")},
        tuple(sorted(changes, key=lambda each: -SEVERITIES.index(each.severity))),
        len(reached),
    )


def _findings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = ({each["check"]: each for each in host["findings"]} for host in (before, after))
    for check in [*new, *(each for each in old if each not in new)]:
        then, now = old.get(check), new.get(check)
        kind = _kind(then, now, off=check in after.get("off", ()))
        if kind:
            shown = now if now and now["status"] == "fail" else then or now or {}
            told = (_finding(check, then, before), _finding(check, now, after))
            words = (text.plain(check), "", *told, shown["severity"], shown["title"])
            yield Change(text.plain(after["name"]), kind, *words)


def _kind(then: Mapping[str, Any] | None, now: Mapping[str, Any] | None, *, off: bool) -> str:
    """Return what happened to a finding, or "" if nothing. Only failures and unknowns on a side count."""
    if then is now:
        return ""
    was, becomes = (each["status"] if each else "" for each in (then, now))
    if was == becomes:
        same = ("fail", "severity"), ("fail", "observed"), ("fail", "wanted"), ("fail", "subjects")
        return CHANGED if then and now and any(was == status and then[key] != now[key] for status, key in same) else ""
    if becomes == "fail":
        return NEW
    if was == "fail" and not becomes:
        return OFF if off else UNREAD
    if becomes == "unknown":
        return UNREAD
    if was != "fail":
        return ""
    return WAIVED if becomes == "waived" else GONE


def _finding(check: str, found: Mapping[str, Any] | None, host: Mapping[str, Any]) -> str:
    if found is None:
        return "switched off by the site file" if check in host.get("off", ()) else "not judged"
    if found["status"] == "fail":
        return text.plain(found["observed"] or "fails")
    words = {"pass": "passes", "skip": "does not apply", "waived": "waived", "unknown": "unknown"}
    told = words.get(found["status"], found["status"])
    return text.plain(f"{told}: {found['reason']}" if found["status"] in ("unknown", "waived") else told)
