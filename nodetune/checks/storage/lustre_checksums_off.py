"""Lustre sends data without checksums.

Why it matters: Lustre protects each request by a checksum unless it is off. Off, it saves some CPU time at high rates,
and data damaged between client and server reaches the file without an error. Some vendors ship it off on purpose.
Confirm manually: lctl get_param osc.*.checksums osc.*.checksum_type
Side effects of the fix: Reading and writing take some CPU time more.
Sources: https://www.yumpu.com/en/document/view/26549590/lustre-16-operations-manual/310 ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/understanding-exascaler-file-system-performance.html
"""

from nodetune.api import AtLeast, Check, manual
from nodetune.checks.storage._lustre import least

CHECK = Check(
    needs=("mounts.points", "lustre.osc"),
    observe=least("osc", "checksums"),
    accept=AtLeast(1),
    remedy=manual(
        "If this was not intended: lctl set_param osc.*.checksums=1 on the client, or with -P on the management "
        "server (MGS) for all clients. If it was intended, waive the finding."
    ),
    severity="info",
    name="checksums",
)
