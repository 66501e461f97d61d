"""A CDI specification names libraries of another driver version.

Why it matters: The specification lists the driver's files by name. After a driver update those are gone, and every
container that asks for a GPU fails to start (failed to fulfil mount request), until it is written again.
Confirm by hand: grep -o 'libcuda.so.[0-9.]*' /etc/cdi/nvidia.yaml | sort -u; cat /proc/driver/nvidia/version
Side effects of the fix: None: containers started before keep what they have.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
"""

from nodetune.conditions import CONTAINERS
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    return {each["file"]: each["driver"] for each in facts["containers.cdi"] if each["driver"]}


CHECK = Check(
    needs=("containers.cdi",),
    observe=observe,
    accept=Equals(Ref("gpu.driver_version")),
    applies=(CONTAINERS,),
    remedy=manual(
        "nvidia-ctk cdi generate --output=FILE for each; toolkit 1.18 and newer does it by itself in /run/cdi "
        "(systemctl enable --now nvidia-cdi-refresh.path): then remove the one in /etc/cdi"
    ),
    severity="high",
)
