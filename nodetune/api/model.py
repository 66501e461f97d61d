"""The frozen values that the stages exchange. No I/O; standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from nodetune.api.device import Device

SEVERITIES = ("info", "low", "medium", "high", "critical")
"""Least to most severe."""


def at_least(fail_on: str) -> tuple[str, ...]:
    """Return the severities from this one up; none of "never"."""
    return () if fail_on == "never" else SEVERITIES[SEVERITIES.index(fail_on) :]


COSTS = ("setting", "bandwidth", "hardware")
"""The costs of faults, cheapest to dearest: a setting to improve, bandwidth that is lost, hardware that is broken."""
COST_OF_AREA = {"firmware": 2, "network": 1, "numa": 1, "pcie": 1, "rdma": 1}  # the place in COSTS, without a fix

DISRUPTIONS = (
    "none",
    "new sessions",
    "daemon reload",
    "service restart",
    "network flap",
    "idle node",
    "idle GPU",
    "reboot",
)
"""The disruptions of a fix, least to most. By default only the first two are applied.

Checks, JSON documents and run records use these values. The command line and reports for people use `disruption_name`.
"""


FREE = DISRUPTIONS[:2]
"""Disruptions that disturb no running work: everything above needs idle GPUs."""


def disruption_name(value: str) -> str:
    """Return the name of a disruption on the command line and in reports: `idle-gpu` for `idle GPU`."""
    return value.replace(" ", "-").lower()


@dataclass(frozen=True)
class Value:
    """A fact that was read. `value` is JSON data; a wanted zero is a value like any other."""

    value: Any


@dataclass(frozen=True)
class Absent:
    """The host does not have this thing: neither zero nor unreadable."""

    reason: str = "not present on this host"


@dataclass(frozen=True)
class Unread:
    """The fact could not be read, with the reason."""

    reason: str


@dataclass(frozen=True)
class Each:
    """One fact for each of several subjects (GPU0, eth0, nvme0n1 …)."""

    of: Mapping[str, Value | Absent | Unread]


Fact = Union[Value, Absent, Unread, Each]


NOT_COLLECTED = "not collected: collect the facts again with this version"
"""The reason for a fact that is missing in the file."""


@dataclass(frozen=True)
class HostFacts:
    """The result of one probe: fact name → fact, and how the probe went."""

    host: str
    facts: Mapping[str, Fact]
    about: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Fact:
        """Return the fact, or Unread if this file does not have it."""
        found = self.facts.get(name)
        if found is not None:
            return found
        failed = self.about.get("failed", {}).get(name.partition(".")[0])
        return Unread(failed or NOT_COLLECTED)


@dataclass(frozen=True)
class Ref:
    """The value of another fact, allowed wherever a literal is (in `accept` and `set`)."""

    fact: str


@dataclass(frozen=True)
class When:
    """A condition under which a check applies: `fact` must satisfy `accept`; `otherwise` says why not."""

    fact: str
    accept: Any
    otherwise: str


@dataclass(frozen=True)
class Remedy:
    """A kind of fix with parameters. `kind` names nodetune/remediation/builders/<kind>.py; `manual` has only steps.

    `persisted` names the fact with the value that the next boot sets and the file that decides;
    `boot_default` is what the kernel sets without a file (None: unknown). `per_subject`: it acts on the failing
    subjects (disks, links, GPUs), not on the host as a whole. `repair`: jobs fail or get wrong results until
    an admin has done the steps. `alike` are kernel arguments that do the same.
    """

    kind: str
    target: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    disruption: str = "none"
    persisted: str | None = None
    boot_default: Any = None
    file: str = ""
    steps: str = ""
    per_subject: bool = False
    repair: bool = False
    alike: tuple[str, ...] = ()


Observe = Callable[[Any], Any]
"""facts view → a value, or a dict of subject → value (see audit.View)."""

Cause = Callable[[Any, tuple[str, ...]], str]
"""(facts view, failing subjects) → what set the value, such as a file; empty if unknown."""

LeftAlone = Callable[[Any], Mapping[str, str]]
"""facts view → the subjects that the fix leaves alone, each with the reason."""


@dataclass(frozen=True)
class Check:
    """One fault that a host can have. `id`, `area` and `doc` come from its file.

    It judges the fact named `fact`, or the value that `observe` computes from the facts in `needs`. `accept` judges it;
    `set` is what a fix would write (a value, or a Ref to a fact). `absent` is the status if the thing does not exist:
    skip, pass or fail. `cause` adds to a finding what set the value, from the same `needs`. `ceiling` names a kernel
    parameter's fact that limits what the fix can reach: while `accept` rejects its value, no fix is planned. `left_alone` names
    subjects that the fix leaves alone, of a remedy per subject. `part_of`
    names checks with the same cause, the closest to it first: the finding of the first that fails on the same device
    also reports this one. `log` is how far back (s) a pass needs the kernel log, inf for the whole boot; 0: it reads none.
    `cost` is one of COSTS, where `costs` would be wrong. `name` is the short name of what it
    judges, by default the target of its fix.
    """

    accept: Any
    severity: str
    remedy: Remedy
    fact: str | None = None
    observe: Observe | None = None
    cause: Cause | None = None
    ceiling: str = ""
    left_alone: LeftAlone | None = None
    part_of: str | tuple[str, ...] = ""
    log: float = 0.0
    cost: str = ""
    name: str = ""
    needs: tuple[str, ...] = ()
    set: Any = None
    applies: tuple[When, ...] = ()
    absent: str = "skip"
    unit: str = ""
    since: str = "0.1.0"
    stability: str = "preview"
    id: str = ""
    area: str = ""
    doc: str = ""

    @property
    def leaders(self) -> tuple[str, ...]:
        """Parent checks, which may also report this one's fault, closest first."""
        return (self.part_of,) if isinstance(self.part_of, str) and self.part_of else tuple(self.part_of)

    @property
    def costs(self) -> str:
        """Return what the fault costs: what the check says, else by its remedy and area."""
        by_area = COST_OF_AREA.get(self.area, 0) if self.remedy.kind == "manual" else 0
        return self.cost or COSTS[-1 if self.remedy.repair else by_area]

    @property
    def title(self) -> str:
        """The first line of the docstring: the fault in one sentence."""
        return self.doc.strip().partition("\n")[0].rstrip(".")


@dataclass(frozen=True)
class Waiver:
    """A named person's decision to accept a finding until a date (ISO, inclusive).

    It covers `hosts`, or the hosts of inventory `groups`.
    """

    id: str
    hosts: str
    reason: str
    owner: str
    until: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fix:
    """The planned fix of a finding: data only. `subjects` are the devices that it changes; empty: the host."""

    kind: str
    target: str
    value: Any
    disruption: str
    file: str = ""
    subjects: tuple[str, ...] = ()
    unit: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The verdict of one check on one host.

    `subjects` maps each failing (or unreadable) subject to what was observed there; `odd` names those that
    differ from their peers. `reason` explains a skip, an unknown, a waiver, or a value that the next
    boot would lose. `part_of` names the failing check whose finding also reports this one; `reported_by` does so for
    each subject that one reports. `repair`: see Remedy. `cost` and `name`: see Check. `usual`: what most peers have.
    `not_installed` says what the next boot lacks of a fix that only a boot puts in force. `unread`: subjects that could not
    be read while others fail.
    """

    check: str
    status: str
    severity: str
    title: str = ""
    observed: str = ""
    wanted: str = ""
    reason: str = ""
    subjects: Mapping[str, str] = field(default_factory=dict)
    peers: int = 0
    odd: tuple[str, ...] = ()
    fix: Fix | None = None
    manual: str = ""
    gates: bool = False
    part_of: str = ""
    reported_by: Mapping[str, str] = field(default_factory=dict)
    repair: bool = False
    cost: str = COSTS[0]
    name: str = ""
    usual: str = ""
    not_installed: str = ""
    unread: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """Return who acts: `repair` (an admin, before jobs run), `apply` (as far as known without a plan) or `hand`."""
        return "repair" if self.repair else "apply" if self.fix else "hand"

    @property
    def rank(self) -> tuple[int, int]:
        """The place in a report: the most severe first, of these the dearest."""
        return -SEVERITIES.index(self.severity), -COSTS.index(self.cost)


@dataclass(frozen=True)
class FleetFinding(Finding):
    """The verdict of one comparison on one host.

    `group` is the group of the host, `compared` the number of its hosts that could be compared, and `agree` how
    many of these have the wanted value. `decided` is false if too few agree for any host to be the odd one.
    """

    group: str = ""
    compared: int = 0
    agree: int = 0
    decided: bool = True


def fix_of(found: Finding) -> Fix:
    """Return the fix of a finding that must have one, such as a finding of a plan."""
    assert found.fix is not None  # noqa: S101  (for the type checker)
    return found.fix


@dataclass(frozen=True)
class HostResult:
    """The result of a host: `state` is ok or why it was not reached, `devices` those of failing findings.

    `since` has the Unix time from which the history knows the finding of a check. `look` is on its way to the history.
    `off` are the checks that a site file switches off. `at`: Unix time of its facts (0: unknown). `rests_on`: the facts that
    a scorecard asks for.
    """

    host: str
    state: str
    message: str = ""
    facts: HostFacts | None = None
    findings: tuple[Finding, ...] = ()
    profile: str = ""
    profile_reason: str = ""
    seconds: float = 0.0
    devices: tuple[Device, ...] = ()
    machine: str = ""
    since: Mapping[str, int] = field(default_factory=dict)
    off: tuple[str, ...] = ()
    look: Any = None
    at: int = 0
    rests_on: Mapping[str, Fact] = field(default_factory=dict)

    def failing(self) -> Iterator[Finding]:
        return (found for found in self.findings if found.status == "fail")

    def causes(self) -> Iterator[Finding]:
        """Return the failing findings without those that another finding also reports."""
        return (found for found in self.failing() if not found.part_of)
