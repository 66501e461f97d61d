"""Where CUDA's libraries may be on a host: the linker's own folders, CUDA's, and the wheels of the Pythons there."""

import glob
import os
import shutil

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
"""Where Pythons are installed to."""


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
