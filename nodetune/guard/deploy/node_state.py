"""Files of the guard that were read from a node. The node is untrusted: each reader accepts any content."""

import re
from collections.abc import Mapping
from typing import Any

from nodetune.api.model import Absent, HostFacts, Value
from nodetune.audit.selection import Selection
from nodetune.foundation.text import json_object
from nodetune.guard.deploy.paths import POLICY, RUN
from nodetune.guard.node import drain, records

HEARTBEAT, COUNT = f"{RUN}/heartbeat", f"{RUN}/{records.COUNT}"
NOTES = (f"{RUN}/{drain.NOTE}", f"{drain.KEPT}/{drain.NOTE}")
HELD, EXPLAINED = f"{RUN}/{records.HELD}", f"{RUN}/{drain.EXPLAINED}"
FACTS = frozenset(f"file.{path}" for path in (HEARTBEAT, COUNT, POLICY, *NOTES, HELD, EXPLAINED))
_FAILED = re.compile(r"\b(fail|held): (.+)", re.DOTALL)


class NodeState(Selection):
    """Nothing but what the guard left on the node."""

    def facts(self) -> set[str]:
        return set(FACTS)


def is_there(facts: HostFacts, path: str) -> bool:
    """Return whether the file is there, or may be (it could not be read)."""
    return not isinstance(facts.facts.get(f"file.{path}"), Absent)


def text(facts: HostFacts, path: str) -> str:
    """Return the text of a file on the node; empty if it is missing or cannot be read."""
    fact = facts.facts.get(f"file.{path}")
    return str(fact.value) if isinstance(fact, Value) else ""


def data(facts: HostFacts, path: str) -> Mapping[str, Any]:
    """Return the JSON object in a file on the node; empty if it is not one."""
    return json_object(text(facts, path))


def notes(facts: HostFacts) -> list[Mapping[str, Any]]:
    """Return the node's records of the guard's drains, and of a job that it held and Slurm drained for."""
    explained = re.fullmatch(r"([0-9]{1,12})\s*", text(facts, EXPLAINED))
    held = drain.awaiting(data(facts, HELD), int(explained[1]) if explained else 0)
    return [each for each in (*(data(facts, path) for path in NOTES), held) if each]


def last_run(facts: HostFacts) -> tuple[int, str, str] | None:
    """Return (Unix seconds, job, verdict) of the guard's last run since boot, or None."""
    words = text(facts, HEARTBEAT).split(None, 2)
    if len(words) != 3 or not re.fullmatch(r"[0-9]{1,12}", words[0]):
        return None
    return int(words[0]), words[1], _FAILED.sub(r"\1", words[2].strip())


def last_reason(facts: HostFacts) -> str:
    """Return which check failed in that run, and with what value; empty if none failed."""
    found = _FAILED.search(text(facts, HEARTBEAT))
    return found[2].strip() if found else ""


def inconclusive_runs(facts: HostFacts) -> int:
    """Return how often the guard was inconclusive since boot."""
    found = re.match(r"[0-9]{1,9}\b", text(facts, COUNT))
    return int(found[0]) if found else 0
