"""A CDI specification names other GPUs than the host has.

Why it matters: The specification was written before a GPU was added, removed or lost. A container that asks for all GPUs
fails to start where a device file is missing (stat /dev/nvidia7: no such file or directory), and never gets a GPU that the
specification lacks.
Healthy exception: A specification without device files of GPUs cannot be compared. A site may leave out a GPU on purpose.
Confirm manually: grep -ho '/dev/nvidia[0-9]*' /etc/cdi/*.yaml /run/cdi/*.yaml | sort -u; ls /dev/nvidia[0-9]*
Side effects of the fix: None. Running containers keep what they have.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html ;
https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
"""

from __future__ import annotations

from nodetune.api import CONTAINERS, GPU, Absent, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str] | Absent:
    there = {f"/dev/nvidia{minor}" for minor in facts["gpu.minor_number"].values()}
    named = {each["file"]: set(each.get("devices", ())) for each in facts["containers.cdi"]}
    found = {file: _differences(devices, there) for file, devices in named.items() if devices}
    return found or Absent("no CDI specification names device files of GPUs")


def _differences(named: set[str], there: set[str]) -> str:
    parts = (("without", there - named), ("with", named - there))
    return ", ".join(f"{word} {', '.join(sorted(each))}" for word, each in parts if each)


CHECK = Check(
    needs=("containers.cdi", "gpu.minor_number"),
    observe=observe,
    accept=Empty("the GPUs of this host"),
    applies=(CONTAINERS, GPU),
    remedy=manual(
        "Run nvidia-ctk cdi generate --output=FILE for each file, or systemctl restart nvidia-cdi-refresh for files in /run/cdi."
    ),
    severity="low",
    part_of=("cdi-spec-stale", "gpu-lost", "gpu-missing"),
)
