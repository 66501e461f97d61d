#!/bin/sh
# install.sh BUILT ROOT: puts what make built in BUILT into the file system below ROOT. The unit is left disabled.
set -eu

[ $# -eq 2 ] && [ -f "$1/libnvidia-ml.so.1" ] && [ -d "$2/usr" ] ||
    { echo "usage: install.sh BUILT ROOT: BUILT is make's OUT, ROOT a file system with /usr" >&2; exit 2; }
built=$1 root=$2 here=$(dirname "$0") version=580.159.04

libraries=$root/usr/lib/$(uname -m)-linux-gnu
[ -d "$libraries" ] || libraries=$root/usr/lib64
[ -d "$libraries" ] ||
    { echo "install.sh: no folder for libraries in $root: neither usr/lib/$(uname -m)-linux-gnu nor usr/lib64" >&2; exit 2; }

install -m 644 "$built/libnvidia-ml.so.1" "$libraries/libnvidia-ml.so.$version"
ln -sf "libnvidia-ml.so.$version" "$libraries/libnvidia-ml.so.1"
install -D -m 755 "$built/nvidia-persistenced" "$root/usr/bin/nvidia-persistenced"
install -D -m 644 "$here/nvidia-persistenced.service" "$root/usr/lib/systemd/system/nvidia-persistenced.service"

# Any user's process may be the library's first client.
install -d -m 777 "$root/var/lib/nodetune-nvml"
install -d "$root/usr/lib/tmpfiles.d"
echo 'd /run/nodetune-nvml 0777 root root -' >"$root/usr/lib/tmpfiles.d/nodetune-nvml.conf"

# The user that the driver's packages make.
grep -qs '^nvidia-persistenced:' "$root/etc/passwd" || {
    echo 'nvidia-persistenced:x:143:143:NVIDIA Persistence Daemon:/nonexistent:/usr/sbin/nologin' >>"$root/etc/passwd"
    echo 'nvidia-persistenced:x:143:' >>"$root/etc/group"
}
