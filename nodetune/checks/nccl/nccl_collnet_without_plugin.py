"""CollNet is asked for, but no SHARP plugin is on this host.

Why it matters: NCCL_COLLNET_ENABLE=1 has NCCL reduce in the switches (SHARP). That needs the plugin of HPC-X
(nccl-rdma-sharp-plugins). Without it, NCCL continues with rings and trees, and says so only in its log. Containers may bring
the plugin: then nothing is lost there.
Confirm manually: ls /opt/hpcx*/nccl_rdma_sharp_plugin/lib; NCCL_DEBUG=INFO all_reduce_perf -g 8 | grep -i -E 'collnet|sharp'
Side effects of the fix: None without the plugin: apply removes the line where no container engine is on the host.
Sources: https://docs.nvidia.com/networking/display/hpcxv2251/nccl-rdma-sharp-plugins ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-collnet-enable
"""

from __future__ import annotations

from nodetune.api import RDMA, Absent, Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._effects import has_efa
from nodetune.checks.shared.nccl_reading import is_at
from nodetune.checks.shared.nccl_settings import of_containers, subject, takes_effect


def observe(facts: FactsView) -> dict[str, str] | Absent:
    lines = [each for each in facts["nccl.settings"] if each["name"] == "NCCL_COLLNET_ENABLE" and takes_effect(each)]
    asked = [each for each in lines if is_at(each["value"], 1)]
    other = bool(facts["nccl.plugins"]) and not has_efa(facts["nccl.plugins"])
    there = other or facts["rdma.net_plugins"].get("nccl_rdma_sharp")
    return {subject(each): "" if there else "no SHARP plugin" for each in asked} or Absent("no file asks for CollNet")


def left_alone(facts: FactsView) -> dict[str, str]:
    why = of_containers(facts)
    return {subject(each): why for each in facts["nccl.settings"] if why}


CHECK = Check(
    needs=("nccl.settings", "nccl.plugins", "rdma.net_plugins", "containers.engines"),
    observe=observe,
    accept=Empty("a SHARP plugin"),
    applies=(RDMA,),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Install HPC-X and put its nccl_rdma_sharp_plugin/lib into ld.so.conf.d (then ldconfig), or delete the named line."
    ),
    severity="info",
)
