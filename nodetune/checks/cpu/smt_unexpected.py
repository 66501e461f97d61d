"""SMT differs between cores or from the site's policy.

Why it matters: Whether cores run one thread or two is a site policy, and both are reasonable. A host whose cores differ
is faulty: ranks on a shared core run slower than the rest, and Slurm and the kubelet assume a wrong CPU layout. A site
file may restrict the accepted value to "on" or "off". SMT that was switched off while the host runs comes back with
the next boot; what the kernel command line or a tmpfiles.d file switches off is a decision.
Confirm manually: cat /sys/devices/system/cpu/smt/control; lscpu --extended=CPU,CORE,ONLINE
Side effects of the fix: The change disturbs pinned jobs, so make it on an idle node. ThreadsPerCore in slurm.conf and
the kubelet's CPU manager state must match afterwards.
Sources: https://docs.kernel.org/admin-guide/cputopology.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html (nosmt)
"""

from nodetune.api import Check, FactsView, OneOf, manual

CONTROL = "/sys/devices/system/cpu/smt/control"


def observe(facts: FactsView) -> str:
    smt = str(facts["cpu.smt"])
    return f"{smt} until the next boot" if smt == "off" and _at_run_time(facts) else smt


def _at_run_time(facts: FactsView) -> bool:
    """Return whether SMT is off by the kernel's switch alone: no argument (nosmt, mitigations=auto,nosmt …), no file."""
    arguments = facts.readable("cmdline.running")
    if facts.readable("cpu.smt_control") not in ("off", "forceoff") or arguments is None:
        return False
    by_argument = any("nosmt" in (name, *value.split(",")) or name == "l1tf" for name, value in arguments.items())
    return not by_argument and facts.get(f"persisted.tmpfiles.{CONTROL}", None) is None


CHECK = Check(
    needs=("cpu.smt", "cpu.smt_control", "cmdline.running", f"persisted.tmpfiles.{CONTROL}"),
    observe=observe,
    accept=OneOf(["on", "off"]),
    remedy=manual(
        "On an idle node: echo on > /sys/devices/system/cpu/smt/control (or off). For the next boot add or remove nosmt "
        "on the kernel command line (or set it in the BIOS), then correct slurm.conf or the kubelet's state."
    ),
    severity="info",
    name="SMT",
)
