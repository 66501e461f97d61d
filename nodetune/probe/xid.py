"""What the NVIDIA driver wrote to the kernel log since each GPU was last reset: `xid.*`.

The kernel's own buffer is read; what it no longer holds of this boot comes from the journal. A GPU's
events count from its last recovery on: the driver module being loaded (again), or Xid 154 saying that no recovery
action is needed any more. Without that, a repaired GPU would stay guilty until the next boot.
"""

import errno
import os
import re

from . import read

KMSG = "/dev/kmsg"
LONGEST_RECORD = 8192
MOST_RECORDS = 200000
MOST_EVENTS = 200
JOURNAL_LINES = "20000"

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, ?(.*))?$")
SXID = re.compile(r"nvidia-nvswitch\d+: SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, ?(.*))?$")
FALLEN = re.compile(r"NVRM: .*?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}).*fallen off the bus")
MODULE_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
RECOVERED = re.compile(r"recovery action changed from .* to 0x0 ")
RECOVERY_ACTION_CHANGED = 154


def collect(names, step):
    try:
        lines, source = _kernel_log(step)
    except OSError as problem:
        reason = "the kernel log: " + (
            read.why(problem) if problem.errno in (errno.EACCES, errno.EPERM) else str(problem.strerror or problem)
        )
        for name in ("events", "nvswitch", "fallen_off_bus", "log"):
            yield name, read.unread(reason)
        return
    found = scan(lines)
    for name in ("events", "nvswitch", "fallen_off_bus"):
        yield name, read.value(found[name][-MOST_EVENTS:])
    yield "log", read.value({"source": source, "since_s": lines[0][0] if lines else None, "lines": len(lines)})


def scan(lines):
    """Return the events in (seconds since boot, message) lines, without those before a GPU's last recovery."""
    found = {"events": [], "nvswitch": [], "fallen_off_bus": []}
    for seconds, text in lines:
        if MODULE_LOADED.search(text):
            found = {name: [] for name in found}
        elif "NVRM" in text or "SXid" in text:
            _note(found, seconds, text)
    return found


def _note(found, seconds, text):
    event, switch, fallen = XID.search(text), SXID.search(text), FALLEN.search(text)
    if event:
        bdf, number = _bdf(event.group(1)), int(event.group(2))
        if number == RECOVERY_ACTION_CHANGED and RECOVERED.search(text):
            for name in ("events", "fallen_off_bus"):
                found[name] = [each for each in found[name] if each["bdf"] != bdf]
        else:
            found["events"].append(_event(bdf, number, seconds, event.group(3)))
    elif switch:
        found["nvswitch"].append(_event(_bdf(switch.group(1)), int(switch.group(2)), seconds, switch.group(3)))
    if fallen and not event:
        found["fallen_off_bus"].append({"bdf": _bdf(fallen.group(1)), "time": seconds, "text": text[:200]})


def _event(bdf, number, seconds, text):
    return {"bdf": bdf, "xid": number, "time": seconds, "text": (text or "")[:200]}


def _bdf(text):
    """Complete `0000:3b:00` (the driver leaves the function out) to `0000:3b:00.0`."""
    domain, _, rest = text.lower().partition(":")
    return "{:04x}:{}".format(int(domain, 16), rest if "." in rest else rest + ".0")


def _kernel_log(step):
    """Return (seconds since boot, message) of every kernel line, and the source. Raise OSError."""
    step(KMSG)
    try:
        records = _kmsg()
    except OSError:
        step("journalctl")
        lines = _journal()
        if not lines:
            raise
        return lines, "journal"
    lines = [(seconds, text) for _, seconds, text in records]
    if not records or records[0][0] == 0:
        return lines, "kernel buffer"
    step("journalctl")
    earlier = [line for line in _journal() if line[0] < lines[0][0]]
    return earlier + lines, "journal and kernel buffer" if earlier else "kernel buffer"


def _kmsg():
    """Return (sequence number, seconds, message) of the kernel's buffer. Raise OSError."""
    handle = os.open(read.ROOT + KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    records = []
    try:
        while len(records) < MOST_RECORDS:
            try:
                data = os.read(handle, LONGEST_RECORD)
            except OSError as problem:
                if problem.errno == errno.EPIPE:  # overwritten while we were reading: the next read continues after it
                    continue
                if problem.errno == errno.EAGAIN:
                    break
                raise
            if not data:
                break
            records.extend(_records(data.decode("utf-8", "backslashreplace")))
    finally:
        os.close(handle)
    return records


def _records(text):
    """Yield the records in the text: `6,123,4567890,-;message`, then lines of properties that begin with a space."""
    for line in text.splitlines():
        head, semicolon, message = line.partition(";")
        fields = head.split(",")
        if not semicolon or len(fields) < 3 or not all(field.isdigit() for field in fields[:3]):
            continue
        # The priority is facility * 8 + level: what programs write to the kernel's log has another facility than 0.
        yield int(fields[1]), int(fields[2]) / 1e6, message if int(fields[0]) < 8 else ""


def _journal():
    """Return the journal's kernel lines of this boot; none if there is no journal or no permission."""
    tool = read.find_tool("journalctl")
    if tool is None:
        return []
    command = [tool, "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-n", JOURNAL_LINES]
    try:
        output = read.run(command)
    except OSError:
        return []
    found = (re.match(r"\[\s*(\d+\.\d+)\] \S+ kernel: (.*)$", line) for line in output.splitlines())
    return [(float(each.group(1)), each.group(2)) for each in found if each]
