"""MIG mode is on.

Why it matters: A GPU in MIG mode runs nothing outside its instances, and instances have no peer access over NVLink.
Multi-GPU training does not work on such a GPU. A GPU that has instances was divided on purpose: only one without
counts. Where no GPU should be divided, say so in the site file: mig-mode-on: {accept: {equals: disabled}}.
Healthy exception: A GPU that has instances was divided on purpose.
Confirm manually: nvidia-smi --query-gpu=index,mig.mode.current --format=csv
Side effects of the fix: All instances are destroyed. The GPU must be idle (Ampere also resets it).
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from __future__ import annotations

from nodetune.api import GPU, Check, FactsView, OneOf, Unread, gpu


def observe(facts: FactsView) -> dict[str, str | Unread]:
    modes = facts["gpu.mig_mode"]
    divided = facts["gpu.mig_devices"] if "enabled" in modes.values() else {}
    return {name: _state(mode, divided.get(name)) for name, mode in modes.items()}


def _state(mode: str, instances: dict[str, int] | None) -> str | Unread:
    if mode != "enabled":
        return mode
    return Unread("its instances are unknown") if instances is None else "divided" if instances else mode


CHECK = Check(
    needs=("gpu.mig_mode", "gpu.mig_devices"),
    observe=observe,
    accept=OneOf(["disabled", "divided"]),
    set="disabled",
    applies=(GPU,),
    remedy=gpu("mig_mode", "idle GPU"),
    severity="high",
    name="MIG mode",
    part_of="mig-without-instances",
)
