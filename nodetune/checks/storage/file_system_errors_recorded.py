"""An ext4 file system has recorded errors.

Why it matters: ext4 counts the damage that it finds and keeps the count until the next repair. After the first error,
the kernel may already refuse to write (errors=remount-ro), and several kernels since 2024 do not show that in the
mount options.
Healthy exception: Some file systems keep no count.
Confirm manually: grep . /sys/fs/ext4/*/errors_count; dmesg | grep -i ext4-fs error
Side effects of the fix: The repair needs the file system unmounted, for / a reboot; damaged files may be lost.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-fs-ext4 ; https://man7.org/linux/man-pages/man8/e2fsck.8.html ;
https://lkml.iu.edu/hypermail/linux/kernel/2501.2/06382.html
"""

from nodetune.api import Check, Equals, manual

CHECK = Check(
    fact="mounts.ext4_errors",
    accept=Equals(0),
    unit="errors",
    remedy=manual(
        "Drain the node and look for the cause in dmesg and in the disk's health. Then run e2fsck -f on the unmounted "
        "device; for /, boot once with fsck.mode=force fsck.repair=yes. If errors come back, replace the disk."
    ),
    severity="high",
    cost="hardware",
)
