"""CPUs of this host run different microcode revisions.

Why it matters: The kernel and the processor vendor assume one revision on all CPUs. A difference means that an update
did not reach every core (a failed late load), or that the sockets have processors of different steppings. It is usually
discovered through errors that appear on one socket only.
Confirm manually: grep microcode /proc/cpuinfo | sort | uniq -c
Side effects of the fix: The change needs a reboot.
Sources: https://docs.kernel.org/arch/x86/microcode.html
"""

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, object]:
    """Return the revision of each group of CPUs if the revisions differ."""
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
        "| sort | uniq -c; if they differ, contact the vendor."
    ),
    severity="medium",
)
