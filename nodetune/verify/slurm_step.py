"""A running srun whose tasks measure: their events, and messages to them."""

import subprocess
from collections.abc import Mapping
from typing import Any

from nodetune.hosts.target import UnreachableError
from nodetune.remote import group_messages
from nodetune.remote.live_pool import Ended
from nodetune.remote.slurm import srun
from nodetune.remote.slurm.srun import Told
from nodetune.verify import remote


class MeasuringStep(srun.SrunStep):
    """A measuring srun. It yields (number of the task, event)."""

    def __init__(self, process: subprocess.Popen[bytes], plan: remote.Plan, script: bytes, nonce: str) -> None:
        super().__init__(process, plan["hosts"], nonce)
        self._names: list[str] = plan["hosts"]
        self._plans = [plan["plans"][number] for number in plan["of"]]
        self._of: list[int] = plan["of"]
        self.to_send = script

    def hear(self, number: int, event: Mapping[str, Any]) -> Told:
        self._relay(number, event)
        for each in remote.safe(event, self._plans[number]):
            yield number, each
        if "end" in event:
            self.over(number)
            yield from self._end(number, None)

    def _relay(self, number: int, event: Mapping[str, Any] | Ended) -> None:
        """Send an event for the group of this task to all tasks; other groups ignore it."""
        plan = self._plans[number]
        if plan["group"]:
            hosts = plan["group"]["hosts"]
            for told in group_messages.relayed(event, hosts.index(self._names[number])):
                self.send({**told, "plan": self._of[number]})

    def lost(self, number: int, problem: UnreachableError) -> Told:
        yield from self._end(number, problem)

    def _end(self, number: int, problem: UnreachableError | None) -> Told:
        ended = Ended(problem, self.spent())
        self._relay(number, ended)
        yield number, ended
