"""Datagrams between RDMA ports (queue pairs of type UD) by libibverbs and ctypes: no connection, one queue pair a port.

Names, numbers and places are those of infiniband/verbs.h, whose interface IBVERBS_1.1 has been the same since 2006. What verbs.h
has as inline functions is called by the pointers in the context, as they do. Nothing is closed: the process ends.
"""

import ctypes
import errno
import os
import struct

from . import report as reporting

LIBRARY, PACKAGE = "libibverbs.so.1", "libibverbs1 and ibverbs-providers, or dnf install libibverbs"
UD, INIT, RTR, RTS = 4, 1, 2, 3
STATE, PKEY_INDEX, PORT, QKEY, SEND_PSN = 1, 16, 32, 64, 65536
LOCAL_WRITE, SEND, SIGNALED, RECEIVED = 1, 2, 2, 128
POLL_CQ, POST_SEND, POST_RECV = (8 + 8 * place for place in (11, 25, 26))
"""Places of the functions in a context."""

GRH = 40
"""Bytes that a received datagram has before its own: the global route header."""

SLOTS, LARGEST, KEY = 256, 4096, 0x6E74
HOPS = 64


class Ability(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("sends", "receives", "send_parts", "receive_parts", "inline")]


class QueuePair(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("own", "send_cq", "recv_cq", "srq")),
        ("ability", Ability),
        ("type", ctypes.c_uint32),
        ("all_signaled", ctypes.c_int),
    ]


class Way(ctypes.Structure):
    _fields_ = [
        ("gid", ctypes.c_ubyte * 16),
        ("flow", ctypes.c_uint32),
        ("own_gid", ctypes.c_uint8),
        ("hops", ctypes.c_uint8),
        ("traffic_class", ctypes.c_uint8),
        ("lid", ctypes.c_uint16),
        *((name, ctypes.c_uint8) for name in ("level", "bits", "rate", "is_global", "port")),
    ]


class Part(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("length", ctypes.c_uint32), ("key", ctypes.c_uint32)]


class Send(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("next", ctypes.c_void_p),
        ("parts", ctypes.POINTER(Part)),
        *((name, ctypes.c_uint32) for name in ("count", "operation", "flags", "immediate")),
        ("way", ctypes.c_void_p),
        ("number", ctypes.c_uint32),
        ("key", ctypes.c_uint32),
        ("rest", ctypes.c_ubyte * 72),
    ]


class Receive(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("next", ctypes.c_void_p),
        ("parts", ctypes.POINTER(Part)),
        ("count", ctypes.c_int),
    ]


class Done(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("status", "operation", "vendor", "length")),
        ("rest", ctypes.c_ubyte * 24),
    ]


CALL = {
    "poll": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Done)),
    "send": ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Send), ctypes.POINTER(ctypes.c_void_p), use_errno=True
    ),
    "receive": ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Receive), ctypes.POINTER(ctypes.c_void_p)
    ),
}
POINTERS = ("get_device_list", "open_device", "alloc_pd", "create_cq", "reg_mr", "create_qp", "create_ah")


class Verbs:
    """The library. Raises SkipError if it is missing."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError:
            raise reporting.SkipError("{} is not installed: apt install {}".format(LIBRARY, PACKAGE))
        self._library.ibv_get_device_name.restype = ctypes.c_char_p
        for name in POINTERS:
            getattr(self._library, "ibv_" + name).restype = ctypes.c_void_p
        self._contexts = {}

    def call(self, name, *values):
        """Call a function of the library: a pointer is a c_void_p. Raise MeasurementError, also for a null pointer."""
        found = getattr(self._library, "ibv_" + name)(*values)
        if bool(found) != (name in POINTERS):
            number = ctypes.get_errno() if name in POINTERS else found
            raise reporting.MeasurementError("ibv_{}: {}".format(name, os.strerror(number or errno.EIO)))
        return ctypes.c_void_p(found)

    def context(self, device):
        """Return the context of a device: opened once. Raise MeasurementError."""
        if device not in self._contexts:
            count = ctypes.c_int()
            pointer = ctypes.cast(self.call("get_device_list", ctypes.byref(count)), ctypes.POINTER(ctypes.c_void_p))
            names = {self._library.ibv_get_device_name(ctypes.c_void_p(pointer[n])): n for n in range(count.value)}
            if device.encode() not in names:
                raise reporting.MeasurementError("{}: libibverbs has no driver for it: {}".format(device, PACKAGE))
            self._contexts[device] = self.call("open_device", ctypes.c_void_p(pointer[names[device.encode()]]))
        return self._contexts[device]


class Port:
    """A port with its queue pair, ready to send and to receive.

    `known`: what the other port needs to reach it. Raises MeasurementError.
    """

    def __init__(self, verbs, device, number, gid_index, gid):
        self._verbs, self._number, self._gid_index = verbs, number, gid_index
        context = verbs.context(device)
        self._pd = verbs.call("alloc_pd", context)
        cq = verbs.call("create_cq", context, 2 * SLOTS, None, None, 0)
        self._room = ctypes.create_string_buffer(2 * SLOTS * (GRH + LARGEST))
        self._start = ctypes.addressof(self._room)
        memory = verbs.call("reg_mr", self._pd, self._room, ctypes.c_size_t(len(self._room)), LOCAL_WRITE)
        self._key = ctypes.c_uint32.from_address(memory.value + 36).value
        wanted = QueuePair(None, cq, cq, None, Ability(SLOTS, SLOTS, 1, 1, 0), UD, 0)
        self._qp = verbs.call("create_qp", self._pd, ctypes.byref(wanted))
        self._poll, self._send, self._receive = (
            CALL[name](ctypes.c_void_p.from_address(context.value + place).value)
            for name, place in (("poll", POLL_CQ), ("send", POST_SEND), ("receive", POST_RECV))
        )
        self._cq, self._done, self._bad = cq, (Done * 32)(), ctypes.c_void_p()
        self._sent = self._flying = 0
        self._ready()
        about = ctypes.create_string_buffer(64)
        verbs.call("query_port", context, number, about)
        mtu, lid = struct.unpack_from("=I", about, 8)[0], struct.unpack_from("=H", about, 34)[0]
        qpn = ctypes.c_uint32.from_address(self._qp.value + 52).value
        self.known = {"qpn": qpn, "lid": lid, "gid": gid.replace(":", ""), "mtu": 128 << mtu}

    def _ready(self):
        for state, mask in (
            (INIT, STATE | PKEY_INDEX | PORT | QKEY),
            (RTR, STATE),
            (RTS, STATE | SEND_PSN),
        ):
            attributes = ctypes.create_string_buffer(144)
            struct.pack_into("=I", attributes, 0, state)
            struct.pack_into("=I", attributes, 16, KEY)
            struct.pack_into("=B", attributes, 129, self._number)
            self._verbs.call("modify_qp", self._qp, attributes, mask)
            if state == INIT:
                for slot in range(SLOTS):
                    self._offer(slot)

    def _offer(self, slot):
        part = Part(self._start + slot * (GRH + LARGEST), GRH + LARGEST, self._key)
        self._receive(self._qp, ctypes.byref(Receive(slot, None, ctypes.pointer(part), 1)), ctypes.byref(self._bad))

    def way_to(self, other):
        """Return the way to another port by its `known`. Raise MeasurementError, after seconds if its address does not resolve."""
        gid = (ctypes.c_ubyte * 16).from_buffer_copy(bytes.fromhex(other["gid"]))
        routed = self._gid_index is not None
        index = self._gid_index if routed else 0
        way = Way(gid, 0, index, HOPS, 0, other["lid"], 0, 0, 0, int(routed), self._number)
        return self._verbs.call("create_ah", self._pd, ctypes.byref(way)).value, other["qpn"]

    def send(self, way, data):
        """Send a datagram. It is lost if the queue is full, as datagrams may be."""
        if self._flying >= SLOTS:
            return
        slot = SLOTS + self._sent % SLOTS
        address = self._start + slot * (GRH + LARGEST)
        ctypes.memmove(address, data, len(data))
        part = Part(address, len(data), self._key)
        wanted = Send(slot, None, ctypes.pointer(part), 1, SEND, SIGNALED, 0, way[0], way[1], KEY)
        if not self._send(self._qp, ctypes.byref(wanted), ctypes.byref(self._bad)):
            self._sent, self._flying = self._sent + 1, self._flying + 1

    def take(self):
        """Return the datagrams that came since the last call."""
        found = []
        for place in range(max(0, self._poll(self._cq, len(self._done), self._done))):
            done = self._done[place]
            if done.id >= SLOTS:
                self._flying -= 1
            else:
                if done.status == 0 and done.length >= GRH:
                    start = self._start + done.id * (GRH + LARGEST)
                    found.append(ctypes.string_at(start + GRH, done.length - GRH))
                self._offer(done.id)
        return found
