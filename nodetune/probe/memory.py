"""Memory: sizes, transparent huge pages, KSM, static huge pages, swap: `memory.*`."""

import re

from . import read

THP = "/sys/kernel/mm/transparent_hugepage"


def collect(names, step):
    step("/proc/meminfo")
    info = dict(re.findall(r"^(\S+):\s+(\d+)", read.text("/proc/meminfo"), re.M))
    yield "total_kb", read.value(int(info["MemTotal"]))
    for name in ("HugePages_Total", "HugePages_Free", "SwapTotal", "SwapFree"):
        yield name.lower(), read.value(int(info[name])) if name in info else read.absent()
    step("transparent huge pages")
    yield "thp.enabled", read.file_fact(THP + "/enabled", read.chosen)
    yield "thp.defrag", read.file_fact(THP + "/defrag", read.chosen)
    step("KSM")
    yield "ksm.run", read.file_fact("/sys/kernel/mm/ksm/run", int)
    step("/proc/swaps")
    yield "swaps", read.file_fact("/proc/swaps", _swaps)


def _swaps(content):
    rows = [line.split() for line in content.splitlines()[1:]]
    return {row[0]: {"type": row[1], "size_kb": int(row[2]), "used_kb": int(row[3])} for row in rows}
