"""A fast NCCL transport is disabled for the whole node.

Why it matters: Each of these settings was once made to find a fault. They take NVLink, RDMA, GPUDirect, shared memory
or NVLink SHARP from every later job. Without InfiniBand, traffic between nodes uses TCP, typically ten times slower or
worse. Without peer-to-peer, traffic inside the node goes through host memory. Jobs run without any message.
Healthy exception: A host without RDMA ports for GPUs loses nothing by NCCL_IB_DISABLE=1. GPUs that cannot reach each other lose
nothing by NCCL_P2P_DISABLE=1: GeForce without NVLink, where Hugging Face Accelerate demands both settings.
Confirm manually: NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8 | grep -E "via|NVLS|using network"
Side effects of the fix: NCCL uses the fast transport again. If it was disabled because of a fault, find out whether the
fault is fixed (P2P and ACS, NVLS and Fabric Manager, IB and the links). A job may fail or hang where it ran slowly
before.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc) ;
https://github.com/huggingface/accelerate/issues/2328
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._effects import has_efa, lost_paths
from nodetune.checks.shared.gpu_cards import FOR_DESKS, readable_names
from nodetune.checks.shared.rdma_ports import active, for_gpus, without_iwarp

ADAPTIVE_ROUTING = "NCCL_IB_AR_THRESHOLD"


def disabled(facts: FactsView) -> Any:
    settings, nvlink = facts["nccl.settings"], _has_nvlink(facts)
    has = {
        "rdma": _has_rdma(facts),
        "efa": has_efa(facts.readable("nccl.plugins", [])),
        "nvlink": nvlink,
        "p2p": nvlink or _has_pcie_peers(facts),
    }
    if not has["rdma"]:
        settings = [each for each in settings if each["name"] != ADAPTIVE_ROUTING]
    return lost_paths(settings, has) or []


def _has_rdma(facts: FactsView) -> bool:
    """Return whether NCCL can use an RDMA port: slow Ethernet carries TCP."""
    ports = without_iwarp(facts.get("rdma.ports", {}), facts.readable("rdma.devices", {}))
    return bool(active(ports, "InfiniBand") or for_gpus(ports))


def _has_nvlink(facts: FactsView) -> bool:
    links = any(state["active"] for state in facts.readable("gpu.nvlink_state", {}).values())
    return links or any(status["nvlink"] == "ok" for status in facts.readable("gpu.p2p", {}).values())


def _has_pcie_peers(facts: FactsView) -> bool:
    """Return whether GPUs reach each other over PCIe for sure: data-centre cards, where no hypervisor is between them."""
    cards = [name for name in readable_names(facts) if not FOR_DESKS.search(name)]
    return len(cards) > 1 and facts.readable("host.virtual") is False


CHECK = Check(
    needs=(
        "nccl.settings",
        "nccl.plugins",
        "rdma.ports",
        "rdma.devices",
        "gpu.names",
        "gpu.nvlink_state",
        "gpu.p2p",
        "host.virtual",
    ),
    observe=disabled,
    accept=Empty("no fast transport disabled"),
    remedy=manual(
        "Delete the named line (the default is right), and run a bandwidth test before and after. Keep it only as a "
        "waiver that names the fault it works around."
    ),
    severity="high",
    cost="bandwidth",
)
