"""The same NCCL setting is made more than once.

Why it matters: One of them is in vain, and not always the one that its writer thinks. Inside an nccl.conf the first
line counts, in /etc/environment and shell profiles the last; the environment wins over NCCL_CONF_FILE or ~/.nccl.conf,
and those over /etc/nccl.conf.
Confirm by hand: grep -rn NCCL_ /etc/nccl.conf /etc/environment /etc/profile.d; env | grep NCCL_
Side effects of the fix: None, if the line that is in vain is the one deleted.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/param.cc: setenv without overwriting, in that order)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import precedence
from nodetune.remedies import manual
from nodetune.view import View


def repeated_settings(facts: View) -> Any:
    return precedence.repeated(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=repeated_settings,
    accept=Empty("each name set in one place"),
    remedy=manual("Keep the setting in one place, best in /etc/nccl.conf, and delete the lines that are in vain."),
    severity="low",
)
