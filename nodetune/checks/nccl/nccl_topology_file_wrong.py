"""The topology file that NCCL is told to load is missing, unreadable or out of place.

Why it matters: Virtual machines need one, because their PCI tree does not show what lies near what. A missing or
unreadable file leaves NCCL with that flat tree; one from another machine type halves the bandwidth without a word. On
bare metal the real tree is there, and any file can only be wrong, at the latest after the next change of hardware.
Confirm by hand: ls -l "$(sed -n 's/^NCCL_TOPO_FILE=//p' /etc/nccl.conf)"; xmllint --noout FILE
Side effects of the fix: NCCL computes other rings for jobs that start from then on; run a bandwidth test.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-topo-file ;
https://github.com/Azure/azhpc-images (components/customizations) ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import judging
from nodetune.remedies import manual
from nodetune.view import View

NAMES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")


def wrong_files(facts: View) -> Any:
    files, virtual = facts["nccl.topo_file"], facts.readable("host.virtual")

    def judge(setting: Any, _: Any) -> str:
        return _fault(files.get(setting["value"]), virtual) if setting["name"] in NAMES else ""

    return judging.problems(facts["nccl.settings"], judge) or []


def _fault(file: Any, virtual: Any) -> str:
    if file is not None and file["exists"] is False:
        return "no such file"
    if file is not None and file["world_readable"] is False:
        return "users cannot read the file"
    if virtual is False:
        return "set on bare metal, where NCCL reads the topology itself"
    return "no absolute path: it depends on where a job starts" if file is None else ""


CHECK = Check(
    needs=("nccl.settings", "nccl.topo_file", "host.virtual"),
    observe=wrong_files,
    accept=Empty("unset on bare metal; a readable file in a virtual machine"),
    remedy=manual(
        "Bare metal: delete the line. Virtual machine: install the file that the provider ships for this very size (Azure: "
        "/opt/microsoft/.../topo.xml), chmod 0644, and name it by its full path."
    ),
    severity="high",
)
