"""The NCCL variables that may be tuned: each is documented in the user guide, with the hosts on which it matters. Pure.

NCCL_PROTO is not among them: the guide discourages it, and LL128 on a platform that does not support it can corrupt
data. Nor is anything outside the guide, such as chunk sizes. Rows of the tuner plugin set NCCL_ALGO for certain sizes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.checks.shared.nccl_table import release, since, variables
from nodetune.tune.model import Choice, Parameter, Setting

GUIDE = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
MAX_SOCKETS = 64
"""NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD cannot exceed it (user guide)."""

OLD_MOST_CTAS, MANY_CTAS = 32, (2, 25)
"""CTAs that releases before 2.25 accept at most (user guide)."""

PER_FUNCTION = (2, 24)
"""The release since which NCCL_ALGO takes a choice for one collective."""

FUNCTIONS = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter"}
"""Names of collectives with algorithms in NCCL_ALGO and in the tuner's rows."""


@dataclass(frozen=True)
class Survey:
    """NCCL's choices with the host's settings, from its log. `set`: variables that the site has set, with values."""

    version: str
    library: str = ""
    nodes: int = 1
    gpus: int = 2
    transport: str = ""
    link: str = ""
    nvls: bool = False
    nics: tuple[str, ...] = ()
    roce: bool | None = None
    set: Mapping[str, str] = field(default_factory=dict)

    @property
    def over(self) -> list[str]:
        """Return the transports: P2P, SHM, NET/IB, NET/Socket or another plugin's."""
        return self.transport.split("+")

    @property
    def rdma(self) -> bool:
        return "NET/IB" in self.over

    @property
    def sockets(self) -> bool:
        return "NET/Socket" in self.over

    @property
    def pcie(self) -> bool:
        """Whether GPUs of one node communicate over PCIe or through host memory, without NVLink."""
        return self.nodes == 1 and self.link not in ("", "NVL", "NVB", "LOC", "C2C")


@dataclass(frozen=True)
class NcclVariable:
    """One variable. `where`: a description of the hosts on which it can matter; `when`: the same as code."""

    name: str
    choices: tuple[Choice, ...]
    where: str
    when: Callable[[Survey, str], bool]
    unit: str = ""


def _not_latency(_: Survey, objective: str) -> bool:
    return objective != "latency"


KNOBS = (
    NcclVariable("NCCL_MIN_CTAS", (16, 32, 64), "everywhere except for latency", _not_latency, "CTAs"),
    NcclVariable(
        "NCCL_MAX_CTAS",
        (8, 16, 24),
        "where computing shares the GPU: overlap",
        lambda _, objective: objective == "overlap",
        "CTAs",
    ),
    NcclVariable(
        "NCCL_CTA_POLICY",
        ("EFFICIENCY",),
        "where computing shares the GPU: overlap",
        lambda _, objective: objective == "overlap",
    ),
    NcclVariable("NCCL_BUFFSIZE", (2 << 20, 8 << 20), "everywhere except for latency", _not_latency, "bytes"),
    NcclVariable("NCCL_NVLS_ENABLE", (0,), "where NCCL uses NVLS", lambda host, _: host.nvls),
    NcclVariable("NCCL_P2P_LEVEL", ("PIX", "PXB", "PHB"), "one node without NVLink", lambda host, _: host.pcie),
    NcclVariable("NCCL_NET_GDR_LEVEL", ("PIX", "PXB", "PHB", "SYS"), "NCCL goes over RDMA", lambda host, _: host.rdma),
    NcclVariable("NCCL_IB_QPS_PER_CONNECTION", (2, 4, 8), "NCCL goes over RDMA", lambda host, _: host.rdma, "QPs"),
    NcclVariable("NCCL_IB_SPLIT_DATA_ON_QPS", (1,), "NCCL goes over RDMA, with several QPs", lambda host, _: host.rdma),
    NcclVariable("NCCL_IB_ADAPTIVE_ROUTING", (0, 1), "NCCL goes over RDMA", lambda host, _: host.rdma),
    NcclVariable(
        "NCCL_IB_MERGE_NICS",
        (0,),
        "NCCL has merged ports of a NIC",
        lambda host, _: host.rdma and any("+" in nic for nic in host.nics),
    ),
    NcclVariable(
        "NCCL_CROSS_NIC",
        (0, 1),
        "several nodes with several NICs",
        lambda host, _: host.nodes > 1 and len(host.nics) > 1,
    ),
    NcclVariable("NCCL_PXN_DISABLE", (1,), "several nodes over RDMA", lambda host, _: host.nodes > 1 and host.rdma),
    NcclVariable("NCCL_P2P_PXN_LEVEL", (0, 1), "several nodes over RDMA", lambda host, _: host.nodes > 1 and host.rdma),
    NcclVariable(
        "NCCL_SOCKET_NTHREADS", (2, 4, 8), "NCCL goes over TCP sockets", lambda host, _: host.sockets, "threads"
    ),
    NcclVariable(
        "NCCL_NSOCKS_PERTHREAD", (2, 4, 8), "NCCL goes over TCP sockets", lambda host, _: host.sockets, "sockets"
    ),
)

NOT_ASKED = "not requested"
OLD_NAMES = {"NCCL_MIN_CTAS": "NCCL_MIN_NCHANNELS", "NCCL_MAX_CTAS": "NCCL_MAX_NCHANNELS"}
"""The name before 2.17; a site that has set the old name has set this."""


def parameters(survey: Survey, objective: str, only: tuple[str, ...] = ()) -> tuple[list[Parameter], dict[str, str]]:
    """Return what may be tuned on such hosts, and {name: why not} for the rest. `only`: these names, even if set."""
    found: list[Parameter] = []
    left: dict[str, str] = {}
    for knob in KNOBS:
        why = _why_not(knob, survey, objective, only)
        choices = () if why else tuple(_choices(knob, survey))
        if choices:
            found.append(Parameter(_name(knob.name, survey), choices, _source(knob.name), knob.unit))
        else:
            left[knob.name] = why or "the host's value is the only alternative"
    return found, left


def _why_not(knob: NcclVariable, survey: Survey, objective: str, only: tuple[str, ...]) -> str:
    names = (knob.name, OLD_NAMES.get(knob.name, knob.name))
    known = [name for name in names if name in survey.set]
    if only and not set(names) & set(only):
        return NOT_ASKED
    if not _exists(_name(knob.name, survey), survey.version):
        return f"NCCL {survey.version} does not have it"
    if known and not (only and knob.name != "NCCL_NVLS_ENABLE"):
        return f"the site has set {known[0]}={survey.set[known[0]]}"
    if not knob.when(survey, objective):
        return f"only for: {knob.where}"
    return ""


def _exists(name: str, version: str) -> bool:
    about = variables()[name]
    last = about.get("last")
    return release(since(about)) <= release(version) and (not last or release(version) <= release(last))


def _name(name: str, survey: Survey) -> str:
    """Return the name in the installed release."""
    return name if _exists(name, survey.version) else OLD_NAMES.get(name, name)


def _choices(knob: NcclVariable, survey: Survey) -> Iterator[Choice]:
    now = survey.set.get(knob.name, _default(knob.name, survey))
    for each in knob.choices:
        too_many = knob.unit == "CTAs" and int(each) > OLD_MOST_CTAS and release(survey.version) < MANY_CTAS
        if str(each) != now and not too_many:
            yield each


def _default(name: str, survey: Survey) -> str:
    """Return NCCL's own value. Adaptive routing is on over InfiniBand and off over RoCE."""
    if name == "NCCL_IB_ADAPTIVE_ROUTING":
        return "" if survey.roce is None else str(int(not survey.roce))
    return str(variables()[name].get("default", ""))


def neutral(name: str, version: str) -> str:
    """Return a value that lets NCCL choose as without this variable; empty if no value does."""
    widest = OLD_MOST_CTAS if release(version) < MANY_CTAS else 64
    limits = {"NCCL_MIN_CTAS": 1, "NCCL_MAX_CTAS": widest, "NCCL_MIN_NCHANNELS": 1, "NCCL_MAX_NCHANNELS": widest}
    value = str(limits.get(name, _default(name, Survey(version))))
    return value if value.isdecimal() or name == "NCCL_CTA_POLICY" else ""


def _source(name: str) -> str:
    return f"{GUIDE}#{name.lower().replace('_', '-')}"


def algorithms(survey: Survey, collectives: tuple[str, ...]) -> list[Parameter]:
    """Return the choices of algorithm for one collective at a time, as rows of the tuner plugin set them."""
    if release(survey.version) < PER_FUNCTION or "NCCL_ALGO" in survey.set:
        return []
    found = []
    for name in collectives:
        own = ["ring", "tree"] if name == "all_reduce" else ["ring"]
        own += ["pat"] if name != "all_reduce" and survey.nodes > 1 else []
        own += ["nvls"] if survey.nvls else []
        found += [f"{FUNCTIONS[name]}:{each}" for each in own] if name in FUNCTIONS else []
    return [Parameter("NCCL_ALGO", tuple(found), _source("NCCL_ALGO"))] if found else []


def allowed(setting: Setting, survey: Survey) -> bool:
    """Return whether the guide allows these values together with those that the site has set."""
    values: dict[str, Any] = {**survey.set, **dict(setting)}

    def number(name: str, otherwise: int) -> int:
        try:
            return int(str(values.get(name, otherwise)), 0)
        except ValueError:
            return otherwise

    least = max(number("NCCL_MIN_CTAS", 0), number("NCCL_MIN_NCHANNELS", 0))
    most = min(number("NCCL_MAX_CTAS", 1 << 20), number("NCCL_MAX_NCHANNELS", 1 << 20))
    sockets = number("NCCL_SOCKET_NTHREADS", 1) * number("NCCL_NSOCKS_PERTHREAD", 1)
    split = dict(setting).get("NCCL_IB_SPLIT_DATA_ON_QPS") == 1
    several = number("NCCL_IB_QPS_PER_CONNECTION", 1) > 1
    pxn_off = number("NCCL_PXN_DISABLE", 0) == 1 and "NCCL_P2P_PXN_LEVEL" in dict(setting)
    return least <= most and sockets <= MAX_SOCKETS and (several or not split) and not pxn_off
