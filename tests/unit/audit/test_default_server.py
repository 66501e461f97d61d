"""A GPU server as Ubuntu 24.04 leaves it: few findings that count, those first that cost most."""

from pathlib import Path

import pytest

from nodetune.api.model import Absent, HostFacts, HostResult, Value
from nodetune.audit import summary
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document

SYNTHETIC = Path(__file__).parents[2] / "data" / "synthetic"
HEALTHY = ("gpu", "rdma", "pci", "nccl", "bmc", "xid", "block", "numa", "net", "slurm", "kubernetes")
"""Parts of the untuned machine that have planted faults come from the healthy one."""
HEALTHY_ALONE = ("services.fabricmanager_version", "services.time_sync", "services.nvidia-fabricmanager", "gpu.nvml")
SWAP_KB = 8388604
"""The largest swap file that Ubuntu's installer makes: 8 GiB (curtin, suggested_swapsize)."""

MAX_FINDINGS = 10


@pytest.fixture(scope="module")
def result():
    healthy, plain = (document.load(SYNTHETIC / f"hgx-h200-{name}.json") for name in ("tuned", "untuned"))
    mended = {
        name: fact for name, fact in healthy.facts.items() if name.partition(".")[0] in HEALTHY or name in HEALTHY_ALONE
    }
    alone = {name: Absent("no Slurm") for name in healthy.facts if name.startswith("slurm.")}
    facts = {**plain.facts, **mended, **alone, "slurm.present": Value(value=False)}
    for name in ("gpu.persistence_mode", "pci.acs", "pci.iommu.domains"):  # Ubuntu's kernels leave the IOMMU on
        facts[name] = plain.facts[name]
    swap = {"/swap.img": {"type": "file", "size_kb": SWAP_KB, "used_kb": 0}}
    facts |= {"memory.swap_total_kb": Value(SWAP_KB), "memory.swaps": Value(swap)}
    kept = {"value": 1048576, "file": "/usr/lib/sysctl.d/10-map-count.conf", "line": 3}
    facts |= {"sysctl.vm.max_map_count": Value(1048576), "persisted.sysctl.vm.max_map_count": Value(kept)}
    host = HostFacts("default", facts, healthy.about)
    return Auditor(Selection()).audit(HostResult("default", "ok", facts=host))


def test_a_default_server_has_at_most_ten_findings_to_act_on(result):
    found = [each for each in result.causes() if each.severity in summary.at_least("medium")]
    assert 0 < len(found) <= MAX_FINDINGS, [each.check for each in found]


def test_what_costs_most_on_a_default_server_comes_first(result):
    first = [each.check for each in sorted(result.causes(), key=lambda each: each.rank)][:5]
    assert sorted(first) == [
        "acs-redirects-peer-traffic",
        "governor-not-performance",
        "gpu-persistence-mode-off",
        "iommu-translates-dma",
        "memlock-limited",
    ]


def test_the_swap_file_of_the_installer_is_a_small_matter(result):
    found = {each.check: each.severity for each in result.causes()}
    assert "swap-large" not in found
    assert found["swappiness-high"] == "low"


def test_small_matters_of_a_default_server_are_info(result):
    lesser = {each.check: each.severity for each in result.causes()}
    for check in ("dirty-limit-high", "slow-start-after-idle-on", "neighbour-table-small"):
        assert lesser[check] == "info"
