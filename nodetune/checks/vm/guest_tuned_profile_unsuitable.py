"""tuned runs with a profile that is not meant for a server in a virtual machine.

Why it matters: Profiles such as balanced, desktop or powersave trade throughput for power or interactive use. virtual-guest
(or the provider's, such as aws) keeps what a guest can decide itself: page-cache and scheduler settings.
Confirm by hand: tuned-adm active
Side effects of the fix: tuned sets its parameters again at each start; they may differ from files in sysctl.d.
Sources: https://github.com/redhat-performance/tuned (profiles virtual-guest, aws) ; https://tuned-project.org
"""

from nodetune.conditions import VIRTUAL
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

SUITABLE = [
    "virtual-guest",
    "aws",
    "throughput-performance",
    "latency-performance",
    "network-latency",
    "network-throughput",
    "hpc-compute",
    "accelerator-performance",
]


def observe(facts: View) -> str:
    """The first suitable profile among the active one and those that it includes; else the active one."""
    profile = facts["services.tuned_profile"]
    return next((name for name in profile["chain"] if name in SUITABLE), str(profile["name"]))


CHECK = Check(
    needs=("services.tuned_profile",),
    observe=observe,
    accept=OneOf(SUITABLE),
    applies=(VIRTUAL,),
    remedy=manual("tuned-adm profile virtual-guest"),
    severity="info",
)
