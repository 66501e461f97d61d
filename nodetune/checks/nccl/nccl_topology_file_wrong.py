"""The NCCL topology file is missing, unreadable or unsuitable.

Why it matters: Virtual machines need a topology file, because their PCI tree does not show which devices are near each
other. With a missing or unreadable file, NCCL uses that flat tree. A file from another machine type silently halves the
bandwidth. On bare metal NCCL reads the real tree, and any file becomes wrong after the next hardware change at the
latest.
Healthy exception: A virtual machine needs such a file.
Confirm manually: ls -l "$(sed -n 's/^NCCL_TOPO_FILE=//p' /etc/nccl.conf)"; xmllint --noout FILE
Side effects of the fix: apply removes a line of bare metal whose file does not exist. Any other change has NCCL compute different
rings for new jobs: run a bandwidth test.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-topo-file ;
https://github.com/Azure/azhpc-images (components/customizations) ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.shared.nccl_settings import problems

NAMES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")


def wrong_files(facts: FactsView) -> Any:
    files, virtual = facts["nccl.topo_file"], facts.readable("host.virtual")

    def judge(setting: Any, _: Any) -> str:
        return _fault(files.get(setting["value"]), virtual) if setting["name"] in NAMES else ""

    return problems(facts["nccl.settings"], judge) or []


def _fault(file: Any, virtual: Any) -> str:
    if file is not None and file["exists"] is False:
        return "no such file"
    if file is not None and file["world_readable"] is False:
        return "users cannot read the file"
    if virtual is False:
        return "set on bare metal, where NCCL reads the topology itself"
    return "not an absolute path: it depends on the job's working directory" if file is None else ""


def left_alone(facts: FactsView) -> dict[str, str]:
    files, virtual = facts["nccl.topo_file"], facts["host.virtual"]

    def judge(setting: Any, _: Any) -> str:
        if virtual:
            return "a virtual machine needs such a file"
        there = files.get(setting["value"], {}).get("exists") is not False
        return "someone made the file for this host" if there else ""

    return problems(facts["nccl.settings"], judge)


CHECK = Check(
    needs=("nccl.settings", "nccl.topo_file", "host.virtual"),
    observe=wrong_files,
    accept=Empty("unset on bare metal; a readable file in a virtual machine"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Bare metal: delete the line. Virtual machine: install the provider's file for exactly this machine size (Azure: "
        "/opt/microsoft/.../topo.xml), set mode 0644, and use its full path."
    ),
    severity="high",
)
