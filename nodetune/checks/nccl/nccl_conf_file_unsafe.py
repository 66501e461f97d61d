"""A file with NCCL settings can be changed by everybody, or is hidden from the jobs.

Why it matters: Any variable can be set in an nccl.conf, and every process that loads NCCL takes it over, root's too:
whoever may write it steers the jobs of others (plugins are libraries to load). A file that users cannot read is skipped
without a word.
Confirm by hand: ls -l /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: Settings from a file that was unreadable begin to act for all jobs.
Sources: https://github.com/NVIDIA/nccl (src/misc/param.cc) ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check, Each, Value
from nodetune.remedies import manual
from nodetune.view import View

ROOT_ONLY = "/root/"
NODE_WIDE = "/etc/nccl.conf"


def unsafe_files(facts: View) -> Any:
    files = facts.fact("nccl.files")
    if not isinstance(files, Each):
        return files
    judged = {
        path: Value(_fault(path, fact.value)) if isinstance(fact, Value) else fact for path, fact in files.of.items()
    }
    return Each(judged) if judged else []


def _fault(path: str, file: dict[str, Any]) -> str:
    if file["world_writable"]:
        return f"mode {file['mode']}: everybody can change it"
    if path.startswith(ROOT_ONLY):
        return ""
    if path.startswith("/etc/") and file["uid"] != 0:
        return f"belongs to user {file['uid']}, not to root"
    if path == NODE_WIDE and not file["world_readable"]:
        return f"mode {file['mode']}: NCCL skips it in the jobs of users, who cannot read it"
    return ""


CHECK = Check(
    needs=("nccl.files",),
    observe=unsafe_files,
    accept=Empty("root's, mode 0644"),
    remedy=manual("chown root:root FILE && chmod 0644 FILE, for each file named; read what it says first."),
    severity="high",
)
