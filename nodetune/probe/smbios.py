"""The slots for memory modules, from the firmware's own table (SMBIOS type 17), which only root may read."""

import struct

from . import read

TABLE = "/sys/firmware/dmi/tables/DMI"
MEMORY_DEVICE = 17
UNKNOWN = (0, 0xFFFF)
IN_KB = 0x8000
EXTENDED = 0x7FFF


def memory_modules():
    """Return two facts: [{slot, bank, type, size_mb, speed_mts}] of all slots, and the serial number of each module.

    Size 0: empty or disabled by the firmware. `speed_mts` is the configured speed, null if the firmware does not report it.
    """
    try:
        table = read.raw_bytes(TABLE)
    except FileNotFoundError:
        return (read.absent("no SMBIOS table on this host"),) * 2
    except OSError as problem:
        return (read.unread("{}: {}".format(TABLE, read.why(problem))),) * 2
    devices = [each[1:] for each in _structures(table) if each[0] == MEMORY_DEVICE and len(each[1]) > 18]
    found = [_slot(body, texts) for body, texts in devices]
    if len({each["slot"] for each in found}) < len(found):  # `DIMM 0` of each channel: the bank tells them apart
        for each in found:
            each["slot"] = "{} {}".format(each["bank"], each["slot"]).strip()
    if not found:
        return (read.absent("the firmware describes no memory modules"),) * 2
    serials = {slot["slot"]: _serial(*device) for slot, device in zip(found, devices) if slot["size_mb"]}
    return read.value(found), read.each({slot: read.value(serial) for slot, serial in serials.items() if serial})


def _serial(body, texts):
    return _text(texts, body[0x18]) if len(body) > 0x18 else ""


def _structures(table):
    """Yield (type, formatted part, texts) of each structure: a header with its length, then texts that end in zeros."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            return
        yield kind, table[at : at + length], table[at + length : end].split(b"\0")
        at = end + 2


def _slot(body, texts):
    size = _word(body, 0x0C)
    megabytes = None if size == 0xFFFF else (size & EXTENDED) // 1024 if size & IN_KB else size
    if size == EXTENDED and len(body) >= 0x20:
        megabytes = struct.unpack_from("<I", body, 0x1C)[0] & 0x7FFFFFFF
    speed = _word(body, 0x20) if len(body) >= 0x22 else 0
    return {
        "slot": _text(texts, body[0x10]),
        "bank": _text(texts, body[0x11]),
        "type": body[0x12],
        "size_mb": megabytes,
        "speed_mts": None if speed in UNKNOWN else speed,
    }


def _word(body, at):
    return struct.unpack_from("<H", body, at)[0]


def _text(texts, number):
    """Return a text by its number, which counts from 1; 0 means no text."""
    text = texts[number - 1] if 0 < number <= len(texts) else b""
    return text.decode("ascii", "backslashreplace").strip()[:64]
