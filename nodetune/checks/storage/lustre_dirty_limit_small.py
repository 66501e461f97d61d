"""Lustre's limit of dirty data is smaller than its requests in flight.

Why it matters: Writes are collected in the client until they fill a request. If max_dirty_mb is smaller than the largest
request times the requests in flight, it is the actual limit: writers stop before the network is full. Newer releases
raise it along with the other two; a setting of its own stays.
Confirm manually: lctl get_param osc.*.max_dirty_mb osc.*.max_rpcs_in_flight osc.*.max_pages_per_rpc
Side effects of the fix: Each target may hold that much unwritten data in memory.
Sources: https://git.zx2c4.com/linux-dev/commit/scripts?id=3147b268400adeec63b6253534a6176c99b8af80 ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/understanding-exascaler-file-system-performance.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.storage._lustre import systems

SETTINGS = ("max_dirty_mb", "max_rpcs_in_flight", "max_pages_per_rpc")


def observe(facts: FactsView) -> dict[str, str]:
    page = facts["host.page_size"]
    return {
        name: _short(each, page)
        for name, each in systems(facts, "osc").items()
        if all(each.get(one) for one in SETTINGS)
    }


def _short(system: dict[str, Any], page: int) -> str:
    dirty, requests, pages = (min(system[each]) for each in SETTINGS)
    needed = requests * pages * page >> 20
    return "" if dirty >= needed else f"{dirty} MiB for {requests} requests of {pages * page >> 20} MiB"


CHECK = Check(
    needs=("mounts.points", "lustre.osc", "host.page_size"),
    observe=observe,
    accept=Empty("room for all requests in flight"),
    remedy=manual(
        "lctl set_param osc.*.max_dirty_mb=NUMBER, with requests in flight times MiB of a request. It holds until the file "
        "system is mounted again: lctl set_param -P on the management server (MGS) keeps it for all clients."
    ),
    severity="low",
)
