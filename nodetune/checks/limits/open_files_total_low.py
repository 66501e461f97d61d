"""All processes together may open too few files.

Why it matters: fs.file-max is far beyond need by default; a low value comes from old tuning guides. A node with eight
ranks and their data loaders reaches it, and then any process, logins included, fails with "Too many open files in system".
Confirm by hand: cat /proc/sys/fs/file-max /proc/sys/fs/file-nr
Side effects of the fix: None: open files cost memory only when they are opened.
Sources: https://docs.kernel.org/admin-guide/sysctl/fs.html#file-max-file-nr
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.fs.file-max",
    accept=AtLeast(1048576),
    set=9223372036854775807,
    remedy=sysctl("fs.file-max"),
    severity="low",
)
