"""Results of the last health check: node-exporter's textfile, and a line and exit code for node-problem-detector.

Run by its path: `python3 -I -S -B …/metrics.py RUN POLICY TEXTFILE` (TEXTFILE empty: no metrics), or `--detector RUN POLICY`.
Reads files under /run and nothing else; imports nothing of nodetune. Exit code: 0 OK, 1 a problem, 2 unknown.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

OK, PROBLEM, UNKNOWN = 0, 1, 2
STALE_SECONDS = 300
"""Five rounds of the timer: what is older says nothing about now."""
MAX_LINE_LENGTH = 80
LARGEST = 1 << 20
VERDICTS = ("pass", "fail", "inconclusive")
OLD = "blind"
"""The old word for inconclusive: metrics have it along with the new one until 0.3.0."""
HELP = {
    "info": ("gauge", "The guard of this node: version, profile, mode and action."),
    "result": ("gauge", "1 for the result of the last health check: pass, fail or inconclusive (old name: blind)."),
    "result_timestamp_seconds": ("gauge", "Time when the last health check ended."),
    "verdict_timestamp_seconds": ("gauge", "Time of the last health check that could judge."),
    "result_duration_seconds": ("gauge", "Duration of the last health check."),
    "failing_check": ("gauge", "1 for each check that failed in the last health check."),
    "run_timestamp_seconds": ("gauge", "Time of the last guard run, for a job or by timer."),
    "inconclusive_runs_total": ("counter", "Runs since boot without a verdict; the jobs ran."),
    f"{OLD}_runs_total": ("counter", "The old name of nodetune_guard_inconclusive_runs_total."),
    "switched_off": ("gauge", "1 if a file disables the guard of this node."),
}
Sample = tuple[str, Mapping[str, str], float]


class GuardFiles:
    """The guard's files on this node; missing parts are empty."""

    def __init__(self, run: str, policy: str, now: float, result: str = "health.json") -> None:
        self.policy = _data(policy)
        found = _data(os.path.join(run, result))
        self.health = found if found.get("verdict") in VERDICTS else {}
        self.judged = _data(os.path.join(run, "verdict.json"))
        self.now = now
        self.off = next((path for path in self.policy.get("off") or () if os.path.lexists(str(path))), "")
        self.inconclusive_runs = _number(_text(os.path.join(run, OLD))) + _files(os.path.join(run, "uncounted"))
        self.last_run = _number(_text(os.path.join(run, "heartbeat")))

    @property
    def age(self) -> float:
        return self.now - _number(self.health.get("time"))


def told(state: GuardFiles) -> tuple[int, str]:
    """Return the exit code and its line."""
    if state.off:
        return UNKNOWN, f"the guard is switched off by {state.off}"
    if not state.policy:
        return UNKNOWN, "the guard has no readable policy: install it again"
    if not state.health:
        return UNKNOWN, "the guard has not checked this node since it booted"
    if not -STALE_SECONDS < state.age < STALE_SECONDS:
        return UNKNOWN, f"the guard last checked {state.age / 60:.0f} minutes ago: is its timer active?"
    reason = str(state.health.get("reason", "")).removeprefix("nodetune: ")
    if state.health["verdict"] == "inconclusive":
        return UNKNOWN, f"inconclusive: {reason}"
    return (OK, "all gating checks pass") if state.health["verdict"] == "pass" else (PROBLEM, reason)


def samples(state: GuardFiles) -> Iterator[Sample]:
    """Yield (name, labels, value), without unknown values."""
    named = {name: str(state.policy.get(name, "")) for name in ("nodetune", "profile", "mode", "act")}
    yield "info", named, 1
    yield "switched_off", {}, bool(state.off)
    for name in ("inconclusive", OLD):
        yield f"{name}_runs_total", {}, state.inconclusive_runs
    if state.last_run:
        yield "run_timestamp_seconds", {}, state.last_run
    if not state.health:
        return
    for verdict in VERDICTS:
        yield "result", {"verdict": verdict}, state.health["verdict"] == verdict
    yield "result", {"verdict": OLD}, state.health["verdict"] == "inconclusive"
    yield "result_timestamp_seconds", {}, _number(state.health.get("time"))
    if judged := _number(state.judged.get("time")):
        yield "verdict_timestamp_seconds", {}, judged
    yield "result_duration_seconds", {}, _number(state.health.get("seconds"))
    for each in state.health.get("findings") or ():
        yield "failing_check", {"check": str(each.get("check")), "severity": str(each.get("severity"))}, 1


def exposition(found: Iterable[Sample]) -> str:
    """Return the samples in the text format of Prometheus."""
    by_name: dict[str, list[str]] = {}
    for name, labels, value in found:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        by_name.setdefault(name, []).append(f"nodetune_guard_{name}{{{inside}}} {float(value):.15g}\n")
    lines = []
    for name, values in by_name.items():
        kind, about = HELP[name]
        lines += [f"# HELP nodetune_guard_{name} {about}\n", f"# TYPE nodetune_guard_{name} {kind}\n", *values]
    return "".join(lines).replace("{}", "")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def write(path: str, text: str) -> None:
    """Write the file atomically; node-exporter reads only names that end in .prom. Raise OSError."""
    new = f"{path}.{os.getpid()}"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(new, path)
    except OSError:
        os.unlink(new)
        raise


def _data(path: str) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: str) -> str:
    try:
        with open(path, "rb") as opened:
            return opened.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _files(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _number(found: Any) -> float:
    """Return a number, or the one that a text begins with, or 0."""
    words = found.split(None, 1) if isinstance(found, str) else [found]
    try:
        return float(words[0]) if words else 0.0
    except (TypeError, ValueError):
        return 0.0


def main(run: str, policy: str, textfile: str) -> int:
    """Write the metrics and print the line."""
    state = GuardFiles(run, policy, time.time())
    code, line = told(state)
    if textfile:
        try:
            write(textfile, exposition(samples(state)))
        except OSError as problem:
            code, line = max(code, UNKNOWN), f"no metrics: {textfile}: {(problem.strerror or str(problem)).lower()}"
    return _print(code, line)


def for_detector(run: str, policy: str) -> int:
    """Print the line for node-problem-detector: never unknown, which some rules take for a problem.

    The last verdict counts until there is another. In observe mode nothing is a problem.
    """
    last = GuardFiles(run, policy, time.time(), "verdict.json")
    code, line = told(GuardFiles(run, policy, time.time()))
    if code == UNKNOWN and last.health.get("verdict") == "fail" and not last.off:
        code, line = PROBLEM, str(last.health.get("reason", "")).removeprefix("nodetune: ")
    if code == PROBLEM and last.policy.get("mode") != "enforce":
        return _print(OK, f"observed only: {line}")
    return _print(PROBLEM if code == PROBLEM else OK, line)


def _print(code: int, line: str) -> int:
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in " ".join(line.split()))
    print(plain if len(plain) <= MAX_LINE_LENGTH else plain[: MAX_LINE_LENGTH - 3] + "...")
    return code


if __name__ == "__main__":
    sys.exit(for_detector(*sys.argv[2:]) if sys.argv[1] == "--detector" else main(*sys.argv[1:]))
