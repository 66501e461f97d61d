#!/bin/sh
# Runs inside the new root file system: users, services and the boot loader.
set -e
for user in op nosudo; do useradd --create-home --shell /bin/bash "$user"; done
chpasswd < /tmp/passwords
for home in /root /home/op /home/nosudo; do
    install -d -m 700 "$home/.ssh"
    install -m 600 /tmp/login.pub "$home/.ssh/authorized_keys"
    chown -R --reference="$home" "$home/.ssh"
done
rm -f /etc/ssh/ssh_host_*
install -m 600 /tmp/host /etc/ssh/ssh_host_ed25519_key
install -m 644 /tmp/host.pub /etc/ssh/ssh_host_ed25519_key.pub
chmod 440 /etc/sudoers.d/*
printf '127.0.0.1 localhost\n127.0.1.1 gpunode\n' > /etc/hosts
echo gpunode > /etc/hostname
echo d7a1c0de00000000000000000000f1ee > /etc/machine-id
mkdir -p /data
systemctl -q enable systemd-networkd ssh fleet-addresses
systemctl -q disable docker.service docker.socket containerd slurmd slurmctld munge
systemctl -q set-default multi-user.target
while read -r unit; do ln -sf /dev/null "/etc/systemd/system/$unit"; done < /tmp/masked.txt
# Where grub itself starts. Its menu is written by update-grub when the machine first runs.
kernel=$(ls /lib/modules)
cp -r /usr/lib/grub/i386-pc /boot/grub/
grub-mkimage -O i386-pc -o /boot/grub/i386-pc/core.img -p '(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2
cat > /boot/grub/grub.cfg <<X
insmod ext2
linux /boot/vmlinuz-$kernel root=/dev/vda1 ro console=ttyS0 quiet mitigations=off cryptomgr.notests tsc=unstable
initrd /boot/initrd.img-$kernel
boot
X
rm -rf /tmp/*
