"""init_on_alloc is on.

Why it matters: Zeroing memory on allocation costs memory bandwidth on every large kernel allocation. This adds up on
Grace, where NVIDIA recommends turning it off. It is a hardening measure that some distributions build in.
Confirm manually: grep -o 'init_on_alloc=[^ ]*' /proc/cmdline; grep INIT_ON_ALLOC /boot/config-$(uname -r)
Side effects of the fix: Bugs that read memory before writing it can leak old contents. Turning it off is a security
decision.
Sources: https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html
"""

from nodetune.api import Check, Equals, kernel_arg

CHECK = Check(
    fact="kernel.init_on_alloc",
    accept=Equals("0"),
    set="0",
    remedy=kernel_arg("init_on_alloc"),
    severity="low",
)
