"""File systems: mounts, options, responsiveness, usage: `mounts.*`.

A call to a lost file server never returns, so the supervisor runs this family in its own child, everything
that cannot hang is reported first, and each mount is reported as silent before it is asked.
"""

import os

from nodetune.onhost import host_root
from . import mount_files, read

LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs")
EXT = ("ext2", "ext3", "ext4")
SLOW = ("data=journal", "discard", "nobarrier")
NFS = ("nfs", "nfs4")
PARALLEL = (
    "lustre",
    "beegfs",
    "gpfs",
    "wekafs",
    "ceph",
    "glusterfs",
    "panfs",
    "orangefs",
    "virtiofs",
    "cifs",
    "smb3",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.juicefs",
    "fuse.dfuse",
    "fuse.gcsfuse",
    "fuse.mount-s3",
    "fuse.blobfuse2",
)
IN_MEMORY = ("/tmp", "/run", "/dev/shm")
"""tmpfs mounts that stop programs when they are full."""

OSTREE = "/sysroot"

ANSWERS = "answers"
SILENT = "does not answer"


def collect(names, step):
    mountinfo = host_root.PROCESS + "/mountinfo"
    step(mountinfo)
    everything = mounts(read.text(mountinfo))
    points = {place: seen for place, seen in everything.items() if seen["type"] in LOCAL + NFS + PARALLEL}
    for seen in points.values():
        seen["super_options"] += _hidden(seen)
    disks = {place: _disk(seen) for place, seen in points.items()}
    yield "points", read.value({place: dict(seen, **_described(disks[place])) for place, seen in points.items()})
    below = {os.path.basename(disk): disk for disk in disks.values() if disk}
    yield (
        "read_ahead_kb",
        read.each({name: read.file_fact(disk + "/queue/read_ahead_kb", int) for name, disk in below.items()}),
    )
    yield "ext4_errors", read.each({place: _errors(seen) for place, seen in points.items() if seen["type"] in EXT})
    nfs = {place: seen for place, seen in points.items() if seen["type"] in NFS}
    yield "nfs", read.value({place: nfs_settings(seen["super_options"]) for place, seen in nfs.items()})
    yield "nfs_read_ahead_kb", read.each({place: _read_ahead(seen["device"]) for place, seen in nfs.items()})
    step("fstab and the automounter's maps")
    network = {place for place, seen in points.items() if seen["type"] not in LOCAL}
    yield "configured", read.tried(_configured, network)
    usage = {}
    for place, seen in everything.items():
        if seen["type"] in LOCAL or place in IN_MEMORY:
            step("statvfs " + place)
            usage[place] = read.tried(_usage, place)
    yield "usage", read.each(usage)
    for fact in _answers([place for place, seen in points.items() if seen["type"] not in LOCAL], step):
        yield "answers", fact


def mounts(content):
    """Return {mount point: its mount} from mountinfo.

    A later mount hides an earlier one at the same place. Of several bind mounts of a file system, one is kept: the one
    that shows its root, else the first.

    OSTree mounts the root disk read-only at /sysroot on purpose, and parts of it writable, such as /etc: the first of these
    is kept, too. It alone shows whether the file system itself became read-only.
    """
    found, kept = {}, {}
    for line in content.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, source, options) = left.split(" "), [*right.split(" ", 2), "", ""][:3]
        place = mount_files.unescaped(fields[4])
        found[place] = {
            "type": kind,
            "source": mount_files.unescaped(source),
            "device": fields[2],
            "root": fields[3],
            "options": fields[5].split(","),
            "super_options": options.split(","),
        }
    for place, seen in found.items():
        earlier = kept.get((seen["device"], seen["type"]))
        if earlier is None or (seen["root"] == "/" and found[earlier]["root"] != "/"):
            kept[seen["device"], seen["type"]] = place
    places = list(kept.values())
    if OSTREE in places:
        same = [place for place in found if found[place]["device"] == found[OSTREE]["device"]]
        places += [place for place in same if "rw" in found[place]["options"] and place not in places][:1]
    return {place: found[place] for place in places}


def _disk(seen):
    """Return the sysfs folder of the whole disk (or array, or volume) below a mount, or None if there is none."""
    candidates = ["/sys/dev/block/" + seen["device"]]
    if seen["source"].startswith("/dev/"):  # btrfs and the like have device numbers of their own
        candidates.append("/sys/class/block/" + os.path.basename(seen["source"]))
    for candidate in candidates:
        path = read.real(candidate)
        for folder in (path, os.path.dirname(path)):  # a partition lies in its disk's folder
            if read.exists(folder + "/queue/rotational"):
                return folder
    return None


def _described(disk):
    if disk is None:
        return {"disk": None, "rotational": None}
    return {"disk": os.path.basename(disk), "rotational": read.text_or(disk + "/queue/rotational") == "1"}


def _errors(seen):
    """Return the number of errors that the file system has recorded since its last repair."""
    return read.file_fact("/sys/fs/ext4/{}/errors_count".format(_name(seen)), int)


def _hidden(seen):
    """Return options that mountinfo leaves out because they are the default in the superblock of an ext4 (tune2fs -o)."""
    if seen["type"] not in EXT:
        return []
    set_there = read.text_or("/proc/fs/ext4/{}/options".format(_name(seen))).split()
    return [option for option in SLOW if option in set_there and option not in seen["super_options"]]


def _name(seen):
    return os.path.basename(read.real("/sys/dev/block/" + seen["device"]))


def nfs_settings(options):
    """Return the options of an NFS mount that matter for speed."""
    settings = {option.partition("=")[0]: option.partition("=")[2] for option in options}
    return {
        "version": settings.get("vers", ""),
        "protocol": settings.get("proto", ""),
        "connections": int(settings.get("nconnect") or 1),
        "rsize": int(settings.get("rsize") or 0),
        "wsize": int(settings.get("wsize") or 0),
        "fs_cache": "fsc" in settings,
        "hard": "hard" in settings,
    }


def _configured(places):
    return read.value(mount_files.configured(places))


def _read_ahead(device):
    return read.file_fact("/sys/class/bdi/{}/read_ahead_kb".format(device), int)


def _usage(place):
    """Return the percentage of used space (like df: of what ordinary users can have) and of inodes."""
    seen = os.statvfs(read.ROOT + place)
    used, free = seen.f_blocks - seen.f_bfree, seen.f_bavail
    return read.value(
        {
            "percent": _percent(used, used + free),
            "inodes_percent": _percent(seen.f_files - seen.f_ffree, seen.f_files),
            "size_bytes": seen.f_blocks * seen.f_frsize,
        }
    )


def _percent(part, whole):
    return -(-part * 100 // whole) if whole > 0 else 0


def _answers(places, step):
    """Yield whether each network mount answers; the fact is correct at every point where this may hang."""
    known = {}
    for number, place in enumerate(places):
        waiting = read.unread("not asked: {} did not answer before it".format(place))
        rest = dict.fromkeys(places[number + 1 :], waiting)
        yield read.each(dict(known, **dict(rest, **{place: read.value(SILENT)})))
        step("statvfs " + place)
        known[place] = _ask(place)
    yield read.each(known)


def _ask(place):
    try:
        os.statvfs(read.ROOT + place)
    except PermissionError:
        return read.absent("shown to its owner only")
    except OSError as problem:
        return read.value((problem.strerror or str(problem)).lower())
    return read.value(ANSWERS)
