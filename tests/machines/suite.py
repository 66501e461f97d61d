"""python -m tests.machines.suite [--all]: run the tests on virtual machines that this tree needs. See docs/project/testing-fleet.md.

passed.json records each file of tests that passed whole: hashes of the file, of what the proofs of its fixes rest on
(proofs.py), and of the rooms in dependencies.yml. A file that changed, or of which a proof is stale, runs again; the short
story always does. A change of a room reruns nothing: only --all proves the rooms, and takes hours.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml

from tests.machines import proofs
from tests.machines.place import HERE, FleetError, digest

ROOT = HERE.parents[1]
DEPENDENCIES = HERE / "dependencies.yml"
RECORD = HERE / "passed.json"
FILES = tuple(sorted(HERE.glob("test_*.py")))
SHORT = HERE / "test_short_story.py"
PROVISIONING = HERE / "test_provision.py"
MEASURING = (
    PROVISIONING,
    SHORT,
    HERE / "test_tune_settings.py",
    HERE / "test_verify_machines.py",
    HERE / "test_rdma_fabric_machines.py",
)
LONG = (PROVISIONING, HERE / "test_boots.py", HERE / "test_power_cuts.py")
"""Only --all runs them."""

NO_PART_OF_TESTS = {RECORD, DEPENDENCIES, Path(__file__).resolve(), Path(proofs.__file__).resolve(), *FILES}
"""What is no reason to run all tests again. A file of tests counts for itself alone."""

SHOWN = 5
"""Of what changed since a file of tests passed, at most so much is named."""

PYTEST = ("-m", "pytest", "-m", "fleet", "-n", "2", "--dist", "loadfile", "--durations=15")
"""A file's machines go from test to test: another worker would have to prepare them once more."""

Hashes = dict[str, dict[str, str]]
"""Part of dependencies.yml → its line → hash of the files that it matches. File of tests → itself, and what its proofs rest on."""


@dataclass(frozen=True)
class Choice:
    """Which files of tests run, and why."""

    files: tuple[Path, ...]
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
        return _run(choice.files, now)
    except FleetError as error:
        print(f"machines: {error}", file=sys.stderr)
        return 1


# What the tests depend on


def hashes(root: Path = ROOT, dependencies: Path = DEPENDENCIES) -> Hashes:
    """The hashes of the rooms, and of each file of tests. Raises FleetError for a line that matches no file."""
    parts = yaml.safe_load(dependencies.read_text())
    shared = {part: {line: digest(*_files(root, line)) for line in lines} for part, lines in parts.items()}
    own = {file.stem: {str(file.relative_to(ROOT)): digest(file), **proofs.of_file(file.stem)} for file in FILES}
    return {**shared, **own}


def _files(root: Path, line: str) -> list[Path]:
    matched = [below for found in root.glob(line) for below in (found.rglob("*") if found.is_dir() else [found])]
    files = sorted(
        path for path in matched if path.is_file() and "__pycache__" not in path.parts and path not in NO_PART_OF_TESTS
    )
    if not files:
        where = DEPENDENCIES.relative_to(ROOT)
        raise FleetError(f"{where}: {line} matches no file: was it moved? Correct the line")
    return files


def changed_rooms(file: str, now: Hashes, record: Mapping[str, Any]) -> list[str]:
    """The lines of dependencies.yml whose files are not those that a file of tests passed with."""
    then = record.get(file, {}).get("hashes", {})
    before = {part: then.get(part, {}) for part in rooms_of(file)}
    lines = [(part, line) for part in before for line in {**before[part], **now[part]}]
    return [line for part, line in lines if before[part].get(line) != now[part].get(line)]


# Which tests run


def read_record(path: Path = RECORD) -> dict[str, Any]:
    """What passed, by file of tests; empty where nothing can be read."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def rooms_of(file: str) -> tuple[str, ...]:
    """The parts of dependencies.yml that a file of tests depends on."""
    more = {"measuring": MEASURING, "provisioning": (PROVISIONING,)}
    return ("machines", *(part for part, files in more.items() if file in {each.stem for each in files}))


def unproven(file: str, now: Hashes, record: Mapping[str, Any]) -> str:
    """Why a file of tests has to pass again; empty where it need not."""
    if file not in record:
        return "has not passed yet"
    lines = proofs.changed(now[file], file, record)
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return f"changed since it passed: {', '.join(lines[:SHOWN])}{more}" if lines else ""


def choose(now: Hashes, record: Mapping[str, Any], *, everything: bool = False) -> Choice:
    """The short story, and what is not proven for this tree; what is LONG only when all is asked for."""
    if everything:
        return Choice(FILES, "all tests, the provisioning story included (--all)")
    reasons = {file: why for file in FILES if (why := unproven(file.stem, now, record))}
    left_out = [f"{file.stem} ({why})" for file in LONG if (why := reasons.pop(file, ""))]
    told = [f"{file.stem} ({why})" for file, why in reasons.items()]
    rooms = {line for file in FILES if file.stem in record for line in changed_rooms(file.stem, now, record)}
    reason = (
        f"{SHORT.stem} and what is not proven: {'; '.join(told)}" if told else f"only {SHORT.stem}: the rest is proven"
    )
    if left_out:
        reason += f". Left out: {', '.join(left_out)}"
    if rooms:
        reason += f". Changed since all passed: {', '.join(sorted(rooms))}"
    return Choice(tuple(sorted({*reasons, SHORT})), f"{reason}{': --all runs all' if left_out or rooms else ''}")


# Running them, and the record


def _run(files: Sequence[Path], before: Hashes) -> int:
    with tempfile.TemporaryDirectory() as folder:
        report, began, counts = Path(folder) / "junit.xml", time.time(), _counts(files)
        code = _pytest(*map(str, files), f"--junitxml={report}")
        if hashes() != before:
            raise FleetError(f"files changed while the tests ran: {RECORD.name} stays as it was")
        now_proven = proven(before, report.read_text(), counts, began) if report.exists() else {}
    RECORD.write_text(json.dumps({**read_record(), **now_proven}, indent=1, sort_keys=True) + "\n")
    print(f"machines: {RECORD.relative_to(ROOT)} records {', '.join(sorted(now_proven)) or 'nothing new'}: commit it")
    return code


def _counts(files: Sequence[Path]) -> dict[str, int]:
    """How many tests each file has."""
    words = ("-m", "pytest", "-m", "fleet", "--collect-only", "-q", *map(str, files))
    listed = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return {name: int(count) for name, count in re.findall(r"(\w+)\.py: (\d+)$", listed, re.MULTILINE)}


def proven(now: Hashes, report: str, counts: Mapping[str, int], began: float) -> dict[str, Any]:
    """The files of which every test passed: a failed, skipped or missing one proves nothing."""
    passed: dict[str, dict[str, float]] = {}
    failed = set()
    for case in ET.fromstring(report).iter("testcase"):
        file, name = case.get("classname", "").rpartition(".")[2], case.get("name", "")
        if len(case):
            failed.add(file)
        passed.setdefault(file, {})[name] = round(float(case.get("time", 0)), 1)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    return {
        file: {"time": when, "hashes": {part: now[part] for part in (*rooms_of(file), file)}, "seconds_per_test": tests}
        for file, tests in passed.items()
        if file not in failed and len(tests) == counts.get(file)
    }


def _pytest(*words: str) -> int:
    return subprocess.run([sys.executable, *PYTEST, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
