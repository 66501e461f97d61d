"""Notices in the form of a receiver: JSON, a message of Slack, alerts of Alertmanager. Pure."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from nodetune.foundation import json_document, text
from nodetune.report.notify.verdicts import FAIL, LOST, PASS, UNKNOWN, Notice, Verdict

SCHEMA = "nodetune.notice/1"
MOST_LINES = 30
LASTS = timedelta(days=8)
"""How long an alert lasts without another audit: a weekly one keeps it."""

ALERTS = {FAIL: "NodetuneCheckFails", UNKNOWN: "NodetuneCheckUnknown", LOST: "NodetuneHostNotReached"}

Form = Callable[[Sequence[Notice], Mapping[str, Verdict], datetime], Any]


def as_json(notices: Sequence[Notice], now: Mapping[str, Verdict], at: datetime) -> Any:  # noqa: ARG001  (see Form)
    told = [{"host": each.host, **_data(each.now), "before": _data(each.before)} for each in notices]
    return {**json_document.head(SCHEMA), "time": int(at.timestamp()), "notices": told} if told else None


def _data(verdict: Verdict) -> dict[str, Any]:
    named = [{"check": check, "severity": severity} for check, severity in verdict.checks]
    return {"verdict": verdict.state, "checks": named}


def as_slack(notices: Sequence[Notice], now: Mapping[str, Verdict], at: datetime) -> Any:  # noqa: ARG001
    lines = [f"*{_plain(each.host)}*: {_words(each.now)} (before: {each.before.state})" for each in notices]
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"and {text.count(more, 'more host')}"] if more > 0 else [])]
    return {"text": "nodetune: " + "\n".join(shown)} if lines else None


def _words(verdict: Verdict) -> str:
    named = ", ".join(f"{check} ({severity})" for check, severity in verdict.checks[:5])
    return f"{verdict.state}: {named}{', …' * (len(verdict.checks) > 5)}" if named else verdict.state


def _plain(name: str) -> str:
    return html.escape(text.plain(name), quote=False)


def as_alerts(notices: Sequence[Notice], now: Mapping[str, Verdict], at: datetime) -> Any:
    """Return every alert, because Alertmanager forgets, and the end of each that is over."""
    lasting = {alert: at + LASTS for host, verdict in now.items() for alert in _alerts(host, verdict)}
    ended = {alert: at for each in notices for alert in _alerts(each.host, each.before)}
    alerts = [_alert(dict(alert), until) for alert, until in {**ended, **lasting}.items()]
    return alerts or None


def _alerts(host: str, verdict: Verdict) -> list[tuple[tuple[str, str], ...]]:
    """Return the labels of the alerts of a verdict."""
    if verdict.state == PASS:
        return []
    named = (("alertname", ALERTS[verdict.state]), ("instance", host))
    return [(*named, ("check", check), ("severity", severity)) for check, severity in verdict.checks] or [named]


def _alert(labels: dict[str, str], until: datetime) -> dict[str, Any]:
    said = f"{labels['check']}: nodetune explain {labels['check']}" if "check" in labels else "no audit of this host"
    return {"labels": labels, "annotations": {"summary": f"{labels['instance']}: {said}"}, "endsAt": until.isoformat()}


FORMS: Mapping[str, Form] = {"": as_json, "slack": as_slack, "alertmanager": as_alerts}


def clock() -> datetime:
    return datetime.now(timezone.utc)
