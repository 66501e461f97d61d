"""The NCCL of this host is older than its GPUs.

Why it matters: NCCL 2.25.1 is the first release built for Blackwell. An older one runs by code that the driver compiles at each
start, without the algorithms of these GPUs, or does not run at all. For Hopper 2.15.1 is that release; wanted is 2.23.4, the
first with PAT, whose AllGather and ReduceScatter take fewer steps over many nodes. Programs that bring an NCCL of their own
(PyTorch, containers) do not use this one, and theirs is not seen.
Confirm manually: ldconfig -p | grep libnccl; ls -l /usr/lib/*/libnccl.so*
Side effects of the fix: Programs that were linked with the old release load the new one: it keeps the interface of release 2.
Sources: https://github.com/NVIDIA/nccl/blob/v2.25.1-1/makefiles/common.mk (sm_100, sm_120) ;
https://github.com/NVIDIA/nccl/blob/v2.15.1-1/makefiles/common.mk (sm_90) ;
https://docs.nvidia.com/deeplearning/nccl/release-notes/rel_2-23-4.html (PAT)
"""

from nodetune.api import GPU, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared.nccl_table import newest, release

FIRST = {"hopper": "2.23.4", "blackwell": "2.25.1"}


def observe(facts: FactsView) -> str:
    """Return the newest library of the host if its GPUs need a newer one."""
    first = max((FIRST[kind] for kind in facts["gpu.architecture"].values() if kind in FIRST), key=release, default="")
    version = newest(facts["nccl.libraries"])
    if not first or not version:
        raise FactAbsentError("no NCCL on this host, or no GPU that needs a certain release")
    return "" if release(version) >= release(first) else f"{version}, older than {first}"


CHECK = Check(
    needs=("gpu.architecture", "nccl.libraries"),
    observe=observe,
    accept=Empty("a release that knows these GPUs"),
    applies=(GPU,),
    remedy=manual("Install the current libnccl2 (Debian, Ubuntu) or libnccl (RHEL) from NVIDIA's CUDA repository."),
    severity="low",
)
