"""Steps of a plan → the changes that carry them out on one host: data for playbooks/remediate.yml. Pure.

One file a remedy kind, found by its name: `changes(fixes, host)` gives a list of changes (dicts with `change` and what
that kind of change wants), or raises Unfixable. `NEEDS` there names facts that it looks at beyond those of the checks.
A file that nodetune owns is rendered whole from templates/, and one line of it (`# settings: {…}`) holds as data what
it sets, so that a later run adds to it. Nothing in it tells when or by which run it was written: the same settings
are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import groupby
from typing import Any

from nodetune import show
from nodetune.derived import lookup
from nodetune.model import DISRUPTIONS, Fact, Fix, HostFacts, Step, Unread, Value
from nodetune.view import Missing, Unreadable, View

NEEDS = ("host.os", "own.files")
"""Facts that every kind may look at."""

FREE = ("none", "new sessions")
"""Disruptions that disturb no running work: everything above wants idle GPUs."""

TIMED = ("link",)
"""Kinds of change that revert by themselves unless they are confirmed in time."""

FAMILIES = {"debian": ("debian", "ubuntu"), "rhel": ("rhel", "fedora", "centos"), "suse": ("suse", "opensuse")}


class Unfixable(Exception):
    """No change can do it on this host; the text says why, and what a person does instead."""


class Facts(View):
    """The facts of one host for builders: a view that need not declare what it looks at."""

    def __init__(self, host: HostFacts) -> None:
        super().__init__(host, (), lookup)

    def fact(self, name: str) -> Fact:
        return self._lookup(self._host, name)


class Host:
    """What a builder sees of a host, and where it leaves notes for the plan."""

    def __init__(self, facts: HostFacts, steps: Iterable[Step] = ()) -> None:
        self.name = facts.host
        self.facts = Facts(facts)
        self.notes: list[str] = []
        self._steps = tuple(steps)
        self._own = dict(_own_files(facts))

    @property
    def family(self) -> str:
        """debian, rhel, suse, or the distribution's own id ("" where no os-release tells)."""
        system = self.facts.readable("host.os") or {}
        like = [system.get("id", ""), *system.get("like", [])]
        known = (family for family, names in FAMILIES.items() if set(names) & set(like))
        return next(known, str(like[0]))

    def own(self, path: str) -> str:
        """The text of a file of nodetune's as it is on the host now, or as an earlier group of this plan leaves it."""
        return self._own.get(path, "")

    def owned(self) -> Mapping[str, str]:
        """All files of nodetune's on the host: path → text."""
        return self._own

    def wrote(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Remember what a group writes, for the groups after it."""
        for change in changes:
            if change["change"] == "file":
                self._own[change["path"]] = change["content"] or ""

    def checks(self, fix: Fix) -> list[str]:
        """The checks that want this fix: what a change gives as its `checks`."""
        return [step.check for step in self._steps if step.fix == fix]

    def note(self, text: str) -> None:
        """Something that the plan must say: a foreign file that still wins, a daemon that loses its say."""
        if text not in self.notes:
            self.notes.append(text)


def _own_files(facts: HostFacts) -> Mapping[str, str]:
    """The fact own.files; none where saved facts are older than it. Raises Unreadable where the host kept it back."""
    fact = facts.get("own.files")
    if isinstance(fact, Value) and isinstance(fact.value, Mapping):
        return {str(path): str(text) for path, text in fact.value.items()}
    if isinstance(fact, Unread) and "own" in facts.about.get("failed", {}):
        raise Unreadable(f"nodetune's own files on the host: {fact.reason}")
    return {}


@dataclass(frozen=True)
class Group:
    """Changes that are made together: one kind of fix at one level of disruption. `name` is unique in a plan.

    `guard` says what the host must be like when it comes to it; `notes` are what the plan has to say about it.
    """

    name: str
    disruption: str
    checks: tuple[str, ...]
    changes: tuple[Mapping[str, Any], ...]
    guard: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As nodetune_change takes it."""
        return {
            "group": self.name,
            "disruption": self.disruption,
            "timed": any(change["change"] in TIMED for change in self.changes),
            "guard": dict(self.guard),
            "checks": list(self.checks),
            "changes": [dict(change) for change in self.changes],
        }


Unbuilt = list[tuple[Step, str]]
"""Steps that no change can carry out, with the reason."""


def needs(kinds: Iterable[str]) -> set[str]:
    """The facts that the builders of these kinds look at."""
    modules = [_builder(kind) for kind in set(kinds) - {"manual"}]
    return set(NEEDS).union(*(getattr(module, "NEEDS", ()) for module in modules))


def groups(steps: Sequence[Step], facts: HostFacts) -> tuple[list[Group], Unbuilt]:
    """The steps of one host as groups of changes, least disruptive first; and the steps that cannot be built."""
    chosen = sorted(steps, key=lambda step: (DISRUPTIONS.index(step.fix.disruption), step.fix.kind, step.check))
    try:
        host = Host(facts, chosen)
    except Unreadable as problem:
        return [], [(step, str(problem)) for step in chosen]
    made: list[Group] = []
    unbuilt: Unbuilt = []
    for (disruption, kind), same in groupby(chosen, key=lambda step: (step.fix.disruption, step.fix.kind)):
        taken = kind in {group.name for group in made}
        group = _group(f"{kind}, {disruption}" if taken else kind, list(same), host, unbuilt)
        if group:
            made.append(group)
    return _in_view_of_later(made), unbuilt


def _in_view_of_later(made: Sequence[Group]) -> list[Group]:
    """Each file change also accepts what later groups make of the file, so that a plan played again changes nothing."""
    later: dict[str, list[str]] = {}
    found: list[Group] = []
    for group in reversed(made):
        changes = [_accepting(change, later) for change in reversed(group.changes)]
        found.append(replace(group, changes=tuple(reversed(changes))))
    return found[::-1]


def _accepting(change: Mapping[str, Any], later: dict[str, list[str]]) -> Mapping[str, Any]:
    if change["change"] != "file" or not change["content"]:
        return change
    texts = later.setdefault(change["path"], [])
    others = [text for text in texts if text != change["content"]]
    texts.append(change["content"])
    return {**change, "or": others} if others else change


def _group(name: str, steps: list[Step], host: Host, unbuilt: Unbuilt) -> Group | None:
    """The changes of one kind. A step that cannot be built goes to `unbuilt` and costs the others nothing."""
    buildable: list[Step] = []
    for step in steps:
        reason = _attempt([step.fix], host)[1]
        if reason:
            unbuilt.append((step, reason))
        else:
            buildable.append(step)
    host.notes = []
    wanted = [step.fix for step in buildable]
    made, reason = _attempt([fix for number, fix in enumerate(wanted) if fix not in wanted[:number]], host)
    if reason:
        unbuilt += [(step, reason) for step in buildable]
    if not made:
        return None
    host.wrote(made)
    disruption = wanted[0].disruption
    guard = {} if disruption in FREE else {"gpu_idle": True}
    return Group(name, disruption, tuple(step.check for step in buildable), tuple(made), guard, tuple(host.notes))


def _attempt(fixes: list[Fix], host: Host) -> tuple[list[dict[str, Any]], str]:
    """The changes of fixes of one kind, or why there are none."""
    try:
        return (_builder(fixes[0].kind).changes(fixes, host) if fixes else []), ""
    except (Unfixable, Missing, Unreadable) as problem:
        return [], show.plain(problem)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as problem:
        # A host may send any shape of data, as in nodetune.audit: no changes then, and no traceback.
        return [], f"the facts have an unexpected shape: {show.plain(repr(problem), 120)}"


def _builder(kind: str) -> Any:
    return import_module(f"{__name__}.{kind}")
