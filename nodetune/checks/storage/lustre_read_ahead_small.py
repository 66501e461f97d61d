"""Lustre reads ahead too little for streaming.

Why it matters: Lustre reads ahead in chunks of a request, up to this amount for all files of a mount. With 0, there is no
read-ahead, and each reader waits for each request. Data loaders read large files in order, several at a time.
Confirm manually: lctl get_param llite.*.max_read_ahead_mb
Side effects of the fix: Random reads of parts of large files may fetch more than they use. What mounts Lustre without
fstab gets the setting at the next boot only.
Sources: https://www.yumpu.com/en/document/view/26549590/lustre-16-operations-manual/287 ;
https://wiki.lustre.org/Lustre_IO_Monitoring
"""

from nodetune.api import AtLeast, Check, lustre_param
from nodetune.checks.storage._lustre import least

CHECK = Check(
    needs=("mounts.points", "lustre.llite"),
    observe=least("llite", "max_read_ahead_mb"),
    accept=AtLeast(40),
    set=256,
    unit="MiB",
    remedy=lustre_param("llite.max_read_ahead_mb"),
    severity="low",
)
