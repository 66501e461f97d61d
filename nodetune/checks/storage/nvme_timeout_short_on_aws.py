"""nvme_core.io_timeout is too short for EBS volumes.

Why it matters: EBS volumes look like NVMe drives but may answer late when the service has trouble. After the default
30 seconds, the driver fails the request, and the file system may turn read-only. AWS recommends the largest timeout.
Confirm manually: cat /sys/module/nvme_core/parameters/io_timeout
Side effects of the fix: I/O to a volume that is really gone hangs instead of failing. Needs a reboot.
Sources: https://docs.aws.amazon.com/ebs/latest/userguide/timeout-nvme-ebs-volumes.html ;
https://github.com/redhat-performance/tuned (profile aws)
"""

from nodetune.api import VIRTUAL, Check, FactsView, Matches, OneOf, When, kernel_arg


def observe(facts: FactsView) -> str:
    """Return the value as text, as on the kernel command line."""
    return str(facts["block.nvme_io_timeout"])


CHECK = Check(
    needs=("block.nvme_io_timeout",),
    observe=observe,
    accept=OneOf(["4294967295", "255"]),
    set="4294967295",
    unit="s",
    applies=(VIRTUAL, When("host.dmi.sys_vendor", Matches("^Amazon"), "not an Amazon EC2 instance")),
    remedy=kernel_arg("nvme_core.io_timeout"),
    severity="info",
)
