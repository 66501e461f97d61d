"""ansible-runner's events → what happened on which host. Hostile: a host decides what most of an event says. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.remediation.ansible.errors import telling

MAX_MESSAGES = 40
MAX_KEPT = 64 << 20
"""Bytes of all results of one host, roughly. A host with eight GPUs has a twentieth of that to say."""

DEEPEST = 50
REPORTED = ("problems", "done", "refused")
"""Members of a result that hold objects with a `label`, a `message` and `checks`."""

OURS = ("invocation", "ansible_loop_var", "ansible_index_var", "results", "ansible_facts", "warnings", "deprecations")
"""Members of a result that Ansible adds, and that repeat what is known."""

FOR_PEOPLE = ("problems", "refused", "diff", "done", "waits", "busy", "msg", "interrupted")
"""Members of a result that are shown or recorded as texts; others are read by programs."""

WITHHELD = {"withheld": "it contains a password"}
"""Stands for a journal entry that is not recorded; the host has it."""

_STATUS = {"ok": "ok", "failed": "failed", "unreachable": "unreachable", "skipped": "skipped", "start": "started"}


@dataclass(frozen=True)
class Event:
    """One thing that happened: `status` is started, ok, failed, unreachable or skipped.

    `item` is the label of a loop's item, or empty; `result` is what the module returned for it: data from the host.
    """

    host: str
    task: str
    item: str = ""
    status: str = "ok"
    changed: bool = False
    seconds: float = 0.0
    message: str = ""
    result: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Outcome:
    """The result of a play on one host: `state` is ok, failed, unreachable or interrupted; `message` is one line.

    `results` are the events that carry a module's result, in order.
    """

    host: str
    state: str = "ok"
    message: str = ""
    results: tuple[Event, ...] = ()

    def gathered(self, member: str) -> list[dict[str, Any]]:
        """Return what the modules returned under a name (entries, diff, problems, done), in order, only objects."""
        found = [each for event in self.results for each in objects(event.result.get(member))]
        return [_reported(each) for each in found] if member in REPORTED else found

    def followed_by(self, later: Outcome) -> Outcome:
        """Join it with a later play on the host: the first that failed gives the state."""
        return replace(later if self.state == "ok" else self, results=(*self.results, *later.results))


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list that a host sent, or the one that it sent instead of a list."""
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, dict)]


def _reported(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a host reports with texts where texts are expected."""
    texts = {name: str(result.get(name) or "") for name in ("label", "message")}
    checks = result.get("checks")
    return {**result, **texts, "checks": [str(each) for each in checks] if isinstance(checks, list) else []}


class Reader:
    """Takes the events of one play, in order."""

    def __init__(
        self, names: Mapping[str, str], secrets: Sequence[str] = (), login_command: Mapping[str, str] | None = None
    ) -> None:
        self._names = names
        self._login_command = login_command or {}
        self._secrets = secrets
        self._results: dict[str, list[Event]] = {alias: [] for alias in names}
        self._last: dict[str, Event] = {}
        self._trouble: dict[str, Event] = {}
        self._refused: dict[str, str] = {}
        self._kept: dict[str, int] = dict.fromkeys(names, 0)
        self._stats: Mapping[str, Any] | None = None
        self._said: list[str] = []

    def read(self, raw: Mapping[str, Any]) -> Event | None:
        """Return the event if it belongs to a host; remember everything for `outcomes`."""
        kind, about = str(raw.get("event", "")), raw.get("event_data")
        about = about if isinstance(about, dict) else {}
        if kind == "playbook_on_stats":
            self._stats = about
        alias = about.get("host")
        found = re.fullmatch(r"runner_(item_)?on_(\w+)", kind)
        if found is None or found[2] not in _STATUS or alias not in self._names:
            self._hear(raw)
            return None
        event = self._event(str(alias), _STATUS[found[2]], about)
        return self._keep(str(alias), event, bool(about.get("ignore_errors")))

    def _hear(self, raw: Mapping[str, Any]) -> None:
        """Keep Ansible's other output: it explains an early end."""
        lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", str(raw.get("stdout", ""))).splitlines()
        self._said += [line.strip() for line in lines if line.strip(" *\r")]
        del self._said[:-MAX_MESSAGES]

    def _event(self, alias: str, status: str, about: Mapping[str, Any]) -> Event:
        result = about.get("res")
        result = result if isinstance(result, dict) else {}
        label = result.get("_ansible_item_label", "")
        login_command = self._login_command.get(alias, "") if status == "unreachable" else ""
        message = telling(result, login_command) if status in ("failed", "unreachable") else ""
        refused = self._refuse(alias, result)
        if refused:
            status, message, result = "failed", refused, {}
        return Event(
            host=self._names[alias],
            task=plain_text.plain(about.get("task") or "", 100),
            item=self.shown(label if isinstance(label, str) else "", 100),
            status=status,
            changed=result.get("changed") is True,
            seconds=_seconds(about.get("duration")),
            message=self.shown(message),
            result=self._without_secrets(_own(result)),
        )

    def _refuse(self, alias: str, result: Mapping[str, Any]) -> str:
        """Return why nothing more is taken from a host: one result that is too deep, or all of them that are too much."""
        weight = _weight(result)
        self._kept[alias] += weight or 0
        if weight is None:
            self._refused.setdefault(alias, "its answer is nested too deeply")
        elif self._kept[alias] > MAX_KEPT:
            why = f"too much output: its answers exceed {plain_text.size(MAX_KEPT)}"
            self._refused.setdefault(alias, why)
        return self._refused.get(alias, "")

    def _keep(self, alias: str, event: Event, ignored: bool) -> Event:
        self._last[alias] = event
        earlier = self._trouble.get(alias)
        # a loop's end says less than its item
        told = earlier is not None and earlier.item and earlier.task == event.task
        if event.status in ("failed", "unreachable") and not ignored and not told:
            self._trouble[alias] = event
        if event.result and event.status != "started":
            self._results[alias].append(event)
        return event

    def shown(self, text: str, longest: int = 400) -> str:
        """Make text safe to show and to save: one line, bounded, without known passwords."""
        for secret in self._secrets:
            text = text.replace(secret, "(password)")
        return plain_text.plain(plain_text.without_logins(" ".join(text.split())), longest)

    def _without_secrets(self, result: dict[str, Any]) -> dict[str, Any]:
        """Take known passwords, and those of URLs, out of a result.

        An entry that a rollback may write back is left out if it has a known one, never altered.
        """
        cleaned = {name: self._cleaned(result[name]) for name in FOR_PEOPLE if name in result}
        if "entries" in result and self._secrets:
            cleaned["entries"] = [WITHHELD if self._tells(each) else each for each in objects(result["entries"])]
        return {**result, **cleaned}

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: each if name == "checks" else self._cleaned(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._cleaned(each) for each in value]
        for secret in self._secrets if isinstance(value, str) else ():
            value = value.replace(secret, "(password)")
        return plain_text.without_logins(value) if isinstance(value, str) else value

    def _tells(self, entry: Any) -> bool:
        text = json.dumps(entry, ensure_ascii=False)
        return any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in self._secrets)

    def ending(self) -> str:
        """Return Ansible's last message, for a play that ended early."""
        errors = [line for line in self._said if re.match(r"\[?ERROR\b", line)]
        told = [*errors, *reversed(self._said), "without a message"][0]
        return self.shown(re.sub(r"^\[?ERROR\]?!?:? *", "", told), 300)

    def outcomes(self, stopped: str = "") -> dict[str, Outcome]:
        """Return the outcome of each host; `stopped` says why the play was stopped from outside, if it was."""
        return {name: self._outcome(alias, name, stopped) for alias, name in self._names.items()}

    def _outcome(self, alias: str, name: str, stopped: str) -> Outcome:
        state, message = self._state(alias, stopped)
        return Outcome(name, state, message, tuple(self._results[alias]))

    def _state(self, alias: str, stopped: str) -> tuple[str, str]:
        trouble = self._trouble.get(alias)
        if self._stats is None:
            if trouble is not None:
                return trouble.status, trouble.message
            return "interrupted", f"{stopped or f'Ansible ended early: {self.ending()}'}{self._where(alias)}"
        if _counted(self._stats, "dark", alias):
            return "unreachable", trouble.message if trouble else "the connection was lost"
        if alias in self._refused:
            return "failed", self._refused[alias]
        if _counted(self._stats, "failures", alias):
            return "failed", trouble.message if trouble else "a task failed"
        if not _counted(self._stats, "processed", alias):
            return "interrupted", stopped or "the play ended before this host"
        return "ok", ""

    def _where(self, alias: str) -> str:
        last = self._last.get(alias)
        if last is None:
            return " (nothing was done on the host)"
        return f" ({'during' if last.status == 'started' else 'after'}: {last.task}{f', {last.item}' if last.item else ''})"


def _counted(stats: Mapping[str, Any], what: str, alias: str) -> bool:
    hosts = stats.get(what)
    return isinstance(hosts, dict) and bool(hosts.get(alias))


def _weight(value: Any) -> int | None:
    """Return roughly the bytes that JSON data takes in memory; None where it is nested deeper than DEEPEST."""
    weight, level = 0, [value]
    for _ in range(DEEPEST):
        weight += sum(len(each) if isinstance(each, str) else _EACH for each in level)
        level = [part for each in level if isinstance(each, dict | list) for part in _parts(each)]
    return None if level else weight


_EACH = 64


def _parts(data: Any) -> Any:
    return (part for pair in data.items() for part in pair) if isinstance(data, dict) else data


def _seconds(duration: Any) -> float:
    return round(float(duration), 3) if isinstance(duration, int | float) else 0.0


def _own(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the module itself returned."""
    dropped = {*OURS, *(str(result.get(name)) for name in ("ansible_loop_var", "ansible_index_var"))}
    return {name: each for name, each in result.items() if not name.startswith("_ansible") and name not in dropped}
