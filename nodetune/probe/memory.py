"""Memory: sizes, huge pages of both kinds, KSM, swap, fragmentation, errors of DIMMs: `memory.*`."""

import os
import re

from . import read, smbios

THP = "/sys/kernel/mm/transparent_hugepage"
FSTAB = "/etc/fstab"
POOLS = "/sys/kernel/mm/hugepages"
CONTROLLERS = "/sys/devices/system/edac/mc"


def collect(names, step):
    step("/proc/meminfo")
    info = dict(re.findall(r"^(\S+):\s+(\d+)", read.text("/proc/meminfo"), re.M))
    for name in ("MemTotal", "MemFree", "MemAvailable", "SwapTotal", "SwapFree"):
        fact = read.value(int(info[name])) if name in info else read.absent()
        yield name.lower().replace("mem", "").replace("swap", "swap_") + "_kb", fact
    step("transparent huge pages")
    yield "thp.enabled", read.file_fact(THP + "/enabled", read.chosen)
    yield "thp.defrag", read.file_fact(THP + "/defrag", read.chosen)
    yield "thp.size_kb", read.file_fact(THP + "/hpage_pmd_size", lambda content: int(content) // 1024)
    step("static huge pages")
    yield "hugepages", read.tried(_pools)
    step("KSM")
    yield "ksm.run", read.file_fact("/sys/kernel/mm/ksm/run", int)
    yield "ksm.pages_sharing", read.file_fact("/sys/kernel/mm/ksm/pages_sharing", int)
    step("/proc/swaps")
    yield "swaps", read.file_fact("/proc/swaps", _swaps)
    yield "swap_in_fstab", read.tried(_swap_in_fstab)
    step("fragmentation")
    yield from _fragmentation()
    if "modules" in names:
        step("memory modules")
        modules, serials = smbios.memory_modules()
        yield "modules", modules
        yield "serial", serials
    step("EDAC")
    for name, fact in _errors():
        yield "edac." + name, fact


def _swaps(content):
    rows = [line.split() for line in content.splitlines()[1:]]
    return {row[0]: {"type": row[1], "size_kb": int(row[2]), "used_kb": int(row[3])} for row in rows}


def _swap_in_fstab():
    """Return {device or file: {"size_kb", "file", "line"}} of the swap that fstab turns on at boot."""
    found = {}
    for number, line in enumerate(read.text_or(FSTAB).splitlines(), 1):
        fields = line.partition("#")[0].split()
        if len(fields) < 3 or fields[2] != "swap" or "noauto" in "".join(fields[3:4]).split(","):
            continue
        named = _device(fields[0])
        path = read.real(named)
        if not any(_is_masked(unit) for unit in ("swap.target", _unit(named), _unit(path))):
            found[path] = {"size_kb": _size_kb(path), "file": FSTAB, "line": number}
    return read.value(found)


def _device(what):
    """Return the path of a swap that fstab may name by tag (UUID=, LABEL=)."""
    tag, equals, name = what.replace('"', "").partition("=")
    return "/dev/disk/by-{}/{}".format(tag.lower(), name) if equals and "/" not in tag else what


def _unit(path):
    escaped = [re.sub(r"[^A-Za-z0-9:_.]", lambda sign: "\\x%02x" % ord(sign.group()), part) for part in path.split("/")]
    return "-".join(escaped[1:]) + ".swap"


def _is_masked(unit):
    return read.link_name("/etc/systemd/system/" + unit) == "null"


def _size_kb(path):
    """Return the size of a file or a disk; None if it does not exist."""
    sectors = read.text_or("/sys/class/block/{}/size".format(os.path.basename(path)))
    if path.startswith("/dev/"):
        return int(sectors) // 2 if sectors.isdigit() else None
    return os.stat(read.ROOT + path).st_size // 1024 if read.exists(path) else None


def _pools():
    """Return reserved huge pages of every size: {"2048": {"total", "free", "promised"}} by size in KiB."""
    pools = {}
    for name in read.names_in(POOLS):
        folder = os.path.join(POOLS, name)
        total, free, promised = (
            int(read.text(os.path.join(folder, part))) for part in ("nr_hugepages", "free_hugepages", "resv_hugepages")
        )
        pools[name.split("-")[1][:-2]] = {"total": total, "free": free, "promised": promised}
    return read.value(pools) if pools else read.absent("no static huge pages in this kernel")


def _fragmentation():
    """Yield the share of each NUMA node's free memory in blocks that hold a transparent huge page."""
    page_kb = os.sysconf("SC_PAGE_SIZE") // 1024
    thp = read.file_fact(THP + "/hpage_pmd_size", int)
    if "value" not in thp:
        yield "free_blocks", thp
        yield "extfrag_index", thp
        return
    order = max(0, (thp["value"] // 1024 // page_kb).bit_length() - 1)
    yield "free_blocks", _blocks(order, page_kb)
    yield "extfrag_index", _extfrag(order)


def _blocks(order, page_kb):
    """Return {"free_kb", "huge_kb"} of each node from /proc/buddyinfo, its zones added up."""
    whole = read.file_fact("/proc/buddyinfo", _buddies)
    if "value" not in whole:
        return whole
    nodes = {}
    for node, _, counts in whole["value"]:
        sizes = [count * page_kb << exponent for exponent, count in enumerate(counts)]
        seen = nodes.setdefault("node" + node, {"free_kb": 0, "huge_kb": 0})
        seen["free_kb"] += sum(sizes)
        seen["huge_kb"] += sum(sizes[order:])
    return read.each_value(nodes)


def _buddies(content):
    rows = re.findall(r"^Node (\d+), zone\s+(\S+)\s+([\d ]+)$", content, re.M)
    return [(node, zone, [int(count) for count in counts.split()]) for node, zone, counts in rows]


def _extfrag(order):
    """Return the kernel's index of the largest zone: -1 if a huge page is available, near 1 if memory is fragmented."""
    path = "/sys/kernel/debug/extfrag/extfrag_index"
    fact = read.file_fact(path, lambda content: re.findall(r"^Node (\d+), zone\s+Normal\s+([-\d. ]+)$", content, re.M))
    if "value" not in fact:
        return fact
    nodes = {"node" + node: [float(index) for index in line.split()] for node, line in fact["value"]}
    return read.each_value({node: line[order] for node, line in nodes.items() if order < len(line)})


def _errors():
    """Yield the error counters of each DIMM, and errors that a controller could not assign to one.

    They count since the driver loaded or was reset.
    """
    try:
        controllers = [name for name in read.names_in(CONTROLLERS) if re.match(r"mc\d+$", name)]
        found = [_dimm(place, label) for name in controllers for place, label in _dimms(name)]
    except OSError as problem:
        reason = read.unread("{}: {}".format(CONTROLLERS, read.why(problem)))
        for name in ("controllers", "uncorrected", "corrected", "seconds"):
            yield name, reason
        return
    none = read.absent("no EDAC driver watches this host's memory")
    yield "controllers", read.value(controllers)
    yield "uncorrected", read.each({subject: ue for subject, ue, _ in found}) if found else none
    yield "corrected", read.each({subject: ce for subject, _, ce in found}) if found else none
    ages = [read.file_fact("{}/{}/seconds_since_reset".format(CONTROLLERS, name), int) for name in controllers]
    yield "seconds", min(ages, key=lambda fact: fact.get("value", 0)) if ages else none


def _dimms(controller):
    """Yield (pattern of the counters' paths, subject) of each DIMM and of unassigned errors.

    On old kernels the subject is the controller.
    """
    folder = os.path.join(CONTROLLERS, controller)
    dimms = [name for name in read.names_in(folder) if re.match(r"(dimm|rank)\d+$", name)]
    if not any(read.exists(os.path.join(folder, name, "dimm_ue_count")) for name in dimms):
        yield os.path.join(folder, "{}_count"), controller
        return
    for name in dimms:
        label = read.text_or(os.path.join(folder, name, "dimm_label"))
        yield os.path.join(folder, name, "dimm_{}_count"), "{}/{}{}".format(controller, name, label and " " + label)
    yield os.path.join(folder, "{}_noinfo_count"), controller + " unattributed"


def _dimm(place, subject):
    return subject, read.file_fact(place.format("ue"), int), read.file_fact(place.format("ce"), int)
