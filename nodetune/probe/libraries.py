"""The driver's libraries on disk, without loading one: `libraries.nvidia`, by the name that programs load.

An interrupted update or a power cut leaves dangling links and files that are empty or too short.
`libraries.cuda_toolkits`: the folder of each CUDA toolkit → its version, and whether it has libraries for older drivers.
"""

import os
import re
import struct

from . import kernel, read

NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
TOOLKITS = "/usr/local"
MAX_TOOLKITS = 32
CONTAINER = "/run/nvidia/driver/"
"""The root of a driver container, whose absolute links resolve differently here."""
HEADER = struct.Struct("<4sBB10x16xQ14xHH")
"""Of a 64-bit ELF file: magic, class, byte order, then place, size and number of the program headers."""
SEGMENT = struct.Struct("<I4xQ16xQ")
"""Of a program header: type, place and size in the file."""
LOADED = 1
MAX_SEGMENTS = 64
MAX_BYTES = 1 << 40


def collect(names, step):
    if "cuda_toolkits" in names:
        step("CUDA toolkits")
        yield "cuda_toolkits", read.value(_toolkits())
    step("the driver's libraries")
    found = {}
    for folder in sorted({read.real(folder) for folder in kernel.LIBRARY_FOLDERS if not folder.startswith(CONTAINER)}):
        for name in NAMES:
            path = os.path.join(folder, name)
            if os.path.lexists(read.ROOT + path):
                found[path] = read.tried(_library, path)
    yield "nvidia", read.each(found) if found else read.absent("no library of the NVIDIA driver in the usual folders")


def _toolkits():
    folders = {read.real(TOOLKITS + "/" + name) for name in read.names_in(TOOLKITS) if name.startswith("cuda")}
    found = {}
    for folder in sorted(folders)[:MAX_TOOLKITS]:
        version = re.search(r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"([0-9.]+)"', read.text_or(folder + "/version.json"))
        version = version or re.match(r"CUDA Version ([0-9.]+)", read.text_or(folder + "/version.txt"))  # up to 11.0
        if version:
            compat = any(name.startswith("libcuda.so") for name in read.names_in(folder + "/compat"))
            found[folder] = {"version": version.group(1), "compat": compat}
    return found


def _library(path):
    """Return {target, size, needed}: the link's target, the file's size (null: no file), the size in its header.

    `needed` is null unless it is a 64-bit ELF file.
    """
    target = read.real(path)
    try:
        handle = os.open(read.ROOT + target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return read.value({"target": target, "size": None, "needed": None})
    try:
        return read.value({"target": target, "size": os.fstat(handle).st_size, "needed": _needed(handle)})
    finally:
        os.close(handle)


def _needed(handle):
    """Return the bytes that a file must have for the loader to map it, or None unless it is a 64-bit ELF file."""
    head = os.pread(handle, HEADER.size, 0)
    if len(head) < HEADER.size:
        return None
    magic, width, order, place, size, count = HEADER.unpack(head)
    if (magic, width, order) != (b"\x7fELF", 2, 1) or size < SEGMENT.size or place > MAX_BYTES:
        return None
    ends = [HEADER.size]
    for number in range(min(count, MAX_SEGMENTS)):
        entry = os.pread(handle, SEGMENT.size, place + number * size)
        if len(entry) < SEGMENT.size:
            return place + count * size
        kind, start, length = SEGMENT.unpack(entry)
        ends.append(start + length if kind == LOADED else 0)
    return min(max(ends), MAX_BYTES)
