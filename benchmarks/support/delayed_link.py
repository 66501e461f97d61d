"""A link with a delay and a rate between two network namespaces, for kernels without netem.

    python benchmarks/delayed_link.py NAMESPACE NAMESPACE MEGABITS MILLISECONDS

Each namespace gets a TUN device `eth0`. What one sends, the other receives so much later, at this rate; beyond MAX_QUEUE_SECONDS
bytes that wait, packets are dropped, as a switch does. It ends when its input does.
"""

import ctypes
import errno
import fcntl
import heapq
import os
import select
import struct
import sys
import time
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MAX_PACKET = 65536
MAX_QUEUE_SECONDS = 4 << 20


def main(one, other, megabits, milliseconds):
    ends = [device(one), device(other)]
    print("ready", flush=True)
    link = Link(ends, float(megabits) * 1e6 / 8, float(milliseconds) / 1e3)
    while link.pass_on():
        pass


def device(namespace):
    """Open a new TUN device `eth0` in the namespace."""
    with Path(f"/run/netns/{namespace}").open() as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"no namespace {namespace}")
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TUN | IFF_NO_PI))
    return handle


class Link:
    """Both directions: `free` is when the line of each is free again, `waiting` holds (when, number, end, packet)."""

    def __init__(self, ends, rate, delay):
        self.ends, self.rate, self.delay = ends, rate, delay
        self.free, self.waiting, self.number = [0.0, 0.0], [], 0

    def pass_on(self):
        """Take and give what is due. Return False when the input has ended."""
        wait = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
        ready, _, _ = select.select([*self.ends, 0], [], [], wait)
        for side, handle in enumerate(self.ends):
            if handle in ready:
                self.take(side)
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(self.waiting)
            self.give(end, packet)
        return 0 not in ready

    def give(self, end, packet):
        """Deliver a packet. What does not fit is lost, and so is what comes before the other end is up (EIO)."""
        try:
            os.write(end, packet)
        except OSError as problem:
            if problem.errno not in (errno.EAGAIN, errno.EIO):
                raise

    def take(self, side):
        for _ in range(64):
            try:
                packet = os.read(self.ends[side], MAX_PACKET)
            except BlockingIOError:
                return
            now = time.monotonic()
            start = max(now, self.free[side])
            if (start - now) * self.rate > MAX_QUEUE_SECONDS:
                continue
            self.free[side] = start + len(packet) / self.rate
            self.number += 1
            heapq.heappush(self.waiting, (self.free[side] + self.delay, self.number, self.ends[1 - side], packet))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
