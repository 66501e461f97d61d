"""Whether this host's clock is synchronised."""

import ctypes
import os

from . import read


class Timex(ctypes.Structure):
    """The head of struct timex; the rest is space for the kernel."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 40),
    ]


STA_UNSYNC = 0x40


def in_step():
    """Return whether something synchronises the clock, according to the kernel or chrony.

    chrony may not set the kernel's flag.
    """
    clock = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(clock)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if not clock.status & STA_UNSYNC:
        return read.value({"synchronized": True, "by": "kernel", "max_error_us": clock.maxerror})
    tool = read.find_tool("chronyc")
    try:
        fields = read.run([tool, "-c", "tracking"], 2).strip().split(",") if tool else []
    except OSError:
        fields = []  # no chronyd answers: the kernel's word stands
    kept = len(fields) > 13 and fields[13] != "Not synchronised"
    return read.value({"synchronized": kept, "by": "chrony" if kept else "kernel", "max_error_us": clock.maxerror})
