"""containerd has no way to give GPUs to the kubelet's pods.

Why it matters: It knows neither a runtime called nvidia nor a CDI specification of the GPUs. The device plugin itself
then finds no GPU, and pods that ask for one never start.
Confirm by hand: containerd config dump | grep -A3 -i nvidia; ls /etc/cdi /run/cdi
Side effects of the fix: containerd restarts; running containers go on.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from nodetune.conditions import GPU_ON_PCI, KUBELET
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """Which of the two ways there is. CDI counts unless it is switched off (containerd 2 has it on)."""
    containerd = facts["containers.containerd"]
    if containerd["nvidia_runtime"]:
        return "runtime"
    return "CDI" if facts["containers.cdi"] and containerd["enable_cdi"] is not False else "none"


CHECK = Check(
    needs=("containers.containerd", "containers.cdi"),
    observe=observe,
    accept=OneOf(["runtime", "CDI"]),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "nvidia-ctk runtime configure --runtime=containerd; systemctl restart containerd (the GPU Operator does both)"
    ),
    severity="high",
)
