"""Compare nodetune/data/nccl_env.yml with what a library of NCCL reads. Run it manually after a release of NCCL.

    pip download --no-deps nvidia-nccl-cu12==2.32.3
    python docs/nccl_names.py nvidia_nccl_cu12-2.32.3-*.whl

It reads the machine code of libnccl.so.2 (x86-64): each `lea rdi, NAME` passes a name to ncclLoadParam or ncclGetEnv, and the
instruction next to it loads the default. Names that NCCL passes in another way (NCCL_DEBUG_…, levels) are looked up as text.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nodetune.checks.shared.nccl_table import release, since, variables

LEA = re.compile(rb"\x48\x8d\x3d(....)", re.DOTALL)
DEFAULT = re.compile(rb"(?:\x31\xf6|\xbe(?P<int>....)|\x48\xc7\xc6(?P<long>....))", re.DOTALL)
LOADS = 7  # bytes of the longest instruction that loads a default


def sections(library: bytes) -> dict[str, tuple[int, bytes]]:
    """Return the address and content of each section of an ELF file, by name."""
    (start,), (size, number, names) = struct.unpack_from("<Q", library, 40), struct.unpack_from("<HHH", library, 58)
    headers = [struct.unpack_from("<IIQQQQ", library, start + index * size) for index in range(number)]
    base = headers[names][4]
    text = {base + each[0]: each for each in headers}
    return {
        library[at : library.index(b"\0", at)].decode(): (each[3], library[each[4] : each[4] + each[5]])
        for at, each in text.items()
    }


def read_names(library: bytes) -> dict[str, int | None]:
    """Return each name that the library passes to a function, with the default that is passed next to it."""
    found = sections(library)
    named = {
        address + match.start(): match[0].decode()
        for section, (address, content) in found.items()
        if section.startswith(".rodata")
        for match in re.finditer(rb"NCCL_[A-Z0-9_]+(?=\0)", content)
    }
    address, code = found[".text"]
    names: dict[str, int | None] = {}
    for match in LEA.finditer(code):
        name = named.get(address + match.end() + struct.unpack("<i", match[1])[0])
        if name and names.get(name) is None:
            names[name] = _default(code[match.start() - LOADS : match.start()], code[match.end() : match.end() + LOADS])
    return names


def _default(before: bytes, after: bytes) -> int | None:
    """Return the number that the instruction next to the name loads: xor esi,esi or mov esi,NUMBER."""
    loads = DEFAULT.match(after) or next((each for each in DEFAULT.finditer(before) if each.end() == len(before)), None)
    number = loads and (loads["long"] or loads["int"])
    return struct.unpack("<i", number)[0] if number else 0 if loads else None


def differences(version: str, library: bytes) -> list[str]:
    """Return what the table and the library do not say alike. A negative default leaves the number to NCCL."""
    names = read_names(library)
    table = {name: about for name, about in variables().items() if about["component"] == "nccl" and since(about)}
    found = [f"{name}: not in the table, default {names[name]}" for name in sorted(names.keys() - variables().keys())]
    for name, about in table.items():
        known = release(about.get("first", since(about))) <= release(version) <= release(about.get("last", "999"))
        reads = name in names or (known and name.encode() + b"\0" in library)
        if reads != known:
            found.append(f"{name}: {'read' if reads else 'not read'}, in the table {about}")
        default, ours = names.get(name), about.get("default")
        if default is not None and default >= 0 and isinstance(ours, int) and default != ours:
            found.append(f"{name}: default {default}, in the table {ours}")
    return found


def main(paths: list[str]) -> None:
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            library = wheel.read("nvidia/nccl/lib/libnccl.so.2")
        version = Path(path).name.split("-")[1]
        print(version, *(differences(version, library) or ["as in the table"]), sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
