"""Properties of a card from the name of the GPU."""

import re

from nodetune.api import Each, FactsView, Value

FOR_DESKS = re.compile(r"^(?!.*Server Edition).*(RTX|GeForce|Quadro|TITAN)")
"""Cards for workstations and desktops, which have fans of their own. The profile `workstation` has the same pattern."""

SMALL_SUPERCHIP = re.compile(r"\bGB10\b")
"""The GPU of a DGX Spark, a machine for a desktop."""

GRACE = re.compile(r"\bG[BH][0-9]{3}\b")
"""Superchips with a Grace CPU. GB10 does not count: its CPU and its settings come from another vendor."""

CONSUMER = re.compile(r"GeForce|TITAN")
"""Cards for consumers. The driver offers their memory to no network card, and from RTX 20 on to no other GPU over PCIe."""

WITHOUT_GPUDIRECT = re.compile(f"{CONSUMER.pattern}|{SMALL_SUPERCHIP.pattern}")
"""GPUs without GPUDirect RDMA, neither through nvidia_peermem nor through dma-buf. Workstation cards (RTX, Quadro) have it."""


def readable_names(facts: FactsView) -> list[str]:
    """Return the names of the GPUs that answer, without those that do not."""
    fact = facts.fact("gpu.names")
    return [each.value for each in fact.of.values() if isinstance(each, Value)] if isinstance(fact, Each) else []
