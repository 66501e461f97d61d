"""Find the suspect of a figure below target, and the command that measures it again. Pure."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nodetune.facts.machine import Machine
from nodetune.verify import catalogue
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.model import PASS, SHORT, Figure, Verdict
from nodetune.verify.suites import SuiteRequest

GPU = re.compile(r"GPU\d+")
OF_HYPERVISOR = (
    "no part of this virtual machine: its hypervisor's placement of CPUs and memory, or other load on that server"
)


def gpus(subject: str) -> list[str]:
    """Return the GPUs in a subject: `GPU0→GPU3` → GPU0, GPU3."""
    return GPU.findall(subject)


def hosts(subject: str) -> list[str]:
    """Return the hosts in a subject: `mlx5_0/1 gpu1→gpu2` → gpu1, gpu2."""
    return subject.rpartition(" ")[2].split("→")


def named(verdicts: Sequence[Verdict], others: Sequence[Verdict], machine: Machine) -> list[Verdict]:
    """Name the suspect of each verdict below target on one host. `others` were measured in addition."""
    every = [*verdicts, *others]
    return [
        replace(each, suspect=_suspect(each, every, machine)) if each.status == SHORT else each for each in verdicts
    ]


def _suspect(short: Verdict, every: Sequence[Verdict], machine: Machine) -> str:
    alike = [each for each in every if _same_kind(each.figure, short.figure)]
    if len(alike) > 1 and all(each.status == SHORT for each in alike):
        return _all_alike(short.figure, len(alike), machine)
    name, subject = short.figure.measurement, short.figure.subject
    if name in ("memory", "memory_latency") and machine.virtual:
        return OF_HYPERVISOR
    if name == "gpu_copy":
        return _copy(short, every, machine)
    if name == "gpu_p2p":
        return _pair(short, alike, machine)
    if name == "nccl" and not _of_one_gpu(short.figure):
        return _collective(short.figure, machine)
    if takes_two_hosts(name) and "→" in subject:
        return _hosts(short, alike)
    name = "nvlink" if name == "nccl" else name
    return catalogue.of(name).suspect.format_map({**short.figure.about, "gpu": subject, "subject": subject})


def _of_one_gpu(figure: Figure) -> bool:
    """Return whether a collective reports this for one of its GPUs, such as the evenness of its NVLinks."""
    return catalogue.of(figure.measurement).scope == "collective" and GPU.fullmatch(figure.subject) is not None


def _same_kind(one: Figure, other: Figure) -> bool:
    return (one.measurement, one.metric, one.about.get("local")) == (
        other.measurement,
        other.metric,
        other.about.get("local"),
    )


def _all_alike(figure: Figure, count: int, machine: Machine) -> str:
    kind = "pairs" if re.search("[→↔]", figure.subject) else "alike"
    lowered = f"; the power limit of {', '.join(machine.lowered_power)} is lowered" if machine.lowered_power else ""
    return f"no single part: all {count} {kind} are below target (driver, virtual machine, settings, or the expectation){lowered}"


def _copy(short: Verdict, every: Sequence[Verdict], machine: Machine) -> str:
    gpu = short.figure.subject
    link = machine.links.get(gpu, {})
    where = f" ({machine.bdf[gpu]})" if gpu in machine.bdf else ""
    if link.get("width", 0) < link.get("most_width", 0):
        return f"{gpu}'s PCIe link{where}: x{link['width']} where x{link['most_width']} is possible"
    sound_nearby = any(
        each.status == PASS and each.figure.about.get("local") is True
        for each in every
        if each.figure.subject == gpu
        and (each.figure.measurement, each.figure.metric) == ("gpu_copy", short.figure.metric)
    )
    if short.figure.about.get("local") is False and sound_nearby:
        return f"the link between the NUMA nodes: {gpu} is fast enough from its own NUMA node"
    memory = "the hypervisor's placement of the memory" if machine.virtual else "the memory of its NUMA node"
    return f"{gpu}'s PCIe link{where}, its slot or riser, or {memory}"


def _pair(short: Verdict, alike: Iterable[Verdict], machine: Machine) -> str:
    """Name the end that is slow with every partner, otherwise what is between the two."""
    both, alike = gpus(short.figure.subject), list(alike)
    for gpu in both:
        others = [each for each in alike if gpu in gpus(each.figure.subject)]
        if len(others) > 2 and all(each.status == SHORT for each in others):
            return f"{gpu}: it is slow with every partner; its NVLinks{_missing_links(gpu, machine)}"
    between = {"nvswitch": "the NVSwitch", "nvlink": "the NVLinks or bridge"}.get(machine.fabric, "the PCIe path")
    partners = any(set(both) & set(gpus(each.figure.subject)) != set(both) for each in alike if each.status == PASS)
    return f"{between} between {' and '.join(both)}" + (": both are fast with other partners" if partners else "")


def _missing_links(gpu: str, machine: Machine) -> str:
    most = max(machine.nvlinks.values(), default=0)
    have = machine.nvlinks.get(gpu, most)
    return f" ({have} of {most} active)" if have < most else ""


def _collective(figure: Figure, machine: Machine) -> str:
    if figure.about.get("nodes", 1) != 1:
        return "the network between the hosts: measure pairs of them next"
    few = [gpu for gpu, count in machine.nvlinks.items() if count < max(machine.nvlinks.values())]
    if few:
        return f"{', '.join(few)}: fewer active NVLinks than the others"
    return "unknown from this alone: one slow GPU or link slows all; see gpu_p2p and gemm of each GPU"


def _hosts(short: Verdict, alike: Iterable[Verdict]) -> str:
    """Name the host that is slow with all of several partners over the same adapter."""
    port, pair = short.figure.subject.rpartition(" ")[0], hosts(short.figure.subject)
    same_port = [each for each in alike if each.figure.subject.rpartition(" ")[0] == port]
    for host in pair:
        others = [each for each in same_port if host in hosts(each.figure.subject)]
        partners = {name for each in others for name in hosts(each.figure.subject)} - {host}
        if len(partners) > 1 and all(each.status == SHORT for each in others):
            return (
                f"{host}: its port {port}".rstrip()
                + f", cable or switch port; it is slow with {' and '.join(sorted(partners))}"
            )
    return f"the link between {' and '.join(pair)}: cable, switch port, routing"


def command(figure: Figure, asked: str, wanted: SuiteRequest) -> str:
    """Return the command that measures only this figure again.

    `asked`: the options that select, reach and judge the hosts.
    """
    together = figure.about.get("nodes", 1) != 1
    given = shlex.split(asked)
    words = ["nodetune", "verify", *(given if together else _narrowed(given, figure))]
    words += wanted.words_for(figure.measurement, together)
    all_gpus = figure.about.get("together") or _of_one_gpu(figure)
    for gpu in dict.fromkeys([] if all_gpus else gpus(figure.subject)):
        words += ["--gpu", gpu.removeprefix("GPU")]
    return shlex.join(words)


def _narrowed(names: list[str], figure: Figure) -> list[str]:
    """Return the options limited to the hosts of one figure."""
    if "-i" not in names:
        return names
    at = names.index("-l") if "-l" in names else len(names)
    of_pair = hosts(figure.subject) if takes_two_hosts(figure.measurement) else []
    return [*names[:at], "-l", ",".join(of_pair or [figure.host]), *names[at + 2 :]]
