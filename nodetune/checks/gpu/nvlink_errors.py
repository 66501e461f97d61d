"""The NVLinks of a GPU have errors since the driver was loaded.

Why it matters: A link that replays packets, retrains, or gets malformed packets loses bandwidth each time and stalls
collectives. Many errors precede a link failure: on 320 GB200, one link had recovered 505 times and all other counters
were zero; five days later it failed. The counters restart at zero after a driver load or a GPU reset, so check whether they grow.
Confirm manually: nvidia-smi nvlink -e
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFieldValueEnums.html ;
https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://github.com/marin-community/marin/issues/9086 (505 recoveries of one link, then Xid 149)
"""

from nodetune.api import GPU, Check, Empty, Fact, FactsView, manual
from nodetune.checks.gpu._each import each

COUNTED = ("replay", "recovery", "link_recovery", "link_recovery_failed", "malformed_packet", "buffer_overrun")
"""Errors that cost bandwidth. Flit CRC errors (A100) and symbol errors (Blackwell) are not zero on healthy links."""


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.nvlink_errors", _counts)


def _counts(kinds: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{kind.replace('_', ' ')} {sum(links.values())} (link {', '.join(sorted(links, key=lambda link: (len(link), link)))})"
        for kind, links in kinds.items()
        if kind in COUNTED and links
    ]


CHECK = Check(
    needs=("gpu.nvlink_errors",),
    observe=observe,
    accept=Empty("no errors"),
    applies=(GPU,),
    remedy=manual(
        "Read nvidia-smi nvlink -e twice under load, with some minutes in between. If counters grow, drain the node and reset "
        "the GPUs. If they grow again, open a case with the vendor."
    ),
    severity="medium",
    part_of="nvlink-down",
    cost="hardware",
)
