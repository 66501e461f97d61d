"""Builds the synthetic machines: plants each one's files, runs the real collectors on them, and writes down what they see.

    python -m tests.data.synthetic.build --write     makes the fact files and the recorded findings anew
    python -m tests.data.synthetic.build --check     says which of them differ from what would be made (exit 1)

What cannot be planted (commands, ioctls, NVML, the size of file systems) is answered from the machine's description.
"""

import argparse
import functools
import importlib
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import yaml

from nodetune.api.model import Absent
from nodetune.audit import auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document
from nodetune.probe import read, services
from nodetune.remediation.plan import PlanSelection
from nodetune.remote import payload
from tests.data.synthetic.plant import Host
from tests.support import fake_pynvml

HERE = Path(__file__).parent
MODULES = {
    "hgx-h200-tuned": "hgx_h200",
    "hgx-h200-untuned": "hgx_h200",
    "workstation-4x4090": "workstation",
    "grace-gb200": "grace",
    "pcie-8xl40s": "pcie_box",
}
TODAY = "2026-11-01"
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
SAID_IN_FULL = ("services.*", "persisted.*", "cmdline.*", "file.*")
"""Absent is what a description says of these by naming others."""
CALM = "NRestarts=0\nActiveEnterTimestampMonotonic=41000000"
ABOUT = {"time": 1793491200, "seconds": 0.2, "uid": 0, "python": "3.10.12"}


@dataclass
class Machine:
    """A described machine. `commands`: the start of a command line → its output; `space`: mount → (GB, percent used)."""

    note: str
    host: Host
    kernel: str
    arch: str = "x86_64"
    page_size: int = 4096
    units: dict = field(default_factory=dict)
    running: tuple = ()
    commands: dict = field(default_factory=dict)
    space: dict = field(default_factory=dict)
    ethtool: dict = field(default_factory=dict)
    dcb: dict = field(default_factory=dict)
    health: dict = field(default_factory=dict)
    gpus: fake_pynvml.Replay = None
    synchronized: bool = True


def describe(name):
    return importlib.import_module("tests.data.synthetic." + MODULES[name]).machine(name)


def collect(name, selection=None):
    """The facts that the probe would bring from the machine; with a selection, those of its checks only."""
    machine = describe(name)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as root:
        machine.host.write(root)
        return read_from(root, machine, name, selection)


def read_from(root, machine, name, selection=None):
    """The facts that the collectors read below a folder with the machine's files."""
    facts, asked = {}, payload.families((selection or PlanSelection()).facts())
    with ExitStack() as stack:
        for patch in _patches(machine, name, root):
            stack.enter_context(patch)
        for family, names in sorted(asked.items()):
            module = importlib.import_module("nodetune.probe." + family)
            facts.update((f"{family}.{each}", fact) for each, fact in module.collect(names, lambda _: None))
    for seen in facts.get("nccl.files", {"each": {}})["each"].values():  # whoever builds owns the planted files
        seen["value"].update(uid=0, gid=0)
    about = {**ABOUT, "note": "synthetic: " + machine.note}
    return document.from_data({"host": name, "about": about, "facts": facts})


def forgotten(name, facts):
    """A line for each fact that the machine lacks without saying so: a check that needs it would judge nothing there."""
    absent = {fact: found.reason for fact, found in facts.facts.items() if isinstance(found, Absent)}
    lacks = _lacks()["*"] + _lacks().get(name, []) + list(SAID_IN_FULL)
    return [
        f"{name} does not describe {fact} ({reason}): add it to {_place(name, fact)}, or, if such a machine has none,"
        " to lacks.yml there"
        for fact, reason in sorted(absent.items())
        if not any(fnmatchcase(fact, pattern) for pattern in lacks)
    ]


def _place(name, fact):
    common = "SYSCTLS of ubuntu.py" if fact.startswith("sysctl.") else f"{MODULES[name]}.py (FILES of ubuntu.py: all)"
    return "tests/data/synthetic: " + common


@functools.cache
def _lacks():
    return yaml.safe_load((Path(__file__).parent / "lacks.yml").read_text())


def _patches(machine, name, root):
    clock = {"synchronized": machine.synchronized, "by": "kernel", "max_error_us": 120000}
    answers = {
        "platform.machine": lambda: machine.arch,
        "platform.release": lambda: machine.kernel,
        "platform.node": lambda: name,
        "os.sysconf": lambda _: machine.page_size,
        "os.statvfs": lambda path: _space(machine.space.get(path.removeprefix(root), (1, 1))),
        "nodetune.probe.read.run": lambda command, seconds=0, **_more: _output(machine, command),
        "nodetune.probe.ethtool.ask": lambda link, query: _or_absent(machine.ethtool.get(link, {}).get(query)),
        "nodetune.probe.ethtool.ask_counters": lambda link: _or_absent(machine.ethtool.get(link, {}).get("counters")),
        "nodetune.probe.ethtool.ask_dcb": lambda link: _or_absent(machine.dcb.get(link)),
        "nodetune.probe.block._log_page": lambda path: _health_log(**machine.health.get(path[5:], {})),
    }
    yield mock.patch.object(read, "ROOT", root)
    yield mock.patch.dict(sys.modules, pynvml=fake_pynvml.module(machine.gpus))
    yield mock.patch.dict(services.FACTS, time_sync=lambda: read.value(clock))
    for target, answer in answers.items():
        yield mock.patch(target, answer)


def _or_absent(known):
    return read.value(known) if known is not None else read.absent("the driver does not offer this")


def _space(size_and_use):
    """As statvfs tells a file system of so many GB, so many percent of it used."""
    size, percent = size_and_use
    total = size * 10**9 // 4096
    free = total * (100 - percent) // 100
    return SimpleNamespace(
        f_blocks=total, f_bfree=free, f_bavail=free, f_files=10**6, f_ffree=99 * 10**4, f_frsize=4096
    )


def _health_log(warning=0, spare=100, used=2, media_errors=0):
    return bytes([warning, 0, 0, spare, 10, used]) + bytes(154) + media_errors.to_bytes(16, "little") + bytes(336)


def _output(machine, command):
    words = " ".join([os.path.basename(command[0]), *command[1:]])
    if "--" in command:
        return "\n\n".join(_unit(machine, unit) for unit in command[command.index("--") + 1 :])
    if "list-units" in words:
        return "\n".join(f"{unit}.service loaded active running" for unit in machine.running)
    known = next((text for start, text in machine.commands.items() if words.startswith(start)), None)
    if known is None:
        raise OSError(5, f"{words.split()[0]} failed (1): not in the description of this machine")
    return known


def _unit(machine, unit):
    """`systemctl show` of a unit; the description knows it by the short name: its command line, or None if it is inactive."""
    short = unit.removesuffix(".service")
    if short not in machine.units:
        return f"Id={unit}\nNames={unit}\nLoadState=not-found\nActiveState=inactive\nSubState=dead"
    words = machine.units[short]
    state = "ActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nMainPID=0"
    if words is not None:
        pid = machine.host.pids.get(short, 900 + len(short))
        state = f"ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID={pid}\nTasksMax=infinity"
    started = f"\nExecStart={{ path={words.split()[0]} ; argv[]={words} ; ignore_errors=no }}" if words else ""
    return f"Id={unit}\nNames={unit}\nLoadState=loaded\n{state}{started}\nDropInPaths=\nActiveEnterTimestamp=\n{CALM}"


def findings(facts, selection=None):
    """What the audit says of the machine: the failing checks with what they saw, and those without a verdict."""
    result = auditor.Auditor(selection or Selection(), TODAY).result(facts)
    failing = sorted((each for each in result.findings if each.status == "fail"), key=lambda each: each.check)
    unknown = sorted(each.check for each in result.findings if each.status == "unknown")
    told = {
        each.check: f"{each.severity}: {each.observed}" + (f" ({each.reason})" if each.reason else "")
        for each in failing
    }
    return {"profile": result.profile, "failing": told, "unknown": unknown}


def texts(facts, name):
    """File name → content of the two files of a machine."""
    head = "# Written by: python -m tests.data.synthetic.build --write\n"
    saved = document.dump(facts)
    found = yaml.safe_dump(
        findings(document.from_data(document.parse(saved.encode(), name))),
        sort_keys=False,
        width=10_000,
        allow_unicode=True,
    )
    return {f"{name}.json": saved, f"{name}.findings.yml": head + found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--write", action="store_true")
    way.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", default=list(MODULES))
    options, differing = parser.parse_args(), []
    made = {name: collect(name) for name in options.names}
    lacking = [line for name, facts in made.items() for line in forgotten(name, facts)]
    if lacking:
        sys.exit("\n".join(lacking))
    for name, facts in made.items():
        for file, text in texts(facts, name).items():
            if options.write:
                (HERE / file).write_text(text)
            elif not (HERE / file).exists() or (HERE / file).read_text() != text:
                differing.append(file)
    if differing:
        sys.exit("these would be made otherwise: " + ", ".join(differing))


if __name__ == "__main__":
    main()
