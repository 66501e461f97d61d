"""The mounts collector: mountinfo, the disk below, NFS settings, usage, and mounts that do not answer."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.probe import mounts

HEAD = "22 1 0:21 / /proc rw - proc proc rw\n"


def info(*lines):
    return {"/proc/self/mountinfo": HEAD + "".join(line + "\n" for line in lines)}


def test_file_systems_are_kept_and_kernel_ones_are_not(tree, collect):
    tree(
        info(
            "27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro",
            "30 27 0:40 / /var/lib/docker/overlay2/x rw - overlay overlay rw",
        )
    )
    assert collect("mounts")["mounts.points"]["value"] == {
        "/": {
            "type": "ext4",
            "source": "/dev/nvme0n1p2",
            "device": "259:2",
            "root": "/",
            "options": ["rw", "relatime"],
            "super_options": ["rw", "errors=remount-ro"],
            "disk": None,
            "rotational": None,
        }
    }


def test_blanks_in_names_are_restored():
    found = mounts.mounts(r"30 27 8:1 / /mnt/my\040disk rw - ext4 /dev/sda1 rw")
    assert list(found) == ["/mnt/my disk"]


def test_of_bind_mounts_the_whole_file_system_is_kept():
    found = mounts.mounts(
        "30 27 8:1 /sub /var/lib/kubelet/pods/x rw - ext4 /dev/sda1 rw\n"
        "31 27 8:1 / /data rw - ext4 /dev/sda1 rw\n"
        "32 27 8:1 /other /srv/x rw - ext4 /dev/sda1 rw\n"
    )
    assert list(found) == ["/data"]


def test_of_an_ostree_host_a_writable_part_of_the_root_disk_is_kept_too():
    found = mounts.mounts(
        "60 1 0:31 / / ro,relatime - overlay composefs ro\n"
        "61 60 8:4 / /sysroot ro,relatime - ext4 /dev/sda4 ro\n"
        "62 60 8:4 /ostree/deploy/x/deploy/abc.0/etc /etc rw,relatime - ext4 /dev/sda4 ro\n"
        "63 60 8:4 /ostree/deploy/x/var /var rw,relatime - ext4 /dev/sda4 ro\n"
        "64 60 8:3 / /boot ro - ext4 /dev/sda3 rw\n"
    )
    assert list(found) == ["/", "/sysroot", "/boot", "/etc"]
    assert (found["/etc"]["options"][0], found["/etc"]["super_options"][0]) == ("rw", "ro")


def test_of_another_file_system_mounted_read_only_no_writable_part_is_kept():
    found = mounts.mounts("30 27 8:1 / /data ro - ext4 /dev/sda1 ro\n31 27 8:1 /sub /srv/x rw - ext4 /dev/sda1 ro\n")
    assert list(found) == ["/data"]


def test_a_later_mount_hides_an_earlier_one():
    found = mounts.mounts("30 27 8:1 / /data rw - ext4 /dev/sda1 rw\n31 27 8:2 / /data rw - xfs /dev/sda2 rw\n")
    assert found["/data"]["type"] == "xfs"


def test_the_disk_below_a_partition_is_named(tree, collect):
    disk = "/sys/devices/pci0000:00/nvme/nvme0/nvme0n1"
    tree(
        {
            **info("27 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw"),
            disk + "/queue/rotational": "0\n",
            disk + "/queue/read_ahead_kb": "4096\n",
            disk + "/nvme0n1p2/partition": "2\n",
            "/sys/dev/block/259:2": f"-> ../../..{disk}/nvme0n1p2",
        }
    )
    facts = collect("mounts")
    assert facts["mounts.points"]["value"]["/"]["disk"] == "nvme0n1"
    assert facts["mounts.points"]["value"]["/"]["rotational"] is False
    assert facts["mounts.read_ahead_kb"]["each"] == {"nvme0n1": {"value": 4096}}


def test_an_anonymous_file_system_is_found_by_its_source(tree, collect):
    disk = "/sys/devices/virtual/block/sdb"
    tree(
        {
            **info("27 1 0:55 /@ /data rw - btrfs /dev/sdb rw"),
            disk + "/queue/rotational": "1\n",
            "/sys/class/block/sdb": f"-> ../../..{disk}",
        }
    )
    assert collect("mounts")["mounts.points"]["value"]["/data"]["rotational"] is True


def test_errors_of_a_file_system_are_found_by_its_device(tree, collect):
    tree(
        {
            **info("27 1 259:2 / / rw - ext4 /dev/root rw", "28 1 259:3 / /data rw - ext4 /dev/nvme0n1p3 rw"),
            "/sys/devices/nvme0n1/nvme0n1p2/partition": "2\n",
            "/sys/dev/block/259:2": "-> ../../devices/nvme0n1/nvme0n1p2",
            "/sys/fs/ext4/nvme0n1p2/errors_count": "3\n",
        }
    )
    errors = collect("mounts")["mounts.ext4_errors"]["each"]
    assert errors["/"] == {"value": 3}
    assert "absent" in errors["/data"]


def test_an_option_that_is_the_superblock_s_default_is_told(tree, collect):
    """As the kernel shows an ext4 after tune2fs -o journal_data,discard: mountinfo has neither."""
    tree(
        {
            **info("28 1 7:3 / /data rw,relatime - ext4 /dev/loop3 rw,nodelalloc"),
            "/sys/devices/virtual/block/loop3/size": "9\n",
            "/sys/dev/block/7:3": "-> ../../devices/virtual/block/loop3",
            "/proc/fs/ext4/loop3/options": "rw\nbarrier\nnodelalloc\ndata=journal\ndiscard\ninode_readahead_blks=32\n",
        }
    )
    options = collect("mounts")["mounts.points"]["value"]["/data"]["super_options"]
    assert options == ["rw", "nodelalloc", "data=journal", "discard"]


def test_nfs_settings_and_read_ahead(tree, collect):
    tree(
        {
            **info(
                "40 27 0:44 / /data rw,relatime - nfs4 srv:/data rw,vers=4.2,rsize=1048576,wsize=1048576,hard,fsc,proto=tcp,nconnect=8"
            ),
            "/sys/class/bdi/0:44/read_ahead_kb": "128\n",
            "/data/": None,
        }
    )
    facts = collect("mounts")
    assert facts["mounts.nfs"]["value"]["/data"] == {
        "version": "4.2",
        "protocol": "tcp",
        "connections": 8,
        "rsize": 1 << 20,
        "wsize": 1 << 20,
        "fs_cache": True,
        "hard": True,
    }
    assert facts["mounts.nfs_read_ahead_kb"]["each"] == {"/data": {"value": 128}}
    assert facts["mounts.answers"]["each"] == {"/data": {"value": "answers"}}


def test_a_mount_without_nconnect_has_one_connection():
    assert mounts.nfs_settings(["rw", "proto=tcp"])["connections"] == 1


def test_usage_counts_as_df_does(tree, collect, monkeypatch):
    tree(
        {
            **info(
                "27 1 8:1 / / rw - ext4 /dev/sda1 rw",
                "28 27 0:30 / /dev/shm rw - tmpfs tmpfs rw",
                "29 27 0:31 / /opt/x rw - tmpfs x rw",
            ),
            "/dev/shm/": None,
        }
    )
    seen = os.statvfs_result((4096, 4096, 1000, 150, 50, 100, 30, 30, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: seen)
    usage = collect("mounts")["mounts.usage"]["each"]
    assert sorted(usage) == ["/", "/dev/shm"]
    assert usage["/"]["value"]["percent"] == 95  # 850 of 900: the rest is root's
    assert usage["/"]["value"]["inodes_percent"] == 70


def test_a_stale_mount_says_so(tree, collect, monkeypatch):
    tree(info("40 27 0:44 / /data rw - nfs4 srv:/data rw"))

    def stale(_path):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "statvfs", stale)
    assert collect("mounts")["mounts.answers"]["each"] == {"/data": {"value": "stale file handle"}}


def test_only_the_hanging_mount_is_named(tree, monkeypatch):
    tree(
        info(
            "40 27 0:44 / /good rw - nfs4 srv:/a rw",
            "41 27 0:45 / /stuck rw - nfs4 srv:/b rw",
            "42 27 0:46 / /later rw - lustre x rw",
        )
    )

    class Hang(BaseException):
        pass

    def hang(path):
        if path.endswith("/stuck"):
            raise Hang
        return os.statvfs_result((4096, 4096, 1, 1, 1, 1, 1, 1, 0, 255))

    monkeypatch.setattr(os, "statvfs", hang)
    facts, steps = {}, []

    def run():
        for name, fact in mounts.collect([], steps.append):
            facts[name] = fact  # noqa: PERF403  (what came before the hang must stay)

    with pytest.raises(Hang):
        run()
    assert steps[-1] == "statvfs /stuck"
    assert facts["answers"]["each"] == {
        "/good": {"value": "answers"},
        "/stuck": {"value": "does not answer"},
        "/later": {"unread": "not asked: /stuck did not answer before it"},
    }
    assert "points" in facts


MOUNT_AND_PROBE = """
import ctypes, json, os, sys
from nodetune.probe import main
libc = ctypes.CDLL(None, use_errno=True)
PRIVATE, NEW_NAMESPACE = 0x44000, 0x20000
if libc.unshare(NEW_NAMESPACE) or libc.mount(b"none", b"/", None, PRIVATE, None):
    sys.exit(77)
for place in sys.argv[1:]:
    server = os.open("/dev/fuse", os.O_RDWR)  # never answers: nobody reads from it
    options = "fd={},rootmode=40000,user_id=0,group_id=0,allow_other".format(server)
    if libc.mount(b"server", place.encode(), b"fuse.juicefs", 0, options.encode()):
        sys.exit(77)
main.ALONE_SECONDS = 1.5
print(json.dumps(main.probe({"mounts": ["answers"]}, load=lambda: 1.0)))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and FUSE to make a mount that hangs"
)
def test_a_real_mount_that_hangs_costs_only_the_facts_after_it(tmp_path):
    places = [str(tmp_path / name) for name in ("first", "second")]
    for place in places:
        Path(place).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", MOUNT_AND_PROBE, *places], capture_output=True, timeout=60, check=False
    )
    if done.returncode == 77:
        pytest.skip("no mount namespaces here")
    result = json.loads(done.stdout)
    stuck, other = sorted(places, key=lambda place: place not in result["failed"]["mounts"])
    assert result["facts"]["mounts.answers"]["each"][stuck] == {"value": "does not answer"}
    assert "not asked" in result["facts"]["mounts.answers"]["each"][other]["unread"]
    assert "value" in result["facts"]["mounts.points"]
    assert result["failed"]["mounts"] == f"did not return within 2 s in statvfs {stuck}"
