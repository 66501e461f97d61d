"""Network links: their kind, driver settings and losses: `net.*`.

Facts over links cover links with a device; bonds, bridges and container links appear only in `links`.
"""

import errno
import fcntl
import os
import re
import socket
import struct

from nodetune.onhost import cpu_list

from . import ethtool, read

CLASS = "/sys/class/net"
CONF = "/proc/sys/net/ipv4/conf"
TYPES = {"1": "ethernet", "32": "infiniband", "772": "loopback"}
BDF = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
REPRESENTOR = re.compile(r"pf\d+(vf|sf)\d+$")
STATISTICS = (
    "rx_packets",
    "tx_packets",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "tx_carrier_errors",
)
ROUTE_GATEWAY = 2
SIOCGIFADDR = 0x8915


def collect(names, step):
    step("links")
    links = {name: _link(name) for name in read.names_in(CLASS) if read.exists("{}/{}/type".format(CLASS, name))}
    physical = [name for name in sorted(links) if links[name]["physical"]]
    yield "links", read.value(links)
    yield "carrier_changes", read.each({name: _number(name, "carrier_changes") for name in physical})
    yield "statistics", read.each({name: _statistics(name) for name in physical})
    yield "local_cpus", read.each({name: _local_cpus(name) for name in physical})
    step("routes")
    subnets = read.file_fact("/proc/net/route", _subnets)
    yield "subnets", subnets
    yield "default_interface", _default_interface()
    yield "addresses", read.each({name: _address(name) for name in physical})
    yield "ipv4_conf", _ipv4_conf(subnets.get("value", {}))
    step("neighbours")
    yield "neighbours", read.file_fact("/proc/net/stat/arp_cache", _neighbours)
    for query in sorted(set(names) & set(ethtool.QUERIES)):
        yield query, read.each({name: _asked(name, query, step) for name in physical})
    if "counters" in names:
        step("counters of the drivers")
        yield "counters", read.each({name: ethtool.ask_counters(name) for name in physical})
    if "dcb" in names:
        step("data centre bridging")
        yield "dcb", read.each({name: ethtool.ask_dcb(name) for name in physical if links[name]["type"] == "ethernet"})


def _asked(name, query, step):
    step("{} of {}".format(query, name))
    return ethtool.ask(name, query)


def _path(name, attribute):
    return "{}/{}/{}".format(CLASS, name, attribute)


def _link(name):
    device = _device(name)
    return {
        "speed_mbps": _speed(name),
        "duplex": read.text_or(_path(name, "duplex")) or None,
        "physical": read.exists(_path(name, "device")) and not _represents_another(name),
        "mtu": int(read.text(_path(name, "mtu"))),
        "driver": read.link_name(_path(name, "device/driver")),
        "bdf": os.path.basename(device) if device else None,
        "numa_node": _numa_node(device),
        # the kernel refuses to tell the carrier of a link that is administratively down
        "up": read.text_or(_path(name, "carrier")) == "1",
        "type": TYPES.get(read.text(_path(name, "type")), "other"),
        "master": read.link_name(_path(name, "master")),
        "virtual_function": read.exists(_path(name, "device/physfn")),
    }


def _speed(name):
    """Return megabits per second; None if the link is down or the speed unknown (virtual NICs report -1)."""
    content = read.text_or(_path(name, "speed"))
    return int(content) if content.isdigit() and 0 < int(content) < 0xFFFFFFFF else None


def _represents_another(name):
    """Return whether a switch port represents a virtual function: it shares its parent's PCI device."""
    return bool(REPRESENTOR.search(read.text_or(_path(name, "phys_port_name"))))


def _device(name):
    """Return the folder of the PCI function behind the link (below a virtio device, never a USB host)."""
    if not read.exists(_path(name, "device")):
        return None
    path = read.real(_path(name, "device"))
    if os.path.basename(path).startswith("virtio"):
        path = os.path.dirname(path)
    return path if BDF.match(os.path.basename(path)) else None


def _numa_node(device):
    content = read.text_or(device + "/numa_node") if device else ""
    return int(content) if content.isdigit() else None


def _number(name, attribute):
    return read.file_fact(_path(name, attribute), int)


def _local_cpus(name):
    device = _device(name)
    if device is None:
        return read.absent("no PCI device behind the link")
    return read.file_fact(device + "/local_cpulist", lambda content: len(cpu_list.parse(content)))


def _statistics(name):
    found = {}
    for counter in STATISTICS:
        fact = _number(name, "statistics/" + counter)
        if "unread" in fact:
            return fact
        if "value" in fact:
            found[counter] = fact["value"]
    return read.value(found) if found else read.absent()


def _routes(content):
    """Yield (link, destination, has a gateway, metric, bits of the mask) of each line of /proc/net/route."""
    for line in content.splitlines()[1:]:
        fields = line.split()
        bits = bin(int(fields[7], 16)).count("1")
        yield fields[0], int(fields[1], 16), bool(int(fields[3], 16) & ROUTE_GATEWAY), int(fields[6]), bits


def _subnets(content):
    """Return network → the links with an address in it."""
    found = {}
    for link, network, gateway, _, bits in _routes(content):
        if network and not gateway and bits < 32:
            text = "{}/{}".format(socket.inet_ntoa(struct.pack("=I", network)), bits)
            found.setdefault(text, [])
            if link not in found[text]:
                found[text].append(link)
    return found


def _address(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as problem:
            none = problem.errno in (errno.EADDRNOTAVAIL, errno.ENODEV)
            return read.absent("no IPv4 address") if none else read.unread(read.why(problem))
    return read.value(socket.inet_ntoa(answer[20:24]))


def _default_interface():
    """Return the link of the default route with the lowest metric."""
    fact = read.file_fact("/proc/net/route", lambda content: list(_routes(content)))
    if "value" not in fact:
        return fact
    defaults = [(metric, link) for link, network, _, metric, bits in fact["value"] if network == 0 and bits == 0]
    return read.value(min(defaults)[1]) if defaults else read.absent("no default IPv4 route")


def _ipv4_conf(subnets):
    """Return filter and ARP settings of each link with a subnet, and of "all" (the kernel takes the larger)."""
    found = {}
    for name in sorted({"all"} | {link for links in subnets.values() for link in links}):
        settings = {}
        for key in ("rp_filter", "arp_ignore", "arp_announce"):
            fact = read.file_fact("{}/{}/{}".format(CONF, name, key), int)
            if "value" not in fact:
                return fact
            settings[key] = fact["value"]
        found[name] = settings
    return read.value(found)


def _neighbours(content):
    """Return the entries of the IPv4 table and how often it was full. One line for each CPU, in hexadecimal."""
    lines = [line.split() for line in content.splitlines()]
    full = lines[0].index("table_fulls")
    return {"entries": int(lines[1][0], 16), "table_fulls": sum(int(row[full], 16) for row in lines[1:])}
