"""Disks, NVMe controllers, software RAID and GPUDirect Storage: `block.*`.

`block.smart` sends one read-only command (Get Log Page) to each NVMe controller, and only on request.
"""

import array
import fcntl
import os
import re
import struct

from . import read, udev_rules

BLOCK = "/sys/block"
NVME = "/sys/class/nvme"
IO_TIMEOUT = "/sys/module/nvme_core/parameters/io_timeout"
CUFILE = "/etc/cufile.json"
NOT_DISKS = re.compile(r"(loop|ram|zram|sr|fd|nbd|md|dm-|drbd|rbd|zd)")

ADMIN_COMMAND = 0xC0484E41
"""NVME_IOCTL_ADMIN_CMD of linux/nvme_ioctl.h."""
COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")
"""struct nvme_passthru_cmd: opcode, flags, reserved, namespace, cdw2-3, metadata, data, their lengths, cdw10-15,
timeout in ms, result."""
GET_LOG_PAGE = 0x02
HEALTH_LOG = 0x02
HEALTH_BYTES = 512
ALL_NAMESPACES = 0xFFFFFFFF
COMMAND_MS = 2000
RULED = {"scheduler_rule": "scheduler", "read_ahead_rule": "read_ahead_kb"}
"""Facts of the udev rules that set an attribute of a disk's queue."""


def collect(names, step):
    step("disks")
    disks = [name for name in read.names_in(BLOCK) if not NOT_DISKS.match(name) and not _hidden(name)]
    yield "disks", read.value({name: _disk(name) for name in disks})
    for attribute, parse in (("scheduler", read.chosen), ("read_ahead_kb", int), ("nr_requests", int)):
        yield attribute, read.each({name: read.file_fact(_queue(name, attribute), parse) for name in disks})
    for name, attribute in RULED.items():
        if name in names:
            step("udev's rules")
            yield name, read.each(_rules(attribute, disks))
    step("software RAID")
    arrays = [name for name in read.names_in(BLOCK) if read.exists("{}/{}/md/array_state".format(BLOCK, name))]
    yield "raid", read.each({name: _raid(name) for name in arrays})
    step("NVMe controllers")
    controllers = {name: _controller(name) for name in read.names_in(NVME)}
    yield "nvme", read.value(controllers)
    yield "serial", read.each({name: read.file_fact("{}/{}/serial".format(NVME, name)) for name in controllers})
    yield "nvme_io_timeout", read.file_fact(IO_TIMEOUT, int)
    yield "gds", _gds()
    if "smart" in names:
        facts = {}
        for name, controller in controllers.items():
            step("the health log of " + name)
            facts[name] = _health(name, controller)
        yield "smart", read.each(facts)


def _queue(disk, attribute):
    return "{}/{}/queue/{}".format(BLOCK, disk, attribute)


def _rules(attribute, disks):
    rules, found = udev_rules.rules(attribute), {}
    for disk in disks:
        rotational = read.text_or(_queue(disk, "rotational")) == "1"
        found[disk] = udev_rules.decides(rules, attribute, disk, rotational)
    return found


def _hidden(disk):
    """Return whether a disk is a single path of a multipath NVMe namespace, which nothing mounts or tunes."""
    return read.text_or("{}/{}/hidden".format(BLOCK, disk)) == "1"


def _disk(name):
    folder = "{}/{}/".format(BLOCK, name)
    return {
        "type": _type(name),
        "rotational": read.text_or(folder + "queue/rotational") == "1",
        "size_bytes": int(read.text_or(folder + "size", "0")) * 512,
        "model": read.text_or(folder + "device/model"),
    }


def _type(name):
    """Return the type by the disk's bus: nvme, virtio, usb, sata, sas, scsi, or other."""
    path = read.real("{}/{}".format(BLOCK, name))
    if name.startswith("nvme"):
        return "nvme"
    for part, kind in (
        ("/usb", "usb"),
        ("/ata", "sata"),
        ("/virtio", "virtio"),
        ("/end_device-", "sas"),
        ("/host", "scsi"),
    ):
        if part in path:
            return kind
    return "other"


def _raid(name):
    """Return {level, state, degraded, action}; RAID 0 has neither missing disks nor anything to rebuild."""
    folder = "{}/{}/md/".format(BLOCK, name)
    facts = {
        "level": read.file_fact(folder + "level"),
        "state": read.file_fact(folder + "array_state"),
        "degraded": read.file_fact(folder + "degraded", int),
        "action": read.file_fact(folder + "sync_action"),
    }
    for fact in facts.values():
        if "unread" in fact:
            return fact
    return read.value({key: fact.get("value") for key, fact in facts.items()})


def _controller(name):
    folder = "{}/{}/".format(NVME, name)
    transport = read.text_or(folder + "transport")
    return {
        "state": read.text_or(folder + "state"),
        "transport": transport,
        "model": read.text_or(folder + "model"),
        "firmware": read.text_or(folder + "firmware_rev"),
        "bdf": read.link_name(folder + "device") if transport == "pcie" else None,
    }


def _gds():
    """Return the configuration of the cuFile library; absent if there is none."""
    return read.file_fact(CUFILE, _cufile)


def _cufile(content):
    """Read the switches of cufile.json by name, because it allows comments and so is not JSON."""
    content = re.sub(r"^\s*//.*$", "", content, flags=re.MULTILINE)
    switches = dict(re.findall(r'"(\w+)"\s*:\s*(true|false)\b', content))
    compat = switches.get("allow_compat_mode", switches.get("use_compat_mode"))
    return {
        "compat_mode": None if compat is None else compat == "true",
        "p2pdma": switches.get("use_pci_p2pdma") == "true",
    }


def _health(name, controller):
    """Return the SMART / health log of one controller. Skip one that is resetting: the command would wait for it."""
    if controller["transport"] != "pcie":
        return read.absent("not a local drive")
    if controller["state"] not in ("live", ""):
        return read.unread("the controller is {}".format(controller["state"]))
    try:
        log = _log_page("/dev/" + name)
    except OSError as problem:
        return read.unread("/dev/{}: {}".format(name, read.why(problem)))
    return read.value(parse_health(log))


def _log_page(path):
    data = array.array("B", bytes(HEALTH_BYTES))
    address, _ = data.buffer_info()
    wanted = HEALTH_LOG | (HEALTH_BYTES // 4 - 1) << 16
    command = bytearray(
        COMMAND.pack(
            GET_LOG_PAGE, 0, 0, ALL_NAMESPACES, 0, 0, 0, address, 0, HEALTH_BYTES, wanted, 0, 0, 0, 0, 0, COMMAND_MS, 0
        )
    )
    handle = os.open(read.ROOT + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = fcntl.ioctl(handle, ADMIN_COMMAND, command)
    finally:
        os.close(handle)
    if status:
        raise OSError(None, "the drive refuses its health log (status {:#x})".format(status))
    return data.tobytes()


def parse_health(log):
    """Return the fields that show a failing drive: NVM Express base specification, log page 02h."""
    return {
        "critical_warning": log[0],
        "spare_percent": log[3],
        "spare_threshold_percent": log[4],
        "used_percent": log[5],
        "media_errors": int.from_bytes(log[160:176], "little"),
    }
