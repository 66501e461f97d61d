"""The kernel that boots next has no NVIDIA driver.

Why it matters: A new kernel was installed and the driver was not built or packaged for it, so the node comes up
without GPUs. The usual reasons are missing kernel headers, a failed DKMS build, or a meta package that lags behind.
Confirm by hand: dkms status; find /lib/modules -name 'nvidia.ko*'
Side effects of the fix: None before the reboot.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ ; https://github.com/dell/dkms
"""

from nodetune.expect import Empty, Equals, Not
from nodetune.model import Absent, Check, Ref, When
from nodetune.remedies import manual
from nodetune.view import View

MODULE = "kernel.next_nvidia_module"


def missing(facts: View) -> str:
    """Why that kernel has none; nothing where it has one."""
    seen = facts.fact(MODULE)
    if isinstance(seen, Absent):
        return seen.reason
    return "" if facts[MODULE] else "no module"


CHECK = Check(
    observe=missing,
    needs=(MODULE,),
    accept=Empty("an NVIDIA module for that kernel"),
    applies=(
        When("modules.available.nvidia", Not(Empty()), "the running kernel has no installed NVIDIA driver either"),
        When("kernel.next", Not(Equals(Ref("host.kernel"))), "the running kernel boots next"),
    ),
    remedy=manual(
        "Install the headers of that kernel and build the driver for it: dkms autoinstall -k VERSION; or install the "
        "matching package (linux-modules-nvidia-BRANCH-VERSION). Then update its initial RAM disk"
    ),
    severity="high",
)
