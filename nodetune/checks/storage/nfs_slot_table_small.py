"""sunrpc.tcp_max_slot_table_entries is too low.

Why it matters: Each request in flight takes a slot. With fewer than 128 slots, a fast link to a busy server idles
while requests queue in the client.
Confirm manually: sysctl sunrpc.tcp_max_slot_table_entries
Side effects of the fix: Applies to mounts made afterwards. The setting exists only once sunrpc is loaded, so a
sysctl.d file may miss it at boot; "options sunrpc tcp_max_slot_table_entries=128" in modprobe.d does not.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (sunrpc.tcp_max_slot_table_entries) ;
https://github.com/Azure/azhpc-images
"""

from nodetune.api import AtLeast, Check, Empty, Not, When, sysctl

CHECK = Check(
    fact="sysctl.sunrpc.tcp_max_slot_table_entries",
    accept=AtLeast(128),
    set=128,
    applies=(When("mounts.nfs", Not(Empty()), "no NFS mount"),),
    remedy=sysctl("sunrpc.tcp_max_slot_table_entries"),
    severity="low",
)
