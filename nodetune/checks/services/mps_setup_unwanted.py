"""CUDA MPS does not run as the site declares.

Why it matters: Programs that share GPUs through MPS look for its daemon in one folder, and only clients of the daemon's
user (or of root's daemon) reach it. Without it they run one after another, or fail where a GPU is in exclusive mode. The
site file declares it: accept: {where: {daemons: 1, user: root, pipe_directory: /tmp/nvidia-mps, compute_mode:
exclusive_process}}, set: {user: root, pipe_directory: /tmp/nvidia-mps}. Without such a line the check does not apply.
Confirm manually: pgrep -a nvidia-cuda-mps; systemctl status nodetune-mps; nvidia-smi --query-gpu=compute_mode --format=csv
Side effects of the fix: Only MPS clients can use the GPUs then, two or more at a time. MPS is for one user at a time.
Sources: https://docs.nvidia.com/deploy/mps/index.html
"""

from nodetune.api import GPU, Check, Fact, FactsView, Value, mps


def observe(facts: FactsView) -> Fact:
    found = facts["mps.daemons"]
    modes = sorted(set(facts["gpu.compute_mode"].values()))
    seen = {
        "daemons": len(found),
        "user": " ".join(sorted({each["user"] for each in found})),
        "pipe_directory": " ".join(sorted({each["pipe_directory"] for each in found})),
        "compute_mode": " ".join(modes),
    }
    return Value(seen)


CHECK = Check(
    needs=("mps.daemons", "gpu.compute_mode"),
    observe=observe,
    accept=None,
    applies=(GPU,),
    remedy=mps(),
    severity="medium",
    name="CUDA MPS",
)
