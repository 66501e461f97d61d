"""Which side of a limit counts where: the soft one is in force, the hard one is what programs may raise it to."""

from __future__ import annotations

from typing import Any

from nodetune.model import Absent, Each, Fact, Unread, Value
from nodetune.view import View

SESSIONS = "login sessions"
PASSED_ON = ("slurmd", "containerd", "crio", SESSIONS)
"""Who hands its limits down to work: kubelet and dockerd do not (the container's parent is containerd or CRI-O)."""

RAISED_BY_ITSELF = ("containerd", "crio")
"""Programs in Go raise their own soft limit of open files and start children with the old one: their hard one counts."""


WORK = ("kubernetes.present", "slurm.present")


def logins(facts: View) -> tuple[str, ...]:
    """Login sessions; none on a node where only a kubelet starts work."""
    return () if facts["kubernetes.present"] and not facts["slurm.present"] else (SESSIONS,)


def seen(facts: View, item: str, side: str = "soft", subjects: tuple[str, ...] = PASSED_ON) -> Fact | dict[str, Any]:
    """One side of a limit for each of the subjects that are on this host."""
    fact = facts.fact(f"limits.{item}")
    if not isinstance(fact, Each):
        return fact
    return {name: _side(one, side) for name, one in fact.of.items() if name in subjects}


def _side(fact: Value | Absent | Unread, side: str) -> Value | Absent | Unread:
    return Value(fact.value[side]) if isinstance(fact, Value) else fact
