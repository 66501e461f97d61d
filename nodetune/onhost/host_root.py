"""The root of the host, for a program in a privileged pod: the host's files at /host become ours, and read-only.

A read-only volume of Kubernetes does not cover what is mounted below it, such as /proc and /dev/shm. So the program makes
all of it read-only, in mounts of its own.
"""

import os

FOLDER = "/host"
PROCESS = "/proc/self"
"""A process that has the host's mounts and namespaces: after `enter`, the first one of the host."""

CLONE_NEWNS, MS_PRIVATE, MS_REC = 0x20000, 1 << 18, 1 << 14
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
MOUNT_SETATTR = 442
"""The number of the system call, on every architecture."""
USED_LATER = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6")
"""Libraries that the driver's library needs: those of the host may belong to another C library than ours."""


class HostRootError(Exception):
    """The host's root cannot be used. One line."""


def enter(folder=FOLDER):
    """Make the folder, with all that is mounted below it, read-only for this process, and then its root.

    A later import would read the host's files: import everything first. Raise HostRootError.
    """
    global PROCESS  # noqa: PLW0603
    import ctypes  # here, like all that takes milliseconds: most programs are not in a pod

    libc = ctypes.CDLL(None, use_errno=True)
    if not os.path.isdir(folder):
        raise HostRootError("the host's root is not mounted at {}".format(folder))
    _must(libc.unshare(CLONE_NEWNS), "unshare", ctypes)
    _must(libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "mount", ctypes)
    wanted = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY)  # struct mount_attr: to set, to clear, propagation, namespace
    size, where = ctypes.c_size_t(ctypes.sizeof(wanted)), os.fsencode(folder)
    done = libc.syscall(ctypes.c_long(MOUNT_SETATTR), AT_FDCWD, where, AT_RECURSIVE, wanted, size)
    _must(done, "mount_setattr, from Linux 5.12 on", ctypes)
    for name in USED_LATER:
        try:
            ctypes.CDLL(name)
        except OSError:
            pass  # a C library without this part
    os.chroot(folder)
    os.chdir("/")
    if not os.path.isdir("/proc/self"):
        raise HostRootError("the pod does not see the host's processes: it needs hostPID")
    PROCESS = "/proc/1"


def _must(status, call, ctypes):
    if status:
        number = ctypes.get_errno()
        refused = "the pod is not privileged" if number == 1 else "the host's files cannot be made read-only"
        raise HostRootError("{} ({}: {})".format(refused, call, os.strerror(number).lower()))


def missing_privilege():
    """Return what a reader lacks that was refused something."""
    return "needs root (--become)" if PROCESS == "/proc/self" else "the pod is not privileged"
