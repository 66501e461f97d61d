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
modprobe -a nvidia nouveau # as after any boot without a blacklist
networkctl reload
systemctl restart systemd-udevd
udevadm trigger --settle --action=change --subsystem-match=block
udevadm trigger --settle --action=add /sys/class/net/enp0s16
udevadm test-builtin net_setup_link /sys/class/net/enp0s16 2> /dev/null
systemctl restart iperf3 site-fabric containerd docker
sysctl -q --system
systemd-tmpfiles --create 2> /dev/null
mount -o remount,strictatime /data
# One CPU for all queues of a card: its driver starts anew, for a running interrupt moves only when it next occurs.
card=$(basename "$(readlink /sys/class/net/ens10/device)")
echo 20 > /proc/irq/default_smp_affinity
echo "$card" > /sys/bus/pci/drivers/vmxnet3/unbind
echo "$card" > /sys/bus/pci/drivers/vmxnet3/bind
udevadm settle
until ip -br addr show ens10 | grep -q 10.10.0.200; do sleep 0.2; done
/usr/local/sbin/fleet-addresses
echo ff > /proc/irq/default_smp_affinity
# As where a monitoring agent holds the GPUs open: the driver stays loaded, and keeps what is set, without persistence mode.
mkdir -p /var/lib/nodetune-nvml
echo keep_without_clients=1 > /var/lib/nodetune-nvml/control
python3 -B "$here/gpus.py" "$here"
sync
