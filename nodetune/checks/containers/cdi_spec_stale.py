"""A CDI specification lists files of another driver version.

Why it matters: The CDI specification lists the driver's files by name. A driver update replaces these files. Every
container that requests a GPU then fails to start (failed to fulfil mount request) until the specification is
regenerated.
Healthy exception: A specification that names no driver version cannot be compared.
Confirm manually: grep -o 'libcuda.so.[0-9.]*' /etc/cdi/nvidia.yaml | sort -u; cat /proc/driver/nvidia/version
Side effects of the fix: None. Running containers keep the files that they have.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
"""

from nodetune.api import CONTAINERS, Check, Equals, FactsView, Ref, repair


def observe(facts: FactsView) -> dict[str, str]:
    return {each["file"]: each["driver"] for each in facts["containers.cdi"] if each["driver"]}


CHECK = Check(
    needs=("containers.cdi",),
    observe=observe,
    accept=Equals(Ref("gpu.driver_version")),
    applies=(CONTAINERS,),
    remedy=repair(
        "Run nvidia-ctk cdi generate --output=FILE for each file. Toolkit 1.18 and newer generates it in /run/cdi "
        "(systemctl enable --now nvidia-cdi-refresh.path): in that case remove the file in /etc/cdi"
    ),
    severity="high",
)
