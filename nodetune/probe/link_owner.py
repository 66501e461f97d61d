"""The owner of a network link, which sets it at each boot, and the line of its file that sets the MTU."""

import os
import re

from . import read

NETWORKD = "/run/systemd/netif/links/"
NETWORK_MANAGER = "/run/NetworkManager/devices/"
CONNECTIONS = (
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/etc/sysconfig/network-scripts",
)
INTERFACES = "/etc/network/interfaces"
MTU = re.compile(r"(?:mtu|MTU)\s*=")
OTHER_STANZAS = ("auto", "mapping", "source", "source-directory", "rename", "template")


def owner(name, index):
    """Return {"by": networkd, NetworkManager, ifupdown or "", "file", "line", "text"}; the last two are of the MTU's line."""
    file = _setting(NETWORKD + index, "NETWORK_FILE")
    if file:
        return _owned("networkd", file)
    uuid = _setting(NETWORK_MANAGER + index, "connection-uuid")
    return _connection(uuid) if uuid else _stanza(name)


def _owned(by, file=None, line=None, text=None):
    return {"by": by, "file": file, "line": line, "text": text}


def _setting(path, key):
    found = re.search(r"^{}=(.+)$".format(key), read.text_or(path), re.M)
    return found.group(1).strip() if found else ""


def _connection(uuid):
    """Return the connection's file. Who is not root cannot read it."""
    for folder in CONNECTIONS:
        for name in read.names_or_empty(folder):
            path = os.path.join(folder, name)
            text = read.text_or(path)
            if re.search(r"""^(uuid|UUID)=["']?{}["']?\s*$""".format(re.escape(uuid)), text, re.M):
                lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if MTU.match(line)]
                return _owned("NetworkManager", path, *(lines[0] if lines else ()))
    return _owned("NetworkManager")


def _stanza(name):
    """Return what ifupdown does for a link."""
    found = _owned("")
    for path in [INTERFACES] + read.first_that_wins([INTERFACES + ".d"], ""):
        inside = False
        for number, line in enumerate(read.text_or(path).splitlines(), 1):
            words = line.split()
            if words[:1] == ["iface"]:
                inside = words[1:2] == [name]
                found = _owned("ifupdown", path) if inside and not found["line"] else found
            elif words and (words[0] in OTHER_STANZAS or words[0].startswith("allow-")):
                inside = False
            elif inside and words[:1] == ["mtu"]:
                found = _owned("ifupdown", path, number, line)
    return found
