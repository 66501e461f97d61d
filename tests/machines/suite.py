"""python -m tests.machines.suite [--all]: run the tests on virtual machines that this tree needs. See docs/testing-fleet.md.

A full pass (--all) is recorded in last-full-pass.json, with a hash of everything in dependencies.yml. While the hashes
are the same, the short story is enough.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml

from tests.machines.place import HERE, FleetError, digest

ROOT = HERE.parents[1]
DEPENDENCIES = HERE / "dependencies.yml"
RECORD = HERE / "last-full-pass.json"
SHORT = HERE / "test_short_story.py"
PROVISIONING = HERE / "test_provision.py"
PYTEST = ("-m", "pytest", "-m", "fleet", "-n", "2", "--dist", "loadgroup", "--durations=15")

Hashes = dict[str, dict[str, str]]
"""Part of dependencies.yml → its line → hash of the files that the line matches."""


@dataclass(frozen=True)
class Choice:
    """Which tests run (arguments for pytest), and why."""

    tests: tuple[str, ...]
    reason: str


def main(words: list[str]) -> int:
    everything = words == ["--all"]
    if words and not everything:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        now = hashes()
        choice = choose(now, read_record(), everything=everything)
        print(f"machines: {choice.reason}", flush=True)
        return _run_all(now) if everything else _pytest(*choice.tests)
    except FleetError as error:
        print(f"machines: {error}", file=sys.stderr)
        return 1


# What the tests depend on


def hashes(root: Path = ROOT, dependencies: Path = DEPENDENCIES) -> Hashes:
    """The hashes of all that the tests depend on. Raises FleetError for a line that matches no file."""
    parts = yaml.safe_load(dependencies.read_text())
    return {part: {line: digest(*_files(root, line)) for line in lines} for part, lines in parts.items()}


def _files(root: Path, line: str) -> list[Path]:
    matched = [below for found in root.glob(line) for below in (found.rglob("*") if found.is_dir() else [found])]
    files = sorted(path for path in matched if path.is_file() and "__pycache__" not in path.parts and path != RECORD)
    if not files:
        where = DEPENDENCIES.relative_to(ROOT)
        raise FleetError(f"{where}: {line} matches no file: was it moved? Correct the line")
    return files


def changed(part: str, now: Hashes, then: Mapping[str, Any]) -> list[str]:
    """The lines of a part whose files are not those of the last full pass."""
    before = then.get("hashes", {}).get(part, {})
    lines = {**before, **now[part]}
    return [line for line in lines if before.get(line) != now[part].get(line)]


# Which tests run


def read_record(path: Path = RECORD) -> dict[str, Any]:
    """The last full pass; empty where there is none that can be read."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def choose(now: Hashes, record: Mapping[str, Any], *, everything: bool = False) -> Choice:
    """The short story where nothing changed since the last full pass, else all tests but the provisioning story."""
    if everything:
        return Choice((), "all tests, the provisioning story included (ALL=1)")
    most = (str(HERE), f"--ignore={PROVISIONING}")
    left_out = "The provisioning story is left out: make machines ALL=1 runs it and records a full pass"
    if not record:
        return Choice(most, f"all tests but one story: {RECORD.name} records no full pass. {left_out}")
    if lines := changed("machines", now, record):
        since = f"changed since the full pass of {record['time']}: {', '.join(lines)}"
        return Choice(most, f"all tests but one story: {since}. {left_out}")
    return Choice((str(SHORT),), f"only the short story: {_unchanged(now, record)}")


def _unchanged(now: Hashes, record: Mapping[str, Any]) -> str:
    reason = f"nothing that the tests depend on changed since the full pass of {record['time']}"
    if lines := changed("provisioning", now, record):
        return f"{reason}, but the provisioning story has not passed with {', '.join(lines)} (make machines ALL=1)"
    return reason


# Running them, and the record


def _run_all(before: Hashes) -> int:
    with tempfile.TemporaryDirectory() as folder:
        report, began = Path(folder) / "junit.xml", time.time()
        if code := _pytest(str(HERE), f"--junitxml={report}"):
            return code
        if hashes() != before:
            raise FleetError(f"files changed while the tests ran: {RECORD.name} stays as it was")
        record = full_pass(before, report.read_text(), began, time.time() - began)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(f"machines: the full pass is recorded in {RECORD.relative_to(ROOT)}: commit it")
    return 0


def full_pass(now: Hashes, report: str, began: float, seconds: float) -> dict[str, Any]:
    """The record of a green run. Raises FleetError where a test was skipped or a file had none."""
    passed: dict[str, dict[str, float]] = {}
    for case in ET.fromstring(report).iter("testcase"):
        if len(case):
            raise FleetError(f"{case.get('name')} did not pass: {case[0].get('message')}: no full pass is recorded")
        file = case.get("classname", "").rpartition(".")[2]
        name = case.get("name", "").removesuffix(f"@{file}")
        passed.setdefault(file, {})[name] = round(float(case.get("time", 0)), 1)
    if without := {path.stem for path in HERE.glob("test_*.py")} - set(passed):
        raise FleetError(f"no test ran of {', '.join(sorted(without))}: no full pass is recorded")
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    return {"time": when, "minutes": round(seconds / 60, 1), "hashes": now, "seconds_per_test": passed}


def _pytest(*words: str) -> int:
    return subprocess.run([sys.executable, *PYTEST, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
