"""Slurm's configuration as slurmd on this node reads it, and the node as slurmctld has it: `slurm.*`."""

import glob
import os
import platform
import re

from nodetune.onhost import command, cpu_list

from . import processes, read
from .slurm_conf import cluster_settings, config_lines, names_host, node_line, pairs, place, topologies

CONFIGS = (
    "/etc/slurm/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/var/spool/slurmd/conf-cache/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
)
"""Where slurm.conf is, in order; /run/slurm/conf and the cache contain the files of a configless slurmd."""

UNITS = (
    "/etc/systemd/system/slurmd.service",
    "/usr/lib/systemd/system/slurmd.service",
    "/lib/systemd/system/slurmd.service",
)
WANTED = "/etc/systemd/system/multi-user.target.wants/slurmd.service"
PLUGIN_FOLDERS = (
    "/usr/lib/*-linux-gnu/slurm-wlm",
    "/usr/lib/*-linux-gnu/slurm",
    "/usr/lib64/slurm",
    "/usr/lib/slurm",
    "/usr/local/lib/slurm",
)
OPTION_FILES = ("/etc/default/slurmd", "/etc/sysconfig/slurmd")
KEPT = (
    "prolog",
    "epilog",
    "prologflags",
    "prologepilogtimeout",
    "prologtimeout",
    "epilogtimeout",
    "schedulerparameters",
    "healthcheckprogram",
    "healthcheckinterval",
    "healthchecknodestate",
    "taskplugin",
    "proctracktype",
    "slurmdparameters",
    "propagateresourcelimits",
    "propagateresourcelimitsexcept",
    "grestypes",
    "launchparameters",
    "taskprolog",
)
"""The settings that checks need; nothing else of slurm.conf leaves the host."""

RESERVED = ("corespeccount", "cpuspeclist")

MAX_GRES_LINES = 64
MULTIPLIERS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def collect(names, step):
    step("processes")
    words = _running()
    installed = bool(words or read.find_tool("slurmd") or any(read.exists(path) for path in UNITS))
    step("slurm.conf")
    path = _config(words)
    present = bool(words or (installed and (path or _starts())))
    yield "present", read.value(present)
    if path is None:
        unset = "Slurm is installed, but neither configured nor running" if installed else "Slurm is not installed"
        missing = read.absent("no slurm.conf found" if present else unset)
        for name in ("config", "cluster", "node", "reserved", "topology", "gres", "cgroup", "detects", "registered"):
            yield name, missing
        return
    host = _option(words, "-N") or platform.node().partition(".")[0]
    yield from _facts(path, host)
    yield "topology", read.tried(_topology, os.path.dirname(path), host, words)
    prefix = os.path.dirname(os.path.dirname(words[0])) if words and os.path.isabs(words[0]) else "/usr"
    yield "detects", _detects(path, prefix)
    if "registered" in names:
        step("scontrol show node")
        here = present and read.tried(_registered, path, host, prefix)
        yield "registered", here or read.absent("no slurmd on this host")


def _topology(folder, host, words):
    return read.value(dict(place(folder, host), hostname=host, version=_version(words)))


def _version(words):
    """Return the version that slurmd has, such as 25.05.2; null if it cannot be asked."""
    tool = words[0] if words and os.path.isabs(words[0]) else command.find("slurmd", read.ROOT)
    try:
        found = re.search(r"\d+\.\d+\.\d+", read.run([read.ROOT + tool, "-V"])) if tool else None
    except OSError:
        return None
    return found.group() if found else None


def _starts():
    """Return whether the unit starts at boot. Debian's package enables one that waits for slurm.conf."""
    unit = "\n".join(read.text_or(path) for path in read.with_drop_ins(read.UNIT_FOLDERS, "slurmd.service"))
    conditions = re.findall(r"^\s*ConditionPathExists=\s*(/\S+)", unit, re.M)
    return os.path.lexists(read.ROOT + WANTED) and all(read.exists(path) for path in conditions)


def _detects(path, prefix):
    """Return the words of AutoDetect= for which this slurmd has a plugin: nvml if it was built with NVML."""
    try:
        told = [text for line in config_lines(path) for key, text in pairs(line) if key == "plugindir"]
    except OSError:
        told = []
    of_prefix = ["{}/{}/slurm".format(prefix, lib) for lib in ("lib64", "lib")]
    for folder in ":".join(told + of_prefix + list(PLUGIN_FOLDERS)).split(":"):
        found = [os.path.basename(name)[4:-3] for name in glob.glob(read.ROOT + folder + "/gpu_*.so")]
        if found:
            return read.value(sorted(set(found) - {"generic"}))
    return read.absent("the folder of Slurm's plugins was not found")


def _registered(path, host, prefix):
    tool = command.find("scontrol", read.ROOT, "{}/bin:{}".format(prefix, command.PATH))
    if not tool:
        return read.absent("no scontrol on this host")
    environment = dict(command.ENVIRONMENT, SLURM_CONF=path)
    return registered(read.run([tool, "-o", "show", "node", host], environment=environment))


def registered(line):
    """Read what `scontrol -o show node` prints of a node: slurmctld's view after slurmd has registered."""
    head, _, reason = line.strip().partition(" Reason=")
    fields = dict(pairs(head))
    gres = fields.get("gres", "")
    return read.value(
        {"gres": gres, "gpus": gres_count(gres), "state": fields.get("state", ""), "reason": reason[:200]}
    )


def _facts(path, host):
    """Yield the facts of a configuration folder; a file that cannot be read affects only its own."""
    folder = os.path.dirname(path)
    try:
        lines = config_lines(path)
        settings = {key: text for line in lines for key, text in pairs(line) if key in KEPT}
        found = node_line(lines, host)
        of_node = (found or {}).get("parameters")  # Slurm 25.11 appends it to those of all nodes
        if of_node:
            settings["slurmdparameters"] = ",".join(filter(None, [settings.get("slurmdparameters"), of_node]))
        yield "config", read.value({"file": path, "settings": settings})
        yield "cluster", read.value(dict(cluster_settings(lines), **topologies(folder)))
        absent = read.absent("slurm.conf has no node line for {}".format(host))
        yield "node", absent if found is None else node_fact(found)
        yield "reserved", absent if found is None else read.value({key: found[key] for key in RESERVED if key in found})
    except OSError as problem:
        for name in ("config", "cluster", "node", "reserved"):
            yield name, read.unread("{}: {}".format(problem.filename or path, read.why(problem)))
    yield "gres", read.tried(_other, os.path.join(folder, "gres.conf"), lambda lines: gres(lines, host))
    cgroup = os.path.join(folder, "cgroup.conf")
    yield "cgroup", read.tried(_other, cgroup, lambda lines: dict(pair for line in lines for pair in pairs(line)))


def _other(path, parse):
    try:
        return read.value(dict(parse(config_lines(path)), file=path))
    except FileNotFoundError:
        return read.absent("no {}".format(path))


def _running():
    """Return the command line of the running slurmd; empty if none runs (or /proc hides it)."""
    try:
        pids = processes.running().get("slurmd")
    except OSError:
        return []
    return processes.cmdline(processes.daemon(pids)) if pids else []


def _config(words):
    """Return the slurm.conf that slurmd was started with, or the first that exists in the usual places."""
    told = _option(words, "-f")
    for path in OPTION_FILES:
        found = re.search(r"^\s*SLURM(?:D_OPTIONS=.*-f\s*|_CONF=[\"']?)(/[^\s\"']+)", read.text_or(path), re.M)
        told = told or (found.group(1) if found else None)
    return next((path for path in (told,) + CONFIGS if path and read.exists(path)), None)


def _option(words, name):
    """Return the operand of a one-letter option: `-N n01` or `-Nn01`."""
    for number, word in enumerate(words):
        if word == name and number + 1 < len(words):
            return words[number + 1]
        if word.startswith(name):
            return word[2:]
    return None


def node_fact(found):
    """Return slurmctld's view of this node, by its line."""
    sockets = found.get("sockets") or found.get("socketsperboard")
    return read.value(
        {
            "gres": found.get("gres", ""),
            "gpus": gres_count(found.get("gres", "")),
            "sockets": _number(sockets),
            "cores_per_socket": _number(found.get("corespersocket")),
            "threads_per_core": _number(found.get("threadspercore")),
        }
    )


def _number(text):
    return int(text) if text and re.match(r"[0-9]{1,6}$", text) else None


def gres_count(text):
    """Count GPUs in `gpu:h200:8(S:1,3),shard:64`: the number after the last colon of each gpu entry."""
    count = 0
    for entry in re.sub(r"\(.*?\)", "", text).split(","):
        parts = entry.split(":")
        if parts[0] == "gpu":
            found = re.match(r"(\d+)([KMG]?)$", parts[-1])
            count += int(found.group(1)) * MULTIPLIERS[found.group(2)] if found else 1
    return count


def gres(lines, host):
    """Return this node's GPUs in gres.conf: AutoDetect, the number of listed GPUs, and whether they have cores."""
    result = {"autodetect": None, "gpus": 0, "cores": False, "types": [], "lines": []}
    for line in lines:
        settings = dict(pairs(line))
        if "nodename" in settings and not names_host(settings["nodename"], host):
            continue
        if "autodetect" in settings and ("nodename" in settings or result["autodetect"] is None):
            result["autodetect"] = settings["autodetect"].lower()
        if settings.get("name", "").lower() == "gpu":
            result["gpus"] += _listed(settings)
            result["cores"] = result["cores"] or "cores" in settings
            result["types"] += [settings["type"]] if "type" in settings else []
            if len(result["lines"]) < MAX_GRES_LINES:
                file = settings.get("file") or settings.get("multiplefiles", "")
                result["lines"].append({"file": file, "cores": settings.get("cores", "")})
    return result


def _listed(settings):
    if settings.get("count", "").isdigit():
        return int(settings["count"])
    return max(1, sum(_files(each) for each in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", settings.get("file", ""))))


def _files(expression):
    """Count the device files in `/dev/nvidia[0-3,6]`."""
    found = re.search(r"\[([^\]]*)\]", expression)
    return len(cpu_list.parse(found.group(1))) if found else 1
