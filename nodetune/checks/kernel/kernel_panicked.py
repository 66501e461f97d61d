"""The kernel panicked within the last week.

Why it matters: The panic ended everything on the node, and the log of this boot does not show it. The firmware kept the last
messages of the kernel over the reboot. A node that panics again has bad memory, a bad driver or a bad device.
Confirm manually: grep -r 'Kernel panic' /sys/fs/pstore /var/lib/systemd/pstore
Side effects of the fix: None: reading the record is the fix.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd-pstore.service.html ;
https://docs.kernel.org/admin-guide/pstore-blk.html ; https://github.com/leptonai/gpud/blob/main/pkg/pstore/pstore.go
"""

from nodetune.api import NOT_CONTAINER, Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, times


def observe(facts: FactsView) -> str:
    panics = [{**each, "age": each["age_s"]} for each in facts["leftovers.panics"] if each["age_s"] < RECENT]
    return times(panics, panics[-1]["text"]) if panics else ""


CHECK = Check(
    needs=("leftovers.panics",),
    observe=observe,
    accept=Empty("no panic"),
    applies=(NOT_CONTAINER,),
    remedy=manual(
        "Read the call trace in the file: it names the driver, if one is to blame; machine checks name the part. Test memory and GPUs "
        "before jobs run there again, if it is not the first time. Then move the file elsewhere: pstore has little room."
    ),
    severity="medium",
)
