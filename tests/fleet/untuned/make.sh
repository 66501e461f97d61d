#!/bin/sh
# make.sh: run on a machine from the folder that holds this file. Every kind of setting wrong, now and at each boot.
set -e
here=$(dirname "$0")
cp -r --no-preserve=ownership "$here/root/." /
rm -f /etc/modprobe.d/blacklist-nouveau.conf
sed -i 's|^\(UUID=.* /data ext4\) [^ ]*|\1 strictatime,nofail|' /etc/fstab
python3 "$here/modules.py"
systemctl -q disable --now irqbalance nvidia-persistenced
systemctl -q enable containerd docker iperf3 site-fabric
systemctl daemon-reload
modprobe nvidia
networkctl reload
systemctl restart systemd-udevd
udevadm trigger --settle --action=change --subsystem-match=block
udevadm test-builtin net_setup_link /sys/class/net/enp0s16 2> /dev/null
systemctl restart iperf3 site-fabric containerd docker
sysctl -q --system
systemd-tmpfiles --create 2> /dev/null
mount -o remount,strictatime /data
for irq in /sys/class/net/ens2/device/msi_irqs/*; do echo 5 > "/proc/irq/${irq##*/}/smp_affinity_list" || true; done
python3 -B "$here/gpus.py" "$here"
sync
