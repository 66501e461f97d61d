"""The thing that the first thread of a process waits for now, by the system call that it is in.

`run`, `sleep` (by its own wish), `wait` (for another thread or process), `driver`, `local` (another program of this
host, by a socket), `network ADDRESS`, `storage TYPE` with the type of the file system, empty if unknown.
"""

import os
import re
import socket
import struct

from . import read

X86 = {0: "read", 17: "read", 19: "read", 295: "read", 327: "read", 45: "receive", 47: "receive", 299: "receive"}
X86.update({35: "sleep", 230: "sleep", 16: "ioctl"})
ARM = {63: "read", 67: "read", 65: "read", 69: "read", 286: "read", 207: "receive", 212: "receive", 243: "receive"}
ARM.update({101: "sleep", 115: "sleep", 29: "ioctl"})
CALLS = {"x86_64": X86, "aarch64": ARM}
"""Machine → number of a system call → its kind: read, pread64, readv, preadv, preadv2; recvfrom, recvmsg, recvmmsg …"""

NETWORK_WAITS = re.compile(r"nfs|rpc_|ptlrpc|ldlm|cl_|ll_|osc_|ceph|fuse|request_wait|gpfs|cifs|smb")
DISK_WAITS = re.compile(
    r"folio_wait|wait_on_page|wait_on_buffer|io_schedule|blk_|submit_bio|jbd2|xfs|ext4|filemap|iomap"
)
OF_NETWORK = "network"
"""The file system type where only the kernel's function says that it is on a network."""
SOCKET = re.compile(r"socket:\[(\d+)\]$")


def doing(pid, state):
    """Return what a process in this state does now."""
    if state == "R":
        return "run"
    number, first = _call(pid)
    kind = CALLS.get(os.uname().machine, {}).get(number)
    found = _by_file(pid, first) if kind in ("read", "receive") else ""
    if found.startswith("storage") and state != "D" and not NETWORK_WAITS.search(_function(pid)):
        found = ""  # a named pipe: reading a file of a disk cannot be interrupted
    if found:
        return found
    if state == "D":
        return _by_kernel(pid, kind)
    return "sleep" if kind == "sleep" else "wait"


def _function(pid):
    """Return the kernel's function in which it waits."""
    return read.text_or("/proc/{}/wchan".format(pid))


def _call(pid):
    """Return the number of the system call that its first thread is in, and the first argument; -1 if unknown."""
    fields = read.text_or("/proc/{}/syscall".format(pid)).split()
    try:
        return int(fields[0]), int(fields[1], 16)
    except (ValueError, IndexError):
        return -1, -1


def _by_file(pid, handle):
    """Return what it waits for by the file that it reads; empty for pipes and devices."""
    try:
        target = os.readlink("{}/proc/{}/fd/{}".format(read.ROOT, pid, handle))
    except OSError:
        return ""
    found = SOCKET.match(target)
    if found:
        return _by_socket(pid, found.group(1))
    if not target.startswith("/") or target.startswith("/dev/"):
        return ""
    return "storage " + _file_system(pid, handle)


def _file_system(pid, handle):
    """Return the type of the file system of an open file, without touching the file: a hung server would hold us."""
    mount = re.search(r"^mnt_id:\s+(\d+)", read.text_or("/proc/{}/fdinfo/{}".format(pid, handle)), re.MULTILINE)
    mounts = read.text_or("/proc/{}/mountinfo".format(pid))
    line = re.search(r"^{} .* - (\S+) ".format(mount.group(1)), mounts, re.MULTILINE) if mount else None
    return line.group(1) if line else ""


def _by_kernel(pid, kind):
    """Return what an uninterruptible wait is for, by the function of the kernel in which it waits."""
    function = _function(pid)
    if NETWORK_WAITS.search(function):
        return "storage " + OF_NETWORK
    if DISK_WAITS.search(function):
        return "storage "
    return "driver" if kind == "ioctl" else "wait"


def _by_socket(pid, inode):
    """Return whether the other end of a TCP connection is this host or another one."""
    for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in read.text_or("/proc/{}/net/{}".format(pid, file)).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[9] == inode:
                ours, theirs = address(fields[1], family), address(fields[2], family)
                is_local = theirs == ours or theirs.startswith(("127.", "::1", "::ffff:127."))
                return "local" if is_local else "network " + theirs
    return "local"


def address(text, family):
    """Return the address in a field of /proc/net/tcp: `0100007F:1F90` → 127.0.0.1. The kernel writes words."""
    words = text.partition(":")[0]
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return socket.inet_ntop(family, packed)
