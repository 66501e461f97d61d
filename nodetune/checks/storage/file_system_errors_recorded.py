"""A file system has recorded errors in itself.

Why it matters: ext4 counts the damage that it meets and keeps the number until the next repair. After the first one the kernel
may already refuse to write (errors=remount-ro), and several kernels since 2024 do not show that in the mount's options.
Confirm by hand: grep . /sys/fs/ext4/*/errors_count; dmesg | grep -i ext4-fs error
Side effects of the fix: The repair needs the file system unmounted, for / a reboot; damaged files may be lost.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-fs-ext4 ; https://man7.org/linux/man-pages/man8/e2fsck.8.html ;
https://lkml.iu.edu/hypermail/linux/kernel/2501.2/06382.html
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="mounts.ext4_errors",
    accept=Equals(0),
    unit="errors",
    remedy=manual(
        "Drain the node; look for the cause in dmesg and in the disk's health; then e2fsck -f the unmounted device, for / boot once "
        "with fsck.mode=force fsck.repair=yes. Replace the disk when errors come back."
    ),
    severity="high",
)
