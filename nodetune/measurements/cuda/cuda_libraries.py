"""Find CUDA's libraries on a host: in the linker's folders, CUDA's folders, and wheels of installed Pythons."""

import ctypes
import glob
import os
import shutil
import stat

from nodetune.onhost import command

CUDA_FOLDERS = (
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/targets/*/lib",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/lib64",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nccl/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
)
PREFIXES = ("/usr", "/usr/local", "/opt/*", "/opt/*/.venv", "/opt/*/venv", "/opt/*/*", "/root/.venv")
"""Folders of installed Pythons."""

LDCONFIG = ("/sbin/ldconfig", "-p")


def load(name):
    """Load a library: a path, or a name for the linker. Raise OSError, also if root must not trust it."""
    reason = distrust(name)
    if reason:
        raise OSError(reason)
    return ctypes.CDLL(name)


def distrust(name):
    """Return why root must not load a library that another user may have written; empty if it may."""
    places = [name] if "/" in name else _of_linker(name)
    for place in places if os.geteuid() == 0 else ():
        for path in (os.path.abspath(place), os.path.realpath(place)):
            loose = _open_to_all(path)
            if loose:
                return "{} is not loaded as root: anyone can write {} (chmod o-w {})".format(place, loose, loose)
    return ""


def _of_linker(name):
    """Return the files that the linker may take for a name."""
    paths = os.environ.get("LD_LIBRARY_PATH")
    places = [os.path.join(folder or ".", name) for folder in paths.split(":")] if paths else []
    try:
        rows = command.run(list(LDCONFIG), 10).splitlines()
    except command.CommandError:  # musl has none
        rows = []
    places += [row.rpartition(" => ")[2] for row in rows if row.split()[:1] == [name]]
    return [place for place in places if os.path.exists(place)]


def _open_to_all(path):
    """Return the file or the folder above it that any user can write, or "". In a sticky one the owner counts."""
    owner = None
    while os.path.lexists(path):
        about = os.lstat(path)
        kept = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX and owner == 0
        if about.st_mode & stat.S_IWOTH and not kept and not stat.S_ISLNK(about.st_mode):
            return path
        if path == "/":
            break
        owner, path = about.st_uid, os.path.dirname(path)
    return ""


def found(names, wheels):
    """Return libraries by preference: bare names for the linker first, then existing files, each once.

    `names`: soname patterns, newest first (`libnccl.so.2`); `wheels`: their folders under site-packages
    (`nvidia/nccl/lib`).
    """
    places = [os.path.join(folder, name) for folder in CUDA_FOLDERS for name in names]
    places += [os.path.join(site, wheel, name) for site in site_packages() for wheel in wheels for name in names]
    paths = []
    for place in places:
        paths += [
            path
            for path in sorted(glob.glob(place), reverse=True)
            if os.path.realpath(path) not in map(os.path.realpath, paths)
        ]
    return list(names) + paths


def site_packages():
    """Return the folders where this host's Pythons keep packages; those of the python3 on the PATH come first."""
    own = shutil.which("python3")
    prefixes = [os.path.dirname(os.path.dirname(own))] if own else []
    prefixes += [os.environ[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    prefixes += [os.path.expanduser("~/.local")] + list(PREFIXES)
    patterns = [
        os.path.join(prefix, "lib/python3*", kind) for prefix in prefixes for kind in ("site-packages", "dist-packages")
    ]
    patterns += ["/usr/lib/python3/dist-packages"]
    seen = []
    for pattern in patterns:
        seen += [path for path in sorted(glob.glob(pattern), reverse=True) if path not in seen]
    return seen
