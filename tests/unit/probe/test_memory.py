"""What the memory collector makes of a host's files."""

import struct

import pytest

from nodetune.probe import memory

MEMINFO = (
    "MemTotal: 2113441720 kB\nMemFree: 100 kB\nMemAvailable: 200 kB\nSwapTotal: 8388604 kB\nSwapFree: 8000000 kB\n"
)
BUDDIES = (
    "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
    "Node 0, zone   Normal    100      0      0      0      0      0      0      0      0      2      1 \n"
    "Node 1, zone   Normal   1000      0      0      0      0      0      0      0      0      0      0 \n"
)
MC = "/sys/devices/system/edac/mc"


def seen(tree, collect, files):
    tree({"/proc/meminfo": MEMINFO, **files})
    return collect("memory")


def test_a_missing_size_is_absent_and_not_zero(tree, collect):
    facts = seen(tree, collect, {})
    assert facts["memory.total_kb"] == {"value": 2113441720}
    assert facts["memory.swap_free_kb"] == {"value": 8000000}
    tree({"/proc/meminfo": "MemTotal: 5 kB\n"})
    assert "absent" in collect("memory")["memory.swap_total_kb"]


def test_a_choice_is_the_word_in_brackets_or_absent(tree, collect):
    facts = seen(tree, collect, {"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"})
    assert facts["memory.thp.enabled"] == {"value": "madvise"}
    assert "absent" in facts["memory.thp.defrag"]
    assert "absent" in facts["memory.ksm.run"]


def test_a_ksm_that_is_off_reads_as_zero(tree, collect):
    assert seen(tree, collect, {"/sys/kernel/mm/ksm/run": "0\n"})["memory.ksm.run"] == {"value": 0}


FSTAB = """\
/dev/sda1 / ext4 defaults 0 1
UUID=ab-1 none swap sw 0 0  # the disk
/swap.img none swap defaults 0 0
#/dev/sdb1 none swap sw 0 0
/dev/sdc1 none swap noauto 0 0
/dev/gone none swap sw
"""
SWAP_HOST = {
    "/etc/fstab": FSTAB,
    "/dev/sda2": "",
    "/dev/disk/by-uuid/ab-1": "-> ../../sda2",
    "/sys/class/block/sda2/size": "134217728\n",
    "/swap.img": "x" * 4096,
}


def test_swap_that_fstab_turns_on_at_boot_has_size_and_line(tree, collect):
    assert seen(tree, collect, SWAP_HOST)["memory.swap_in_fstab"]["value"] == {
        "/dev/sda2": {"size_kb": 67108864, "file": "/etc/fstab", "line": 2},
        "/swap.img": {"size_kb": 4, "file": "/etc/fstab", "line": 3},
        "/dev/gone": {"size_kb": None, "file": "/etc/fstab", "line": 6},
    }


@pytest.mark.parametrize("unit", [r"dev-disk-by\x2duuid-ab\x2d1.swap", "dev-sda2.swap", "swap.target"])
def test_masked_swap_stays_off_at_boot(tree, collect, unit):
    masked = {"/dev/null": "", f"/etc/systemd/system/{unit}": "-> /dev/null"}
    assert "/dev/sda2" not in seen(tree, collect, {**SWAP_HOST, **masked})["memory.swap_in_fstab"]["value"]


def test_swap_areas_are_listed_and_no_swap_is_an_empty_list(tree, collect):
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    facts = seen(tree, collect, {"/proc/swaps": head + "/swap.img  file\t\t8388604\t\t300\t\t-2\n"})
    assert facts["memory.swaps"] == {"value": {"/swap.img": {"type": "file", "size_kb": 8388604, "used_kb": 300}}}
    tree({"/proc/swaps": head})
    assert collect("memory")["memory.swaps"] == {"value": {}}


def test_pools_of_static_huge_pages_are_read_by_size(tree, collect):
    pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
    counts = {pool + "nr_hugepages": "512", pool + "free_hugepages": "500", pool + "resv_hugepages": "12"}
    facts = seen(tree, collect, counts)
    assert facts["memory.hugepages"] == {"value": {"2048": {"total": 512, "free": 500, "promised": 12}}}


def test_free_blocks_add_up_the_zones_of_a_node(tree, collect, monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", lambda _: 4096)
    files = {"/proc/buddyinfo": BUDDIES, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "2097152\n"}
    facts = seen(tree, collect, files)
    huge_dma, huge_normal = 1 * 2048 + 3 * 4096, 2 * 2048 + 1 * 4096
    assert facts["memory.free_blocks"]["each"] == {
        "node0": {"value": {"free_kb": 1024 + huge_dma + 400 + huge_normal, "huge_kb": huge_dma + huge_normal}},
        "node1": {"value": {"free_kb": 4000, "huge_kb": 0}},
    }


def test_pages_of_64_kib_look_for_blocks_of_512_mib(tree, collect, monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", lambda _: 65536)
    line = "Node 0, zone   Normal " + " ".join(["1"] * 14) + "\n"
    files = {"/proc/buddyinfo": line, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "536870912\n"}
    assert seen(tree, collect, files)["memory.free_blocks"]["each"]["node0"]["value"]["huge_kb"] == 64 << 13


def test_fragmentation_is_taken_at_the_size_of_a_huge_page(tree, collect, monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", lambda _: 4096)
    index = "Node 0, zone   Normal " + "-1.000 " * 9 + "0.945 0.972 \n"
    files = {
        "/sys/kernel/debug/extfrag/extfrag_index": index,
        "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "2097152\n",
    }
    assert seen(tree, collect, files)["memory.extfrag_index"] == {"each": {"node0": {"value": 0.945}}}


def test_errors_are_counted_per_module_and_for_unknown_ones(tree, collect):
    files = {
        MC + "/mc0/seconds_since_reset": "86400",
        MC + "/mc0/dimm0/dimm_label": "CPU0_DIMM_A1\n",
        MC + "/mc0/dimm0/dimm_ue_count": "0",
        MC + "/mc0/dimm0/dimm_ce_count": "7",
        MC + "/mc0/ue_noinfo_count": "1",
        MC + "/mc0/ce_noinfo_count": "0",
        MC + "/power/control": "auto",
    }
    facts = seen(tree, collect, files)
    assert facts["memory.edac.controllers"] == {"value": ["mc0"]}
    assert facts["memory.edac.uncorrected"]["each"] == {
        "mc0/dimm0 CPU0_DIMM_A1": {"value": 0},
        "mc0 unattributed": {"value": 1},
    }
    assert facts["memory.edac.corrected"]["each"]["mc0/dimm0 CPU0_DIMM_A1"] == {"value": 7}
    assert facts["memory.edac.seconds"] == {"value": 86400}


def test_kernels_that_count_by_controller_are_read_by_controller(tree, collect):
    files = {MC + "/mc0/dimm0/dimm_label": "A", MC + "/mc0/ue_count": "3", MC + "/mc0/ce_count": "4"}
    assert seen(tree, collect, files)["memory.edac.uncorrected"] == {"each": {"mc0": {"value": 3}}}


def test_no_edac_driver_is_absent_and_not_zero_errors(tree, collect):
    facts = seen(tree, collect, {MC + "/": None})
    assert facts["memory.edac.controllers"] == {"value": []}
    assert "absent" in facts["memory.edac.uncorrected"]


def memory_device(slot, size, speed, extended=0, handle=0x1100):
    """One structure of SMBIOS type 17, version 3.3."""
    body = struct.pack("<BBHHHHHHBBBBBHH", 17, 0x5C, handle, 0x1000, 0xFFFE, 80, 64, size, 9, 0, 1, 2, 0x22, 0x80, 5600)
    body += struct.pack("<BBBBBIH", 3, 4, 5, 6, 2, extended, speed)
    return body.ljust(0x5C, b"\0") + slot.encode() + b"\0P0_Node0\0Maker\0Serial\0Tag\0Part\0\0"


def test_memory_modules_are_read_from_the_firmware_table(tree, collect):
    end = struct.pack("<BBH", 127, 4, 0xFFFF) + b"\0\0"
    other = struct.pack("<BBH", 0, 26, 0).ljust(26, b"\0") + b"Vendor\0\0"
    table = other + memory_device("A1", 0x7FFF, 4800, 65536) + memory_device("A2", 0, 0) + memory_device("B1", 32, 0)
    root = tree({"/proc/meminfo": "MemTotal: 1 kB", "/sys/firmware/dmi/tables/": None})
    (root / "sys/firmware/dmi/tables/DMI").write_bytes(table + end)
    facts = collect("memory", ["modules"])
    assert facts["memory.serial"]["each"] == {"A1": {"value": "Serial"}, "B1": {"value": "Serial"}}
    assert facts["memory.modules"]["value"] == [
        {"slot": "A1", "bank": "P0_Node0", "type": 0x22, "size_mb": 65536, "speed_mts": 4800},
        {"slot": "A2", "bank": "P0_Node0", "type": 0x22, "size_mb": 0, "speed_mts": None},
        {"slot": "B1", "bank": "P0_Node0", "type": 0x22, "size_mb": 32, "speed_mts": None},
    ]


def test_slots_of_the_same_name_go_by_their_bank(tree, collect):
    root = tree({"/proc/meminfo": "MemTotal: 1 kB", "/sys/firmware/dmi/tables/": None})
    (root / "sys/firmware/dmi/tables/DMI").write_bytes(memory_device("DIMM 0", 1, 0) * 2)
    found = collect("memory", ["modules"])["memory.modules"]["value"]
    assert [each["slot"] for each in found] == ["P0_Node0 DIMM 0"] * 2


@pytest.mark.parametrize("cut", [0, 3, 40, 95, 120])
def test_a_damaged_firmware_table_is_no_reading(tree, collect, cut):
    root = tree({"/proc/meminfo": "MemTotal: 1 kB", "/sys/firmware/dmi/tables/": None})
    (root / "sys/firmware/dmi/tables/DMI").write_bytes(memory_device("A1", 16384, 4800)[:cut])
    assert "absent" in collect("memory", ["modules"])["memory.modules"]
