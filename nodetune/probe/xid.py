"""The NVIDIA driver's errors in the kernel log since each GPU was last reset: `xid.*`.

A GPU's events count from its last recovery on: a (re)load of the driver module, or Xid 154 with the message that no
recovery action is needed. Otherwise, a repaired GPU would fail until the next boot.
"""

import re

from . import kernel_log, read

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)(?: GPU-[^)]*)?\): (\d+)(?:, ?(.*))?$")
"""On a GPU with MIG, the GPU and compute instance follow the address: `(PCI:0000:3b:00 GPU-I:05 GPU-CI:00)`."""
SXID = re.compile(r"nvidia-nvswitch\d+: SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, ?(.*))?$")
BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})"
NAMED = re.compile(r"NVRM: The NVIDIA GPU " + BDF)
FALLEN = re.compile(r"NVRM: (?:.*?" + BDF + ")?.*fallen off the bus")
RESET_REQUIRED = re.compile(
    r"NVRM: .*(?:NV_ERR_RESET_REQUIRED|Rate limiting GSP RPC error prints for GPU at PCI:" + BDF + "|"
    r"GSP core unresponsive|GSP-RM unresponsive|Max GSP-RM boot attempts exceeded)"
)
"""Lines without an Xid for dead GPU firmware or for a driver that refuses work before a reset."""
LOAD_BEGINS = re.compile(r"nvidia-nvlink: Nvlink Core is being initialized")
MODULE_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
"""The driver logs this after its first messages about the GPUs, which belong to the same load."""
RECOVERED = re.compile(r"recovery action changed from .* to 0x0 ")
RECOVERY_ACTION_CHANGED = 154
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
        yield name, read.value(found[name][-kernel_log.MOST_EVENTS :])
    yield "log", read.value({"source": source, "since_s": lines[0][0] if lines else None, "lines": len(lines)})


def scan(lines):
    """Return the events in (seconds since boot, message) lines, without those before a GPU's last recovery."""
    found, loading, named = _nothing(), False, None
    for seconds, text in lines:
        begins, loaded = LOAD_BEGINS.search(text), MODULE_LOADED.search(text)
        if begins or (loaded and not loading):
            found = _nothing()
        if begins or loaded:
            loading = bool(begins)
        elif "NVRM" in text or "SXid" in text:
            name = NAMED.search(text)
            named = name.group(1) if name else named
            _note(found, seconds, text, named)
    return found


def _nothing():
    return {name: [] for name in KINDS}


def _note(found, seconds, text, named):
    """Record the event of a line; `named` is the GPU of the previous lines, for a message that spans several."""
    event, switch, fallen, reset = (each.search(text) for each in (XID, SXID, FALLEN, RESET_REQUIRED))
    if event:
        bdf, number = _bdf(event.group(1)), int(event.group(2))
        if number == RECOVERY_ACTION_CHANGED and RECOVERED.search(text):
            for name in OF_GPUS:  # a line that names no GPU may be about this one
                found[name] = [each for each in found[name] if each["bdf"] not in (bdf, "")]
        else:
            found["events"].append(_event(bdf, number, seconds, event.group(3)))
    elif switch:
        found["nvswitch"].append(_event(_bdf(switch.group(1)), int(switch.group(2)), seconds, switch.group(3)))
    elif fallen and (fallen.group(1) or named):
        bdf = _bdf(fallen.group(1) or named)
        found["fallen_off_bus"].append({"bdf": bdf, "time": seconds, "text": text[:200]})
    elif reset:
        bdf = _bdf(reset.group(1)) if reset.group(1) else ""
        found["reset_required"].append({"bdf": bdf, "time": seconds, "text": text[:200]})


def _event(bdf, number, seconds, text):
    return {"bdf": bdf, "xid": number, "time": seconds, "text": (text or "")[:200]}


def _bdf(text):
    """Complete `0000:3b:00` (the driver omits the function) to `0000:3b:00.0`."""
    domain, _, rest = text.lower().partition(":")
    return "{:04x}:{}".format(int(domain, 16), rest if "." in rest else rest + ".0")
