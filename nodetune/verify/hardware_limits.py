"""Hardware limits: a chip's memory, its tensor cores, the links between parts."""

import re
from collections.abc import Mapping
from typing import Any

from nodetune.facts.machine import Machine
from nodetune.verify.model import Figure, Limit
from nodetune.verify.reference import chip, pcie_lane

TWO_WAY = ("both", "p2p_both")
PAYLOAD = 128 / (128 + 26)
"""The payload of a PCIe packet of 128 bytes, the least that a device must support, behind 26 of header, framing and check (PCIe base
specification 2.2.2, 4.2.2). What a port sends to itself crosses its link once each way."""


def of(figure: Figure, machine: Machine) -> Limit | None:
    """Return the limit, or None if unknown or not applicable.

    Latencies have no limit, nor has NVLS, which reduces in the switch.
    """
    if figure.unit == "GB/s":
        return _bandwidth(figure, machine)
    if figure.unit == "Gb/s":
        return _link(figure)
    if figure.unit == "TFLOP/s" and figure.measurement in ("gemm", "roofline", "training_step"):
        return _roof(figure, chip(machine.model))
    return None


def _roof(figure: Figure, known: Mapping[str, Any]) -> Limit | None:
    """Return what bounds products: the tensor cores, or the memory where there are few operations per byte."""
    form = str(figure.about.get("dtype") or "bf16")
    peak, memory, intensity = known.get(form), known.get("memory"), figure.about.get("intensity")
    if not peak:
        return None
    if memory and isinstance(intensity, int | float) and 0 < intensity * memory / 1e3 < peak:
        return Limit(intensity * memory / 1e3, f"GPU memory, {memory:g} GB/s at {intensity:g} operations per byte")
    return Limit(float(peak), f"{form} {'units' if form == 'fp32' else 'tensor cores'}, {peak:g} TFLOP/s")


def _bandwidth(figure: Figure, machine: Machine) -> Limit | None:
    name, known = figure.measurement, chip(machine.model)
    if name == "disk":
        return _drive(figure)
    of_memory = name == "gpu_memory" or (name, figure.metric) == ("roofline", "hbm_read")
    if of_memory and known.get("memory"):
        return Limit(float(known["memory"]), f"GPU memory, {known['memory']:g} GB/s")
    if name == "gpu_copy":
        return _pcie(figure, machine)
    crosses_nvlink = name == "gpu_p2p" or (name == "nccl" and figure.about.get("nodes", 1) == 1)
    if crosses_nvlink and machine.fabric == "nvswitch" and known.get("nvlink") and not _reduced_in_switch(figure):
        ways = 2 if figure.metric in TWO_WAY else 1
        return Limit(ways * float(known["nvlink"]), f"NVLink, {known['nvlink']:g} GB/s a direction")
    return None


def _drive(figure: Figure) -> Limit | None:
    """Return what the PCIe link of the NVMe drive carries: an upper bound, which cheap drives stay far below."""
    link = _lanes(figure.about.get("drive_link"))
    return Limit(link[0], f"the drive's link, {link[1]}, {link[0]:.1f} GB/s") if link else None


def _lanes(link: Any) -> tuple[float, str] | None:
    """Return (GB/s one way, name) of a PCIe link that the host reports."""
    known = link if isinstance(link, Mapping) else {}
    generation, width = known.get("generation"), known.get("width")
    lane = pcie_lane(generation) if isinstance(generation, int) else None
    if not lane or type(width) is not int or not 0 < width <= 16:
        return None
    return lane * width, f"PCIe gen {generation} x{width}"


def _link(figure: Figure) -> Limit | None:
    """Return the rate of the port or network link, if the host reports it."""
    if figure.about.get("adapter") is False:
        return None
    of_port = figure.measurement in ("rdma", "rdma_gpu", "nic_loopback")
    rates = [figure.about.get(name) for name in (("rate", "usual_rate") if of_port else ("link",))]
    rate = max((each for each in rates if isinstance(each, int | float) and each > 0), default=None)
    if rate is None:
        return None
    link = _lanes(figure.about.get("pcie"))
    carried = 8 * PAYLOAD * link[0] if link else rate
    if link and carried < rate:
        return Limit(carried, f"{link[1]}, {carried:.0f} Gb/s of payload")
    return Limit(float(rate), f"link, {rate:g} Gb/s")


def _reduced_in_switch(figure: Figure) -> bool:
    algorithm = figure.about.get("algorithm")
    if figure.measurement != "nccl" or figure.metric in ("alltoall", "sendrecv"):
        return False
    return str(algorithm).startswith("NVLS") if algorithm else bool(figure.about.get("nvls"))


def _pcie(figure: Figure, machine: Machine) -> Limit | None:
    """Return the limit of the best link that the GPU and its slot support.

    The probe reads idle GPUs, whose links run at a lower rate.
    """
    gpu = re.fullmatch(r"GPU\d+", figure.subject)
    link = machine.links.get(figure.subject, {}) if gpu else {}
    lane = pcie_lane(link.get("most_generation", 0))
    width = link.get("most_width", 0)
    ways = 2 if figure.metric in TWO_WAY else 1
    c2c = chip(machine.model).get("c2c")
    if c2c and width <= 1:  # such a GPU shows a PCIe link of one lane, or none
        return Limit(ways * float(c2c), f"NVLink-C2C, {c2c:g} GB/s a direction")
    if not lane or width <= 1:
        return None
    return Limit(
        ways * lane * width, f"PCIe gen {link['most_generation']} x{width}, {lane * width:.0f} GB/s a direction"
    )
