"""CPUs of one host run different microcode revisions.

Why it matters: One revision for all is what the kernel and the processor vendor assume. A difference means that an
update did not reach every core (a late load that went wrong) or that the sockets hold processors of different
steppings; errors that appear on one socket only are the usual way to find out.
Confirm by hand: grep microcode /proc/cpuinfo | sort | uniq -c
Side effects of the fix: A reboot.
Sources: https://docs.kernel.org/arch/x86/microcode.html
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, object]:
    """The revision of each group of CPUs, where there are several."""
    revisions: dict[str, str] = facts["cpu.microcode"]
    if len(revisions) < 2:
        return {cpus: [] for cpus in revisions}
    return {cpus: f"revision {revision}" for cpus, revision in revisions.items()}


CHECK = Check(
    observe=observe,
    needs=("cpu.microcode",),
    applies=(BARE_METAL,),
    accept=Empty("the same revision on every CPU"),
    remedy=manual(
        "Install the current microcode package (intel-microcode, amd64-microcode, microcode_ctl or linux-firmware), "
        "rebuild the initramfs and reboot. If the revisions still differ, compare steppings: grep stepping /proc/cpuinfo "
        "| sort | uniq -c; processors of different steppings are a case for the vendor."
    ),
    severity="medium",
)
