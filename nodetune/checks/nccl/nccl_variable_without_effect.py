"""An NCCL setting has no effect.

Why it matters: The variable was removed from NCCL, is newer than the NCCL of this host, is read before NCCL opens its
conf file, or is in the unit of a container engine, whose environment containers do not inherit. Anyone who reads the
file gets a wrong picture of what the node does.
Confirm manually: NCCL_DEBUG=VERSION all_reduce_perf -b 8 -e 8 -g 1 | grep "NCCL version"
Side effects of the fix: None: apply removes names that no NCCL of the host reads any more, where no container engine may bring
an older one. Lines that are too new, or too late in their file, are for a person.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/NVIDIA/nccl (names in src/ of all release tags; src/misc/param.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._names import without_effect
from nodetune.checks.shared.nccl_settings import Setting, of_containers, subject
from nodetune.checks.shared.nccl_table import newest, oldest, release, variables


def ineffective_settings(facts: FactsView) -> Any:
    version = newest(facts.readable("nccl.libraries", []))
    return without_effect(facts["nccl.settings"], version) or []


def left_alone(facts: FactsView) -> dict[str, str]:
    oldest_here, engines = release(oldest(facts["nccl.libraries"])), of_containers(facts)

    def judge(setting: Setting) -> str:
        about = variables().get(setting["name"], {})
        gone = about.get("kind") == "removed" and about["component"] == "nccl" and oldest_here > release(about["last"])
        return engines if gone else "what it was meant for may be elsewhere: in another place, or in another release"

    told = {subject(each): judge(each) for each in facts["nccl.settings"]}
    return {line: why for line, why in told.items() if why}


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries", "containers.engines"),
    observe=ineffective_settings,
    accept=Empty("settings that the NCCL of this host reads"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Delete the named line. If a successor is given, set that instead. Settings for containers belong in the "
        "image, the pod or docker run -e, or into /etc/nccl.conf mounted into them."
    ),
    severity="low",
)
