"""PCI devices that matter to GPU work (GPUs, NICs with Data Direct, NVMe, NVSwitches, the bridges above them): `pci.*`."""

import os
import re
import struct

from . import read

DEVICES = "/sys/bus/pci/devices"
GROUPS = "/sys/kernel/iommu_groups"
IOMMUS = "/sys/class/iommu"
ASPM = "/sys/module/pcie_aspm/parameters/policy"

BRIDGE = "0604"
NVIDIA = "10de"
DATA_DIRECT = ("0x15b3", "0x2100")
"""The function of a ConnectX-8 that reaches a GPU past the CPU. By its class it is not a network device."""
GPU_VENDORS = (NVIDIA, "1002", "8086")
AER_KINDS = ("correctable", "nonfatal", "fatal")

UNPRIVILEGED = 64
"""Bytes of configuration space that the kernel shows to any user; the capabilities follow them."""
CAPABILITY_LIST = 0x10
PCI_EXPRESS = 0x10
FIRST_EXTENDED = 0x100
ACCESS_CONTROL = 0x000D
PORTS = {0: "endpoint", 1: "endpoint", 4: "root", 5: "upstream", 6: "downstream"}
ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")


def collect(names, step):
    step("the list of PCI devices")
    if not read.exists(DEVICES):
        for name in ("devices", "gpus", "gpu_bar_mib", "iommu.domains", "aer", "answers", "config", "acs"):
            yield name, read.absent("no PCI bus on this host")
    else:
        yield from _bus(step)
    step("the IOMMU")
    yield "iommu.units", read.value(read.names_in(IOMMUS))
    yield "aspm_policy", read.file_fact(ASPM, read.chosen)


def _bus(step):
    devices = _devices()
    yield "devices", read.value(devices)
    gpus = [bdf for bdf, seen in devices.items() if seen["vendor"] == NVIDIA and seen["class"] in ("0300", "0302")]
    yield "gpus", read.value(gpus)
    yield "gpu_bar_mib", read.each({bdf: read.file_fact(_path(bdf, "resource"), _largest_bar_mib) for bdf in gpus})
    yield "iommu.domains", read.each({bdf: _domain(seen) for bdf, seen in devices.items() if seen["class"] != BRIDGE})
    step("PCI error counters")
    counted = {bdf: _errors(bdf) for bdf in devices}
    yield "aer", read.each({bdf: fact for bdf, fact in counted.items() if fact is not None})
    answers, config, acs = {}, {}, {}
    for bdf, seen in devices.items():
        step("the configuration space of " + bdf)
        answers[bdf], config[bdf], its_acs = _configuration(bdf)
        if seen["class"] == BRIDGE:
            acs[bdf] = its_acs
    yield "answers", read.each(answers)
    yield "config", read.each(config)
    yield "acs", read.each(acs)


def _path(bdf, name):
    return "{}/{}/{}".format(DEVICES, bdf, name)


def _devices():
    """Return {bdf: what it is} of the relevant devices and of every bridge between them and the root."""
    kinds = {
        bdf: (read.text_or(_path(bdf, "class")), read.text_or(_path(bdf, "vendor"))) for bdf in read.names_in(DEVICES)
    }
    bridges = {bdf for bdf, (kind, _) in kinds.items() if kind[2:6] == BRIDGE}
    chosen = {bdf: _parents(bdf, bridges) for bdf, (kind, vendor) in kinds.items() if _matters(bdf, kind[2:6], vendor)}
    for parents in list(chosen.values()):
        chosen.update({bridge: parents[:level] for level, bridge in enumerate(parents)})
    return {bdf: _device(bdf, kinds[bdf], chosen[bdf]) for bdf in sorted(chosen)}


def _matters(bdf, kind, vendor):
    network = kind[:2] == "02"
    gpu = kind[:2] in ("03", "12") and vendor[2:] in GPU_VENDORS
    nvswitch = kind == "0680" and vendor[2:] == NVIDIA
    data_direct = vendor == DATA_DIRECT[0] and read.text_or(_path(bdf, "device")) == DATA_DIRECT[1]
    return network or gpu or nvswitch or kind == "0108" or data_direct


def _parents(bdf, bridges):
    """Return the bridges above a device, from the root down: the folders of its sysfs path."""
    return [part for part in read.real(DEVICES + "/" + bdf).split("/")[:-1] if part in bridges]


def _device(bdf, kind_and_vendor, parents):
    kind, vendor = kind_and_vendor
    group = read.link_name(_path(bdf, "iommu_group"))
    return {
        "vendor": vendor[2:],
        "device": read.text_or(_path(bdf, "device"))[2:],
        "class": kind[2:6],
        "numa_node": _number(read.text_or(_path(bdf, "numa_node")), -1),
        "driver": read.link_name(_path(bdf, "driver")),
        "link_speed_gts": _speed(read.text_or(_path(bdf, "current_link_speed"))),
        "link_width": _width(read.text_or(_path(bdf, "current_link_width"))),
        "max_link_speed_gts": _speed(read.text_or(_path(bdf, "max_link_speed"))),
        "max_link_width": _width(read.text_or(_path(bdf, "max_link_width"))),
        "iommu_group": _number(group or "", None),
        "virtual_function": read.exists(_path(bdf, "physfn")),
        "parents": parents,
    }


def _number(content, otherwise):
    return int(content) if re.match(r"-?\d+$", content) else otherwise


def _speed(content):
    """Parse `32.0 GT/s PCIe` as 32.0; None if the kernel does not know."""
    found = re.match(r"(\d+(?:\.\d+)?) GT/s", content)
    return float(found.group(1)) if found else None


def _width(content):
    """Parse lanes; None if the kernel reports 0 or a value that means unknown."""
    lanes = _number(content, 0)
    return lanes if 0 < lanes <= 32 else None


def _largest_bar_mib(content):
    sizes = [0]
    for line in content.splitlines()[:6]:
        first, last = (int(part, 16) for part in line.split()[:2])
        if last > first:
            sizes.append(last - first + 1)
    return max(sizes) >> 20


def _domain(seen):
    """Return how the IOMMU treats the device: identity, DMA, DMA-FQ; absent if no IOMMU does."""
    if seen["iommu_group"] is None:
        return read.absent("in no IOMMU group")
    return read.file_fact("{}/{}/type".format(GROUPS, seen["iommu_group"]))


def _errors(bdf):
    """Return {kind: {error: count}} of counted errors, or None for a device that counts none."""
    facts = {kind: read.file_fact(_path(bdf, "aer_dev_" + kind), _counters) for kind in AER_KINDS}
    for fact in facts.values():
        if "unread" in fact:
            return fact
    values = {kind: fact["value"] for kind, fact in facts.items() if "value" in fact}
    return read.value(values) if values else None


def _counters(content):
    """Return the errors with a count above 0. Names have several words in older kernels."""
    pairs = [line.rsplit(None, 1) for line in content.splitlines()]
    return {name: int(count) for name, count in pairs if int(count) and not name.startswith("TOTAL")}


def _configuration(bdf):
    """Return the facts (answers, settings, access control) from a device's configuration space.

    Only the necessary words are read: all 4 KiB of every device would cost more than the rest of the probe.
    """
    try:
        handle = os.open(read.ROOT + _path(bdf, "config"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        failed = read.unread("{}: {}".format(_path(bdf, "config"), read.why(problem)))
        return failed, failed, failed
    try:
        return _parse_configuration(handle)
    except (OSError, struct.error) as problem:
        failed = read.unread("{}: {}".format(_path(bdf, "config"), getattr(problem, "strerror", None) or problem))
        return failed, failed, failed
    finally:
        os.close(handle)


def _parse_configuration(handle):
    head = os.pread(handle, UNPRIVILEGED, 0)
    if not head.strip(b"\xff"):  # not just its vendor number: SR-IOV has virtual functions answer that with ones
        gone = read.unread("the device does not answer")
        return read.value(False), gone, gone
    answers = read.value(True)
    place = _express_capability(handle, head)
    if place is None:
        if not os.pread(handle, 4, UNPRIVILEGED):
            hidden = read.unread(read.lacks("PCI configuration space: permission denied"))
            return answers, hidden, hidden
        plain = read.absent("not a PCI Express device")
        return answers, plain, plain
    flags, able, control = struct.unpack("<HIH", os.pread(handle, 8, place + 2))
    port = PORTS.get(flags >> 4 & 0xF, "other")
    settings = {
        "port": port,
        "max_payload": 128 << (control >> 5 & 7),
        "max_payload_able": 128 << (able & 7),
        "max_read_request": 128 << (control >> 12 & 7),
        "relaxed_ordering": bool(control & 0x10),
    }
    return answers, read.value(settings), _access_control(handle, port)


def _express_capability(handle, head):
    """Return the offset of the PCI Express capability, or None if there is none or it may not be read."""
    status, pointer = struct.unpack_from("<H", head, 6)[0], head[0x34] & 0xFC
    for _ in range(48 if status & CAPABILITY_LIST else 0):
        entry = os.pread(handle, 2, pointer) if pointer >= UNPRIVILEGED else b""
        if len(entry) < 2:
            return None
        if entry[0] == PCI_EXPRESS:
            return pointer
        pointer = entry[1] & 0xFC
    return None


def _access_control(handle, port):
    """Return the enabled controls of the Access Control Services extended capability."""
    place = FIRST_EXTENDED
    for _ in range(480):
        entry = os.pread(handle, 8, place)
        if len(entry) < 8 or entry[:4] in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
            break
        head, _able, control = struct.unpack("<IHH", entry)
        if head & 0xFFFF == ACCESS_CONTROL:
            on = [name for bit, name in enumerate(ACS_BITS) if control >> bit & 1]
            return read.value({"port": port, "enabled": on})
        place = head >> 20 & 0xFFC
        if place < FIRST_EXTENDED:
            break
    return read.absent("no access control services")
