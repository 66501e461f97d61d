"""systemd units and daemons that own settings of a host: `services.UNIT`, and some facts about all of them.

`services.slurmd` is slurmd.service; other types have their full name (`services.apt-daily-upgrade.timer`). All
requested units cost one systemctl call. The other facts (FACTS, below) are read only on request.
"""

import os
import re

from . import clock, processes, read, tuned, tuned_conflicts

SUFFIXES = (".service", ".timer", ".socket", ".target", ".mount", ".slice", ".path", ".scope", ".swap")
PROPERTIES = (
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "MainPID",
    "ExecStart",
    "DropInPaths",
    "ActiveEnterTimestamp",
    "TasksMax",
    "NRestarts",
    "ActiveEnterTimestampMonotonic",
)
UNLIMITED = ("infinity", "18446744073709551615")
FIREWALLD_ZONES = ("/etc/firewalld/zones", "/usr/lib/firewalld/zones")
FABRICMANAGER_FILE = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"


def collect(names, step):
    step("systemctl show")
    yield "manager", read.value("systemd") if systemctl() else no_systemd()
    units = [name for name in names if name not in FACTS and name != "manager"]
    yield from unit_facts(units).items()
    for name in names:
        if name in FACTS:
            step(name)
            yield name, read.tried(FACTS[name])


def systemctl():
    """Return the path of systemctl if systemd runs this host, else None."""
    return read.find_tool("systemctl") if read.exists("/run/systemd/system") else None


def no_systemd():
    return read.absent("systemd does not run this host")


def unit_facts(units):
    """Return one fact for each unit name, by the name as requested."""
    tool = systemctl()
    sound = [unit for unit in units if re.match(r"[\w:.@\\-]+$", unit)]
    facts = {unit: read.absent("not a unit name") for unit in units}
    if not tool or not sound:
        facts.update((unit, no_systemd()) for unit in sound if not tool)
        return facts
    command = [tool, "show", "--no-pager", "--property=" + ",".join(PROPERTIES), "--"]
    try:
        known = parse_units(read.run(command + [full(unit) for unit in sound]))
    except OSError as problem:
        facts.update((unit, read.unread(read.why(problem))) for unit in sound)
        return facts
    missing = read.unread("systemctl does not report it")
    facts.update((unit, unit_fact(known[full(unit)]) if full(unit) in known else missing) for unit in sound)
    return facts


def full(unit):
    return unit if unit.endswith(SUFFIXES) else unit + ".service"


def parse_units(output):
    """Return the blocks of `systemctl show` by every name of the unit: an alias (sshd) shows its unit (ssh)."""
    known = {}
    for block in output.strip().split("\n\n"):
        unit = {}
        for line in block.splitlines():
            key, _, setting = line.partition("=")
            unit.setdefault(key, setting)
        for name in [unit.get("Id", "")] + unit.get("Names", "").split():
            known[name] = unit
    return known


def unit_fact(unit):
    """Return the relevant properties of one unit."""
    if unit.get("LoadState") == "not-found" and unit.get("ActiveState") == "inactive":
        return read.absent("not installed")
    pid = int(unit.get("MainPID") or 0) or None
    started = re.search(r"argv\[\]=(.*?) ; ", unit.get("ExecStart", ""))
    return read.value(
        {
            "load": unit.get("LoadState", ""),
            "active": unit.get("ActiveState", ""),
            "sub": unit.get("SubState", ""),
            "enabled": unit.get("UnitFileState", ""),
            "pid": pid,
            "exec": started.group(1) if started else "",
            "cmdline": " ".join(processes.cmdline(pid)) if pid else "",
            "drop_ins": unit.get("DropInPaths", "").split(),
            "since": unit.get("ActiveEnterTimestamp", ""),
            "tasks_max": limit(unit.get("TasksMax", "infinity")),
            "restarts": number(unit.get("NRestarts", "")),
            "since_us": number(unit.get("ActiveEnterTimestampMonotonic", "")),
        }
    )


def number(text):
    """Return a number, or None if systemd does not report it (it counts restarts from version 235 on)."""
    return int(text) if text.isdigit() else None


def limit(text):
    """Return a number, or "unlimited"."""
    return "unlimited" if text in UNLIMITED else int(text) if text.isdigit() else text


# --- systemd's own settings


def running_services():
    tool = systemctl()
    if not tool:
        return no_systemd()
    output = read.run([tool, "list-units", "--type=service", "--state=running", "--plain", "--no-legend", "--no-pager"])
    return read.value(sorted(line.split()[0] for line in output.splitlines() if line.strip()))


def file_setting(config, key):
    """Return {value, file, line} of the last line that sets `key` in a systemd file and its drop-ins, or None."""
    return last_setting(read.with_drop_ins(read.config_folders("systemd"), config), key)


def last_setting(paths, key):
    """Return {value, file, line} of the last line of these files that sets `key`, or None."""
    best = None
    for path in paths:
        for number, line in enumerate(read.text(path).splitlines(), 1):
            name, equals, setting = line.partition("=")
            if equals and name.strip() == key:
                best = {"value": setting.strip(), "file": path, "line": number}
    return best


def remove_ipc():
    """Return whether logind removes a user's shared memory at the last logout, as the running logind reports."""
    tool = systemctl() and read.find_tool("loginctl")
    if not tool:
        return no_systemd()
    found = re.search(r"^RemoveIPC=(\w+)", read.run([tool, "show-session", "--property=RemoveIPC"]), re.M)
    return read.value(found.group(1)) if found else read.absent("this logind does not support RemoveIPC")


def remove_ipc_set():
    setting = file_setting("logind.conf", "RemoveIPC")
    if setting is None:
        return read.absent("no file sets RemoveIPC")
    setting["value"] = "yes" if setting["value"].lower() in ("1", "yes", "y", "true", "t", "on") else "no"
    return read.value(setting)


def default_memlock():
    """Return what the files of systemd set as every service's limit of locked memory."""
    setting = file_setting("system.conf", "DefaultLimitMEMLOCK")
    return read.absent("no file sets DefaultLimitMEMLOCK") if setting is None else read.value(setting)


# --- firewall, NVIDIA's daemons


def firewall():
    """Return firewalls that drop what no rule allows: {name: [networks or interfaces with every port open]}."""
    found = {}
    policy = re.search(r'^DEFAULT_INPUT_POLICY="?(\w+)', read.text_or("/etc/default/ufw"), re.M)
    enabled = re.search(r"^ENABLED=yes", read.text_or("/etc/ufw/ufw.conf"), re.M | re.I)
    if enabled and not (policy and policy.group(1) == "ACCEPT"):
        found["ufw"] = re.findall(
            r"^### tuple ### allow any any \S+ any (\S+) in", read.text("/etc/ufw/user.rules"), re.M
        )
    if read.exists("/run/firewalld.pid"):
        zones = [read.text(path) for path in read.first_that_wins(FIREWALLD_ZONES, ".xml")]
        opened = [zone for zone in zones if re.search(r"<zone[^>]*target=[\"']ACCEPT", zone)]
        found["firewalld"] = [
            name for zone in opened for name in re.findall(r"<(?:source|interface)[^>]*=[\"']([^\"']+)", zone)
        ]
    return read.value(found)


def fabricmanager_version():
    tool = read.find_tool("nv-fabricmanager")
    if not tool:
        return read.absent("Fabric Manager is not installed")
    output = read.run([tool, "--version"])
    found = re.search(r"\d+\.\d+(\.\d+)?", output)
    return read.value(found.group(0)) if found else read.unread("unexpected answer {!r}".format(output[:60]))


def fabric_mode():
    """Return FABRIC_MODE of the file that Fabric Manager reads: 1 and 2 give the GPUs to virtual machines."""
    places = [FABRICMANAGER_FILE]
    for pid in processes.running().get("nv-fabricmanager", []):
        words = processes.cmdline(pid)
        named = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-c", "--config")]
        places.insert(0, "/proc/{}/root{}".format(pid, (named or places[-1:])[0]))  # it may run in a container
    for place in places:
        found = re.search(r"^\s*FABRIC_MODE\s*=\s*(\d+)", read.text_or(place), re.M)
        if found:
            return read.value(int(found.group(1)))
    return read.absent("no file of Fabric Manager sets FABRIC_MODE")


def imex_channels():
    """Return {channel file: its permission bits as octal text}."""
    folder = "/dev/nvidia-caps-imex-channels"
    if not read.exists(folder):
        return read.absent("no IMEX channel device on this host")
    modes = {name: os.stat(read.ROOT + os.path.join(folder, name)).st_mode for name in read.names_in(folder)}
    return read.value({name: "{:03o}".format(mode & 0o777) for name, mode in modes.items()})


def nodewright():
    """Return the packages that NVIDIA's nodewright (formerly skyhook) keeps on this node."""
    names = read.names_in("/var/lib/skyhook")
    return read.value(names) if names else read.absent("no state of nodewright (/var/lib/skyhook)")


FACTS = {
    "running": running_services,
    "processes": processes.counts,
    "remove_ipc": remove_ipc,
    "remove_ipc_set": remove_ipc_set,
    "default_memlock": default_memlock,
    "tuned_profile": tuned.profile,
    "tuned_conflicts": tuned_conflicts.conflicts,
    "time_sync": clock.in_step,
    "firewall": firewall,
    "fabricmanager_version": fabricmanager_version,
    "fabric_mode": fabric_mode,
    "imex_channels": imex_channels,
    "nodewright": nodewright,
}
