"""Which side of a limit counts: the soft limit is in effect, and programs may raise it to the hard limit."""

from __future__ import annotations

import re
from typing import Any

from nodetune.api import Absent, Cause, Each, Fact, FactsView, Unread, Value

SESSIONS = "login sessions"
"""Those of a group or a user that get less: `login sessions of @students`."""
PASSED_ON = ("slurmd", "containerd", "crio", SESSIONS)
"""Daemons that pass their limits on to work. kubelet and dockerd do not: containerd or CRI-O starts containers."""

RAISED_BY_ITSELF = ("containerd", "crio")
"""Go programs raise their own soft limit of open files but start children with the old one: the hard limit counts."""


PROCESS = re.compile(r"^process \d+(, )?")
"""Its number differs from host to host and has no meaning."""

WORK = ("kubernetes.present", "slurm.present")


def logins(facts: FactsView) -> tuple[str, ...]:
    """Return login sessions, or nothing on a node where only a kubelet starts work."""
    return () if facts["kubernetes.present"] and not facts["slurm.present"] else (SESSIONS,)


def limits_for(
    facts: FactsView, item: str, side: str = "soft", subjects: tuple[str, ...] = PASSED_ON
) -> Fact | dict[str, Any]:
    """Return one side of a limit for each of the subjects that exist on this host."""
    fact = facts.fact(f"limits.{item}")
    if not isinstance(fact, Each):
        return fact
    return {name: _side(one, side) for name, one in fact.of.items() if name.partition(" of ")[0] in subjects}


def cause(item: str) -> Cause:
    """Tell which file or process gave the failing subjects their limit, where that says more than a process number."""

    def tell(facts: FactsView, subjects: tuple[str, ...]) -> str:
        fact = facts.fact(f"limits.{item}")
        given = {name: fact.of[name] for name in subjects} if isinstance(fact, Each) else {}
        told = {name: _origin(one.value) for name, one in given.items() if isinstance(one, Value)}
        return "; ".join(f"{name}: {text}" for name, text in told.items() if text)

    return tell


def _origin(limit: dict[str, Any]) -> str:
    source = PROCESS.sub("", str(limit.get("source", "")))
    return "; ".join(filter(None, (source, limit.get("in_the_way", ""))))


def _side(fact: Value | Absent | Unread, side: str) -> Value | Absent | Unread:
    return Value(fact.value[side]) if isinstance(fact, Value) else fact
