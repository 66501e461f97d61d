"""fs.file-max is too low.

Why it matters: By default fs.file-max, the limit for all processes together, is far beyond need. Low values come from
old tuning guides. A node with eight ranks and their data loaders reaches such a limit. Any process, logins included,
then fails with "Too many open files in system".
Confirm manually: cat /proc/sys/fs/file-max /proc/sys/fs/file-nr
Side effects of the fix: None. Open files cost memory only when they are opened.
Sources: https://docs.kernel.org/admin-guide/sysctl/fs.html#file-max-file-nr
"""

from nodetune.api import AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.fs.file-max",
    accept=AtLeast(1048576),
    set=9223372036854775807,
    remedy=sysctl("fs.file-max"),
    severity="low",
)
