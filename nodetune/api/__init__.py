"""The API for authors of checks: the model, predicates, remedies, the view of facts, and shared conditions."""

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Absent, Cause, Check, Each, Fact, Observe, Ref, Unread, Value, When
from nodetune.api.predicates import AtLeast, AtMost, Empty, Equals, Matches, Not, OneOf
from nodetune.api.remedies import (
    apt_conf,
    block_queue,
    cpufreq,
    docker_daemon,
    engine_conf,
    gpu,
    irq_affinity,
    kernel_arg,
    limit,
    lustre_param,
    manual,
    modprobe,
    module,
    mount_option,
    mps,
    nccl_conf,
    net_link,
    nfs_option,
    nfs_read_ahead,
    repair,
    service,
    swap_off,
    sysctl,
    sysfs,
    system_cpus,
    systemd_dropin,
)

BARE_METAL = When("host.virtual", Equals(wanted=False), "a virtual machine: its hypervisor decides this")
VIRTUAL = When("host.virtual", Equals(wanted=True), "not a virtual machine")
NOT_CONTAINER = When("host.container", Equals(wanted=False), "inside a container")
SEVERAL_NUMA_NODES = When("numa.node_count", AtLeast(2), "only one NUMA node")
SYSTEMD = When("services.manager", Equals("systemd"), "no systemd on this host")
GPU = When("gpu.count", AtLeast(1), "NVML reports no NVIDIA GPU")
GPU_ON_PCI = When("pci.gpus", Not(Empty()), "no NVIDIA GPU on the PCI bus")
RDMA = When("rdma.ports", Not(Empty()), "no RDMA device")
SLURM = When("slurm.present", Equals(wanted=True), "no Slurm on this host")
KUBELET = When("kubernetes.present", Equals(wanted=True), "no kubelet on this host")
CONTAINERS = When("containers.present", Equals(wanted=True), "no container engine on this host")
