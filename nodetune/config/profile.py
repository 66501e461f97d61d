"""Profiles: the checks for a host, their wanted values, and the waivers.

A profile is a stack of small files, each over the previous one: base, an intent (training, inference), what the facts
say about the host (vm, grace, a GPU), and the site's own file. Errors name file and line.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from nodetune import checks, data
from nodetune.api import derived, predicates
from nodetune.api.facts_view import FactsView
from nodetune.api.model import Check, Each, Fact, HostFacts, Value, Waiver, When
from nodetune.config import overlay
from nodetune.config.overlay import FOLDER, PROBE, Overlay, Rank
from nodetune.foundation.yaml_lines import FileError, LocatedYaml

__all__ = ["FOLDER", "PROBE", "Overlay", "Profile", "Rank", "matching", "named", "resolve", "shipped"]


TRAINING, INFERENCE = "training", "inference"
PURPOSE_FACTS = ("slurm.present", "services.running")
SERVES = re.compile(
    r"(vllm|triton(server)?|sglang|ollama|tgi|text-generation|lmdeploy|llama-server)[-@.]", re.IGNORECASE
)
"""Prefixes of the units of serving stacks. Processes do not count: they come and go, and verdicts would follow."""

GUESS = f"judged as {TRAINING}: -p {INFERENCE} for serving"


@dataclass(frozen=True)
class Profile:
    """A resolved stack: the selected checks with their overrides, the gating checks, the waivers.

    `off` are the checks that the site file switches off.
    """

    names: tuple[str, ...]
    checks: tuple[Check, ...]
    gates: frozenset[str]
    waivers: tuple[Waiver, ...] = ()
    off: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(name for name in self.names if name != "base")


@cache
def shipped() -> dict[str, Overlay]:
    """Return the overlays that come with nodetune, by name."""
    files = overlay.shipped_names()
    return {
        name: overlay.parse(_located(str(files[name]), **kept), name) for name, kept in data.table("profiles").items()
    }


def _located(file: str, content: Any, lines: list[tuple[list[Any], int]]) -> LocatedYaml:
    return LocatedYaml(file, content, {tuple(path): line for path, line in lines})


def matching(facts: HostFacts, given: Iterable[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return the stack for a host and a description of the reason.

    The stack is base, the given profiles (by default that for the host's purpose), and the profiles whose conditions
    the facts meet. Raise FileError for a name that does not exist.
    """
    asked, why = tuple(given), "as given"
    if not asked:
        purpose, why = _purpose(facts)
        asked = (purpose,)
    chosen, reasons = list(named(asked)), [why]
    for name, each in shipped().items():
        reason = name not in chosen and each.when and _met(each.when, facts)
        if reason:
            chosen.append(name)
            reasons.append(f"{name}: {reason}")
    return tuple(chosen), "; ".join(reasons)


def _purpose(facts: HostFacts) -> tuple[str, str]:
    """Return the profile for the purpose of a host if none was given, and a description of the reason.

    Kubernetes does not count: it runs both.
    """
    view = FactsView(facts, PURPOSE_FACTS)
    if view.readable("slurm.present"):
        return TRAINING, f"{TRAINING}: Slurm runs jobs here"
    serving = [unit for unit in view.readable("services.running", ()) if SERVES.match(unit)]
    return (INFERENCE, f"{INFERENCE}: {serving[0]} runs here") if serving else (TRAINING, GUESS)


def _met(conditions: tuple[When, ...], facts: HostFacts) -> str:
    """Return why all conditions are met; empty if one is not met or is unknown."""
    view = FactsView(facts, [when.fact for when in conditions], derived.lookup)
    for when in conditions:
        values = _known(view.fact(when.fact))
        if not values or not all(predicates.as_predicate(when.accept).test(each) for each in values):
            return ""
    return ", ".join(when.otherwise or when.fact for when in conditions)


def _known(fact: Fact) -> list[Any]:
    """Return the values of a fact; if it has one for each GPU, those of the GPUs that answer."""
    parts = fact.of.values() if isinstance(fact, Each) else (fact,)
    return [each.value for each in parts if isinstance(each, Value)]


def named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the stack for the names that a user gave. Raise FileError for one that does not exist."""
    stack = ["base", *names]
    for name in stack:
        if name not in shipped():
            raise FileError(overlay.no_profile(name))
    return tuple(stack)


def resolve(names: tuple[str, ...], site: Overlay | None = None) -> Profile:
    """Return the checks of a stack of overlays with all overrides applied. Raise FileError."""
    layers = site.layers() if site else ()
    for each in layers:
        if each.when:
            raise FileError(f"{each.file}: when has no effect in a site file, which applies to every host: remove it")
    if site and site.sections:  # a bug: config/site.py makes the file of each host
        raise FileError(f"{site.file}: this command does not resolve values for groups and hosts")
    every = {check.id: check for check in (*checks.load_all(), *(site.add if site else ()))}
    selected, gate = dict(every), dict[str, bool]()
    _stack(every, selected, gate, [shipped()[name] for name in names])
    before = list(selected)
    _stack(every, selected, gate, layers)
    by_default = {check.id: check.severity == "critical" and check.stability == "stable" for check in selected.values()}
    gates = {check_id for check_id, default in by_default.items() if gate.get(check_id, default)}
    shown = (*names, *([site.name] if site else []))
    off = tuple(check_id for check_id in before if check_id not in selected)
    return Profile(shown, tuple(selected.values()), frozenset(gates), site.waivers if site else (), off)


def _stack(
    every: Mapping[str, Check], selected: dict[str, Check], gate: dict[str, bool], layers: Iterable[Overlay]
) -> None:
    for each in layers:
        for check_id, change in each.checks.items():
            if change is True:
                selected[check_id] = every[check_id]
            else:
                _change(selected, gate, check_id, change)


def _change(selected: dict[str, Check], gate: dict[str, bool], check_id: str, change: Any) -> None:
    if change is False:
        selected.pop(check_id, None)
        return
    check = selected.get(check_id)
    if check is None:  # off stays off until a later overlay says on
        return
    if change is None:
        selected[check_id] = replace(check, accept=None)
        return
    if "gate" in change:
        gate[check_id] = change["gate"]
    selected[check_id] = replace(check, **{key: each for key, each in change.items() if key != "gate"})
