"""vm.overcommit_memory is 2 (strict).

Why it matters: CUDA reserves address space for every GPU and for host memory together, far more than it ever uses. With
strict accounting (2), such reservations count in full. CUDA then fails to start, or large jobs fail to fork.
Confirm manually: sysctl vm.overcommit_memory
Side effects of the fix: Programs get address space that may turn out to have no memory. The kernel then kills a
process.
Sources: https://docs.kernel.org/mm/overcommit-accounting.html
"""

from nodetune.api import Check, OneOf, sysctl

CHECK = Check(
    fact="sysctl.vm.overcommit_memory",
    accept=OneOf([0, 1]),
    set=0,
    remedy=sysctl("vm.overcommit_memory", boot_default=0),
    severity="medium",
)
