"""An NCCL setting has no effect.

Why it matters: The variable was removed from NCCL, is newer than the NCCL of this host, is read before NCCL opens its
conf file, or is in the unit of a container engine, whose environment containers do not inherit. Anyone who reads the
file gets a wrong picture of what the node does.
Confirm manually: NCCL_DEBUG=VERSION all_reduce_perf -b 8 -e 8 -g 1 | grep "NCCL version"
Side effects of the fix: None if a line is deleted. A container may include its own NCCL, which is newer or older than
that of the host: check there before deleting.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (names in src/ of all release tags; src/misc/param.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._names import without_effect
from nodetune.checks.shared.nccl_table import newest


def ineffective_settings(facts: FactsView) -> Any:
    version = newest(facts.readable("nccl.libraries", []))
    return without_effect(facts["nccl.settings"], version) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=ineffective_settings,
    accept=Empty("settings that the NCCL of this host reads"),
    remedy=manual(
        "Delete the named line. If a successor is given, set that instead. Settings for containers belong in the "
        "image, the pod or docker run -e, or into /etc/nccl.conf mounted into them."
    ),
    severity="low",
)
