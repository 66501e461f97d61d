"""The kernel for the next boot has no NVIDIA driver.

Why it matters: A new kernel was installed, but the driver was not built or packaged for it. After a reboot the node has
no GPUs. Common causes are missing kernel headers, a failed DKMS build, or a metapackage that lags behind.
Healthy exception: A host whose driver is in a container has no module of its own to lose.
Confirm manually: dkms status; find /lib/modules -name 'nvidia.ko*'
Side effects of the fix: None before the reboot.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ ; https://github.com/dell/dkms
"""

from nodetune.api import Absent, Check, Empty, Equals, FactsView, Not, Ref, When, manual

MODULE = "kernel.next_nvidia_module"


def missing(facts: FactsView) -> str:
    """Return why that kernel has no driver, or an empty string if it has one."""
    module = facts.fact(MODULE)
    if isinstance(module, Absent):
        return module.reason
    return "" if facts[MODULE] else "no module"


CHECK = Check(
    observe=missing,
    needs=(MODULE,),
    accept=Empty("an NVIDIA module for that kernel"),
    applies=(
        When("modules.available.nvidia", Not(Empty()), "the running kernel has no installed NVIDIA driver either"),
        When("kernel.next", Not(Equals(Ref("host.kernel"))), "the next boot starts the running kernel"),
    ),
    remedy=manual(
        "Install the headers of that kernel and build the driver for it: dkms autoinstall -k VERSION. Or install the "
        "matching package (linux-modules-nvidia-BRANCH-VERSION). Then update its initramfs."
    ),
    severity="high",
    name="next kernel",
)
