"""transparent_hugepage/enabled is unsuitable for GPU work.

Why it matters: Huge pages save TLB misses where hosts stage large buffers, but only if programs can get them. With
"never", programs that request them with madvise do not get them. NumPy makes such requests, and PyTorch does if
configured to. A kernel argument that says another value than is set now counts, where neither tmpfiles.d nor tuned sets it
at boot.
Confirm manually: cat /sys/kernel/mm/transparent_hugepage/enabled
Side effects of the fix: Only mappings made afterwards change. Restart a program to see the effect.
Sources: https://docs.kernel.org/admin-guide/mm/transhuge.html ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from __future__ import annotations

from nodetune.api import Check, FactsView, OneOf, sysfs

FILE = "/sys/kernel/mm/transparent_hugepage/enabled"
ARGUMENT, KEPT, TUNED = "cmdline.installed.transparent_hugepage", f"persisted.tmpfiles.{FILE}", "derived.tuned_settings"


def observe(facts: FactsView) -> str | dict[str, str]:
    now: str = facts["memory.thp.enabled"]
    argument = facts.readable(ARGUMENT)
    if argument is None or argument["value"] in (now, ""):
        return now
    if facts.get(KEPT, None) is not None or "vm" in facts.readable(TUNED, {}):
        return now
    return {"now": now, f"next boot (transparent_hugepage= in {argument['file']})": argument["value"]}


CHECK = Check(
    needs=("memory.thp.enabled", ARGUMENT, KEPT, TUNED),
    observe=observe,
    accept=OneOf(["always", "madvise"]),
    set="madvise",
    remedy=sysfs(FILE),
    severity="medium",
    name="transparent_hugepage",
)
