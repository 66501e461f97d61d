"""Interrupts of network cards, NVMe disks and GPUs, and their placement: `irq.*`.

Only vectors with a handler count; /proc/interrupts is not read (on 384 CPUs and 2,000 interrupts it has 8 MB).
"""

import os
import re

from nodetune.onhost import cpu_list

from . import boot_scripts, read

DEVICES = "/sys/bus/pci/devices"
KINDS = (("nic", ("0x0200", "0x0207")), ("nvme", ("0x0108",)), ("gpu", ("0x0300", "0x0302")))
NVIDIA = "0x10de"
IRQBALANCE_FILES = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
OPENIB = "/etc/infiniband/openib.conf"
WRITES_AFFINITY = re.compile(r"smp_affinity|set_irq_affinity|mlnx_affinity|irq[-_]affinity|nodetune-irq")
MAX_EXAMPLES = 4


def collect(names, step):
    step("interrupts of PCI devices")
    yield "devices", _devices()
    yield "default_affinity", read.file_fact("/proc/irq/default_smp_affinity")
    step("irqbalance")
    yield "irqbalance", _irqbalance()
    yield "static_affinity", _static_affinity()
    step("receive packet steering")
    yield "rps", read.tried(_rps)


def _devices():
    """Return {BDF: {"kind", "name", "driver", "numa_node", "local_cpus", "local_count", "irqs", "managed", …}}.

    If the kernel lets user space choose (not "managed"), also "cpus" and "cpu_count" (where they go), "remote" (how
    many go to a CPU that is not local) and "examples" of those.
    """
    found, folder = {}, DEVICES
    try:
        for bdf in read.names_in(DEVICES):
            folder = os.path.join(DEVICES, bdf)
            kind = _kind(folder)
            device = _device(folder, kind) if kind else None
            if device:
                found[bdf.lower()] = device
    except (OSError, ValueError) as problem:
        return read.unread("{}: {}".format(folder, read.why(problem) if isinstance(problem, OSError) else problem))
    return read.value(found)


def _kind(folder):
    kind = read.text_or(folder + "/class")[:6]
    for name, classes in KINDS:
        if kind in classes and (name != "gpu" or read.text_or(folder + "/vendor") == NVIDIA):
            return name
    return None


def _device(folder, kind):
    """Return a device, or None if it has no interrupts or is handed to a guest."""
    driver = read.link_name(folder + "/driver")
    irqs = _irqs(folder)
    if driver != "nvme":  # of 1,000 managed vectors nothing more is said than how many there are
        irqs = [irq for irq in irqs if _handled(irq)]
    if not irqs or driver in (None, "vfio-pci", "pci-stub"):
        return None
    local = cpu_list.parse(read.text_or(folder + "/local_cpulist"))
    device = {
        "kind": kind,
        "name": _name(folder),
        "driver": driver,
        "numa_node": int(read.text_or(folder + "/numa_node", "-1")),
        "local_cpus": cpu_list.fold(local),
        "local_count": len(local),
        "irqs": len(irqs),
        # all queues of an NVMe disk but the first, which is the administration queue
        "managed": len(irqs) - 1 if driver == "nvme" else 0,
    }
    if driver != "nvme":
        device.update(_placement(irqs, set(local)))
    return device


def _irqs(folder):
    """Return the interrupt numbers: MSI vectors, or the only legacy line."""
    vectors = [int(name) for name in read.names_in(folder + "/msi_irqs")]
    line = int(read.text_or(folder + "/irq", "0"))
    return sorted(vectors) or ([line] if line > 0 else [])


def _handled(irq):
    """Return whether a driver requested the vector. A kernel without this file (before 4.9) counts as yes."""
    try:
        return bool(read.text("/sys/kernel/irq/{}/actions".format(irq)))
    except OSError:
        return True


def _name(folder):
    for kind in ("net", "infiniband", "nvme"):
        names = read.names_or_empty(os.path.join(folder, kind))
        if names:
            return names[0]
    virtio = [name for name in read.names_or_empty(folder) if re.match(r"virtio\d+$", name)]
    names = read.names_or_empty(os.path.join(folder, virtio[0], "net")) if virtio else []
    return names[0] if names else os.path.basename(folder).lower()


def _placement(irqs, local):
    """Return where the interrupts go.

    A new mask moves an interrupt only when it next occurs. Until then, the mask says where it goes. An interrupt that
    occurred since but is still elsewhere does not follow its mask.
    """
    where, remote = set(), []
    idle = {irq: _events(irq) for irq in irqs if not set(_effective(irq)) <= set(_allowed(irq))}
    for irq in irqs:
        cpus = _allowed(irq) if irq in idle and _events(irq) == idle[irq] else _effective(irq)
        where.update(cpus)
        if local and local.isdisjoint(cpus) and not _managed(irq):
            remote.append(irq)
    return {
        "cpus": cpu_list.fold(where),
        "cpu_count": len(where),
        "remote": len(remote),
        "examples": [_example(irq) for irq in remote[:MAX_EXAMPLES]],
    }


def _effective(irq):
    """Return the current CPUs of the interrupt, or the allowed ones if the kernel does not report them."""
    cpus = read.text_or("/proc/irq/{}/effective_affinity_list".format(irq))
    return _cpus(cpus) if cpus else _allowed(irq)


def _allowed(irq):
    return _cpus(read.text("/proc/irq/{}/smp_affinity_list".format(irq)))


def _cpus(text):
    return [int(text)] if text.isdigit() else cpu_list.parse(text)


def _events(irq):
    counts = read.text_or("/sys/kernel/irq/{}/per_cpu_count".format(irq))
    return sum(int(count) for count in counts.split(",") if count.strip().isdigit())


def _managed(irq):
    """Return whether the kernel manages the affinity (a write gives EIO).

    Only debug kernels report this; for others: no.
    """
    return "IRQD_AFFINITY_MANAGED" in read.text_or("/sys/kernel/debug/irq/irqs/{}".format(irq))


def _example(irq):
    return {
        "irq": irq,
        "action": read.text_or("/sys/kernel/irq/{}/actions".format(irq)),
        "effective": cpu_list.fold(_effective(irq)),
        "allowed": read.text_or("/proc/irq/{}/smp_affinity_list".format(irq)),
        "events": _events(irq),
    }


def _irqbalance():
    """Return irqbalance's settings: {"file", "options": the daemon's arguments, "IRQBALANCE_…": …}."""
    for path in IRQBALANCE_FILES:
        content = read.file_fact(path)
        if "unread" in content:
            return content
        if "value" in content:
            found = dict(re.findall(r"^\s*([A-Z_]+)=[\"']?([^\"'\n]*)", content["value"], re.MULTILINE))
            return read.value(dict(found, file=path, options=found.get("IRQBALANCE_ARGS") or found.get("OPTIONS", "")))
    return read.absent("irqbalance has no settings file here")


def _static_affinity():
    """Return the files that set interrupt affinities at boot: scripts, enabled units, MLNX_OFED's tuner."""
    paths = [path for path in boot_scripts.files() if _mentions(path)]
    tuner = re.search(r"^\s*RUN_AFFINITY_TUNER=[\"']?yes", read.text_or(OPENIB), re.MULTILINE | re.IGNORECASE)
    return read.value(sorted(set(paths)) + ([OPENIB] if tuner else []))


def _mentions(path):
    """Return whether a file other than irqbalance's has a name or a line (not a comment) that places interrupts."""
    if os.path.basename(path) == "irqbalance.service":
        return False
    lines = [line for line in read.text_or(path).splitlines() if line.strip()[:1] not in ("#", ";")]
    return bool(WRITES_AFFINITY.search("\n".join([os.path.basename(path), *lines])))


def _rps():
    """Return {"eth0": {"queues": 8, "steered": 8}}: receive queues of real devices, and how many use RPS."""
    found = {}
    for name in read.names_in("/sys/class/net"):
        folder = "/sys/class/net/{}/".format(name)
        if read.exists(folder + "device"):
            queues = [each for each in read.names_in(folder + "queues") if each.startswith("rx-")]
            masks = [read.text("{}queues/{}/rps_cpus".format(folder, each)) for each in queues]
            found[name] = {"queues": len(queues), "steered": sum(1 for mask in masks if mask.strip("0,"))}
    return read.value(found)
