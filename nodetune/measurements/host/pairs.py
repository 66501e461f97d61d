"""Measure hosts in pairs: select partners and addresses, and synchronise them.

A host offers its IPv4 addresses, the first one of each interface: that of the default route first, then the others. The other
host takes the first that answers, of those that it does not have itself (a container bridge has the same on every host).
Options for other addresses: network (only addresses in it: `10.1.0.0/16`), interface (its name on every host), addresses
({host: address}); an interface and an address are used without a test.
"""

import contextlib
import fcntl
import ipaddress
import os
import re
import socket
import struct
import time

from nodetune.onhost import files
from . import external_tool
from . import report as reporting

SIOCGIFADDR = 0x8915
START_SECONDS = 30.0
DOOR_SECONDS = 2.0
MAX_PATHS = MAX_PORTS = 256
MAX_GBITS = 1e6
ANYWHERE = "192.0.2.1"
"""An unused address (RFC 5737): its route, if any, is the default route."""


def rounds(count, most):
    """Return rounds of pairs (server, client) of host numbers, at most `most` rounds (0: all).

    In each round a host is in at most one pair; over all rounds every two hosts meet once.
    """
    ring = list(range(count)) + ([None] if count % 2 else [])
    found = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]))
        found.append([tuple(sorted(pair)) for pair in met if None not in pair])
        ring = [ring[0], ring[-1]] + ring[1:-1]
    return found[:most] if most else found


def play(report, options, serve, ask, both_ways=False):
    """Run the rounds of the option `rounds`. Raise report.SkipError if there is no other host.

    serve() is a context in which servers run, and returns data for the client (JSON); ask(own name, server's name,
    that data, pairs at once) measures and reports. `both_ways`: each pair twice, with roles exchanged. A pair
    that cannot be measured is reported by its client and does not affect other pairs.
    """
    if len(report.hosts) < 2:
        raise reporting.SkipError("two hosts are needed: select more")
    played = rounds(len(report.hosts), int(options.get("rounds", 1)))
    if both_ways:
        played = [each for pairs in played for each in (pairs, [pair[::-1] for pair in pairs])]
    for number, pairs in enumerate(played):
        for server, client in pairs:
            if report.self == server:
                _serve(report, number, client, serve)
            elif report.self == client:
                _ask(report, number, server, len(pairs), ask)


def _serve(report, number, client, serve):
    report.step("serving {}".format(report.hosts[client]))
    topic = "server {} {}".format(number, client)
    try:
        with serve() as known:
            report.tell(topic, known)
            report.hear("done {}".format(number), report.left(), client)
    except reporting.SkipError:  # the client lacks what it takes, and says so itself
        pass
    except reporting.MeasurementError as problem:
        report.tell(topic, {"failed": str(problem)})
        report.note("serving {}: {}".format(report.hosts[client], problem))


def _ask(report, number, server, at_once, ask):
    there, here = report.hosts[server], report.hosts[report.self]
    subject = "{}→{}".format(here, there)
    report.step("waiting for {}".format(there))
    try:
        known = report.hear("server {} {}".format(number, report.self), report.left() - 1, server)
        report.step("measuring with {}".format(there))
        if isinstance(known, dict) and "failed" in known:
            report.failed("{}: {}".format(there, known["failed"]), subject)
        else:
            ask(here, there, known, at_once)
    except reporting.SkipError as reason:
        report.skip(str(reason), subject)
    except reporting.MeasurementError as problem:
        report.failed(str(problem), subject)
    finally:
        report.tell("done {}".format(number))


def wait_until_listening(ports, running, name, telling=external_tool.last_line):
    """Wait until all these TCP ports are served by processes that were started for it. Raise report.MeasurementError."""
    end = time.monotonic() + START_SECONDS
    while not set(ports) <= listening():
        ended = [each for each in running if each.poll() is not None]
        if ended or time.monotonic() > end:
            said = telling(ended[0].stderr.read()) if ended else "it printed nothing"
            raise reporting.MeasurementError("{} does not listen: {}".format(name, said))
        time.sleep(0.02)


@contextlib.contextmanager
def offer(report, options):
    """Yield the data with which a client can reach this host (see way_to).

    `ways` has [address, Gb/s of its link] of each way; `door` is a port that answers meanwhile, so that the client can
    try them (None if the way is given). Raise MeasurementError.
    """
    found = own_ways(report, options)
    ways = [[address, speed(interface) if interface else None] for address, interface in found]
    given = options.get("interface") or (options.get("addresses") or {}).get(report.hosts[report.self])
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as door:
        door.bind(("", 0))
        door.listen(8)  # the kernel answers: nobody needs to accept
        yield {"ways": ways, "door": None if given else door.getsockname()[1]}


def way_to(known, there):
    """Return (address, Gb/s of its link) at which the other host actually answers. Raise MeasurementError.

    The first of its addresses may not be one that others reach: a virtual machine's own network, a container bridge
    that has the same address on every host. Addresses that this host has too come last.
    """
    ways, door = _offered(known, there)
    if not door:
        return ways[0]
    own = {each for _, each in addresses()}
    for address, gbits in sorted(ways, key=lambda way: way[0] in own):
        if _answers(address, door):
            return address, gbits
    tried = ", ".join(address for address, _ in ways)
    raise reporting.MeasurementError(
        "{} answers at none of its addresses ({}): check for a firewall".format(there, tried)
    )


def _offered(known, there):
    """Return ([(address, Gb/s)], door) from another host's data, safe for command lines. Raise MeasurementError."""
    known = known if isinstance(known, dict) else {}
    ways, door = known.get("ways"), known.get("door")
    if not isinstance(ways, list) or not 0 < len(ways) <= MAX_PATHS:
        raise reporting.MeasurementError("{}: it offers no address".format(there))
    found = [_way(each, there) for each in ways]
    return found, ports_of([door], there)[0] if door is not None else None


def _way(given, there):
    address, gbits = given if isinstance(given, list) and len(given) == 2 else (given, None)
    try:
        found = str(ipaddress.ip_address(address if isinstance(address, str) else ""))  # it takes numbers too
    except ValueError:
        raise reporting.MeasurementError("{}: it offers {}, which is not an address".format(there, repr(address)[:100]))
    known = type(gbits) in (int, float) and 0 < gbits < MAX_GBITS
    return found, gbits if known else None


def ports_of(given, there):
    """Return the TCP ports in another host's data, as numbers. Raise MeasurementError."""
    if not isinstance(given, list) or not 0 < len(given) <= MAX_PORTS:
        raise reporting.MeasurementError("{}: it offers no ports".format(there))
    for port in given:
        if type(port) is not int or not 0 < port < 1 << 16:
            raise reporting.MeasurementError("{}: it offers {}, which is not a port".format(there, repr(port)[:100]))
    return given


def _answers(address, port):
    try:
        socket.create_connection((address, port), DOOR_SECONDS).close()
    except OSError:
        return False
    return True


def own_ways(report, options):
    """Return (address, its interface or None) at which other hosts may reach this one, the most likely first.

    That of the option `addresses` ({host: address}), `interface` or `network`; else that of the default route, then all
    others. Raise MeasurementError.
    """
    given = (options.get("addresses") or {}).get(report.hosts[report.self])
    wanted = options.get("interface")
    found = [(each, name) for name, each in addresses()]
    if given:
        return [next((way for way in found if way[0] == given), (given, None))]
    if wanted:
        named = [way for way in found if way[1] == wanted]
        if not named:
            raise reporting.MeasurementError("the interface {} does not exist or has no IPv4 address".format(wanted))
        return named
    if options.get("network"):
        return _within(found, options["network"])
    routed = _towards(ANYWHERE)
    outside = [way for way in found if way[1] != "lo" or way[0] == routed]
    if not outside:
        raise reporting.MeasurementError("this host has no IPv4 address except loopback: give one for it")
    return sorted(outside, key=lambda way: way[0] != routed)


def _within(ways, network):
    """Return the ways whose address is in the network. Raise MeasurementError."""
    try:
        wanted = ipaddress.IPv4Network(network, strict=False)
    except ValueError:
        raise reporting.MeasurementError("{} is not an IPv4 network: write 10.1.0.0/16".format(network))
    inside = [way for way in ways if ipaddress.IPv4Address(way[0]) in wanted]
    if not inside:
        there = ", ".join("{} on {}".format(*way) for way in ways)
        raise reporting.MeasurementError("this host has no address in {}: it has {}".format(network, there))
    return inside


def interface_to(address):
    """Return the interface by which this host sends to an address, or None if unknown."""
    own = _towards(address)
    return next((name for name, each in addresses() if each == own), None)


def addresses():
    """Return (interface, its first IPv4 address), in the kernel's order."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(sock.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            found.append((name, socket.inet_ntoa(answer[20:24])))
    return found


def _towards(address):
    """Return our own address on the route to this one, or None if there is no route. Send nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((address, 9))
            return sock.getsockname()[0]
    except OSError:
        return None


def free_ports(count):
    """Return ports on which nothing listens now."""
    socks = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for sock in socks:
            sock.bind(("", 0))
        return [sock.getsockname()[1] for sock in socks]
    finally:
        for sock in socks:
            sock.close()


def listening():
    """Return the TCP ports on which something listens here."""
    found = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(path):
            with open(path) as file:
                found |= {
                    int(port, 16)
                    for port in re.findall(r"^\s*\d+: \w+:(\w{4}) \w+:\w{4} 0A ", file.read(), re.MULTILINE)
                }
    return found


def speed(interface):
    """Return the stated speed of a link in Gb/s, or None if unknown."""
    mbits = files.number("/sys/class/net/{}/speed".format(interface))
    return mbits / 1000 if mbits else None
