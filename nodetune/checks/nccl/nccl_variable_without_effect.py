"""A setting cannot have any effect where it stands, or with the NCCL of this host.

Why it matters: It was removed from NCCL, is newer than the NCCL of this host, is read before NCCL opens its conf file,
or stands in the unit of a container engine, whose environment containers do not inherit. Whoever reads the file is
misled about what the node does.
Confirm by hand: NCCL_DEBUG=VERSION all_reduce_perf -b 8 -e 8 -g 1 | grep "NCCL version"
Side effects of the fix: None where a line is deleted. A container may bring a NCCL of its own, which is newer or older
than that of the host: look there before deleting.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (names in src/ of all release tags; src/misc/param.cc)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import names, releases
from nodetune.remedies import manual
from nodetune.view import View


def vain_settings(facts: View) -> Any:
    version = releases.newest(facts.readable("nccl.libraries", []))
    return names.without_effect(facts["nccl.settings"], version) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=vain_settings,
    accept=Empty("settings that the NCCL of this host reads"),
    remedy=manual(
        "Delete the line named; where a successor is named, set that instead. Settings for containers belong into the "
        "image, the pod or docker run -e, or into /etc/nccl.conf mounted into them."
    ),
    severity="low",
)
