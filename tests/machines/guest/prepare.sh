#!/bin/sh
# prepare.sh HERE ROOT: build the module of pretended GPUs in a new root file system, and take its compiler away again.
set -e
here=$1 root=$2
kernel=$(ls "$root/lib/modules")
cp -r "$here/fakepci" "$root/tmp/"
chroot "$root" make -s -C "/lib/modules/$kernel/build" M=/tmp/fakepci modules
install -D "$root/tmp/fakepci/fakepci.ko" "$root/lib/modules/$kernel/extra/fakepci.ko"
rm -r "$root/tmp/fakepci"
# shellcheck disable=SC2046 # words are wanted
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq purge --autoremove $(cat "$here/toolchain.txt") > /dev/null
chroot "$root" depmod "$kernel"
rm -f "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
rm -rf "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/locale/*
