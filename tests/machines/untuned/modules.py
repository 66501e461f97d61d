"""Makes two of the kernel's own modules answer to the names of NVIDIA's: no driver of its is free to be shipped here.

What they do does not matter: that one has a version, that the other is not loaded, and that it can be.
"""

import os
import subprocess
from pathlib import Path

PLAYED = {"qlcnic": "nvidia", "nls_cp1250": "nvidia_uvm"}
"""Names of the same length: a module's name is in the middle of its file."""

MAGIC = b"~Module signature appended~\n"


def unsigned(content: bytes) -> bytes:
    """A module without the signature at its end, which a changed one must not have; its length stands before MAGIC."""
    if not content.endswith(MAGIC):
        return content
    length = int.from_bytes(content[-len(MAGIC) - 4 : -len(MAGIC)], "big")
    return content[: -len(MAGIC) - 12 - length]


folder = Path("/lib/modules") / os.uname().release
for played_by, name in PLAYED.items():
    found = next(folder.rglob(f"{played_by}.ko"))
    (folder / "updates").mkdir(exist_ok=True)
    content = unsigned(found.read_bytes()).replace(played_by.encode(), name.encode())
    (folder / "updates" / f"{name}.ko").write_bytes(content)
subprocess.run(["depmod"], check=True)
