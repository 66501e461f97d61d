"""Sustained bf16 products per watt, and per price of a GPU hour. Pure."""

from collections.abc import Iterable
from typing import Any

from nodetune.foundation import by_key
from nodetune.verify.model import Figure, Verdict

SUSTAINED = ("gemm", "bf16_sustained")
ENERGY = ("gpu_energy", "energy")
LOAD = ("gpu_load", "tflops")


def per_watt(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """Return {GPU: TFLOP/s a watt}: by the energy that NVML counted, else by the power that it showed under load."""
    found = {}
    for gpu, known in _of_gpus(verdicts).items():
        if ENERGY in known and known[ENERGY].value > 0:
            found[gpu] = 1 / known[ENERGY].value
        elif LOAD in known and (watts := _positive(known[LOAD].about.get("power_w"))):
            found[gpu] = known[LOAD].value / watts
    return found


def per_price(verdicts: Iterable[Verdict], gpu_hour: float | None) -> dict[str, float]:
    """Return {GPU: EFLOP for the price of one unit of money}; nothing if the price of a GPU hour is unknown."""
    if not gpu_hour:
        return {}
    known = _of_gpus(verdicts)
    return {gpu: each[SUSTAINED].value * 3600 / 1e6 / gpu_hour for gpu, each in known.items() if SUSTAINED in each}


def document(verdicts: Iterable[Verdict], gpu_hour: float | None) -> dict[str, dict[str, float]]:
    """Return both, as the JSON document has them."""
    every = list(verdicts)
    found = {"tflops_per_watt": per_watt(every), "eflop_per_price": per_price(every, gpu_hour)}
    return {name: {gpu: round(value, 4) for gpu, value in each.items()} for name, each in found.items()}


def _of_gpus(verdicts: Iterable[Verdict]) -> dict[str, dict[tuple[str, str], Figure]]:
    by_gpu = by_key((each.figure.subject, each.figure) for each in verdicts)
    return {gpu: {(each.measurement, each.metric): each for each in found} for gpu, found in by_gpu.items()}


def _positive(found: Any) -> float:
    """Return a number from a host; 0 for anything else."""
    return float(found) if isinstance(found, int | float) and found > 0 else 0.0
