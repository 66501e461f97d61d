"""A network or parallel file system does not answer.

Why it matters: Every process that touches the mount hangs and cannot be killed: jobs, prologs, df, even logins. Slurm then
counts the node as unresponsive.
Confirm by hand: timeout 5 stat -f /PLACE; echo $?
Side effects of the fix: A forced or lazy unmount fails the programs that use the mount.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html ; https://man7.org/linux/man-pages/man8/umount.8.html
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="mounts.answers",
    accept=Equals("answers"),
    remedy=manual(
        "Drain the node. See whether the server answers others (ping, showmount -e, lfs check servers). When it does: umount -f "
        "PLACE, else umount -l PLACE, then mount it again; a client stuck in the kernel needs a reboot."
    ),
    severity="high",
)
