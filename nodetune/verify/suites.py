"""Select what is measured: suites by name, modified by options. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodetune.foundation.request import RequestError, limited, one_of
from nodetune.verify import catalogue
from nodetune.verify.catalogue import of_folder, of_scope, takes_two_hosts

Item = dict[str, Any]
"""{"name", "options"} and optionally "seconds": one item of a plan for the payload."""

ROUNDS = 2
"""Rounds in which each host meets two others, so that a slow pair and a slow host can be distinguished."""

LOAD = "gpu_load"
STORAGE = "disk_hosts"
MIN_LOAD_SECONDS, MAX_LOAD_SECONDS = 10, 86_400
LOAD_GRACE = 60
"""Seconds beyond the load itself, for its preparation and its end."""

NAMES = ("quick", "full", "nccl")
"""quick takes at most a minute on eight GPUs. The file of a measurement defines its suites and options."""


def suite(name: str) -> list[Item]:
    """Return the items of a suite in order."""
    return [each.item(name) for each in catalogue.measurements().values() if name in each.suites]


@dataclass(frozen=True)
class SuiteRequest:
    """The selection of a run.

    `only` selects from the suite or from full; `require` names those that have to pass; the rest are options of single
    measurements.
    """

    suite: str = one_of("quick", NAMES)
    only: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    disk: str = ""
    pairs: bool = False
    multi_node: bool = False
    network: str = ""
    nccl: str = ""
    nccl_tests: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    repeat: int = limited(1, 1, 100)
    load_seconds: int | None = limited(None, MIN_LOAD_SECONDS, MAX_LOAD_SECONDS)
    demand: int | None = limited(None, 1, 1_000_000)
    require: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise RequestError."""
        measured = {item["name"] for item in self.items}
        lost = [name for name in self.require if name not in measured]
        if lost:
            raise RequestError(f"--require {','.join(lost)}: this run does not measure it: add --only or --suite full")
        if self.demand and not (STORAGE in measured and self.multi_node):
            raise RequestError(f"--demand: add --only {STORAGE} --multi-node, which reads on all hosts at once")

    @property
    def items(self) -> list[Item]:
        """The items of each host in order."""
        chosen = [_alone(name, self.suite) for name in self.only] or suite(self.suite)
        names = [item["name"] for item in chosen]
        every = [*chosen, *(_alone(name) for name in self._added if name not in names)]
        return [self._with_options(item) for item in every]

    @property
    def _added(self) -> list[str]:
        """Return what --disk, --pairs and --load-seconds add: nothing if such a measurement was named, as they then apply to it."""
        given = ((self.disk, of_folder()), (self.pairs, of_scope("pair")), (self.load_seconds, (LOAD,)))
        return [
            name
            for wanted, names in given
            for name in names
            if wanted and not catalogue.of(name).by_name and not set(names) & set(self.only)
        ]

    @property
    def words(self) -> list[str]:
        """The options that measure everything again."""
        usual = "full" if self.only else "quick"
        return [
            *([] if self.suite == usual else ["--suite", self.suite]),
            *(word for name in self.only for word in ("--only", name)),
            *(word for gpu in self.gpus for word in ("--gpu", str(gpu))),
            *(["--pairs"] if self.pairs else []),
            *_flat(option for item in self.items for option in self._of(item["name"], self.multi_node)),
            *(["--require", ",".join(self.require)] if self.require else []),
            *self._set,
        ]

    def words_for(self, name: str, together: bool) -> list[str]:
        """Return the options that measure only this again; `together`: over all hosts at once."""
        same = _alone(name, self.suite) == _alone(name)
        suite = [] if same else ["--suite", self.suite]
        return [*suite, "--only", name, *_flat(self._of(name, together)), *self._set]

    def _of(self, name: str, together: bool) -> list[tuple[str, ...]]:
        given = {
            **{each: {"--disk": self.disk} for each in of_folder()},
            STORAGE: {"--disk": self.disk, "--demand": str(self.demand or "")},
            "nccl": {"--nccl": self.nccl, "--nccl-tests": self.nccl_tests},
            **{each: {"--nccl": self.nccl} for each in ("nccl_overlap", "training_step")},
            LOAD: {"--load-seconds": str(self.load_seconds or "")},
            **{each: {"--network": self.network} for each in ("tcp", "tcp_latency")},
        }
        options: list[tuple[str, ...]] = [(option, value) for option, value in given.get(name, {}).items() if value]
        return [*options, *([("--multi-node",)] if name in of_scope("collective") and together else [])]

    @property
    def _set(self) -> list[str]:
        return [word for name, value in self.env.items() for word in ("--env", f"{name}={value}")]

    def _with_options(self, item: Item) -> Item:
        options = dict(item["options"])
        if self.gpus and item["name"] in of_scope("gpus", "collective"):
            options["gpus"] = list(self.gpus)
        if item["name"] in of_folder() and self.disk:
            options["dir"] = self.disk
        if item["name"] == STORAGE and self.demand:
            options["demand"] = self.demand
        if item["name"] == LOAD and self.load_seconds:
            options["seconds"] = self.load_seconds
            item = {**item, "seconds": self.load_seconds + LOAD_GRACE}
        if item["name"] in of_scope("collective") and self.nccl:
            options["nccl"] = self.nccl
        if item["name"] == "nccl" and self.nccl_tests:
            options["nccl_tests"] = self.nccl_tests
        if takes_two_hosts(item["name"]):
            options |= {"rounds": ROUNDS, **({"network": self.network} if self.network else {})}
        return {**item, "options": options}


def _flat(words: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the words of options, each option once."""
    return [word for option in dict.fromkeys(words) for word in option]


def _alone(name: str, suite: str = "full") -> Item:
    """Return one measurement by name with the options of the suite, else of the full suite."""
    known = catalogue.of(name)
    return known.item(suite if suite in known.suites else "full")


def of_several(items: Sequence[Item], together: bool) -> list[Item]:
    """Return the items for several hosts at once: pairs, and with `together` NCCL over all of them."""
    names = of_scope("pair", *(("collective",) if together else ()))
    return [item for item in items if item["name"] in names]


def all_meet(items: Sequence[Item]) -> list[Item]:
    """Return the items with enough rounds for every two hosts to meet."""
    return [
        {**item, "options": {**item["options"], "rounds": 0}, "seconds": catalogue.of(item["name"]).all_pairs_seconds}
        for item in items
        if takes_two_hosts(item["name"])
    ]
