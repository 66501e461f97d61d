"""The NVIDIA driver's errors in the kernel log since each GPU was last reset: `xid.*`.

A GPU's events count from its last recovery on: a (re)load of the driver module, or Xid 154 with the message that no
recovery action is needed. Otherwise, a repaired GPU would fail until the next boot.

Events are kept per GPU and number (per kind where a number has several): `first` and `time` of the last, `count`, and
the last `text`. So no flood of one Xid pushes out another.
"""

import bisect
import re

from nodetune.onhost.xid_text import CAUSE, LINK_5
from . import kernel_log, read
from .nvidia_lines import (
    FALLEN,
    LOAD_BEGINS,
    MODULE_LOADED,
    NAMED,
    NOT_SUPPORTED,
    NOT_TAKEN,
    PREFIXES,
    SXID,
    WITHOUT_XID,
    XID,
)

RECOVERED = re.compile(r"recovery action changed from .* to 0x0 ")
RECOVERY_ACTION_CHANGED = 154
MEMORY_ERRORS, CONTAINED, UNCONTAINED = (48, 171, 172), 94, 95
BURST = 60
"""Seconds in which Xid 94 or 95 decides whether a memory error was contained."""
KINDS_OF_A_NUMBER = re.compile(LINK_5 + "|" + CAUSE)
MAX_KINDS = 1000
"""Of each fact. Beyond them, a number has one kind for each severity and fate, so none is lost."""
OF_GPUS = ("events", "fallen_off_bus", "reset_required")
KINDS = ("nvswitch",) + OF_GPUS


def collect(names, step):
    try:
        lines, source = kernel_log.lines(step)
    except OSError as problem:
        reason = kernel_log.unread(problem)
        for name in KINDS + ("log",):
            yield name, reason
        return
    found = scan(lines)
    for name in KINDS:
        yield name, read.value(found[name])
    yield "log", read.value({"source": source, "since_s": lines[0][0] if lines else None, "lines": len(lines)})


def scan(lines):
    """Return the events in (seconds since boot, message) lines, without those before a GPU's last recovery."""
    found, loading, named, fates = _nothing(), False, None, _fates(lines)
    for seconds, text in lines:
        if not text.startswith(PREFIXES):
            continue
        begins, loaded = LOAD_BEGINS.match(text), MODULE_LOADED.match(text)
        if begins or (loaded and not loading):
            found = _nothing()
        if begins or loaded:
            loading = bool(begins)
        else:
            name = NAMED.match(text)
            named = name.group(1) if name else named
            _note(found, seconds, text, named, fates)
    return {name: list(records.values()) for name, records in found.items()}


def _nothing():
    return {name: {} for name in KINDS}


def _fates(lines):
    """Return (GPU, Xid 94 or 95) → the times at which it was logged."""
    times = {}
    for seconds, text in lines:
        event = XID.match(text) if "): 9" in text else None
        if event and int(event.group(2)) in (CONTAINED, UNCONTAINED):
            times.setdefault((_bdf(event.group(1)), int(event.group(2))), []).append(seconds)
    return times


def _note(found, seconds, text, named, fates):
    """Record the event of a line; `named` is the GPU of the previous lines, for a message that spans several."""
    event, switch, fallen, reset = (each.match(text) for each in (XID, SXID, FALLEN, WITHOUT_XID))
    if event:
        _note_xid(found, seconds, _bdf(event.group(1)), int(event.group(2)), event.group(3) or "", fates)
    elif switch:
        bdf, number, said = _bdf(switch.group(1)), int(switch.group(2)), switch.group(3) or ""
        key = (bdf, number, said[:5]) + tuple(re.findall(r"Link \d+", said)[:1])
        _count(found["nvswitch"], key, seconds, said, bdf=bdf, xid=number)
    elif fallen and (fallen.group(1) or named):
        bdf = _bdf(fallen.group(1) or named)
        _count(found["fallen_off_bus"], (bdf,), seconds, text, bdf=bdf)
    elif reset:
        bdf = reset.group(1) or reset.group(3)
        bdf = _bdf(bdf) if bdf else ""
        _count(found["reset_required"], (bdf, reset.group(2)), seconds, text, bdf=bdf)
    else:
        _note_refused(found["reset_required"], seconds, text, named)


def _note_refused(records, seconds, text, named):
    """Record a GPU that the driver does not take while it loads; a text of several lines is cut before its advice."""
    refused, unsupported = NOT_TAKEN.match(text), NOT_SUPPORTED.match(text)
    if refused:
        bdf = _bdf(refused.group(2) or refused.group(3))
        _count(records, (bdf, "invalid" if refused.group("invalid") else "refused"), seconds, text, bdf=bdf)
    elif unsupported and (unsupported.group(1) or named):
        bdf = _bdf(unsupported.group(1) or named)
        _count(records, (bdf, "not supported"), seconds, text, bdf=bdf)


def _note_xid(found, seconds, bdf, number, said, fates):
    if number == RECOVERY_ACTION_CHANGED and RECOVERED.search(said):
        for name in OF_GPUS:  # a line that names no GPU may be about this one
            found[name] = {key: each for key, each in found[name].items() if each["bdf"] not in (bdf, "")}
        return
    kind, more = KINDS_OF_A_NUMBER.search(said), {}
    if number in MEMORY_ERRORS:
        contained, uncontained = (_near(fates.get((bdf, each)), seconds) for each in (CONTAINED, UNCONTAINED))
        more = {"contained": contained and not uncontained}
    key = (bdf, number) + (kind.groups() if kind else ()) + tuple(more.values())
    _count(found["events"], key, seconds, said, bdf=bdf, xid=number, **more)


def _near(times, seconds):
    at = bisect.bisect_left(times or (), seconds - BURST)
    return at < len(times or ()) and times[at] <= seconds + BURST


def _count(records, key, seconds, text, **about):
    """Add an event to the record of its kind."""
    if key not in records and len(records) >= MAX_KINDS:
        key = key[:3]
    record = records.setdefault(key, dict(about, first=seconds, count=0))
    record.update(time=seconds, text=text[:200], count=record["count"] + 1)


def _bdf(text):
    """Complete `0000:3b:00` (the driver omits the function) to `0000:3b:00.0`."""
    domain, _, rest = text.lower().partition(":")
    return "{:04x}:{}".format(int(domain, 16), rest if "." in rest else rest + ".0")
