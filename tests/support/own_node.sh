#!/bin/sh
# own_node.sh KUBELAB DIR NODE ARCHIVE: for tests/integration/test_fixes_by_pods.py, a lab of one node whose root, processes and
# vm.max_map_count are its own: an overlay in memory over this machine's files. KUBELAB is the lab's program, DIR a new
# folder, ARCHIVE the image (buildah push IMAGE docker-archive:ARCHIVE:IMAGE). Needs root. The cluster is ready when
# DIR/ready is there; the end of this program ends its node. Before that: nsenter -t PID -m -p KUBELAB down DIR/lab.
set -eu
[ $# = 4 ] || { sed -n 2,5p "$0" >&2; exit 2; }
mkdir -p "$2"
exec unshare --mount --pid --fork --kill-child --propagation private sh -eu -c '
    mkdir -p "$2/root" "$2/over" "$2/lab"
    mount -t tmpfs -o size=2g over "$2/over"
    mkdir "$2/over/up" "$2/over/work"
    mount -t overlay -o "lowerdir=/,upperdir=$2/over/up,workdir=$2/over/work" over "$2/root"
    for each in "$2" "${1%/*}" "${4%/*}"; do mount --bind "$each" "$2/root$each"; done
    mount -t proc proc "$2/root/proc"
    mount --rbind /sys "$2/root/sys"
    mount --rbind /dev "$2/root/dev"
    mount -t tmpfs run "$2/root/run"
    cp /proc/sys/vm/max_map_count "$2/over/max_map_count"
    mount --bind "$2/over/max_map_count" "$2/root/proc/sys/vm/max_map_count"
    cd "$2/root"
    mkdir -p old
    pivot_root . old
    cd /
    umount -l /old
    mount --make-rshared /
    KUBELAB_KUBE=${1%/*}/bin/kube.zst python3 "$1" up "$2/lab" --node "$3" --net 10.247 --timeout 600
    python3 "$1" image "$2/lab" "$4"
    touch "$2/ready"
    exec sleep infinity' sh "$1" "$2" "$3" "$4"
