"""The values of a search: what is searched, its rounds of runs, their results, and what they show. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

SOLO, PAIRS, JOINT = "solo", "pairs", "whole"

HANG, FAILED, WRONG = FAULTS = ("hang", "failed", "wrong data")

NODE, GPU, NIC, RAIL, PATH, LINK, UPLINK = ("node", "gpu", "nic", "rail", "path", "link", "uplink")
"""Kinds of parts. path: between two neighbours of the ring. link: between two domains. uplink: from a domain to all
others. rail: a GPU or its NIC, if both are possible."""


@dataclass(frozen=True)
class Fleet:
    """Nodes in the order of the ring, and for each the number of its domain (the nodes of a leaf switch), ascending."""

    nodes: tuple[str, ...]
    domains: tuple[int, ...]
    names: tuple[str, ...] = ("",)
    """The name of each domain."""


@dataclass(frozen=True)
class Round:
    """Disjoint groups of nodes that run at the same time.

    `loaded`: every domain sends as much as it can to others. `ring`: one of the rounds that have all neighbours.
    """

    kind: str
    groups: tuple[tuple[int, ...], ...]
    loaded: bool = False
    ring: bool = False


@dataclass(frozen=True)
class GroupResult:
    """The figures of a group: one a GPU (solo) or a rail. 0: none, for the reason in `fault`. Empty: not measured."""

    figures: tuple[float, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class GroupRun:
    """One run of a group: logarithms of its figures. `round` counts from 0."""

    nodes: tuple[int, ...]
    rails: tuple[float, ...]
    fault: str
    round: int
    ring: bool = False
    near: bool = True
    loaded: bool = False


@dataclass(frozen=True)
class Part:
    """A part by its kind and the numbers of its nodes (or domains), and its rail: ("gpu", (17,), 3)."""

    kind: str
    at: tuple[int, ...]
    rail: int | None = None


@dataclass
class Classification:
    """The state of all parts by the runs. `named` and `doubts` have parts; `odds`, `clear` and `proven` are about nodes."""

    odds: list[float]
    clear: set[int]
    proven: set[int]
    named: dict[Part, float] = field(default_factory=dict)
    doubts: dict[Part, float] = field(default_factory=dict)
    level: float = 0.0
    noise: float = 0.0
    falls: tuple[int, int, float] = (0, 0, 0.0)
    figures: list[float] = field(default_factory=list)
    """Each run's whole figure below its level."""
    worst_rails: list[float] = field(default_factory=list)
    """Each run's worst rail below the whole."""
    far_runs: set[int] = field(default_factory=set)
    """The runs across domains that count for and against their nodes, by number."""
    hidden_drift: float = 0.0
    """How far the whole fleet may have moved between rounds: no part is named for a smaller loss."""
    named_nodes: set[int] = field(default_factory=set)
    """The nodes that are named: as a whole, or by a rail."""


@dataclass(frozen=True)
class Culprit:
    """A named part. `loss`: the fraction that is missing. `slow_with`: the nodes or domains with which it is slow."""

    part: Part
    fault: str
    loss: float
    slow_with: tuple[int, ...]
    fast_with: tuple[int, ...]
    runs: int
    solo: str
    odds: float
    """Logarithm of the odds that this is not chance, for the whole fleet."""


@dataclass(frozen=True)
class Doubt:
    """Parts that explain the same runs, and the number of rounds that would decide (0: none would)."""

    candidates: tuple[Part, ...]
    loss: float
    more_rounds: int


@dataclass(frozen=True)
class SearchResult:
    """The result of a search. `shortfall`: the fraction that the joint run of the others, without the culprits, is below target."""

    culprits: tuple[Culprit, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    shortfall: float | None = None
    joint_nodes: tuple[int, ...] = ()
    joint_figure: float = 0.0
    joint_fault: str = ""
    level: float = 0.0
    noise: float = 0.0
    falls: tuple[int, int, float] = (0, 0, 0.0)
    """Runs that fell for no part's fault, of how many, and how far: bimodal figures."""
    rounds: Sequence[Round] = field(default_factory=tuple)
    runs: Sequence[GroupRun] = field(default_factory=tuple)
