"""Facts for fixes about the files that they write (`own.files`, `own.programs`) and hide (`own.links`).

`own.files`: {path: text} of nodetune's files on this host, in the folders of all kinds of settings.
`own.programs`: {path: SHA-256} of the programs of its units, so that a plan can leave out existing files.
`own.links`: for each link its udev properties, who sets it at boot, and the lines of its .link file. Of .link files, only the
first match applies, so an earlier file must repeat the settings of the others.
"""

import hashlib
import os
import re

from . import link_owner, read

NAME = "nodetune"
FOLDERS = (
    "/etc/NetworkManager/conf.d",
    "/etc/apt/apt.conf.d",
    "/etc/containers/containers.conf.d",
    "/etc/crio/crio.conf.d",
    "/etc/default/grub.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/nodetune",
    "/etc/security/limits.d",
    "/etc/sysctl.d",
    "/etc/systemd/network",
    "/etc/systemd/system",
    "/etc/tmpfiles.d",
    "/etc/tuned/nodetune",
    "/etc/tuned/profiles/nodetune",
    "/etc/udev/rules.d",
)
DROP_INS = ("/etc/systemd", "/etc/systemd/network", "/etc/systemd/system")
"""Folders whose folders NAME.d contain files that add to NAME."""
PROGRAMS = "/usr/local/lib/nodetune"
MAX_LEVELS = 4
LARGEST = 65536
MAX_FILES = 256

UDEV = "/run/udev/data/n"
CLASS = "/sys/class/net"


def collect(names, step):
    if "files" in names:
        step("nodetune's own files")
        yield "files", read.tried(_files)
    if "programs" in names:
        step("nodetune's own programs")
        yield "programs", read.tried(_programs)
    if "links" in names:
        step("the .link files")
        links = [name for name in read.names_in(CLASS) if read.exists("{}/{}/device".format(CLASS, name))]
        yield "links", read.each({name: read.tried(_link, name) for name in links})


def _files():
    return read.value({path: read.raw(path, LARGEST) for path in sorted(_candidates())[:MAX_FILES] if _regular(path)})


def _candidates():
    for folder in FOLDERS:
        yield from (os.path.join(folder, name) for name in read.names_in(folder) if NAME in name or NAME in folder)
    for folder in DROP_INS:
        for name in read.names_in(folder):
            if name.endswith(".d"):
                drop_ins = os.path.join(folder, name)
                yield from (os.path.join(drop_ins, each) for each in read.names_in(drop_ins) if NAME in each)


def _programs():
    return read.value({path: _digest(path) for path in list(_below(PROGRAMS, MAX_LEVELS))[:MAX_FILES]})


def _below(folder, levels):
    """Yield the files below a folder, without Python's caches."""
    for name in read.names_in(folder):
        path = os.path.join(folder, name)
        if _regular(path):
            yield path
        elif levels and name != "__pycache__" and os.path.isdir(read.ROOT + path):
            yield from _below(path, levels - 1)


def _digest(path):
    return hashlib.sha256(read.raw(path, LARGEST).encode("utf-8")).hexdigest()


def _regular(path):
    return os.path.isfile(read.ROOT + path)


def _link(name):
    number = read.text_or("{}/{}/ifindex".format(CLASS, name))
    try:
        known = dict(re.findall(r"^E:(\w+)=(.*)$", read.text(UDEV + number), re.M))
    except FileNotFoundError:
        return read.absent("udev has no data for this link")
    path = known.get("ID_NET_LINK_FILE", "")
    return read.value(
        {
            "id_path": known.get("ID_PATH"),
            "mac_address": _permanent(known.get("ID_NET_NAME_MAC", "")),
            "file": path or None,
            "sections": _sections(path) if path else [],
            "owner": link_owner.owner(name, number),
        }
    )


def _permanent(name):
    """Return 00:11:22:aa:bb:cc for enx001122aabbcc: udev makes that name from the hardware address."""
    found = re.match(r"(?:en|ib|wl)x([0-9a-f]{12})$", name)
    return ":".join(re.findall("..", found.group(1))) if found else None


def _sections(path):
    """Return [[section, [[key, value], …]], …] of a .link file and its drop-ins, without its matches."""
    drop_ins = ["{}/{}.d".format(folder, os.path.basename(path)) for folder in read.config_folders("systemd/network")]
    files = [path] + read.first_that_wins(drop_ins, ".conf")
    found = []
    for each in files:
        for line in map(str.strip, read.text(each).splitlines()):
            if line.startswith("[") and line.endswith("]"):
                found.append([line[1:-1], []])
            elif "=" in line and line[0] not in "#;" and found:
                key, _, setting = line.partition("=")
                found[-1][1].append([key.strip(), setting.strip()])
    return [section for section in found if section[0] != "Match"]
