"""Failures of network cards, PCIe ports and CPUs in the kernel log: part of `kernel_log.*`.

Repeated messages of one kind about one device are one event: `time` is the last one, `first` the first, `times` their
number. So a flood from one device hides nothing of another.
"""

import re

BDF = r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
MLX5 = r"mlx5_core(?: (?P<device>" + BDF + r")(?: \S+)?)?: (?:\w+:\d+:(?:\(pid \d+\):)? )?"
EFA = r"(?:efa (?P<device>" + BDF + r")(?: \S+)?|infiniband (?P<name>rdmap\w+|efa_\d+)): "
DRIVERS = (
    r"(?:mlx[45]_core|bnxt_en|bnx2x?|tg3|ice|i40e|ixgbe|igb|igc|e1000e?|qede|qlcnic|cxgb4|sfc|atlantic|r8169|ena|efa"
    r"|ionic|hns3|hinic3?|be2net|enic|nfp|gve|hfi1)"
)
QUEUE = r"(?P<text>transmit queue \d+ timed out)"
NICS = [
    (kind, re.compile(start + text))
    for kind, start, text in (
        ("failed", MLX5, r"(?P<text>device's health compromised|health recovery (?:failed|flow aborted))"),
        ("failed", MLX5, r"(?:INFO: )?synd 0x\w+: (?P<text>unrecoverable hardware error|HW fatal error)"),
        ("failed", MLX5, r"(?P<text>Fatal error 3 detected)"),
        ("failed", MLX5, r"(?P<text>Fatal error \d+ detected)"),
        (
            "failed",
            MLX5,
            r"(?P<text>(?:cmd\[\d+\]: )?[\w ]+\(0x\w+\) (?:Async, )?timeout\. Will cause a leak of a command resource)",
        ),
        ("failed", EFA, r"(?P<text>Admin queue is closed|Wait for completion \(polling\) timeout)"),
        ("failed", EFA, r"(?P<text>The device (?:didn't send any|sent a) completion.* for admin cmd \w+)"),
        ("failed", EFA, r"(?P<text>Reset indication didn't turn o\w+|Device isn't ready, .*)"),
        (
            "refused",
            DRIVERS + r"(?: (?P<device>" + BDF + r"))?: ",
            r"(?P<text>probe (?:of (?P<name>" + BDF + r")|with driver \S+) failed with error -\d+)",
        ),
        ("refused", DRIVERS + r" (?P<device>" + BDF + r"): ", r"(?P<text>error -E\w+: [^\[]{1,100})"),
        (
            "refused",
            MLX5,
            r"(?P<text>mlx5_(?:load|init)_one failed with error code -\d+|Firmware over \d+ MS in (?:pre-)?initializing state)",
        ),
        (
            "refused",
            r"\[(?P<name>qed)_\w+:\d+(?:\([^)]*\))?\]",
            r"(?P<text>init pci failed|No memory region found in bar #\d)",
        ),
        ("recovered", MLX5, r"(?P<text>health recovery succeeded|firmware version: |Recovered \d+ eqes on EQ)"),
        ("hot", MLX5, r"(?P<text>Port module event\[error\]: module \d+, .*High Temperature)"),
        ("hot", MLX5, r"(?P<text>High temperature on sensors)"),
        ("disturbed", MLX5, r"(?P<text>Detected insufficient power on the PCIe slot \(\d+W\))"),
        ("disturbed", MLX5, r"(?P<text>TX timeout detected)"),
        ("disturbed", r"NETDEV WATCHDOG: (?P<name>\S+) \(\w+\): ", QUEUE),
        ("disturbed", r"\w+ (?P<device>\S+) \S+: NETDEV WATCHDOG: CPU: \d+: ", QUEUE),
    )
]
"""Messages of mlx5_core (health.c, cmd.c, events.c, en_main.c), efa (efa_com.c), qed (qed_dev.c), and of the kernel for any driver."""

WORDS = ("NETDEV WATCHDOG: ", " failed with error -", ": error -E")

LOCKUP = re.compile(
    r"(?:(?:NMI )?watchdog: (?:CPU\d+: )?)?"
    r"(?:BUG: soft lockup - CPU#(\d+) stuck for (\d+)s|Watchdog detected hard LOCKUP on cpu (\d+))"
)

FOUND = re.compile(r"pci (" + BDF + r"): \[\w{4}:\w{4}\] type \w+ class 0x(\w{4})")
BRIDGE = re.compile(r"pci (" + BDF + r"): +PCI bridge to \[bus (\w\w)(?:-(\w\w))?")
PORT = r"(?:pcieport|pciehp|dpc) (" + BDF + r")(?::pcie\w+)?: (?:pciehp: |DPC:? )?"
"""Before Linux 4.19, the services of a port had devices of their own, such as pciehp 0000:89:02.0:pcie004."""
CUT_OFF = re.compile(PORT + r"(containment event, status:0x\w+)")
GONE = re.compile(PORT + r"(Slot\([^)]*\): Card not present)")
LINK_DOWN = re.compile(r"pcieport (" + BDF + r"): pciehp: (Slot\([^)]*\): Link Down)$")
"""Since Linux 4.19, only of a slot that nobody switched off. The kernel removes the device, and it adds one that is still there."""
NOT_BACK = re.compile(PORT + r"(Slot\([^)]*\): (?:No link|Cannot train link: status 0x\w+|No device found))")
"""The end of an attempt to add the device again. An empty slot logs it, too, so it counts only where a device was before."""
BACK = re.compile(PORT + r"Slot\([^)]*\): (?:Card present|Link Up)")
RECOVERED = re.compile(
    r"pcieport (" + BDF + r"): (?:AER: device recovery successful|pciehp: Slot\([^)]*\): Link Down/Up ignored)"
)


def nics(found):
    """Return network card → its faults, without those from which the driver says that it recovered."""
    events = {}
    for seconds, text in found:
        if not text.startswith(("mlx5_core", "efa ", "infiniband ", "[qed_")) and not any(
            word in text for word in WORDS
        ):
            continue
        for number, (kind, pattern) in enumerate(NICS):
            match = pattern.match(text)
            if match:
                parts = match.groupdict()
                device = parts.get("device") or parts.get("name") or "mlx5_core"
                if kind == "recovered":
                    _forget(events, device, ("failed", "disturbed", "refused"))
                else:
                    _count(events, (device, number), seconds, {"kind": kind, "text": parts["text"][:200]})
                break
    return _by_device(events)


def ports(found):
    """Return PCIe port → how it cut its device off or lost it, without ports whose device recovered or came back.

    `below` are the devices that the kernel had found below the port: their address → the first half of their class.
    """
    events, classes, buses, lost = {}, {}, {}, set()
    for seconds, text in found:
        if text.startswith("pci "):
            device, bridge = FOUND.match(text), BRIDGE.match(text)
            if device:
                classes[device.group(1)] = device.group(2)
            elif bridge:
                buses[bridge.group(1)] = bridge.group(2), bridge.group(3) or bridge.group(2)
        elif text.startswith(("pcieport ", "pciehp ", "dpc ")):
            for kind, pattern in (("cut off", CUT_OFF), ("gone", GONE), ("gone", LINK_DOWN), ("gone", NOT_BACK)):
                match = pattern.match(text)
                if match and (pattern is not NOT_BACK or match.group(1) in lost):
                    port = match.group(1)
                    about = {"kind": kind, "text": match.group(2), "below": _below(port, buses, classes)}
                    if kind == "gone":
                        lost.add(port)
                        events.pop((port, kind), None)  # one loss has several lines
                    _count(events, (port, kind), seconds, about)
            back, recovered = BACK.match(text), RECOVERED.match(text)
            if back or recovered:
                _forget(events, (back or recovered).group(1), ("cut off", "gone") if back else ("cut off",))
    return _by_device(events)


def _below(port, buses, classes):
    """Return the devices on the buses below a port: also those behind a switch or in a dock."""
    if port not in buses:
        return {}
    domain, (first, last) = port[:-8], buses[port]
    return {
        address: found_as
        for address, found_as in classes.items()
        if address[:-8] == domain and first <= address[-7:-5] <= last
    }


def lockups(found):
    """Yield CPUs that ran in the kernel for too long; `seconds` is null for one that took no interrupts either."""
    for seconds, text in found:
        stuck = LOCKUP.match(text) if "lockup" in text or "LOCKUP" in text else None
        if stuck:
            soft, lasted, hard = stuck.groups()
            yield {"time": seconds, "cpu": int(soft or hard), "seconds": int(lasted) if lasted else None}


def _count(events, key, seconds, about):
    known = events.pop(key, {"first": seconds, "times": 0})
    events[key] = dict(about, time=seconds, first=known["first"], times=known["times"] + 1)


def _forget(events, device, kinds):
    for key in [key for key, event in events.items() if key[0] == device and event["kind"] in kinds]:
        del events[key]


def _by_device(events):
    found = {}
    for (device, _), event in events.items():
        found.setdefault(device, []).append(event)
    return found
