"""The result of each host at each stage, in the run's folder as provision.json (schema nodetune.provision/1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK, TOO_SLOW
from nodetune.foundation.json_document import head
from nodetune.provision.request import OLDER, ResumeCommand
from nodetune.remediation.runs.record import Run

SCHEMA = "nodetune.provision/1"
DONE, NOTHING, FAILED, NOT_BEGUN, LEFT_OUT = "done", "nothing to do", "failed", "not reached", "left out"
STOPPED = "stopped by Ctrl-C"


@dataclass(frozen=True)
class StageResult:
    """The result of one host at one stage.

    `code`: the exit code for a failure; `restart_at`: the earlier stage to restart at, if it is not the failed one.
    """

    state: str = DONE
    message: str = ""
    code: int = OK
    seconds: float = 0.0
    restart_at: str = ""

    @property
    def ok(self) -> bool:
        return self.state != FAILED


Results = dict[str, StageResult]
"""Host → its result."""


def failed(message: str, code: int = END_STATE_MISSED, restart_at: str = "") -> StageResult:
    return StageResult(FAILED, text.plain(" ".join(message.split()), 600), code, restart_at=restart_at)


class Record:
    """Host → stage → result; written after every stage, so that a killed run has recorded everything."""

    def __init__(
        self, run: Run, hosts: Iterable[str], stages: Sequence[str], typed: ResumeCommand, upgrade: bool = False
    ) -> None:
        self._run, self.stages, self._typed, self._upgrade = run, tuple(stages), typed, upgrade
        self.hosts: dict[str, dict[str, StageResult]] = {host: {} for host in hosts}

    @property
    def run(self) -> str:
        return self._run.id

    def note(self, stage: str, came: Mapping[str, StageResult]) -> None:
        for host, each in came.items():
            self.hosts[host][stage] = each
            told = {"task": stage, "item": "", "status": each.state, "changed": each.state == DONE}
            self._run.add_event({"host": host, **told, "message": each.message, "seconds": round(each.seconds, 3)})
        self.save()

    def save(self) -> None:
        self._run.save("provision", self.document())

    @property
    def alive(self) -> list[str]:
        """Hosts on which nothing has failed, in order."""
        return [host for host, stages in self.hosts.items() if all(each.ok for each in stages.values())]

    def broke_at(self, host: str) -> str:
        """Return the stage that failed; empty if none did."""
        return next((stage for stage, each in self.hosts[host].items() if not each.ok), "")

    def again(self, host: str) -> str:
        """Return the command to type once the cause of a host's failure is fixed."""
        back = self.hosts[host].get("back")
        if back and not back.ok and back.code != TOO_SLOW:  # where it is TOO_SLOW, the versions of before are there
            older = f"{OLDER} is the previous lock, from git; run {self.run} keeps its versions in held.json"
            return f"{self._typed.command(host, OLDER)}  # {older}"
        return self._typed.command(host) + self._from(host)

    def _from(self, host: str) -> str:
        """Return the options to continue: an interrupted upgrade continues; one that changed nothing starts again."""
        stage, back = self.broke_at(host), self.hosts[host].get("back")
        if not self._upgrade:
            begin = self.hosts[host][stage].restart_at or stage
            return f" --from {begin}" if begin in self.stages[1:] else ""
        as_before = stage in ("drain", "before") or (back and (back.state in (DONE, NOTHING) or back.code == TOO_SLOW))
        return " --upgrade" if as_before else ""

    def close(self, why: str = "") -> None:
        """Record every stage that was not begun; `why` is the reason if nothing failed before it."""
        for host, stages in self.hosts.items():
            broke = self.broke_at(host)
            for stage in self.stages:
                stages.setdefault(stage, StageResult(NOT_BEGUN, f"{broke} failed" if broke else why))
        self.save()

    @property
    def code(self) -> int:
        """The highest code of any host."""
        return max((each.code for stages in self.hosts.values() for each in stages.values()), default=OK)

    def document(self) -> dict[str, Any]:
        hosts = [
            {
                "name": host,
                "stages": [{"stage": stage, **_data(stages[stage])} for stage in self.stages if stage in stages],
                "next": self.again(host) if self.broke_at(host) else "",
            }
            for host, stages in self.hosts.items()
        ]
        return {**head(SCHEMA), "run": self.run, "hosts": hosts}


def _data(came: StageResult) -> dict[str, Any]:
    return {"state": came.state, "message": came.message, "seconds": round(came.seconds, 3)}
