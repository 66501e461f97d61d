"""Find what NCCL actually used in its own log (NCCL_DEBUG=INFO, one file for each process).

It reads the lines of NCCL 2.18 to 2.30: the connections of each channel (`Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`),
the networks found (`NET/IB : Using [0]mlx5_0:1/IB …`), the width of the rings and the kind of link that they go over
(`Pattern 4, … nChannels 12, … type NVL/PIX`), the algorithm chosen for a size (`AllReduce: 67108864 Bytes -> Algo RING
proto SIMPLE`), the settings that it took, and its warnings.

Transports are named P2P (GPU to GPU: over NVLink where `link` is NVL, else over PCIe), SHM (through host memory),
NET/IB, NET/Socket or NET/<plugin>, COLLNET and NVLS.
"""

import os
import re
import tempfile

SUBSYSTEMS = "INIT,ENV,GRAPH,TUNING"
"""Enough for all of it: networks and channels are logged under INIT too."""

RING = "4"
ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
PROTOCOLS = ("LL", "LL128", "SIMPLE")
"""By their numbers, which releases before 2.24 log."""

MAX_WARNINGS = 5
MAX_WARNING_LENGTH = 300

CHANNEL = re.compile(r"(?:Channel|CollNet) \d+(?:/\d+)? : \d+(?:\[\w+\])?(?: -> \d+\[\w+\])? (?:\[\w+\] )?via (\S+)")
USING = re.compile(r"(NET/\w+) : Using ((?:\[\d+\]\S+\s*)+)")
DEVICE = re.compile(r"\[(\d+)\]([^\s<:]+(?::\d+(?![\d.]))?)")
MADE = re.compile(r"(NET/\w+) : Made virtual device \[(\d+)\] name=(\S+)")
PATTERN = re.compile(r"Pattern (\d+), .*nChannels (\d+), .*type (\w+)/(\w+)")
COUNTS = re.compile(r"(\d+) coll channels, (?:\d+ collnet channels, )?(\d+) nvls channels")
CHOSEN = re.compile(r"(?:(\w+): )?(\d+) Bytes -> Algo (\w+) proto (\w+)(?: channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?")
SETTING = re.compile(r"\b(NCCL_\w+) set by environment to (.+?)\.?$")
ROWS = re.compile(r"nodetune tuner: (\d+) rows of ")
VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
WARNING = re.compile(r"NCCL WARN (.+)$")


class Log:
    """Feed it the log as it grows."""

    def __init__(self):
        self._rest = ""
        self._via = {}
        self._devices = {}
        self._chosen = {}
        self._ring = {}
        self._settings = {}
        self.version = None
        self.channels = None
        self.nvls_channels = None
        self.warnings = []

    def feed(self, text):
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            self._take(line)

    def _take(self, line):
        for pattern, act in ACTS:
            found = pattern.search(line)
            if found:
                act(self, found)
                return

    def channel(self, found):
        self._via[found.group(1)] = self._via.get(found.group(1), 0) + 1

    def using(self, found):
        for number, name in DEVICE.findall(found.group(2)):
            self._devices[found.group(1), number] = name

    def made(self, found):
        self._devices[found.group(1), found.group(2)] = found.group(3)

    def pattern(self, found):
        if found.group(1) == RING:
            self._ring = {"link": found.group(3), "rings": int(found.group(2))}

    def counts(self, found):
        self.channels, self.nvls_channels = int(found.group(1)), int(found.group(2))

    def choice(self, found):
        name, size, algorithm, protocol, low, high = found.groups()
        chosen = {"algorithm": _named(algorithm, ALGORITHMS), "protocol": _named(protocol, PROTOCOLS)}
        if high is not None:
            chosen["channels"] = int(high) - int(low) + 1
        self._chosen[name, int(size)] = chosen

    def setting(self, found):
        self._settings[found.group(1)] = found.group(2)

    def rows(self, found):
        self._settings["TUNER_ROWS"] = found.group(1)

    def release(self, found):
        self.version = found.group(1)

    def warning(self, found):
        self.warnings = (self.warnings + [found.group(1)[:MAX_WARNING_LENGTH]])[-MAX_WARNINGS:]

    def chosen(self, name, size):
        """Return the algorithm, protocol and channels for a collective of a size; empty if the log does not say."""
        return self._chosen.get((name, size)) or self._chosen.get((None, size)) or {}

    def path(self):
        """Return what the connections of this rank have used so far."""
        return {
            "via": dict(self._via),
            "nics": sorted(name for name in map(self._nic, self._via) if name),
            "settings": dict(self._settings),
            "channels": self.channels,
            "nvls": bool(self.nvls_channels),
            "link": self._ring.get("link"),
        }

    def _nic(self, via):
        """Return mlx5_0:1 of NET/IB/0/GDRDMA."""
        parts = via.split("/")
        if parts[0] != "NET" or len(parts) < 3:
            return None
        return self._devices.get(("NET/" + parts[1], parts[2]), "{}/{}".format(parts[1], parts[2]))


ACTS = (
    (CHANNEL, Log.channel),
    (CHOSEN, Log.choice),
    (USING, Log.using),
    (MADE, Log.made),
    (PATTERN, Log.pattern),
    (COUNTS, Log.counts),
    (ROWS, Log.rows),
    (SETTING, Log.setting),
    (WARNING, Log.warning),
    (VERSION, Log.release),
)


def _named(text, names):
    if text.isdigit():
        return names[int(text)] if int(text) < len(names) else text
    return text.upper()


def family(via):
    """Return P2P, SHM, NET/IB, NET/Socket … of a connection's full name."""
    parts = via.split("/")
    return "/".join(parts[:2]) if parts[0] == "NET" else parts[0]


def merged(paths):
    """Merge several ranks' paths into one description for the figures."""
    via = {}
    for path in paths:
        for name, count in path["via"].items():
            via[name] = via.get(name, 0) + count
    net = [name for name in via if name.startswith("NET/")]
    direct = [name for name in net if "GDRDMA" in name]
    return {
        "transport": "+".join(sorted({family(name) for name in via})),
        "via": via,
        "nics": sorted({nic for path in paths for nic in path["nics"]}),
        "gdr": None if not net else len(direct) == len(net),
        "channels": next((path["channels"] for path in paths if path["channels"]), None),
        "nvls": all(path["nvls"] for path in paths),
        "link": _worst([path["link"] for path in paths if path["link"]]),
        "settings": {name: value for path in paths for name, value in path["settings"].items()},
    }


LINKS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
"""From near to far, as NCCL orders them."""


def _worst(links):
    return max(links, key=lambda link: LINKS.index(link) if link in LINKS else len(LINKS)) if links else None


class LogFile:
    """NCCL's log of this process, in a file without a name: nothing is left behind, however we end."""

    def __init__(self):
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (it lives as long as the process)
        self.log = Log()
        os.environ["NCCL_DEBUG"] = "INFO"
        os.environ["NCCL_DEBUG_SUBSYS"] = SUBSYSTEMS
        os.environ["NCCL_DEBUG_FILE"] = "/proc/self/fd/{}".format(self._file.fileno())

    def read(self):
        """Return the log with its new lines."""
        self.log.feed(self._file.read().decode("utf-8", "backslashreplace"))
        return self.log
