"""A file with NCCL settings has unsafe permissions.

Why it matters: An nccl.conf can set any variable, and every process that loads NCCL reads it, including root's. Whoever
may write the file controls the jobs of others (plugins are libraries to load). NCCL silently skips a file that users
cannot read.
Healthy exception: A file in a home directory may be readable by its owner alone.
Confirm manually: ls -l /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: Settings from a file that was unreadable take effect for all jobs.
Sources: https://github.com/NVIDIA/nccl (src/misc/param.cc) ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from typing import Any

from nodetune.api import Check, Each, Empty, FactsView, Value, manual

ROOT_ONLY = "/root/"
NODE_WIDE = "/etc/nccl.conf"


def unsafe_files(facts: FactsView) -> Any:
    files = facts.fact("nccl.files")
    if not isinstance(files, Each):
        return files
    judged = {
        path: Value(_fault(path, fact.value)) if isinstance(fact, Value) else fact for path, fact in files.of.items()
    }
    return Each(judged) if judged else []


def _fault(path: str, file: dict[str, Any]) -> str:
    if file["world_writable"]:
        return f"mode {file['mode']}: every user can change it"
    if path.startswith(ROOT_ONLY):
        return ""
    if path.startswith("/etc/") and file["uid"] != 0:
        return f"owned by user {file['uid']}, not by root"
    if path == NODE_WIDE and not file["world_readable"]:
        return f"mode {file['mode']}: users cannot read it, so NCCL skips it in their jobs"
    return ""


CHECK = Check(
    needs=("nccl.files",),
    observe=unsafe_files,
    accept=Empty("owned by root, mode 0644"),
    remedy=manual("Review each named file, then run chown root:root FILE && chmod 0644 FILE."),
    severity="high",
)
