"""fs.nr_open is too low.

Why it matters: fs.nr_open caps every limit on open files of a process: systemd's infinity, PAM's unlimited and a
container's ulimit. A larger value in limits.d makes logins fail.
Confirm manually: cat /proc/sys/fs/nr_open
Side effects of the fix: None. It only allows higher limits.
Sources: https://docs.kernel.org/admin-guide/sysctl/fs.html#nr-open
"""

from nodetune.api import AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.fs.nr_open",
    accept=AtLeast(1048576),
    set=1048576,
    remedy=sysctl("fs.nr_open"),
    severity="medium",
)
