"""The next boot starts another kernel.

Why it matters: Installed fixes are not active, and the node changes its behaviour at the next reboot, planned or not.
Nodes of one cluster that rebooted at different times run different kernels. That makes a slow node hard to explain.
Confirm manually: uname -r; ls -t /boot/vmlinuz-*
Side effects of the fix: The fix is a reboot.
Sources: https://www.gnu.org/software/grub/manual/grub/grub.html#Simple-configuration ;
https://uapi-group.org/specifications/specs/boot_loader_specification/
"""

from nodetune.api import Check, Equals, Ref, manual

CHECK = Check(
    fact="host.kernel",
    accept=Equals(Ref("kernel.next")),
    remedy=manual(
        "Drain the node and reboot. To stay on the running kernel instead, make it the default. RHEL: "
        "grubby --set-default /boot/vmlinuz-$(uname -r). Debian and Ubuntu: write GRUB_DEFAULT=saved into /etc/default/grub, "
        """then: update-grub && grub-set-default "$(grep -oE "gnulinux-(advanced|$(uname -r)-advanced)-[^']+" """
        """/boot/grub/grub.cfg | head -2 | paste -sd '>')\""""
    ),
    severity="low",
    name="kernel",
)
