"""Hardware limits: a chip's memory, its tensor cores, the links between parts."""

from __future__ import annotations

import re

from nodetune.facts.machine import Machine
from nodetune.verify.model import Figure, Limit
from nodetune.verify.reference import chip, pcie_lane

TWO_WAY = ("both", "p2p_both")


def of(figure: Figure, machine: Machine) -> Limit | None:
    """Return the limit, or None if unknown or not applicable.

    Latencies have no limit, nor has NVLS, which reduces in the switch.
    """
    if figure.unit == "GB/s":
        return _bandwidth(figure, machine)
    if figure.unit == "Gb/s":
        return _link(figure)
    peak = chip(machine.model).get("bf16")
    if figure.unit == "TFLOP/s" and figure.measurement == "gemm" and peak:
        return Limit(float(peak), f"bf16 tensor cores, {peak:g} TFLOP/s")
    return None


def _bandwidth(figure: Figure, machine: Machine) -> Limit | None:
    name, known = figure.measurement, chip(machine.model)
    if name == "gpu_memory" and known.get("memory"):
        return Limit(float(known["memory"]), f"GPU memory, {known['memory']:g} GB/s")
    if name == "gpu_copy":
        return _pcie(figure, machine)
    crosses_nvlink = name == "gpu_p2p" or (name == "nccl" and figure.about.get("nodes", 1) == 1)
    if crosses_nvlink and machine.fabric == "nvswitch" and known.get("nvlink") and not _reduced_in_switch(figure):
        ways = 2 if figure.metric in TWO_WAY else 1
        return Limit(ways * float(known["nvlink"]), f"NVLink, {known['nvlink']:g} GB/s a direction")
    return None


def _link(figure: Figure) -> Limit | None:
    """Return the rate of the port or network link, if the host reports it."""
    rate = figure.about.get("rate" if figure.measurement in ("rdma", "rdma_gpu") else "link")
    known = isinstance(rate, int | float) and rate > 0
    return Limit(float(rate), f"link, {rate:g} Gb/s") if known and rate else None


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
    if not lane or width <= 1:  # x1: a GPU that is attached by NVLink-C2C
        return None
    ways = 2 if figure.metric in TWO_WAY else 1
    return Limit(
        ways * lane * width, f"PCIe gen {link['most_generation']} x{width}, {lane * width:.0f} GB/s a direction"
    )
