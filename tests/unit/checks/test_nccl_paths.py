"""A setting of NCCL is a loss only where its path exists: on machines of many kinds, each setting where it costs and where not."""

import json
from itertools import combinations

import pytest

from nodetune.api.model import HostResult
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document
from nodetune.foundation import paths

SURE, MAYBE, UNSAFE = "nccl-transport-disabled", "nccl-transport-maybe-disabled", "nccl-setting-unsafe"
CUBE_MESH = {"01", "02", "03", "06", "12", "13", "17", "23", "24", "35", "45", "46", "47", "56", "57", "67"}
RECORDED = paths.bundled("facts/recorded")
PORT = {"state": "ACTIVE", "rate_gbps": 400, "link_layer": "InfiniBand", "bdf": None}


@pytest.fixture(scope="module")
def auditor():
    return Auditor(Selection(select=(SURE, MAYBE, UNSAFE)))


def gpus(name, count, kind="", linked=None, virtual=False, architecture=None, **more):
    """A host with `count` GPUs; `kind`: what their NVLinks lead to; `linked`: pairs with a link, all by default."""
    names = [f"GPU{each}" for each in range(count)]
    pairs = {f"GPU{one}-GPU{two}": f"{one}{two}" for one, two in combinations(range(count), 2)}
    each = {
        "gpu.names": name,
        "gpu.architecture": architecture,
        "gpu.nvlink_state": {"active": [0, 1] if kind else [], "inactive": []},
        "gpu.nvlink_remote": {kind: 2} if kind else None,
        "gpu.mig_mode": "disabled",
    }
    facts = {fact: {"each": {gpu: {"value": value} for gpu in names}} for fact, value in each.items() if value}
    with_link = {pair: bool(kind) and (linked is None or short in linked) for pair, short in pairs.items()}
    statuses = {pair: {"value": {"nvlink": "ok" if has else "not supported"}} for pair, has in with_link.items()}
    return {**facts, "gpu.p2p": {"each": statuses}, "host.virtual": {"value": virtual}, **more}


def below(*parents):
    """PCI devices and GPUs: the bridges above each, root first."""
    bdfs = [f"0000:0{number}:00.0" for number in range(len(parents))]
    devices = {
        bdf: {"vendor": "10de", "class": "0302", "device": "26b9", "driver": "nvidia", "parents": list(above)}
        for bdf, above in zip(bdfs, parents, strict=True)
    }
    named = {f"GPU{number}": {"value": bdf} for number, bdf in enumerate(bdfs)}
    return {"gpu.bdf": {"each": named}, "pci.devices": {"value": devices}}


def nccl(*versions):
    return {"nccl.libraries": {"value": [{"path": f"/usr/lib/{each}", "version": each} for each in versions]}}


RDMA = {"rdma.ports": {"value": {"mlx5_0/1": PORT}}}
ROCE = {"rdma.ports": {"value": {"mlx5_0/1": {**PORT, "link_layer": "Ethernet"}}}}
EFA = {
    "rdma.ports": {"value": {"rdmap0/1": {**PORT, "link_layer": "Unspecified"}}},
    "nccl.plugins": {"value": ["/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"]},
}
WITHOUT_EFA = {**EFA, "rdma.ports": {"value": {}}, "pci.devices": {"value": {}}}
H100 = "NVIDIA H100 80GB HBM3"
HGX = gpus(H100, 8, "switch", architecture="hopper")
A100 = gpus("NVIDIA A100-SXM4-80GB", 8, "switch", architecture="ampere")
PAIR = gpus(H100, 2, "switch", virtual=True, architecture="hopper")
GB200 = gpus("NVIDIA GB200", 4, "switch")
PRO = gpus("NVIDIA RTX PRO 6000 Blackwell Server Edition", 8, architecture="blackwell")
MIG = {**HGX, "gpu.mig_mode": {"each": {f"GPU{each}": {"value": "enabled"} for each in range(8)}}}
V100 = gpus("Tesla V100-SXM2-32GB", 8, "gpu", CUBE_MESH)
BRIDGES = gpus("NVIDIA H100 NVL", 4, "gpu", {"01", "23"}, architecture="hopper")
ROOTS = gpus("NVIDIA L40S", 4, **below(["a"], ["b"], ["c"], ["d"]))
SWITCH = gpus("NVIDIA L40S", 4, **below(*[["a", "b", each] for each in "cdef"]))
AMD = {"cpu.vendor": {"value": "AuthenticAMD"}}
OPEN = {"kernel.nvidia_flavour": {"value": "open"}, "modules.loaded": {"value": ["nvidia"]}}
PEERMEM = {**OPEN, "modules.loaded": {"value": ["nvidia", "nvidia_peermem"]}}
CLOSED = {**OPEN, "kernel.nvidia_flavour": {"value": "proprietary"}}
NVLS, MNNVL, NVB, PXN = "NCCL_NVLS_ENABLE=0", "NCCL_MNNVL_ENABLE=0", "NCCL_NVB_DISABLE=1", "NCCL_PXN_DISABLE=1"
P2P, SHM, DIRECT, GDR = (
    "NCCL_P2P_DISABLE=1",
    "NCCL_SHM_DISABLE=1",
    "NCCL_P2P_DIRECT_DISABLE=1",
    "NCCL_NET_GDR_LEVEL=LOC",
)
IB, NET, ROUTING = "NCCL_IB_DISABLE=1", "NCCL_NET=Socket", "NCCL_IB_AR_THRESHOLD=8388608"
ORDER, DMABUF, CACHE = "NCCL_IB_PCI_RELAXED_ORDERING=0", "NCCL_DMABUF_ENABLE=0", "OFI_NCCL_MR_CACHE_DISABLE=1"


def found(auditor, facts, *lines):
    settings = [
        {**dict(zip(("name", "value"), line.split("="), strict=True)), "line": number, "raw": line}
        for number, line in enumerate(lines, 1)
    ]
    settings = [{**each, "file": "/etc/nccl.conf", "scope": "nccl.conf"} for each in settings]
    none = {"nccl.libraries": {"value": []}, "rdma.ports": {"value": {}}, "nccl.plugins": {"value": []}}
    every = {"gpu.count": {"value": 8}, **none, **facts, "nccl.settings": {"value": settings}}
    seen = HostResult("host", "ok", facts=document.from_data({"host": "host", "facts": every}))
    return {each.check: each for each in auditor.audit(seen).failing()}


LOST = [
    (NVLS, HGX),
    (NVLS, {**HGX, **nccl("2.27.7")}),
    (NVLS, {**PAIR, **nccl("2.28.7")}),
    (NVLS, {**PAIR, **nccl("2.32.3")}),
    (NVLS, {**PAIR, **nccl("2.17.1")}),
    (NVLS, gpus("NVIDIA B300 SXM6 AC", 8, architecture="blackwell", kind="switch")),
    (NVLS, {**gpus("NVIDIA H200", 4, "switch", virtual=True), "pci.devices": {"value": {}}}),
    (NVLS, GB200),
    (NVLS, gpus("NVIDIA GB200", 1, "switch")),
    (MNNVL, GB200),
    (MNNVL, gpus("NVIDIA GB300", 4, "switch")),
    (NVB, V100),
    (PXN, {**HGX, **RDMA}),
    (PXN, {**A100, **EFA}),
    (P2P, HGX),
    (P2P, BRIDGES),
    (P2P, SWITCH),
    (P2P, gpus("NVIDIA L40S", 2, **AMD)),
    (P2P, {**ROOTS, **AMD, **nccl("2.22.3")}),
    ("NCCL_P2P_LEVEL=LOC", V100),
    (SHM, ROOTS),
    (SHM, {**BRIDGES, **below(["a"], ["b"], ["c"], ["d"])}),
    (NVLS, {"gpu.names": HGX["gpu.names"]}),
    (IB, {**HGX, **RDMA}),
    (NET, {**HGX, **EFA}),
    (NET, {**HGX, **ROCE}),
    (GDR, {**HGX, **RDMA}),
    (GDR, {**GB200, **RDMA}),
    (GDR, {**A100, **EFA}),
    (ORDER, {**PAIR, **RDMA}),
    (DMABUF, {**HGX, **RDMA, **OPEN}),
    (ROUTING, {**HGX, **RDMA}),
    (CACHE, {**HGX, **EFA}),
]
KEPT = [
    (NVLS, {**PAIR, **nccl("2.28.3")}),
    (NVLS, {**HGX, **nccl("2.16.5")}),
    (NVLS, A100),
    (NVLS, BRIDGES),
    (NVLS, gpus(H100, 4, "gpu", architecture="hopper")),
    (NVLS, gpus("NVIDIA H100 PCIe", 8, architecture="hopper")),
    (NVLS, gpus(H100, 1, "switch", virtual=True, architecture="hopper")),
    (NVLS, ROOTS),
    (NVLS, V100),
    (NVLS, MIG),
    (NVLS, {fact: PRO[fact] for fact in ("gpu.names", "gpu.architecture")}),
    (MNNVL, {**GB200, "gpu.mig_mode": {"each": {f"GPU{each}": {"value": "enabled"} for each in range(4)}}}),
    (MNNVL, HGX),
    (MNNVL, gpus("NVIDIA B200", 8, "switch", architecture="blackwell")),
    (MNNVL, gpus("NVIDIA GH200 480GB", 1)),
    (MNNVL, gpus("NVIDIA GB200", 4, "gpu")),
    (NVB, HGX),
    (NVB, BRIDGES),
    (NVB, gpus("NVIDIA A100-SXM4-40GB", 4, "gpu")),
    (NVB, MIG),
    (PXN, HGX),
    (PXN, {**ROOTS, **RDMA}),
    (PXN, {**gpus("NVIDIA GeForce RTX 3090", 2, "gpu"), **RDMA}),
    (PXN, {**gpus(H100, 1, "switch", virtual=True), **RDMA}),
    (P2P, gpus(H100, 1, "switch", virtual=True)),
    (P2P, ROOTS),
    (P2P, {**ROOTS, **AMD, **nccl("2.27.7")}),
    (P2P, gpus("NVIDIA GeForce RTX 4090", 2, **AMD)),
    (P2P, {**SWITCH, "host.virtual": {"value": True}}),
    (P2P, MIG),
    (SHM, HGX),
    (SHM, gpus("NVIDIA L40S", 1)),
    (SHM, SWITCH),
    (SHM, V100),
    (SHM, GB200),
    (SHM, {**ROOTS, **AMD, **nccl("2.22.3")}),
    (SHM, {"gpu.names": A100["gpu.names"]}),
    (NVLS, {"gpu.names": gpus("NVIDIA H200 NVL", 8)["gpu.names"]}),
    (NVB, {"gpu.names": A100["gpu.names"]}),
    (MNNVL, {"gpu.names": gpus("NVIDIA GH200 480GB", 1)["gpu.names"]}),
    (IB, {**HGX, **EFA}),
    (NET, {**HGX, **WITHOUT_EFA}),
    (GDR, {**gpus("NVIDIA GeForce RTX 4090", 4), **RDMA}),
    (GDR, HGX),
    (DMABUF, {**HGX, **RDMA, **PEERMEM}),
    (DMABUF, {**HGX, **RDMA, **CLOSED}),
    (ROUTING, {**HGX, **ROCE}),
    (CACHE, {**HGX, **WITHOUT_EFA}),
]
MAY = [
    (MNNVL, {"gpu.names": GB200["gpu.names"]}, "NVSwitches"),
    (NVLS, PAIR, "NCCL 2.28.7 or newer"),
    (NVLS, {**PAIR, **nccl("2.27.7", "2.30.7")}, "NCCL 2.28.7 or newer"),
    (NVLS, {**PAIR, **nccl(None)}, "NCCL 2.28.7 or newer"),
    (NVLS, {"gpu.names": gpus(H100, 4)["gpu.names"]}, "NVSwitches"),
    (NVB, {"gpu.names": V100["gpu.names"]}, "GPUs that are not all linked"),
    (SHM, {"gpu.names": V100["gpu.names"]}, "GPUs that cannot reach each other"),
    (SHM, BRIDGES, "GPUs that cannot reach each other"),
    (DIRECT, HGX, "a program that uses several GPUs in one process"),
    (P2P, gpus("NVIDIA L40S", 4), "GPUs below one PCIe switch"),
    (P2P, {**ROOTS, **AMD}, "NCCL before 2.23"),
    (ORDER, {**HGX, **RDMA}, "a virtual machine"),
    (DMABUF, {**HGX, **RDMA}, "the open kernel modules"),
]


@pytest.mark.parametrize(("line", "facts"), LOST)
def test_a_path_that_the_host_has_is_lost(auditor, line, facts):
    assert found(auditor, facts, line).keys() == {SURE}


@pytest.mark.parametrize(("line", "facts"), KEPT)
def test_a_path_that_the_host_does_not_have_is_not_lost(auditor, line, facts):
    assert not found(auditor, facts, line)


@pytest.mark.parametrize(("line", "facts", "what"), MAY)
def test_a_path_that_the_facts_do_not_show_is_low_and_says_with_what_it_exists(auditor, line, facts, what):
    says = found(auditor, facts, line)
    assert says.keys() == {MAYBE} and says[MAYBE].severity == "low" and f"only with {what}" in says[MAYBE].observed


def test_what_is_lost_inside_the_host_is_found_without_the_rdma_ports(auditor):
    unread = {"rdma.ports": {"unread": "permission denied"}}
    assert found(auditor, {**HGX, **unread}, NVLS, IB).keys() == {SURE, MAYBE}


def test_without_peer_to_peer_gpus_need_shared_memory_although_nvlink_connects_them(auditor):
    assert "NCCL_SHM_DISABLE" in found(auditor, HGX, P2P, SHM)[SURE].observed


def test_adaptive_routing_is_lost_on_roce_where_it_is_switched_on(auditor):
    assert SURE in found(auditor, {**HGX, **ROCE}, "NCCL_IB_ADAPTIVE_ROUTING=1", ROUTING)


def test_gpudirect_rdma_is_used_below_one_pcie_switch_only(auditor):
    def host(*above_port):
        devices = below(["a", "b", "c"], above_port)
        port = {**PORT, "bdf": "0000:01:00.0"}
        bdfs = {"gpu.bdf": {"each": {"GPU0": {"value": "0000:00:00.0"}}}}
        return {**gpus("NVIDIA L40S", 1), **devices, **bdfs, "rdma.ports": {"value": {"mlx5_0/1": port}}}

    assert SURE in found(auditor, host("a", "b", "d"), GDR)
    assert not found(auditor, host("x"), GDR)


@pytest.mark.parametrize(
    ("line", "has", "lacks"),
    [
        ("NCCL_IB_TIMEOUT=0", {**HGX, **RDMA}, HGX),
        ("NCCL_GDR_FLUSH_DISABLE=1", {**A100, **RDMA}, {**HGX, **RDMA}),
        ("NCCL_IGNORE_DISABLED_P2P=1", HGX, gpus("NVIDIA L40S", 1)),
        ("OFI_NCCL_GDR_FLUSH_DISABLE=1", {**A100, **EFA}, {**A100, **RDMA}),
    ],
)
def test_a_value_is_unsafe_only_where_the_path_is(auditor, line, has, lacks):
    assert found(auditor, has, line).keys() == {UNSAFE}
    assert not found(auditor, lacks, line)


def test_the_bundled_guest_with_two_gpus_loses_nothing_by_its_own_setting_of_nvls(auditor):
    facts = json.loads((RECORDED / "h100-x2.json").read_text())["facts"]
    assert not found(auditor, facts, NVLS)
    assert found(auditor, {**facts, "nccl.libraries": {"value": []}}, NVLS).keys() == {MAYBE}
