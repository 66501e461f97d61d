"""A setting of PyTorch, NVSHMEM or the CUDA libraries slows every job of the node.

Why it matters: Each of these was set for one job, to find a fault or to compare results. NVIDIA_TF32_OVERRIDE=0 takes the
tensor cores from every product of FP32 matrices. PYTORCH_NO_CUDA_MEMORY_CACHING=1 has the driver allocate each tensor.
TORCH_DISTRIBUTED_DEBUG=DETAIL compares each collective among all ranks, TORCH_NCCL_BLOCKING_WAIT=1 has the program wait for it.
Without peer-to-peer, NVSHMEM leaves NVLink; with the NIC handler cpu, no GPU starts a transfer itself (IBGDA).
TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 is faster, and less exact than programs ask for.
Confirm manually: grep -rnE 'TF32|PYTORCH_|TORCH_|NVSHMEM_' /etc/environment /etc/profile.d /etc/security/pam_env.conf
Side effects of the fix: Results in FP32 change in their last digits where TF32 was switched off or forced.
Sources: https://docs.pytorch.org/docs/stable/cuda_environment_variables.html ;
https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html ;
https://docs.pytorch.org/docs/stable/distributed.html#torch-distributed-debug ;
https://docs.nvidia.com/nvshmem/api/gen/env.html ; https://github.com/deepseek-ai/DeepEP/pull/295 (the handler cpu is slower)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.shared.nccl_reading import is_at
from nodetune.checks.shared.nccl_settings import subject, takes_effect

ON = ["1", "true", "yes", "y", "on"]
HARM: dict[str, tuple[list[str], str]] = {
    "NVIDIA_TF32_OVERRIDE": (["0"], "no TF32 in any library"),
    "NVSHMEM_DEBUG": (["info", "trace"], "a log of every call"),
    "NVSHMEM_DISABLE_P2P": (ON, "no NVLink for NVSHMEM"),
    "NVSHMEM_IBGDA_NIC_HANDLER": (["cpu"], "a thread of the host starts each transfer of IBGDA"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (ON, "no cache of GPU memory"),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": (ON, "TF32 also where programs ask for FP32"),
    "TORCH_DISTRIBUTED_DEBUG": (["detail"], "each collective is compared among all ranks"),
    "TORCH_NCCL_BLOCKING_WAIT": (ON, "the program waits for each collective"),
}


OF_THE_SITE = {
    "NVIDIA_TF32_OVERRIDE": "the site decides how exact its results are",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "the site decides how exact its results are",
    "NVSHMEM_DISABLE_P2P": "it may work around a fault of the hardware",
    "NVSHMEM_IBGDA_NIC_HANDLER": "a driver without PeerMappingOverride needs it before NVSHMEM 3.4.5",
}


def left_alone(facts: FactsView) -> dict[str, str]:
    lines = facts["nccl.settings"]
    return {subject(each): OF_THE_SITE[each["name"]] for each in lines if each["name"] in OF_THE_SITE}


def observe(facts: FactsView) -> Any:
    known = [each for each in facts["nccl.settings"] if each["name"] in HARM and takes_effect(each)]
    told = {subject(each): (each["value"], *HARM[each["name"]]) for each in known}
    return {line: f"{value}: {harm}" for line, (value, at, harm) in told.items() if is_at(value, at)} or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=observe,
    accept=Empty("no such setting for the whole node"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(steps="Delete the named line. Set the variable in the script of the job that needs it."),
    severity="low",
)
