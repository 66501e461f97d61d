"""systemd's units and the daemons that own settings of a host: `services.UNIT`, and some facts about all of them.

`services.slurmd` is slurmd.service; another type is named in full (`services.apt-daily-upgrade.timer`). All units asked
for cost one systemctl call. The other facts (FACTS, below) are read only when asked for.
"""

import ctypes
import os
import re

from . import persisted, read, sysctl

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
)
UNLIMITED = ("infinity", "18446744073709551615")
CONFIG_FOLDERS = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd")
TUNED_FOLDERS = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")

FIREWALLD_ZONES = ("/etc/firewalld/zones", "/usr/lib/firewalld/zones")

DAEMONS = (
    "slurmd",
    "containerd",
    "dockerd",
    "kubelet",
    "crio",
    "sshd",
    "nvidia-persistenced",
    "nv-fabricmanager",
    "nv-hostengine",
    "dcgm-exporter",
    "nvidia-imex",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "chronyd",
    "ntpd",
    "k3s",
    "rke2",
)
"""Daemons that are looked for among the processes, because they also run outside any unit (in containers, by hand)."""


def collect(names, step):
    step("systemctl show")
    yield "manager", read.value("systemd") if systemctl() else no_systemd()
    units = [name for name in names if name not in FACTS and name != "manager"]
    for name, fact in unit_facts(units).items():
        yield name, fact
    for name in names:
        if name in FACTS:
            step(name)
            yield name, _fact(FACTS[name])


def _fact(reader):
    try:
        return reader()
    except OSError as problem:
        return read.unread(read.why(problem))


def systemctl():
    """The path of systemctl where systemd runs this host, else None."""
    return read.find_tool("systemctl") if read.exists("/run/systemd/system") else None


def no_systemd():
    return read.absent("systemd does not run this host")


def unit_facts(units):
    """One fact for each unit name, by the name as it was asked for."""
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
    missing = read.unread("systemctl does not tell of it")
    facts.update((unit, unit_fact(known[full(unit)]) if full(unit) in known else missing) for unit in sound)
    return facts


def full(unit):
    return unit if unit.endswith(SUFFIXES) else unit + ".service"


def parse_units(output):
    """The blocks of `systemctl show` by every name of the unit: an alias (sshd) shows the unit behind it (ssh)."""
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
    """What is worth knowing of one unit."""
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
            "cmdline": " ".join(cmdline(pid)) if pid else "",
            "drop_ins": unit.get("DropInPaths", "").split(),
            "since": unit.get("ActiveEnterTimestamp", ""),
            "tasks_max": limit(unit.get("TasksMax", "infinity")),
        }
    )


def limit(text):
    """A number, or "unlimited"."""
    return "unlimited" if text in UNLIMITED else int(text) if text.isdigit() else text


def cmdline(pid):
    """The words of a running process's command line; none where it has ended or hides them."""
    return [word for word in read.text_or("/proc/{}/cmdline".format(pid)).strip("\0").split("\0") if word]


# --- processes

_SEEN = {}


def processes():
    """{daemon: [process numbers]} of DAEMONS. Raises OSError where other users' processes are hidden (hidepid).

    Looked up once: several families ask, and a host with many cores has thousands of kernel threads.
    """
    if read.ROOT not in _SEEN:
        _SEEN[read.ROOT] = _processes_now()
    return _SEEN[read.ROOT]


def _processes_now():
    read.text("/proc/1/comm")
    short = {name[:15] for name in DAEMONS}
    found = {}
    for entry in read.names_in("/proc"):
        if entry.isdigit():
            comm = read.text_or("/proc/{}/comm".format(entry))
            if comm in short:
                name = comm if len(comm) < 15 else os.path.basename((cmdline(entry) or [comm])[0])
                found.setdefault(name, []).append(int(entry))
    return {name: sorted(pids) for name, pids in found.items() if name in DAEMONS}


def daemon(pids):
    """Of several processes of one name the daemon itself: the child of init, else the first."""
    return next((pid for pid in pids if _parent(pid) == "1"), pids[0])


def _parent(pid):
    """The number of the parent, as text; empty for a process that has ended."""
    return (read.text_or("/proc/{}/stat".format(pid)).rpartition(")")[2].split() + ["", ""])[1]


def process_counts():
    try:
        return read.value({name: len(pids) for name, pids in processes().items()})
    except FileNotFoundError:
        return read.unread("/proc hides other users' processes: needs root (--become)")


# --- systemd's own settings


def running_services():
    tool = systemctl()
    if not tool:
        return no_systemd()
    output = read.run([tool, "list-units", "--type=service", "--state=running", "--plain", "--no-legend", "--no-pager"])
    return read.value(sorted(line.split()[0] for line in output.splitlines() if line.strip()))


def file_setting(config, key):
    """{value, file, line} of the last line that sets `key` in a systemd configuration and its drop-ins, or None."""
    main = [os.path.join(folder, config) for folder in CONFIG_FOLDERS if read.exists(os.path.join(folder, config))][:1]
    best = None
    for path in main + read.first_that_wins(
        [os.path.join(folder, config + ".d") for folder in CONFIG_FOLDERS], ".conf"
    ):
        for number, line in enumerate(read.text(path).splitlines(), 1):
            name, equals, setting = line.partition("=")
            if equals and name.strip() == key:
                best = {"value": setting.strip(), "file": path, "line": number}
    return best


def remove_ipc():
    """Whether logind removes a user's shared memory at the last logout: what the running logind says."""
    tool = systemctl() and read.find_tool("loginctl")
    if not tool:
        return no_systemd()
    found = re.search(r"^RemoveIPC=(\w+)", read.run([tool, "show-session", "--property=RemoveIPC"]), re.M)
    return read.value(found.group(1)) if found else read.absent("this logind knows no RemoveIPC")


def remove_ipc_set():
    setting = file_setting("logind.conf", "RemoveIPC")
    if setting is None:
        return read.absent("no file sets RemoveIPC")
    setting["value"] = "yes" if setting["value"].lower() in ("1", "yes", "y", "true", "t", "on") else "no"
    return read.value(setting)


# --- tuned


def tuned_profile():
    """The active profile with those that it includes, and every setting with the file that it comes from."""
    names = read.text_or("/etc/tuned/active_profile").split()
    if not names:
        return read.absent("no tuned profile is active")
    chain, settings = [], {}
    for name in names:
        _add_profile(name, chain, settings)
    return read.value(
        {
            "name": " ".join(names),
            "chain": [each["name"] for each in chain],
            "files": [each["file"] for each in chain],
            "settings": settings,
        }
    )


def _add_profile(name, chain, settings):
    """Append a profile after what it includes is read: later settings win. `chain` starts with the active one."""
    folders = [os.path.join(folder, name, "tuned.conf") for folder in TUNED_FOLDERS]
    path = next((each for each in folders if read.exists(each)), None)
    if path is None or name in [each["name"] for each in chain] or len(chain) > 20:
        return
    chain.append({"name": name, "file": path})
    sections = ini(read.text(path))
    for included in re.split(r"[,\s]+", sections.get("main", {}).get("include", "")):
        _add_profile(included.lstrip("-"), chain, settings)
    for section, pairs in sections.items():
        for key, setting in pairs.items():
            settings.setdefault(section, {})[key] = {"value": setting, "file": path}


def ini(content):
    """{section: {key: text}} of a simple configuration file."""
    sections, current = {}, ""
    for line in map(str.strip, content.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            current = line[1:-1]
        elif "=" in line and line[0] not in "#;":
            key, _, setting = line.partition("=")
            sections.setdefault(current, {})[key.strip()] = setting.strip()
    return sections


def tuned_conflicts():
    """Kernel parameters that tuned and a sysctl.d file set to different values: [{name, tuned, …}]."""
    profile = tuned_profile().get("value")
    if profile is None:
        return read.absent("no tuned profile is active")
    settings = profile["settings"].get("sysctl", {})
    files = dict(persisted.collect(["sysctl." + name for name in settings], lambda text: None))
    found = []
    for name, setting in sorted(settings.items()):
        winner = files["sysctl." + name].get("value")
        wanted = read.number_or_text(setting["value"].strip("\"'"))
        computed = isinstance(wanted, str) and re.search(r"[$<>]", wanted)
        if winner and not computed and winner["value"] != wanted:
            found.append(
                {
                    "name": name,
                    "tuned": wanted,
                    "tuned_file": setting["file"],
                    "sysctl": winner["value"],
                    "sysctl_file": winner["file"],
                    "line": winner["line"],
                    "running": read.file_fact(sysctl.path_of(name), read.number_or_text).get("value"),
                }
            )
    return read.value(found)


# --- clock, firewall, NVIDIA's daemons


class Timex(ctypes.Structure):
    """The head of struct timex; the rest is room for what the kernel writes."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 40),
    ]


STA_UNSYNC = 0x40


def time_sync():
    """Whether something keeps the clock: the kernel's word, or chrony's, which may leave the kernel's flag alone."""
    clock = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(clock)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if not clock.status & STA_UNSYNC:
        return read.value({"synchronized": True, "by": "kernel", "max_error_us": clock.maxerror})
    tool = read.find_tool("chronyc")
    try:
        fields = read.run([tool, "-c", "tracking"], 2).strip().split(",") if tool else []
    except OSError:
        fields = []  # no chronyd answers: the kernel's word stands
    kept = len(fields) > 13 and fields[13] != "Not synchronised"
    return read.value({"synchronized": kept, "by": "chrony" if kept else "kernel", "max_error_us": clock.maxerror})


def firewall():
    """Firewalls that drop what no rule allows: {name: [networks or interfaces from which every port is open]}."""
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


def imex_channels():
    """{channel file: its permission bits as octal text}."""
    folder = "/dev/nvidia-caps-imex-channels"
    if not read.exists(folder):
        return read.absent("no IMEX channel device on this host")
    modes = {name: os.stat(read.ROOT + os.path.join(folder, name)).st_mode for name in read.names_in(folder)}
    return read.value({name: "{:03o}".format(mode & 0o777) for name, mode in modes.items()})


FACTS = {
    "running": running_services,
    "processes": process_counts,
    "remove_ipc": remove_ipc,
    "remove_ipc_set": remove_ipc_set,
    "tuned_profile": tuned_profile,
    "tuned_conflicts": tuned_conflicts,
    "time_sync": time_sync,
    "firewall": firewall,
    "fabricmanager_version": fabricmanager_version,
    "imex_channels": imex_channels,
}
