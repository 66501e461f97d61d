"""An NFS client may have only few requests under way at a time.

Why it matters: Each request in flight takes a slot. With fewer than 128 a fast link to a busy server idles while requests
queue in the client.
Confirm by hand: sysctl sunrpc.tcp_max_slot_table_entries
Side effects of the fix: Holds for mounts made afterwards. The setting exists only once sunrpc is loaded, so a sysctl.d file may
miss it at boot; "options sunrpc tcp_max_slot_table_entries=128" in modprobe.d does not.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (sunrpc.tcp_max_slot_table_entries) ;
https://github.com/Azure/azhpc-images
"""

from nodetune.expect import AtLeast, Empty, Not
from nodetune.model import Check, When
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.sunrpc.tcp_max_slot_table_entries",
    accept=AtLeast(128),
    set=128,
    applies=(When("mounts.nfs", Not(Empty()), "no NFS mount"),),
    remedy=sysctl("sunrpc.tcp_max_slot_table_entries"),
    severity="low",
)
