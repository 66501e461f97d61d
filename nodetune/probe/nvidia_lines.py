"""Lines of the NVIDIA driver in the kernel log."""

import re

PREFIXES = ("NVRM", "nvidia-nv", "nvidia: probe of ", "nvidia ")
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)(?: GPU-[^)]*)?\): (\d{1,4})(?:, ?(.*))?$")
"""On a GPU with MIG, the GPU and compute instance follow the address: `(PCI:0000:3b:00 GPU-I:05 GPU-CI:00)`.

This and all other patterns match at the begin of a line: programs get their words into lines of other drivers. Some
lines begin with a program's name, such as `NVRM: [4711]: segfault at 0 … in FILE[…]`, so no bracket or comma comes before
the words that count.
"""
SXID = re.compile(r"nvidia-nvswitch\d+: SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,6})(?:, ?(.*))?$")
BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})"
NAMED = re.compile(r"NVRM: The NVIDIA GPU " + BDF)
FALLEN = re.compile(r"NVRM: (?:[^\[,]*?" + BDF + r")?[^\[,]*fallen off the bus")
WITHOUT_XID = re.compile(
    r"NVRM: (?:GPU " + BDF + r"\.\d: )?[^\[,]*\[?("
    r"NV_ERR_RESET_REQUIRED|Rate limiting GSP RPC error prints for GPU at PCI:" + BDF + "|"
    r"GSP core unresponsive|GSP-RM unresponsive|Max GSP-RM boot attempts exceeded|"
    r"GPU marked for reset|RmInitAdapter failed|GPU is probably locked|"
    r"Memory Subsystem Error detected|NV_ERR_GPU_IS_LOST|failed with status 0x0000000f|status=0x0000000f|uvm encountered global fatal error)"
)
"""Lines without an Xid: dead GPU firmware, a driver that refuses work before a reset, a GPU that does not start, hangs or is lost.

Lines about the heartbeat of the firmware do not count: it stays 0 on GPUs that work.
"""
NOT_TAKEN = re.compile(
    r"NVRM: [^\[,]*?(?P<invalid>BAR\d is \d+M @ 0x\w+ \(PCI:)" + BDF + "|"
    r"nvidia(?:: probe of | )" + BDF + r"\.\d(?:: probe with driver nvidia)? failed with error -\d+"
)
"""The driver refuses a GPU while it loads. The line about its address space comes first, as a record of its own or the end of one.

`The NVIDIA probe routine failed for 1 device(s)` follows and names no GPU.
"""
NOT_SUPPORTED = re.compile(
    r"NVRM: (?:The NVIDIA GPU " + BDF + r")?[^\[,]*"
    r"(?:installed in this system is not supported by (?:open|the)|not supported by open nvidia\.ko)"
)
"""On some kernels a record of its own, after the one that names the GPU."""
LOAD_BEGINS = re.compile(r"nvidia-nvlink: Nvlink Core is being initialized")
MODULE_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
"""The driver logs this after its first messages about the GPUs, which belong to the same load."""


def kind(text):
    """Return the kind of event in a line, the same for all its lines; None if there is none."""
    if text.startswith(PREFIXES):
        for pattern in (
            XID,
            SXID,
            NAMED,
            FALLEN,
            WITHOUT_XID,
            NOT_TAKEN,
            NOT_SUPPORTED,
            LOAD_BEGINS,
            MODULE_LOADED,
        ):
            found = pattern.match(text)
            if found:
                return (pattern,) + found.groups()[:2]
    return None
