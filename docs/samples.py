"""Samples of output on the pages: each command of a console block is run, and what it prints now replaces what is shown.

A line of three dots in a block stands for what is left out: as many lines before and after it are shown as it has.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.tuning_errors import Simulated, gains
from nodetune.tune import document as tuning
from nodetune.tune import study

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
BLOCK = re.compile(r"(?<=^```console\n)(?:\$ .*\n)(?:(?!\$ ).*\n)*?(?=```$)", re.MULTILINE)
MORE = "..."
TYPOS = """checks:
  swappiness-hihg: {severity: info}
  dirty-limit-high: {accept: {at_most: 4GiB}, set: 8GiB}
waivers:
  - {id: fan-failed, hosts: gpu017, reason: RMA 4711, owner: jo@example.org, until: 2024-05-31}
"""
WATCHED = {"gpu001": ("training", "4690"), "gpu002": ("late+cpu", "4711"), "gpu003": ("disk+diskmain", "4714")}
"""Host → what runs there (tests/data/recordings/watch) and its Slurm job."""
HOSTS = ("gpu001", "gpu002", "gpu003", "gpu004", "gpu017")
SITE_FILE = """add:
  - {id: site-inotify-watches-low, sysctl: fs.inotify.max_user_watches, accept: {at_least: 1048576}, set: 1048576,
     severity: medium, why: Data loaders watch many files.}
"""
WATCHES = {
    "sysctl.fs.inotify.max_user_watches": {"value": 65536},
    "persisted.sysctl.fs.inotify.max_user_watches": {"absent": "no file sets it"},
}


def pages(docs: Path) -> dict[str, str]:
    """Return name → text, with what commands print today, of each page that has samples."""
    texts = {page.name: page.read_text("utf-8") for page in docs.glob("*.md")}
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        return {name: current(text, Path(folder)) for name, text in texts.items() if BLOCK.search(text)}


def current(text: str, folder: Path) -> str:
    """Return a page with what its commands print in this folder."""
    return BLOCK.sub(lambda block: _sample(block[0], folder), text)


def _sample(block: str, folder: Path) -> str:
    command, *shown = block.splitlines()
    return "\n".join([command, *cut(printed(command[2:], folder), shown)]) + "\n"


def cut(lines: list[str], shown: list[str]) -> list[str]:
    """Return the lines without those for which three dots stand."""
    if MORE not in shown:
        return lines
    first = shown.index(MORE)
    last = len(shown) - first - 1
    return [*lines[:first], MORE, *lines[len(lines) - last :]]


def printed(command: str, folder: Path) -> list[str]:
    """Return what a command prints on a terminal of 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "NODETUNE_CONFIG": ""}
    program = f'nodetune() {{ {shlex.quote(sys.executable)} -m nodetune "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", program + command],
        check=False,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def fill(folder: Path) -> None:
    """Write the files of the pages: facts of a tuned host and of one with faults, what was saved of them, site files."""
    for name, faulty in {"monday": "", "friday": "gpu017", "facts": "gpu017"}.items():
        (folder / name).mkdir()
        for host in HOSTS:
            _write(folder / name / f"{host}.json", _facts(host, "untuned" if host == faulty else "tuned"))
    (folder / "evidence").mkdir()
    shutil.copy(folder / "facts" / "gpu017.json", folder / "evidence")
    shutil.copy(folder / "facts" / "gpu001.json", folder / "golden.json")
    shutil.copy(folder / "facts" / "gpu017.json", folder / "new.json")
    shutil.copy(DATA / "from-0.1" / "verify.json", folder / "verify.json")
    _write(folder / "before.json", _measured_again({}))
    _write(folder / "after.json", _measured_again({"local": 0.93}))
    for day in ("monday", "friday"):
        printed(f"nodetune audit --facts {day} --format json -o {day}.json", folder)
    shutil.copy(folder / "friday.json", folder / "tuesday.json")
    printed("nodetune audit --facts monday --format html -o yesterday.html", folder)
    shutil.copytree(DATA / "from-0.1" / "runs", folder / "runs")
    (folder / "site.yml").write_text(SITE_FILE)
    for name in ("company", "cluster"):
        (folder / f"{name}.yml").write_text("checks: {swappiness-high: {accept: {at_most: 10}, set: 10}}\n")
    (folder / "typos.yml").write_text(TYPOS)
    shutil.copytree(DATA / "synthetic", folder / "tests" / "data" / "synthetic", ignore=shutil.ignore_patterns("*.py"))
    (folder / "watched").mkdir()
    for host, (loads, job) in WATCHED.items():
        _write(folder / "watched" / f"{host}.json", _watched(host, loads, job))
    (folder / "failed.txt").write_text("gpu001\n")
    bench = Simulated(random.Random(1), gains(0.05))  # noqa: S311 (no secrets: figures to show)
    _write(folder / "tuning-nccl.json", tuning.document(bench, study.tune(bench, 1200), 1200.0))


def _facts(host: str, state: str) -> dict[str, Any]:
    facts = json.loads((DATA / "synthetic" / f"hgx-h200-{state}.json").read_text("utf-8"))
    about = {**facts["about"], "time": int(time.time())}
    return {**facts, "host": host, "about": about, "facts": {**facts["facts"], **WATCHES}}


def _watched(host: str, loads: str, job: str) -> dict[str, Any]:
    """Return a recorded watch as that of a Slurm job."""
    facts = json.loads((DATA / "recordings" / "watch" / "h200-x2.json").read_text("utf-8"))[loads]
    for process in facts["watch.processes"]["value"].values():
        process["job"] = {"slurm": job}
    facts["watch.users"]["value"] = {"0": "ana"}
    return {"schema": "nodetune.facts/1", "host": host, "about": {}, "failed": {}, "stuck": [], "facts": facts}


def _measured_again(changed: dict[str, float]) -> dict[str, Any]:
    """Return a result of five runs. `changed` has metrics with the factor by which their figures differ."""
    found: dict[str, Any] = json.loads((DATA / "from-0.1" / "verify.json").read_text("utf-8"))
    noise = random.Random(len(changed))  # noqa: S311 (no secrets: figures to show)
    for each in (one for host in found["hosts"] for one in host["measurements"] if "runs" in one):
        middle = each["value"] * changed.get(each["metric"], 1)
        each["runs"] = [[middle * noise.gauss(1, 0.002) for _ in range(5)] for _ in range(5)]
    return found


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), "utf-8")
