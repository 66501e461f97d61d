"""The identity and kind of this machine: `host.*`."""

import os
import platform
import re

from nodetune.onhost import host_root
from . import read

BIN = "/usr/bin"
DMI = "/sys/class/dmi/id"
VIRTUAL_BY_DMI = re.compile(
    "kvm|qemu|vmware|virtualbox|xen|bochs|parallels|bhyve|openstack|google compute|amazon ec2|virtual machine|"
    "microsoft corporation.*virtual|firecracker|cloud hypervisor",
    re.I,
)
FIRST_NAMESPACES = {"cgroup": 4026531835, "pid": 4026531836, "uts": 4026531838}
"""The numbers of the kernel's initial namespaces: fixed in its include/linux/proc_ns.h."""
BARE_BY_DMI = re.compile(r"\.metal", re.I)


def collect(names, step):
    yield "hostname", read.value(platform.node())
    yield "arch", read.value(platform.machine())
    yield "kernel", read.value(platform.release())
    step("/etc/os-release")
    yield "os", _os_release()
    yield "page_size", read.value(os.sysconf("SC_PAGE_SIZE"))
    yield "boot_id", read.file_fact("/proc/sys/kernel/random/boot_id")
    yield "uptime_s", read.file_fact("/proc/uptime", lambda content: int(float(content.split()[0])))
    if "pythons" in names:
        yield "pythons", read.value(_pythons())
    step("DMI")
    for name in ("sys_vendor", "product_name", "board_name", "bios_vendor", "bios_version", "bios_date"):
        yield "dmi." + name, read.file_fact(os.path.join(DMI, name))
    for name in ("product_serial", "board_serial", "chassis_serial"):  # for a vendor's support
        if "dmi." + name in names:
            yield "dmi." + name, read.file_fact(os.path.join(DMI, name))
    step("virtualization")
    yield from _virtual()


def _os_release():
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        content = read.text_or(path)
        if content:
            pairs = dict(re.findall(r"^(\w+)=[\"']?(.*?)[\"']?$", content, re.M))
            like = [pairs.get("ID", "")] + pairs.get("ID_LIKE", "").split()
            return read.value(
                {
                    "id": pairs.get("ID", ""),
                    "version": pairs.get("VERSION_ID", ""),
                    "like": like,
                    "name": pairs.get("PRETTY_NAME", ""),
                }
            )
    return read.absent("no os-release file")


def _pythons():
    """Return {path: version} of the system's Pythons; that of `python3` is where its link leads."""
    found = {}
    for name in read.names_in(BIN):
        if re.match(r"python3(\.[0-9]+)?$", name):
            path = os.path.join(BIN, name)
            target = re.match(r"python(3\.[0-9]+)$", os.path.basename(os.path.realpath(read.ROOT + path)))
            if target:
                found[path] = target.group(1)
    return found


def _virtual():
    """Yield whether this is a virtual machine, with the evidence, and whether it is a container."""
    dmi = " ".join(read.text_or(os.path.join(DMI, name)) for name in ("sys_vendor", "product_name", "bios_vendor"))
    flagged = re.search(r"^(flags|Features)\s*:.*\bhypervisor\b", read.text_or("/proc/cpuinfo")[:65536], re.M)
    hypervisor = read.text_or("/sys/hypervisor/type")
    named = VIRTUAL_BY_DMI.search(dmi)
    if BARE_BY_DMI.search(dmi):
        reason, virtual = "DMI names a bare-metal instance ({})".format(dmi.strip()), False
    elif named:
        reason, virtual = "DMI says {}".format(named.group(0)), True
    elif flagged or hypervisor:
        reason, virtual = "the CPU runs under a hypervisor", True
    else:
        reason, virtual = "no sign of a hypervisor", False
    yield "virtual", read.value(virtual)
    yield "virtual_reason", read.value(reason)
    yield "container", read.value(_in_container())


def _in_container():
    """Return whether we run in a container. Virtual machines made from a container image keep its marks."""
    marked = read.exists("/.dockerenv") or read.exists("/run/.containerenv") or read.text_or("/run/systemd/container")
    spaces = [_namespace(kind) for kind in sorted(FIRST_NAMESPACES)]
    first = ["{}:[{}]".format(kind, number) for kind, number in sorted(FIRST_NAMESPACES.items())]
    return bool(marked) and spaces != first


def _namespace(kind):
    """Return the namespace of the host's first process; of this one, if that is hidden."""
    return read.link_name("{}/ns/{}".format(host_root.PROCESS, kind)) or read.link_name("/proc/self/ns/" + kind)
