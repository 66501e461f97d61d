"""What the guard left on a node, as it was read from there. The node is not trusted: each reader takes anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nodetune.choice import Choice
from nodetune.guard import drains
from nodetune.model import Absent, HostFacts, Value
from nodetune.slurm.places import POLICY, RUN

HEARTBEAT, BLIND = f"{RUN}/heartbeat", f"{RUN}/blind"
NOTES = (f"{RUN}/{drains.NOTE}", f"{drains.KEPT}/{drains.NOTE}")


FACTS = frozenset(f"file.{path}" for path in (HEARTBEAT, BLIND, POLICY, *NOTES))


class Left(Choice):
    """Nothing but what the guard left on the node."""

    def facts(self) -> set[str]:
        return set(FACTS)


def is_there(facts: HostFacts, path: str) -> bool:
    """Whether the file is there, or may be (it could not be read)."""
    return not isinstance(facts.facts.get(f"file.{path}"), Absent)


def text(facts: HostFacts, path: str) -> str:
    """A file of the node; empty where it is not there or cannot be read."""
    fact = facts.facts.get(f"file.{path}")
    return str(fact.value) if isinstance(fact, Value) else ""


def data(facts: HostFacts, path: str) -> Mapping[str, Any]:
    """A JSON object in a file of the node; empty where it is none."""
    try:
        found = json.loads(text(facts, path))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def notes(facts: HostFacts) -> list[Mapping[str, Any]]:
    """What the node knows of the guard's drains."""
    return [each for each in (data(facts, path) for path in NOTES) if each]


def last_run(facts: HostFacts) -> tuple[int, str, str] | None:
    """(Unix seconds, job, verdict) of the guard's last run; None where there was none since the node started."""
    words = text(facts, HEARTBEAT).split(None, 2)
    if len(words) != 3 or not re.fullmatch(r"[0-9]{1,12}", words[0]):
        return None
    return int(words[0]), words[1], words[2].strip()


def blind_runs(facts: HostFacts) -> int:
    """How often it could not judge since the node started."""
    found = re.match(r"[0-9]{1,9}\b", text(facts, BLIND))
    return int(found[0]) if found else 0
