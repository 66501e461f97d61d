"""A running srun whose tasks measure: what they say, and what they are told."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from nodetune import measuring
from nodetune.transport import Unreachable, srun
from nodetune.transport.conversation import Ended
from nodetune.transport.srun import Told, tasks
from nodetune.verify import wire

__all__ = ["Step", "tasks"]


class Step(srun.Step):
    """What the tasks say: (number of the task, event)."""

    def __init__(self, process: subprocess.Popen[bytes], plan: measuring.Plan, script: bytes, nonce: str) -> None:
        super().__init__(process, plan["hosts"])
        self._names: list[str] = plan["hosts"]
        self._plans = [plan["plans"][number] for number in plan["of"]]
        self._of: list[int] = plan["of"]
        self._nonce = nonce
        self.to_send = script
        self._decoders = [wire.Decoder(nonce) for _ in self._names]

    def hear(self, number: int, line: bytes) -> Told:
        decoder = self._decoders[number]
        try:
            events = decoder.feed(line)
        except wire.BadLine as problem:
            yield from self.gone(number, "bad answer", f"a line of the measuring program is damaged: {problem}")
            return
        if decoder.old:
            yield from self.gone(number, "no python", f"python3 there is Python {decoder.old}: 3.6 or newer is needed")
            return
        for event in events:
            yield from self._event(number, event)

    def _event(self, number: int, event: Mapping[str, Any]) -> Told:
        self.begun(number)
        self._relay(number, event)
        for each in measuring.safe(event, self._plans[number]):
            yield number, each
        if "end" in event:
            self.over(number)
            yield from self._end(number, None)

    def _relay(self, number: int, event: Mapping[str, Any] | Ended) -> None:
        """Tell all tasks what the group of this one is to hear; those of other groups do not listen."""
        plan = self._plans[number]
        if plan["group"]:
            hosts = plan["group"]["hosts"]
            place = {"group": {"self": hosts.index(self._names[number])}}
            for told in measuring.relayed(event, place):
                self.to_send += wire.encode({**told, "plan": self._of[number]}, self._nonce)

    def lost(self, number: int, problem: Unreachable) -> Told:
        yield from self._end(number, problem)

    def _end(self, number: int, problem: Unreachable | None) -> Told:
        ended = Ended(problem, self.spent())
        self._relay(number, ended)
        yield number, ended
