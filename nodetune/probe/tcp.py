"""Counters of the TCP stack since boot: `tcp.*`. Its settings are in the sysctl family."""

from . import read


def collect(names, step):
    step("/proc/net/snmp")
    segments = read.file_fact("/proc/net/snmp", _segments)
    yield "segments", segments
    step("/proc/net/netstat")
    yield "listen", read.file_fact("/proc/net/netstat", _listen)
    yield "memory", _memory()
    step("/proc/net/softnet_stat")
    yield "softnet", read.file_fact("/proc/net/softnet_stat", _softnet)


def _table(content, protocol):
    """Return the counters of one protocol: a line of names, then one of numbers. Raise KeyError."""
    lines = [line.split() for line in content.splitlines() if line.startswith(protocol + ":")]
    if len(lines) != 2:
        raise KeyError(protocol)
    return dict(zip(lines[0][1:], (int(number) for number in lines[1][1:])))


def _segments(content):
    tcp = _table(content, "Tcp")
    return {"sent": tcp["OutSegs"], "retransmitted": tcp["RetransSegs"], "accepted": tcp["PassiveOpens"]}


def _listen(content):
    extended = _table(content, "TcpExt")
    return {"overflows": extended["ListenOverflows"], "drops": extended["ListenDrops"]}


def _memory():
    """Return the pages used by TCP, the three limits, and how often it was under memory pressure."""
    used = read.file_fact("/proc/net/sockstat", _pages_used)
    limits = read.file_fact("/proc/sys/net/ipv4/tcp_mem", lambda content: [int(part) for part in content.split()])
    pressures = read.file_fact("/proc/net/netstat", lambda content: _table(content, "TcpExt").get("TCPMemoryPressures"))
    for fact in (used, limits, pressures):
        if "value" not in fact:
            return fact
    return read.value({"pages": used["value"], "limits": limits["value"], "pressures": pressures["value"]})


def _pages_used(content):
    words = next(line for line in content.splitlines() if line.startswith("TCP:")).split()
    return int(words[words.index("mem") + 1])


def _softnet(content):
    """Return the packets processed and dropped by the input queues of all CPUs; hexadecimal, one line for each CPU."""
    rows = [[int(word, 16) for word in line.split()[:3]] for line in content.splitlines()]
    return dict(zip(("processed", "dropped", "squeezed"), (sum(column) for column in zip(*rows))))
