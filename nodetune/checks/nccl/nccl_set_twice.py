"""An NCCL setting is set more than once.

Why it matters: Only one of the lines takes effect, and not always the one that its author expects. In an nccl.conf the
first line counts. In /etc/environment and shell profiles the last line counts. The environment takes precedence over
NCCL_CONF_FILE or ~/.nccl.conf, and those over /etc/nccl.conf.
Confirm manually: grep -rn NCCL_ /etc/nccl.conf /etc/environment /etc/profile.d; env | grep NCCL_
Side effects of the fix: None: apply removes the lines of one file that lose to another line of that file. Which of two files
is right is for a person: without a login session, a line of /etc/nccl.conf holds after all.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (src/misc/param.cc: setenv without overwriting, in that order)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.shared.nccl_settings import repeated, repeated_here


def repeated_settings(facts: FactsView) -> Any:
    return repeated(facts["nccl.settings"]) or []


def left_alone(facts: FactsView) -> dict[str, str]:
    settings = facts["nccl.settings"]
    lost = repeated_here(settings)
    return {line: "it loses to another file only" for line in repeated(settings) if line not in lost}


CHECK = Check(
    needs=("nccl.settings",),
    observe=repeated_settings,
    accept=Empty("each name set in one place"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Keep the setting in one place, preferably /etc/nccl.conf, and delete the lines without effect. A line of "
        "/etc/nccl.conf that loses to a user's own ~/.nccl.conf holds for all other users: keep it, and change the user's file."
    ),
    severity="low",
)
