"""The figures of benchmarks/figures.yml, which the benchmarks write: the table of docs/project/benchmarks.md and four lines of the README."""

import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml

FILE = Path(__file__).resolve().parents[1] / "figures.yml"
HEAD = "| what | figure | command | date | machine |\n| --- | --- | --- | --- | --- |\n"


def rows(file=FILE):
    """Return the rows: name → {what, figure, command, date, machine}."""
    return yaml.safe_load(file.read_text("utf-8")) if file.exists() else {}


def record(found, file=FILE):
    """Write these figures, with today's date and this machine, and leave the other rows as they are."""
    known, here = rows(file), {"date": datetime.datetime.now().astimezone().date(), "machine": machine()}
    known.update({name: {**known.get(name, {}), "figure": figure, **here} for name, figure in found.items()})
    file.write_text(yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=1000), "utf-8")


def machine():
    """Describe this machine without its name."""
    system, python = platform.freedesktop_os_release(), ".".join(map(str, sys.version_info[:2]))
    name = f"{system['NAME'].removesuffix(' GNU/Linux')} {system.get('VERSION_ID', '')}".strip()
    return ", ".join([*_gpus(), f"{len(os.sched_getaffinity(0))} cores", name, f"Python {python}"])


def _gpus():
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    names = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return [f"{count} {name}" for name, count in Counter(names).items()]


def table():
    """Return all rows as a table. A row that was never measured is left out."""
    lines = [
        f"| {row['what']} | {row['figure']} | `{row['command']}` | {row['date']} | {row['machine']} |\n"
        for row in rows().values()
        if "figure" in row
    ]
    return HEAD + "".join(lines)


def for_readme():
    """Return the rows with a text for the README, its {} filled with the parts of the figure."""
    lines = [
        f"- {row['readme'].format(*re.split('[,;] ', row['figure']))} ({row['machine']}, {row['date']})\n"
        for row in rows().values()
        if "readme" in row
    ]
    return "\n" + "".join(lines) + "\n"
