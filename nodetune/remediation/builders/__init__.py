"""Findings → the changes that fix them on one host: data for playbooks/remediate.yml. Pure.

One file a remedy kind, found by its name: `changes(fixes, host)` gives a list of changes (dicts with `change` and what
that kind of change needs), or raises UnfixableError. `NEEDS` there names facts that it looks at beyond those of the checks.
A file that nodetune owns is rendered whole from templates/, and one line of it (`# settings: {…}`) holds as data what
it sets, so that a later run adds to it. It contains neither time nor run: the same settings are the same bytes. The
current value is changed before the boot setting: if power fails in between, the reboot restores the old value. In the
opposite order, the reboot would set values whose previous state the journal does not have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import groupby
from typing import Any

from nodetune import checks
from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import DISRUPTIONS, NOT_COLLECTED, Check, Fact, Finding, Fix, HostFacts, Unread, Value, fix_of
from nodetune.foundation import UserError
from nodetune.foundation import text as plain_text

NEEDS = ("host.os", "own.files")
"""Facts that every kind may look at."""

FREE = ("none", "new sessions")
"""Disruptions that disturb no running work: everything above needs idle GPUs."""

TIMED = ("link",)
"""Kinds of change that revert on their own unless they are confirmed in time."""

FILES = ("file", "tuned")
"""Kinds of change that write a whole file of nodetune's: {"path", "content"}."""

FAMILIES = {"debian": ("debian", "ubuntu"), "rhel": ("rhel", "fedora", "centos"), "suse": ("suse", "opensuse")}


class UnfixableError(Exception):
    """No change can do it on this host; the text says why, and what a person does instead."""


class HostView(FactsView):
    """A builder's view of a host: all its facts, and the results of earlier changes of the plan. It collects notes.

    `site` are the checks of a site file.
    """

    def __init__(self, facts: HostFacts, findings: Iterable[Finding] = (), site: Iterable[Check] = ()) -> None:
        super().__init__(facts, (), lookup)
        self.name = facts.host
        self.notes: list[str] = []
        self._findings = tuple(findings)
        self._site = tuple(site)
        self._own = dict(_own_files(facts))
        self._found = dict(self._own)

    def fact(self, name: str) -> Fact:
        return self._lookup(self._host, name)

    @property
    def family(self) -> str:
        """debian, rhel, suse, or the distribution's own id ("" without os-release)."""
        system = self.readable("host.os") or {}
        like = [system.get("id", ""), *system.get("like", [])]
        known = (family for family, names in FAMILIES.items() if set(names) & set(like))
        return next(known, str(like[0]))

    def own(self, path: str) -> str:
        """Return the text of one of nodetune's files as it is on the host, or as an earlier change leaves it."""
        return self._own.get(path, "")

    def targets(self, kind: str) -> set[str]:
        """Return what fixes of this kind may set on any host: nothing else is kept of nodetune's files there."""
        remedies = [check.remedy for check in (*checks.load_all(), *self._site)]
        wanted = {fix.target for fix in map(fix_of, self._findings) if fix.kind == kind}
        return wanted | {remedy.target for remedy in remedies if remedy.kind == kind}

    def wrote(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Remember what is written, for what comes after it."""
        for change in changes:
            if change["change"] in FILES:
                self._own[change["path"]] = change["content"] or ""

    def is_as_wanted(self, change: Mapping[str, Any]) -> bool:
        """Return whether the facts show a file or a unit as a change would leave it: the change has nothing to do."""
        if change["change"] == "unit":
            unit = str(change["unit"])
            known = self.readable(f"services.{unit.removesuffix('.service')}") or {}
            return known.get("enabled") == change["enabled"] and change["active"] is None
        if change["change"] not in FILES or change["content"] is None:
            return False
        if change["change"] == "tuned" and (self.readable("services.tuned_profile") or {}).get("name") != "nodetune":
            return False
        path, content = change["path"], change["content"]
        programs = self.readable("own.programs") or {}
        return self._found.get(path) == content or programs.get(path) == _digest(content)

    def checks(self, fix: Fix) -> list[str]:
        """Return the checks that need this fix, for `checks` of a change."""
        return [found.check for found in self._findings if found.fix == fix]

    def sets_sysctl(self, name: str) -> bool:
        """Return whether this plan sets the kernel parameter too."""
        return any(fix_of(found).kind == "sysctl" and fix_of(found).target == name for found in self._findings)

    def note(self, text: str) -> None:
        """Add something that the plan must say: a foreign file that still wins, a daemon that loses control."""
        if text not in self.notes:
            self.notes.append(text)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _own_files(facts: HostFacts) -> Mapping[str, str]:
    """Return the fact own.files; empty if saved facts do not have it. Raise FactUnreadError if it is unread."""
    fact = facts.get("own.files")
    if isinstance(fact, Value) and isinstance(fact.value, Mapping):
        return {str(path): str(text) for path, text in fact.value.items()}
    if isinstance(fact, Unread) and fact.reason != NOT_COLLECTED:
        raise FactUnreadError(f"nodetune's own files on the host: {fact.reason}")
    return {}


@dataclass(frozen=True)
class PlannedChange:
    """One kind of fix at one level of disruption on one host: what is changed together, with what is run afterwards.

    `name` is unique in a host's plan, `checks` are those that it fixes, and `changes` are as nodetune_change takes them.
    `guard` has the conditions for the host; `notes` are remarks for the plan.
    `idle` are the numbers of the changes that have nothing to do, as far as the facts show.
    """

    name: str
    disruption: str
    checks: tuple[str, ...]
    changes: tuple[Mapping[str, Any], ...]
    guard: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    idle: frozenset[int] = frozenset()

    @property
    def busy(self) -> list[Mapping[str, Any]]:
        """The changes that have something to do: what a plan shows."""
        return [change for number, change in enumerate(self.changes) if number not in self.idle]

    def data(self) -> dict[str, Any]:
        """Return the data for nodetune_change."""
        return {
            "group": self.name,
            "disruption": self.disruption,
            "timed": any(change["change"] in TIMED for change in self.changes),
            "guard": dict(self.guard),
            "checks": list(self.checks),
            "changes": [dict(change) for change in self.changes],
        }


Unbuilt = list[tuple[Finding, str]]
"""Findings that no change can fix, with the reason."""


def needs(kinds: Iterable[str]) -> set[str]:
    """Return the facts that the builders of these kinds need."""
    modules = [_builder(kind) for kind in set(kinds) - {"manual"}]
    return set(NEEDS).union(*(getattr(module, "NEEDS", ()) for module in modules))


def build(
    findings: Sequence[Finding], facts: HostFacts, site: Iterable[Check] = ()
) -> tuple[list[PlannedChange], Unbuilt]:
    """Return the changes that fix these findings of one host, least disruptive first, and the unfixable findings."""
    chosen = sorted(
        findings, key=lambda found: (DISRUPTIONS.index(_group_of(found)[0]), _group_of(found)[1], found.check)
    )
    try:
        host = HostView(facts, chosen, site)
    except FactUnreadError as problem:
        return [], [(found, str(problem)) for found in chosen]
    made: list[PlannedChange] = []
    unbuilt: Unbuilt = []
    for (disruption, kind), same in groupby(chosen, key=_group_of):
        taken = kind in {change.name for change in made}
        change = _planned(f"{kind}, {disruption}" if taken else kind, list(same), host, unbuilt)
        if change:
            made.append(change)
    return _in_view_of_later(made), unbuilt


def _group_of(found: Finding) -> tuple[str, str]:
    """Return the key of findings that are changed together: (disruption, kind)."""
    fix = fix_of(found)
    return fix.disruption, fix.kind


def _in_view_of_later(made: Sequence[PlannedChange]) -> list[PlannedChange]:
    """Make each file also accept what later changes make of it, so that a repeated plan changes nothing."""
    later: dict[str, list[str]] = {}
    found: list[PlannedChange] = []
    for each in reversed(made):
        changes = [_accepting(change, later) for change in reversed(each.changes)]
        found.append(replace(each, changes=tuple(reversed(changes))))
    return found[::-1]


def _accepting(change: Mapping[str, Any], later: dict[str, list[str]]) -> Mapping[str, Any]:
    if change["change"] not in FILES or not change["content"]:
        return change
    texts = later.setdefault(change["path"], [])
    others = [text for text in texts if text != change["content"]]
    texts.append(change["content"])
    return {**change, "or": others} if others else change


def _planned(name: str, findings: list[Finding], host: HostView, unbuilt: Unbuilt) -> PlannedChange | None:
    """Return the change of one kind. Add a finding that cannot be fixed to `unbuilt` and continue with the others."""
    buildable: list[Finding] = []
    for found in findings:
        reason = _attempt([fix_of(found)], host)[1]
        if reason:
            unbuilt.append((found, reason))
        else:
            buildable.append(found)
    host.notes = []
    wanted = [fix_of(found) for found in buildable]
    made, reason = _attempt([fix for number, fix in enumerate(wanted) if fix not in wanted[:number]], host)
    if reason:
        unbuilt += [(found, reason) for found in buildable]
    if not made:
        return None
    idle = frozenset(number for number, change in enumerate(made) if host.is_as_wanted(change))
    host.wrote(made)
    disruption = wanted[0].disruption
    guard = {} if disruption in FREE else {"gpu_idle": True}
    checks = tuple(found.check for found in buildable)
    return PlannedChange(name, disruption, checks, tuple(made), guard, tuple(host.notes), idle)


def _attempt(fixes: list[Fix], host: HostView) -> tuple[list[dict[str, Any]], str]:
    """Return the changes of fixes of one kind, or the reason why there are none."""
    try:
        _require_ceilings(fixes, host)
        return (_builder(fixes[0].kind).changes(fixes, host) if fixes else []), ""
    except (UnfixableError, FactAbsentError, FactUnreadError, UserError) as problem:
        return [], plain_text.plain(problem)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as problem:
        # A host may send any shape of data, as in nodetune.audit: no changes then, and no traceback.
        return [], f"the facts have an unexpected shape: {plain_text.plain(repr(problem), 120)}"


def _require_ceilings(fixes: list[Fix], host: HostView) -> None:
    """Raise UnfixableError for a fix that a kernel parameter keeps from its end, unless this plan sets that too."""
    for fix in fixes:
        ceiling = fix.params.get("ceiling")
        if ceiling and not host.sets_sysctl(ceiling["sysctl"]):
            raise UnfixableError(f"{ceiling['reason']}: raise {ceiling['sysctl']} first, then plan again")


def _builder(kind: str) -> Any:
    return import_module(f"{__name__}.{kind}")
