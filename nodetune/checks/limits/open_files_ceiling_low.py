"""The kernel lets no process have as many open files as jobs may need.

Why it matters: fs.nr_open is the ceiling of every limit on open files: systemd's infinity, PAM's unlimited and a
container's ulimit all end there, and a larger value in limits.d makes logins fail.
Confirm by hand: cat /proc/sys/fs/nr_open
Side effects of the fix: None: it only lets limits be raised.
Sources: https://docs.kernel.org/admin-guide/sysctl/fs.html#nr-open
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.fs.nr_open",
    accept=AtLeast(1048576),
    set=1048576,
    remedy=sysctl("fs.nr_open"),
    severity="medium",
)
