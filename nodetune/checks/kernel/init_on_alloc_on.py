"""The kernel zeroes all memory that it hands out.

Why it matters: Zeroing on allocation costs memory bandwidth on every large allocation of the kernel, which adds up on
Grace, where NVIDIA recommends to turn it off. It is a hardening measure that some distributions build in.
Confirm by hand: grep -o 'init_on_alloc=[^ ]*' /proc/cmdline; grep INIT_ON_ALLOC /boot/config-$(uname -r)
Side effects of the fix: Bugs that read memory before writing it can leak old contents: a security decision.
Sources: https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import kernel_arg

CHECK = Check(
    fact="kernel.init_on_alloc",
    accept=Equals("0"),
    set="0",
    remedy=kernel_arg("init_on_alloc"),
    severity="low",
)
