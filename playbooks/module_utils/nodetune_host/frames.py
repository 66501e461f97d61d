"""Whether the peers of a link answer with frames of a size, which nothing on the way may split: before and after a new MTU."""

import concurrent.futures
import socket
import struct
import time

from . import command
from .problem import ChangeError

HEADERS = 28
"""Bytes of the headers of IPv4 and ICMP in a ping's packet."""
BEFORE, AFTER = 3, 20
"""Seconds within which a peer has to answer. Drivers take a link down for some seconds after a new MTU."""
GATEWAY = 2


def peers(link, known, mtu):
    """Return those of the peers {address: {"host", "mtu"}}, and of the link's gateways, that answer now.

    Raise ChangeError if none does.
    """
    found = dict({address: {"host": "the gateway", "mtu": 0} for address in _gateways(link)}, **known)
    there = _answering(link, found, mtu, BEFORE)
    if not there:
        names = ", ".join(map(_name, found.items())) or "it has none"
        raise ChangeError(f"{link} mtu: left alone: no peer answers a ping that could prove it ({names})")
    return {address: found[address] for address in there}


def lost(link, known, before, after):
    """Return what no longer passes between a link and its peers that answered before; empty if all does.

    A peer whose MTU is large enough has to take frames of the new size too.
    """
    size = min(before, after)
    gone = set(known) - _answering(link, known, size, AFTER)
    if gone:
        return f"with MTU {after}, {_names(gone, known)} no longer answered"
    able = {address for address, peer in known.items() if peer["mtu"] >= after}
    small = able - _answering(link, able, after, AFTER)
    return f"frames of {after} bytes did not reach {_names(small, known)}" if small else ""


def _names(addresses, known):
    return ", ".join(_name((address, known[address])) for address in sorted(addresses))


def _name(item):
    return f"{item[1]['host']} ({item[0]})"


def _answering(link, addresses, mtu, seconds):
    found, ends = set(), time.monotonic() + seconds
    while set(addresses) - found:
        left = sorted(set(addresses) - found)
        with concurrent.futures.ThreadPoolExecutor(len(left)) as pool:
            found.update(each for each, well in zip(left, pool.map(lambda one: _ping(link, one, mtu), left)) if well)
        if time.monotonic() > ends:
            break
    return found


def _ping(link, address, mtu):
    options = ["-n", "-q", "-c", "1", "-W", "1", "-M", "do", "-s", str(mtu - HEADERS), "-I", link]
    return command.attempt(["ping", *options, address])[0] == 0


def _gateways(link):
    with open("/proc/net/route") as table:
        routes = [line.split() for line in table][1:]
    return {
        socket.inet_ntoa(struct.pack("=I", int(route[2], 16)))
        for route in routes
        if route[0] == link and int(route[3], 16) & GATEWAY
    }
