"""A vGPU has no licence.

Why it matters: Without a licence, the driver of a virtual machine slows its vGPU down some minutes after the boot, and
later refuses CUDA: memory is allocated at a few megabytes a second, or programs end with "all CUDA-capable devices are busy
or unavailable". nvidia-smi shows an idle and healthy GPU. In the first 20 minutes after a boot the service nvidia-gridd may
still be asking for the licence, and the vGPU has its full speed.
Confirm manually: nvidia-smi -q | grep -A3 'vGPU Software Licensed Product'; journalctl -u nvidia-gridd
Side effects of the fix: None: a vGPU takes its licence while programs run.
Sources: https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlGridLicensing.html ;
https://github.com/NVIDIA/gpu-operator/issues/220 ; https://github.com/Azure/AKS/issues/4870
"""

from __future__ import annotations

from nodetune.api import GPU, Check, Empty, Fact, FactsView, Unread, manual
from nodetune.checks.gpu._each import each

GRACE_S = 20 * 60
UPTIME = "host.uptime_s"


def observe(facts: FactsView) -> Fact:
    waits = facts.readable(UPTIME, GRACE_S) < GRACE_S
    return each(facts, "gpu.vgpu_license", lambda told: _problem(told, waits))


def _problem(told: dict[str, str], waits: bool) -> str | Unread:
    if told["licensed"]:
        return ""
    if waits:
        return Unread("the host has just booted and may still get its licence: audit again in a few minutes")
    return f"no licence for {told['product'] or 'the vGPU'}"


CHECK = Check(
    needs=("gpu.vgpu_license", UPTIME),
    observe=observe,
    accept=Empty("licensed"),
    applies=(GPU,),
    remedy=manual(
        "Put the client configuration token into /etc/nvidia/ClientConfigToken (in Kubernetes: driver.licensingConfig of the "
        "GPU Operator), set FeatureType in /etc/nvidia/gridd.conf, restart nvidia-gridd, and make sure that the licence "
        "server can be reached and has a licence left."
    ),
    severity="medium",
)
