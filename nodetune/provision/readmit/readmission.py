"""The output of one stage of a readmission, and of all stages so far together."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodetune.api.conclusion import Examined
from nodetune.api.model import HostFacts
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.provision.readmit.replaced_parts import Inventory
from nodetune.provision.record import STOPPED as BY_CTRL_C
from nodetune.provision.record import StageResult, failed

STOPPED = failed(BY_CTRL_C, INCOMPLETE)
"""The result of a stage after which no further one begins."""


@dataclass(frozen=True)
class StageOutput:
    """The result of one stage, the documents that prove it (name of a file → content), and what it concludes."""

    result: StageResult
    documents: Mapping[str, str] = field(default_factory=dict)
    concluded: Examined = field(default_factory=Examined)
    facts: HostFacts | None = None
    inventory: Inventory | None = None


@dataclass
class Readmission:
    """The results of the stages so far, by their names, and all else that they found. `facts`: the last ones of the host."""

    host: str
    steps: dict[str, StageResult] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    concluded: Examined = field(default_factory=Examined)
    facts: HostFacts | None = None
    inventory: Inventory = field(default_factory=Inventory)
    began: float = field(default_factory=time.time)
    is_back: bool = False
    """Whether its drain was resumed."""

    def add(self, stage: str, found: StageOutput, seconds: float = 0.0) -> None:
        """Add what a stage found."""
        self.steps[stage] = replace(found.result, seconds=seconds)
        self.documents.update(found.documents)
        self.concluded = _without(self.concluded, found.concluded) + found.concluded
        self.facts = found.facts or self.facts
        self.inventory = found.inventory or self.inventory

    @property
    def missing(self) -> list[str]:
        """All that keeps the host away."""
        return [f"{step}: {each.message}" for step, each in self.steps.items() if not each.ok]

    @property
    def code(self) -> int:
        return max((each.code for each in self.steps.values()), default=OK)


def _without(known: Examined, later: Examined) -> Examined:
    """Return what is known but for what the same source says again of the same host: the second audit of the first."""
    again = {(each.source, host) for each in later.conclusions for host in each.hosts}
    again |= {(each.source, each.host) for each in later.examinations}
    return Examined(
        tuple(each for each in known.conclusions if not {(each.source, host) for host in each.hosts} & again),
        tuple(each for each in known.examinations if (each.source, each.host) not in again),
    )
