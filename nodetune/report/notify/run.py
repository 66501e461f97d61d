"""Tell a receiver which verdicts changed since what it last took. What it did not take is sent with the next run."""

import hashlib
import json
from pathlib import Path

from nodetune.api.conclusion import Examined
from nodetune.foundation import file_io, text
from nodetune.remediation.runs import record
from nodetune.report.notify import forms, verdicts
from nodetune.report.notify.receiver import NotSentError, Receiver

SCHEMA = "nodetune.notified/1"
LARGEST = 1 << 26


def notify(url: str, found: Examined, selected: str, fail_on: str = "medium") -> str:
    """Return why the receiver did not take it; empty if it did, or if nothing changed.

    `selected`: the source, or the options that select checks. Other checks, and another severity, are other verdicts.
    """
    receiver = Receiver.parse(url)
    asked = f"{url} {fail_on} {selected}"
    name = f"notified-{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"
    try:
        path = record.place() / name
        before, now = _read(path), verdicts.verdicts(found, fail_on)
        body = forms.FORMS[receiver.form](verdicts.changes(before, now), now, forms.clock())
        if body is not None:
            receiver.send(body)
        if {**before, **now} != before:
            _keep(path, {**before, **now})
    except NotSentError as problem:
        return f"{receiver.name} was not notified: {problem}; the next run with this --notify sends it again"
    except (OSError, RuntimeError) as problem:  # a home that is read-only, or none
        return f"{receiver.name} may get the same notices again: {text.plain(str(problem))}"
    return ""


def _read(path: Path) -> dict[str, verdicts.HostVerdict]:
    try:
        found = text.json_object(file_io.read(path, LARGEST).decode())
    except (OSError, ValueError):
        return {}
    return verdicts.from_data(found.get("hosts")) if found.get("schema") == SCHEMA else {}


def _keep(path: Path, known: dict[str, verdicts.HostVerdict]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file_io.write(path, json.dumps({"schema": SCHEMA, "hosts": verdicts.to_data(known)}) + "\n")
