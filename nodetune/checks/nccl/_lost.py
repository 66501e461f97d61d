"""The fast paths that settings of NCCL take from this host."""

from __future__ import annotations

from nodetune.api import FactsView
from nodetune.checks.nccl import _paths
from nodetune.checks.nccl._effects import lost_paths
from nodetune.checks.shared.nccl_reading import is_at
from nodetune.checks.shared.nccl_settings import Problems, effective
from nodetune.checks.shared.nccl_table import only, variables

NEEDS = ("nccl.settings", *_paths.NEEDS)


def lost(facts: FactsView, sure: bool = True) -> Problems | list[str]:
    """Return the disabled paths that the host has, or if not `sure` those that it may have; an empty list for none.

    Raise FactUnreadError if none is lost for sure, and the RDMA ports could not be read.
    """
    settings, exists = facts["nccl.settings"], _paths.paths(facts)
    p2p = [effective(settings, name) for name in ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")]
    if any(each and is_at(each["value"], variables()[each["name"]]["lost_at"]) for each in p2p):
        exists["shm"] = exists["gpus"]
    version = only(facts.readable("nccl.libraries", []))
    found = lost_paths(settings, exists, version, sure)
    if sure and not found and lost_paths(settings, exists, version, sure=False):
        facts.get("rdma.ports")
    return found or []
