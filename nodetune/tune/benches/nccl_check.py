"""Whether an accepted setting of NCCL still pays: it and the default once more on fresh runs, and what has changed since."""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune.foundation import UserError, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.foundation.request import RequestError, built
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.tune import confirm, document, headline, space, study
from nodetune.tune.benches import nccl_space
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.model import BenchError, Setting
from nodetune.tune.trials import BudgetError, DisturbedError, Trials

PAYS, GONE, UNDECIDED = "still better", "no longer better", "undecided"
CONDITIONS = {
    "nccl": "NCCL",
    "driver": "driver",
    "machines": "machine",
    "gpus": "number of GPUs",
    "transport": "transport",
    "link": "link",
}
"""Keys of the provenance that must still be equal, and their descriptions."""


@dataclass(frozen=True)
class CheckRequest:
    """`file` is the result of `nodetune tune nccl`. `budget` is in seconds, without the first measurement."""

    file: Path
    budget: float = 60.0
    nccl: str = ""
    allow_busy: bool = False
    connection: ConnectionOptions = built()


@dataclass(frozen=True)
class Checked:
    """`state` is the answer of the measurement. `stale`: what the result was measured with and is another now."""

    state: str
    reason: str
    stale: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """0 if it still pays and nothing else has changed, 1 if not, 3 if it is undecided."""
        if self.state == GONE or self.stale:
            return FINDINGS
        return OK if self.state == PAYS else INCOMPLETE


def check(request: CheckRequest, make: Callable[[NcclRequest], NcclBench]) -> Checked:
    """Measure the setting of a result once more. `make` returns the bench of a request. Raise UserError."""
    found = document.read(request.file)
    if found["subject"] != "nccl" or found["state"] != study.ACCEPTED or not found["proposal"]:
        raise UserError(f"{request.file}: {_what(found)}: give a result of nodetune tune nccl that accepted a setting")
    setting: Setting = tuple(sorted(found["setting"].items()))
    try:
        wanted = _request(found["provenance"], setting, request)
    except (KeyError, TypeError, ValueError, AttributeError, RequestError):
        raise UserError(f"{request.file}: damaged: its provenance does not say how it was tuned: tune again") from None
    try:
        bench = make(wanted)
        _refuse_what_is_set(bench, setting, wanted)
        now = json.loads(json.dumps(bench.provenance()))
        stale = tuple(_changed(found["provenance"], now))
        state, reason = _measured(bench, setting, request.budget)
    except BenchError as problem:
        raise UserError(str(problem)) from None
    before = f"; when it was tuned: {headline.percent(found['confirmations'][-1]['gain'])}"
    return Checked(state, f"{space.in_words(dict(setting))}: {reason}{before}", stale)


def _what(found: Mapping[str, Any]) -> str:
    return f"a result of {text.plain(found['subject'])}: {text.plain(found['state'])}"


def _request(provenance: Mapping[str, Any], setting: Setting, request: CheckRequest) -> NcclRequest:
    """Return the request of the tuning. Its default has NCCL's own values even where the setting is applied by now."""
    asked, version = provenance.get("asked", {}), str(provenance["nccl"])
    values = {name: nccl_space.neutral(name, version) for name, _ in setting}
    env = {name: value for name, value in values.items() if value}
    return NcclRequest(
        objective=str(provenance["objective"]),
        sizes=tuple(asked.get("sizes", ())),
        collectives=tuple(asked.get("collectives", ())),
        gpus=tuple(asked.get("gpus", ())),
        weights={str(name): float(weight) for name, weight in asked.get("weights", {}).items()},
        ratio=float(provenance["ratio"]),
        dtype=str(provenance["dtype"]),
        env={**asked.get("env", {}), **env},
        nccl=request.nccl or str(asked.get("nccl", "")),
        allow_busy=request.allow_busy,
        multi_node=len(provenance["hosts"]) > 1,
        connection=request.connection,
    )


def _refuse_what_is_set(bench: NcclBench, setting: Setting, wanted: NcclRequest) -> None:
    """Raise UserError if a host has set a variable whose own default cannot be asked for."""
    held = [name for name, _ in setting if name in bench.survey.set and name not in wanted.env]
    if held:
        raise UserError(f"{held[0]} is set on the hosts, and has no value that means NCCL's default: remove it first")


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, name in CONDITIONS.items():
        if before.get(key) != now.get(key):
            yield f"{name} {_value(now.get(key))}, tuned with {_value(before.get(key))}"


def _value(seen: Any) -> str:
    several = seen if isinstance(seen, list) else [seen]
    several = [value for each in several for value in (each.values() if isinstance(each, dict) else [each])]
    return text.plain(", ".join(str(each) for each in several if each not in (None, "")) or "unknown", 100)


def _measured(bench: NcclBench, setting: Setting, budget: float) -> tuple[str, str]:
    trials = Trials(bench, budget)
    trials.cases = tuple(case for case in trials.cases if case.objective or case.judged)
    try:
        found = confirm.confirm(trials, setting, random.Random(1))  # noqa: S311  (an order, and no secret)
    except DisturbedError as why:
        return UNDECIDED, f"every trial was disturbed: {why}"
    except BudgetError:
        return UNDECIDED, f"not clear in {text.span(budget)}: --budget with more time"
    if found is None:
        return GONE, f"it cannot be measured: {trials.dropped[setting]}"
    ends = headline.interval([found.low, found.high])
    gain = f"{headline.percent(found.ratio)} (99 % interval {ends} %)" if math.isfinite(found.ratio) else ""
    return (GONE, f"{gain}: {found.refused}") if found.refused else (PAYS, gain)
