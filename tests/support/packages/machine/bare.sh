#!/bin/sh
# bare.sh [SWITCHES]: run as root on a machine of tests/machines, from the folder that holds this file. Takes away what plays
# the driver there, so that the machine is as a server with nothing but its system; with SWITCHES, it gets NVSwitches.
set -e
here=$(dirname "$0")
systemctl -q disable --now nvidia-persistenced 2> /dev/null || true
rm -rf /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.* /usr/bin/nvidia-persistenced \
    /usr/lib/systemd/system/nvidia-persistenced.service /usr/lib/tmpfiles.d/nodetune-nvml.conf \
    /var/lib/nodetune-nvml /run/nodetune-nvml /etc/modprobe.d/blacklist-nouveau.conf
userdel nvidia-persistenced 2> /dev/null || true
groupdel nvidia-persistenced 2> /dev/null || true
systemctl daemon-reload
ldconfig
echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/stand-in # an emulated disk is slow enough
if [ "$1" ]; then
    kernel=$(uname -r)
    install -D -m 644 "$here/fakenvswitch.ko" "/lib/modules/$kernel/extra/fakenvswitch.ko"
    echo fakenvswitch > /etc/modules-load.d/fakenvswitch.conf
    depmod "$kernel"
    modprobe fakenvswitch
fi
sync
