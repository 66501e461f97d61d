"""The kernel refuses address space that it could not back with memory.

Why it matters: CUDA reserves address space for every GPU and for host memory together, far more than is ever used.
With strict accounting (2) such reservations count in full, so CUDA fails to start or large jobs fail to fork.
Confirm by hand: sysctl vm.overcommit_memory
Side effects of the fix: Programs get address space that may turn out not to be there; the kernel then kills one.
Sources: https://docs.kernel.org/mm/overcommit-accounting.html
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.overcommit_memory",
    accept=OneOf([0, 1]),
    set=0,
    remedy=sysctl("vm.overcommit_memory", boot_default=0),
    severity="medium",
)
