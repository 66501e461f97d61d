"""What is measured: suites by name, and what options make of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodetune.verdict.figures import OF_PAIRS

MIB, GIB = 1 << 20, 1 << 30

Item = dict[str, Any]
"""{"name", "options"} and perhaps "seconds": one line of a plan, as the payload reads it."""

ROUNDS = 2
"""So that each host meets two others, and a slow pair can be told from a slow host."""

ALL_MEET_SECONDS = {"tcp": 240, "rdma": 1800}
"""Deadlines for the seven rounds in which eight hosts have all met (again.MOST_MEETING and some)."""

OF_GPUS = ("gpu_copy", "gpu_memory", "gpu_p2p", "gpu_latency", "gpu_load", "gemm", "nccl")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")

SUITES: Mapping[str, tuple[Item, ...]] = {
    "quick": (
        {"name": "memory", "options": {}},
        {"name": "gpu_copy", "options": {}},
        {"name": "gpu_memory", "options": {}},
        {"name": "gpu_p2p", "options": {"both": False}},
        {"name": "gpu_latency", "options": {}},
        {"name": "gemm", "options": {}},
        {"name": "nccl", "options": {"collectives": ["all_reduce"], "sizes": [512 * MIB, 2 * GIB]}},
    ),
    "full": (
        {"name": "memory", "options": {}},
        {"name": "jitter", "options": {}},
        {"name": "clock", "options": {}},
        {"name": "gpu_copy", "options": {"together": True}, "seconds": 120},
        {"name": "gpu_memory", "options": {}},
        {"name": "gpu_p2p", "options": {}, "seconds": 120},
        {"name": "gpu_latency", "options": {}},
        {"name": "gemm", "options": {}},
        {"name": "gpu_load", "options": {"seconds": 30}, "seconds": 90},
        {"name": "nccl", "options": {"collectives": list(COLLECTIVES)}, "seconds": 240},
    ),
    "nccl": ({"name": "nccl", "options": {"collectives": list(COLLECTIVES)}, "seconds": 240},),
}
"""quick takes at most a minute on eight GPUs. Where no seconds stand, the deadline is the measurement's own."""


@dataclass(frozen=True)
class Wanted:
    """What a run is to measure. `only` takes these of the suite, or as the full one has them; the rest are options of single ones."""

    suite: str = "quick"
    only: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    disk: str = ""
    pairs: bool = False
    together: bool = False
    network: str = ""
    nccl: str = ""
    nccl_tests: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    runs: int = 1

    @property
    def items(self) -> list[Item]:
        """What each host measures, in order."""
        chosen = [_alone(name, self.suite) for name in self.only] or [dict(item) for item in SUITES[self.suite]]
        names = [item["name"] for item in chosen]
        chosen += [_alone("disk")] if self.disk and "disk" not in names else []
        chosen += [_alone(name) for name in OF_PAIRS if self.pairs and name not in names]
        return [self._with_options(item) for item in chosen]

    @property
    def words(self) -> list[str]:
        """The options that measure all of it again."""
        usual = "full" if self.only else "quick"
        return [
            *([] if self.suite == usual else ["--suite", self.suite]),
            *(word for name in self.only for word in ("--only", name)),
            *(word for gpu in self.gpus for word in ("--gpu", str(gpu))),
            *(["--pairs"] if self.pairs else []),
            *(word for item in self.items for word in self._of(item["name"], self.together)),
            *self._set,
        ]

    def words_for(self, name: str, together: bool) -> list[str]:
        """The options that measure just this again, as it was measured here; `together`: over all hosts at once."""
        same = _alone(name, self.suite) == _alone(name)
        suite = [] if same else ["--suite", self.suite]
        return [*suite, "--only", name, *self._of(name, together), *self._set]

    def _of(self, name: str, together: bool) -> list[str]:
        given = {
            "disk": {"--disk": self.disk},
            "nccl": {"--nccl": self.nccl, "--nccl-tests": self.nccl_tests},
            "tcp": {"--network": self.network},
        }
        words = [word for option, value in given.get(name, {}).items() if value for word in (option, value)]
        return [*words, *(["--together"] if name == "nccl" and together else [])]

    @property
    def _set(self) -> list[str]:
        return [word for name, value in self.env.items() for word in ("--env", f"{name}={value}")]

    def _with_options(self, item: Item) -> Item:
        options = dict(item["options"])
        if self.gpus and item["name"] in OF_GPUS:
            options["gpus"] = list(self.gpus)
        if item["name"] == "disk" and self.disk:
            options["dir"] = self.disk
        if item["name"] == "nccl":
            options |= {name: path for name, path in (("nccl", self.nccl), ("nccl_tests", self.nccl_tests)) if path}
        if item["name"] in OF_PAIRS:
            options |= {"rounds": ROUNDS, **({"network": self.network} if self.network else {})}
        return {**item, "options": options}


def _alone(name: str, suite: str = "full") -> Item:
    """One measurement by name as a suite has it, where it has it, else as the full one does."""
    for item in (*SUITES[suite], *SUITES["full"]):
        if item["name"] == name:
            return dict(item)
    return {"name": name, "options": {}}


def of_several(items: Sequence[Item], together: bool) -> list[Item]:
    """Of the items, those that take several hosts at once: pairs, and with `together` NCCL over all of them."""
    names = (*OF_PAIRS, *(("nccl",) if together else ()))
    return [item for item in items if item["name"] in names]


def all_meet(items: Sequence[Item]) -> list[Item]:
    """Of what takes pairs of hosts: in as many rounds as it takes until every two have met."""
    return [
        {**item, "options": {**item["options"], "rounds": 0}, "seconds": ALL_MEET_SECONDS[item["name"]]}
        for item in items
        if item["name"] in OF_PAIRS
    ]
