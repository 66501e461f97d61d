"""Notices in the form of a receiver: JSON, a message of Slack, alerts of Alertmanager, a log of OpenTelemetry. Pure."""

import html
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import nodetune
from nodetune.api import faults
from nodetune.api.conclusion import UNKNOWN
from nodetune.foundation import json_document, text
from nodetune.report.notify.verdicts import FAIL, LOST, PASS, HostVerdict, Notice

SCHEMA = "nodetune.notice/1"
MAX_LINES = 30
MAX_FAULTS = 5
LASTS = timedelta(days=8)
"""How long an alert lasts without another audit: a weekly one keeps it."""

ALERTS = {FAIL: "NodetuneCheckFails", UNKNOWN: "NodetuneCheckUnknown", LOST: "NodetuneHostNotReached"}

LEVELS = {PASS: ("INFO", 9), FAIL: ("ERROR", 17), UNKNOWN: ("WARN", 13), LOST: ("WARN", 13)}
"""Severities of OpenTelemetry, by name and number."""

Form = Callable[[Sequence[Notice], Mapping[str, HostVerdict], datetime], Any]


def as_json(notices: Sequence[Notice], now: Mapping[str, HostVerdict], at: datetime) -> Any:  # noqa: ARG001  (see Form)
    told = [{"host": each.host, **_data(each.now), "before": _data(each.before)} for each in notices]
    return {**json_document.head(SCHEMA), "time": int(at.timestamp()), "notices": told} if told else None


def _data(verdict: HostVerdict) -> dict[str, Any]:
    named = [{"check": check, "severity": severity, **_devices(verdict, check)} for check, severity in verdict.checks]
    return {"verdict": verdict.state, "checks": named}


def _devices(verdict: HostVerdict, fault: str) -> dict[str, list[str]]:
    return {"devices": list(verdict.devices[fault])} if fault in verdict.devices else {}


def as_slack(notices: Sequence[Notice], now: Mapping[str, HostVerdict], at: datetime) -> Any:  # noqa: ARG001
    lines = [
        f"*{_escaped(text.plain(each.host))}*: {_escaped(_words(each.now))} (before: {each.before.state})"
        for each in notices
    ]
    more = len(lines) - MAX_LINES
    shown = [*lines[:MAX_LINES], *([f"and {text.count(more, 'more host')}"] if more > 0 else [])]
    return {"text": "nodetune: " + "\n".join(shown)} if lines else None


def _words(verdict: HostVerdict) -> str:
    named = ", ".join(f"{check} ({severity}){_on(verdict, check)}" for check, severity in verdict.checks[:MAX_FAULTS])
    return f"{verdict.state}: {named}{', …' * (len(verdict.checks) > MAX_FAULTS)}" if named else verdict.state


def _on(verdict: HostVerdict, fault: str) -> str:
    return f" on {text.names(verdict.devices[fault])}" if fault in verdict.devices else ""


def _escaped(words: str) -> str:
    return html.escape(words, quote=False)


def as_alerts(notices: Sequence[Notice], now: Mapping[str, HostVerdict], at: datetime) -> Any:
    """Return every alert, because Alertmanager forgets, and the end of each that is over."""
    lasting = {alert: at + LASTS for host, verdict in now.items() for alert in _alerts(host, verdict)}
    ended = {alert: at for each in notices for alert in _alerts(each.host, each.before)}
    alerts = [_alert(dict(alert), until, now) for alert, until in {**ended, **lasting}.items()]
    return alerts or None


def _alerts(host: str, verdict: HostVerdict) -> list[tuple[tuple[str, str], ...]]:
    """Return the labels of the alerts of a verdict."""
    if verdict.state == PASS:
        return []
    named = (("alertname", ALERTS[verdict.state]), ("instance", host))
    return [(*named, ("check", check), ("severity", severity)) for check, severity in verdict.checks] or [named]


def _alert(labels: dict[str, str], until: datetime, now: Mapping[str, HostVerdict]) -> dict[str, Any]:
    host, check = labels["instance"], labels.get("check", "")
    on = _on(now.get(host, HostVerdict()), check)
    then = f"status {host}" if faults.of(check) else f"explain {check}"
    said = f"{check}{on}: nodetune {then}" if check else "no audit of this host"
    return {"labels": labels, "annotations": {"summary": f"{host}: {said}"}, "endsAt": until.isoformat()}


def as_otlp(notices: Sequence[Notice], now: Mapping[str, HostVerdict], at: datetime) -> Any:  # noqa: ARG001  (see Form)
    """Return one record of a log for each host, as OTLP has it in JSON."""
    scope = {"name": "nodetune", "version": nodetune.__version__}
    records = [_record(each, f"{int(at.timestamp())}000000000") for each in notices]
    about = _attributes({"service.name": "nodetune", "service.version": nodetune.__version__})
    logs = {"resource": {"attributes": about}, "scopeLogs": [{"scope": scope, "logRecords": records}]}
    return {"resourceLogs": [logs]} if records else None


def _record(notice: Notice, nanoseconds: str) -> dict[str, Any]:
    name, number = LEVELS[notice.now.state]
    told = {"host.name": notice.host, "nodetune.verdict": notice.now.state, "nodetune.before": notice.before.state}
    checks = {"nodetune.checks": ", ".join(check for check, _ in notice.now.checks)} if notice.now.checks else {}
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": name,
        "eventName": "nodetune.verdict",
        "body": {"stringValue": f"{notice.host}: {_words(notice.now)} (before: {notice.before.state})"},
        "attributes": _attributes({**told, **checks}),
    }


def _attributes(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]


FORMS: Mapping[str, Form] = {"": as_json, "slack": as_slack, "alertmanager": as_alerts, "otlp": as_otlp}


def clock() -> datetime:
    return datetime.now(timezone.utc)
