"""A builder's view of a host: its facts, and the results of earlier changes of the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune import checks
from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView, FactUnreadError
from nodetune.api.model import NOT_COLLECTED, Check, Fact, Finding, Fix, HostFacts, Unread, Value, fix_of

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
