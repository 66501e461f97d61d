"""A fault in what the probe reads of a synthetic machine: its files, commands, units, and what NVML answers."""

import copy
import functools
import importlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nodetune.api.model import Fact, HostFacts
from nodetune.facts import document
from nodetune.remediation.plan import PlanSelection
from nodetune.remote import payload
from tests.data.synthetic import build
from tests.data.synthetic.plant import Host

UNTUNED = "hgx-h200-untuned"
PARTS = ("commands", "units", "space", "ethtool", "dcb", "health")
"""Parts of a described machine that are mappings; None takes a member away."""


def facts(name: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that the collectors read otherwise on a machine with a change: `files`, `answers` and `errors` of NVML, PARTS.

    `edits`: file → text in it → the text instead (an empty one: the end of the file). `untuned`: the members of a part
    (`files /proc/cmdline`) that are as on the untuned machine. `running`, `stopped`: services.
    """
    machine, root, before = _tree(name)
    change = _complete(name, change)
    parts = {part: _over(getattr(machine, part), change[part]) for part in PARTS if part in change}
    gpus = copy.copy(machine.gpus)
    gpus.answers, gpus.errors = (_over(getattr(gpus, part), change.get(part, {})) for part in ("answers", "errors"))
    running = tuple({*machine.running, *change.get("running", ())} - {*change.get("stopped", ())})
    changed = replace(machine, gpus=gpus, running=running, **parts)
    made = _put(root, change.get("files", {}))
    try:
        now = _read(root, changed, name, irqs="irq" in repr(change))
    finally:
        _put(root, {path: machine.host.files.get(path) for path in change.get("files", {})})
        for folder in reversed(made):
            folder.rmdir()
    differing = {fact: now[fact] for fact in now if now[fact] != before.get(fact)}
    found: dict[str, Any] = json.loads(document.dump(HostFacts(name, differing)))["facts"]
    return found


def places(change: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files, commands and answers that a change concerns."""
    own = [name for part in ("files", "edits", "answers", "errors", *PARTS) for name in change.get(part, ())]
    return (
        *own,
        *(each.partition(" ")[2] for each in change.get("untuned", ())),
        *change.get("running", ()),
        *change.get("stopped", ()),
    )


def _complete(name: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change with the whole content of what is edited, and with what is as on the untuned machine."""
    machine, root, _ = _tree(name)
    found = {part: copy.copy(members) for part, members in change.items() if part not in ("edits", "untuned")}
    found["files"] = {_real(root, path): text for path, text in change.get("files", {}).items()}
    for path, edits in change.get("edits", {}).items():
        text = machine.host.files.get(path, "")
        for old, new in edits.items():
            if old not in text:
                raise ValueError(f"{path} has no {old!r}")
            text = text.replace(old, new) if old else f"{text}\n{new}".lstrip("\n")
        found["files"][path] = text
    for part, _, member in (each.partition(" ") for each in change.get("untuned", ())):
        other = _described(UNTUNED)
        of = {"files": other.host.files, "answers": other.gpus.answers}.get(part) or getattr(other, part)
        found.setdefault(part, {})[member] = of.get(member)
    return found


def _real(root: tempfile.TemporaryDirectory, path: str) -> str:
    """Return the path without the links of sysfs, such as /sys/class/net/eth0."""
    folder = os.path.realpath(root.name + os.path.dirname(path))
    return f"{folder.removeprefix(os.path.realpath(root.name))}/{os.path.basename(path)}"


def _over(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in {**old, **new}.items() if name not in new or each is not None or name in old}


@functools.cache
def _described(name: str) -> build.Machine:
    machine: build.Machine = build.describe(name)
    return machine


@functools.cache
def _tree(name: str) -> tuple[build.Machine, tempfile.TemporaryDirectory, Mapping[str, Fact]]:
    """Return a machine, the folder with its files, which lives as long as this process, and its facts."""
    machine, folder = _described(name), tempfile.TemporaryDirectory(dir=build.IN_MEMORY)
    machine.host.write(folder.name)
    return machine, folder, _read(folder, machine, name)


def _read(
    root: tempfile.TemporaryDirectory, machine: build.Machine, name: str, irqs: bool = True
) -> Mapping[str, Fact]:
    facts: Mapping[str, Fact] = build.read_from(root.name, machine, name, _every(irqs)).facts
    return facts


@functools.cache
def _every(irqs: bool) -> SimpleNamespace:
    """Return a selection of all facts; those of interrupts take a third of the time.

    Their collectors are imported here: what a patch of sys.modules sees is lost again.
    """
    names = {each for each in PlanSelection().facts() if irqs or not each.startswith("irq.")}
    for family in payload.families(names):
        importlib.import_module(f"nodetune.probe.{family}")
    return SimpleNamespace(facts=lambda: names)


def _put(root: tempfile.TemporaryDirectory, files: Mapping[str, Any]) -> list[Path]:
    """Write files, without those that are None. Return the folders that this made, the outer ones first."""
    made: list[Path] = []
    for path in files:
        place = Path(root.name + path)
        made += [each for each in reversed(place.parents) if not each.exists() and each not in made]
        if os.path.lexists(place):
            place.unlink()
    Host({path: text for path, text in files.items() if text is not None}).write(root.name)
    for each in made:
        each.mkdir(exist_ok=True)
    return made
