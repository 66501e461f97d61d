"""The hosts that failed in a saved document: for the options that work on them again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nodetune.audit import document_reader as audit_reader
from nodetune.facts import document
from nodetune.foundation import UserError, file_io, text

LARGEST = 2 << 30
WRITE = "write one with --format json -o FILE"

Data = dict[str, Any]


class FailedError(UserError):
    """A file that does not say which hosts failed; the text is one line: file, what, and what to do."""


def hosts(path: Path) -> frozenset[str]:
    """Return the hosts that were not reached or failed in an audit, an apply or a verify. Raise FailedError, OSError."""
    try:
        data = audit_reader.read(path, {}) or document.parse(file_io.read(path, LARGEST), str(path))
    except document.FactsError:
        raise FailedError(f"{path}: not JSON: {WRITE}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    find = KINDS.get(schema) if isinstance(schema, str) else None
    if find is None:
        kind = f"schema {text.plain(schema, 60)!r}" if schema else "not a nodetune result"
        raise FailedError(f"{path}: {kind}: --failed-of takes an audit, an apply or a verify: {WRITE}")
    return frozenset(name for name in find(data) if isinstance(name, str))


def _of_audit(data: Data) -> Iterator[Any]:
    """Yield hosts with a finding that fails an audit by default."""
    from nodetune.api.model import at_least

    counted = at_least("medium")
    for host in _dicts(data, "hosts"):
        failing = (each for each in _dicts(host, "findings") if each.get("status") == "fail")
        if host.get("state") != "ok" or any(each.get("severity") in counted for each in failing):
            yield host.get("name")


def _of_apply(data: Data) -> Iterator[Any]:
    """Yield hosts with a fix that did not work, was tried with a problem, or that were not resumed."""
    from nodetune.remediation.outcomes import FAILING, FIXED, NOT_APPLIED

    for step in _dicts(data, "steps"):
        outcome = step.get("outcome")
        if outcome in (FAILING, NOT_APPLIED) or (outcome == FIXED and step.get("reason")):
            yield step.get("host")
    yield from (each.get("name") for each in _dicts(data, "not_reached"))
    yield from (each.get("host") for each in _dicts(data, "left_drained"))


def _of_verify(data: Data) -> Iterator[Any]:
    """Yield hosts that were not measured completely, or are below target."""
    from nodetune.verify.model import FAILED, SHORT

    for host in _dicts(data, "hosts"):
        results = [*_dicts(host, "measurements"), *_dicts(host, "findings")]
        if host.get("state") != "ok" or any(each.get("status") in (SHORT, FAILED) for each in results):
            yield host.get("name")


KINDS: dict[str, Callable[[Data], Iterator[Any]]] = {
    "nodetune.audit/1": _of_audit,
    "nodetune.apply/1": _of_apply,
    "nodetune.verify/1": _of_verify,
}


def _dicts(data: Data, name: str) -> list[Data]:
    given = data.get(name)
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
