"""The conditions under which many checks apply, each said once."""

from __future__ import annotations

from nodetune.expect import AtLeast, Empty, Equals, Not
from nodetune.model import When

BARE_METAL = When("host.virtual", Equals(wanted=False), "a virtual machine: its hypervisor decides this")
VIRTUAL = When("host.virtual", Equals(wanted=True), "not a virtual machine")
NOT_CONTAINER = When("host.container", Equals(wanted=False), "seen from inside a container")
SEVERAL_NUMA_NODES = When("numa.node_count", AtLeast(2), "only one NUMA node")
GPU = When("gpu.count", AtLeast(1), "no NVIDIA GPU answers NVML here")
GPU_ON_PCI = When("pci.gpus", Not(Empty()), "no NVIDIA GPU on the PCI bus")
RDMA = When("rdma.ports", Not(Empty()), "no RDMA device")
SLURM = When("slurm.present", Equals(wanted=True), "no Slurm on this host")
KUBELET = When("kubernetes.present", Equals(wanted=True), "no kubelet on this host")
CONTAINERS = When("containers.present", Equals(wanted=True), "no container engine on this host")
