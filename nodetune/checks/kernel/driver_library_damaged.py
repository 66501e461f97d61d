"""A library of the NVIDIA driver is empty, cut off or missing behind its link.

Why it matters: Programs that load it do not start ("file too short", or a bus error), and containers get the same broken
file from the host. It is what an update leaves that was interrupted, or a power cut soon after one: the package manager
believes that the package is installed.
Healthy exception: A link that leads nowhere is harmless where another folder has the library whole, such as an old link
of an earlier installation.
Confirm manually: ls -lL /usr/lib/*/libcuda.so.1 /usr/lib64/libcuda.so.1; ldconfig -p | grep libcuda
Side effects of the fix: Reinstalling the driver's packages needs the version of the loaded module, or a reboot.
Sources: https://docs.kernel.org/admin-guide/ext4.html (auto_da_alloc: files of length zero after a crash) ;
https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/installedcomponents.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune.api import NOT_CONTAINER, Check, Empty, FactsView, repair


def observe(facts: FactsView) -> dict[str, str]:
    faults = {path: _fault(library) for path, library in facts["libraries.nvidia"].items()}
    whole = {_name(path) for path, fault in faults.items() if not fault}
    links = {path for path, library in facts["libraries.nvidia"].items() if library["size"] is None}
    return {path: "" if path in links and _name(path) in whole else fault for path, fault in faults.items()}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _fault(library: Mapping[str, Any]) -> str:
    """Say what keeps the library from being loaded; a file that is not a 64-bit library may be a linker script."""
    size, needed, target = library["size"], library["needed"], library["target"]
    if size is None:
        return f"leads to {target}, which does not exist"
    if size == 0:
        return f"{target} is empty"
    return f"{target} has {size:,} of {needed:,} bytes" if needed is not None and size < needed else ""


CHECK = Check(
    needs=("libraries.nvidia",),
    observe=observe,
    accept=Empty("a whole library"),
    applies=(NOT_CONTAINER,),
    remedy=repair(
        "Install the package again in the version of the loaded driver: dpkg -S PATH or rpm -qf PATH names it; then "
        "apt-get install --reinstall PACKAGE, or dnf reinstall PACKAGE, and ldconfig. After NVIDIA's .run installer: "
        "run it again. Make CDI specifications again (nvidia-ctk cdi generate)."
    ),
    severity="high",
    part_of="nvml-not-answering",
)
