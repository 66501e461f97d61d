"""A network or parallel file system does not answer.

Why it matters: Every process that uses the mount hangs and cannot be killed: jobs, prologs, df, even logins. Slurm
then counts the node as unresponsive.
Healthy exception: Some mounts are shown to their owner only.
Confirm manually: timeout 5 stat -f /PLACE; echo $?
Side effects of the fix: A forced or lazy unmount fails the programs that use the mount.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html ; https://man7.org/linux/man-pages/man8/umount.8.html
"""

from nodetune.api import Check, Equals, repair

CHECK = Check(
    fact="mounts.answers",
    accept=Equals("answers"),
    remedy=repair(
        "Drain the node. Check whether the server answers other clients (ping, showmount -e, lfs check servers). If "
        "it does: umount -f PLACE, else umount -l PLACE, then mount it again. A client stuck in the kernel needs a "
        "reboot."
    ),
    severity="high",
)
