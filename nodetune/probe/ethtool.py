"""A driver's data about its link, by ioctl and netlink: rings, queues, moderation, pause, firmware, PFC.

Layouts are those of linux/ethtool.h and linux/dcbnl.h. Reading needs no privilege; nothing is set here.
"""

import array
import errno
import fcntl
import re
import socket
import struct

from . import read

SIOCETHTOOL = 0x8946
STRINGS, COUNTS, SET_INFO = 0x1B, 0x1D, 0x37
STATISTICS = 1
NAME_BYTES = 32
MAX_COUNTERS = 20000
SPARE = 1 << 16
"""Bytes that a driver may write beyond its reported number of counters: the number of queues may change."""
COUNTERS = re.compile(
    r"(rx_packets_phy|rx_discards_phy|rx_prio\d_buf_discard|tx_pause_storm_(warning|error)_events"
    r"|tx_vport_rdma_unicast_packets|tx_prio\d_packets) ?$"
)
"""Counters that standard statistics lack: RoCE bypasses the kernel, and so do its lost packets."""
RTM_GETDCB = 78
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
DCB_CMD_IEEE_GET = 21
DCB_ATTR_IFNAME = 1
DCB_ATTR_IEEE = 13
DCB_ATTR_IEEE_PFC = 2
DCB_ATTR_IEEE_APP_TABLE = 3
SELECTOR_DSCP = 5
NETLINK_SECONDS = 1.0


def _driver_info(data):
    """Read struct ethtool_drvinfo: five texts of 32 bytes after the command."""
    texts = [data[at : at + 32].split(b"\0")[0].decode("utf-8", "backslashreplace") for at in (4, 36, 68, 100)]
    return dict(zip(("driver", "version", "firmware", "bus"), texts))


def _words(**places):
    """Return a reader of 32-bit words at the given positions (0 is the command)."""
    last = max(places.values()) + 1

    def parse(data):
        words = struct.unpack_from("={}I".format(last), data)
        return {name: words[place] for name, place in places.items()}

    return parse


def _coalescing(data):
    words = _words(rx_usecs=1, rx_frames=2, tx_usecs=5, tx_frames=6, adaptive_rx=10, adaptive_tx=11)(data)
    words.update(adaptive_rx=bool(words["adaptive_rx"]), adaptive_tx=bool(words["adaptive_tx"]))
    return words


def _pause(data):
    return {name: bool(word) for name, word in _words(autoneg=1, rx=2, tx=3)(data).items()}


QUERIES = {
    "driver_info": (0x03, 196, _driver_info),
    "coalescing": (0x0E, 92, _coalescing),
    "rings": (0x10, 36, _words(rx_max=1, tx_max=4, rx=5, tx=8)),
    "pause": (0x12, 16, _pause),
    "channels": (
        0x3C,
        36,
        _words(rx_max=1, tx_max=2, combined_max=4, rx=5, tx=6, combined=8),
    ),
}
"""fact → (command, bytes of its structure, parser)."""


def ask(link, query):
    """Return the fact from the link's driver for one of QUERIES."""
    command, size, parse = QUERIES[query]
    try:
        return read.value(parse(_ioctl(link, command, size)))
    except OSError as problem:
        return _refused(problem)


def _ioctl(link, command, size, *words):
    """Return the structure filled in by the driver: the command, `words` of 32 bits, then zeros."""
    head = struct.pack("={}I".format(1 + len(words)), command, *words)
    buffer = array.array("B", head + bytes(size - len(head)))
    request = struct.pack("16sP16x", link.encode(), buffer.buffer_info()[0])
    handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        fcntl.ioctl(handle, SIOCETHTOOL, request)
    finally:
        handle.close()
    return buffer.tobytes()


def _refused(problem):
    if problem.errno in (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL, errno.ENOTTY):
        return read.absent("the driver does not support this")
    return read.unread(read.why(problem))


def ask_counters(link):
    """Return {name: count} of the driver's own counters that COUNTERS knows (`ethtool -S`)."""
    try:
        counted = _counters(link)
    except OSError as problem:
        return _refused(problem)
    except struct.error:
        return read.unread("invalid answer of the driver")
    known = {name: count for name, count in counted.items() if COUNTERS.match(name)}
    return read.value(known) if known else read.absent("the driver does not support this")


def _counters(link):
    said, number = struct.unpack_from("=QI", _ioctl(link, SET_INFO, 20, 0, 1 << STATISTICS), 8)
    if not said or number > MAX_COUNTERS:
        return {}
    names = _ioctl(link, STRINGS, 12 + number * NAME_BYTES + SPARE, STATISTICS, number)
    counts = struct.unpack_from("={}Q".format(number), _ioctl(link, COUNTS, 8 + number * 8 + SPARE, number), 8)
    starts = range(12, 12 + number * NAME_BYTES, NAME_BYTES)
    texts = [names[at : at + NAME_BYTES].split(b"\0")[0].decode("ascii", "backslashreplace") for at in starts]
    return dict(zip(map(str.strip, texts), counts))


def ask_dcb(link):
    """Return priorities with PFC, and DSCP values with their own priority (none: the NIC trusts VLAN bits)."""
    try:
        return read.value(_dcb(_dcb_reply(link)))
    except OSError as problem:
        return _refused(problem)
    except (struct.error, IndexError):
        return read.unread("invalid answer of the DCB interface")


def _dcb_reply(link):
    """Return the attributes of the kernel's answer. Raise OSError with the kernel's errno."""
    name = link.encode() + b"\0"
    attribute = struct.pack("=HH", 4 + len(name), DCB_ATTR_IFNAME) + name
    attribute += bytes(-len(attribute) % 4)
    body = struct.pack("=BBH", socket.AF_UNSPEC, DCB_CMD_IEEE_GET, 0) + attribute
    handle = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        handle.settimeout(NETLINK_SECONDS)
        handle.sendto(struct.pack("=IHHII", 16 + len(body), RTM_GETDCB, NLM_F_REQUEST, 1, 0) + body, (0, 0))
        reply = handle.recv(1 << 16)
    finally:
        handle.close()
    if struct.unpack_from("=H", reply, 4)[0] == NLMSG_ERROR:
        raise OSError(-struct.unpack_from("=i", reply, 16)[0], "refused")
    return reply[20:]


def _attributes(data):
    """Yield (type, content) of each netlink attribute; nesting flags are removed from the type."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += length + (-length % 4)


def _dcb(data):
    ieee = dict(_attributes(dict(_attributes(data)).get(DCB_ATTR_IEEE, b"")))
    if DCB_ATTR_IEEE_PFC not in ieee:
        raise OSError(errno.EOPNOTSUPP, "no PFC")
    mask = ieee[DCB_ATTR_IEEE_PFC][1]
    table = [struct.unpack_from("=BBH", entry) for _, entry in _attributes(ieee.get(DCB_ATTR_IEEE_APP_TABLE, b""))]
    return {
        "pfc": [priority for priority in range(8) if mask >> priority & 1],
        "dscp_priority": {str(code): priority for selector, priority, code in table if selector == SELECTOR_DSCP},
    }
