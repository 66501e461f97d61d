"""Packages: the manager, installed packages with their makers, the driver, users of its devices: `packages.*`.

`judged` has those whose version is judged by security notices. By name: `like.PATTERN` (packages to list in `installed`), `file.PATH` (whether it exists) and `module.NAME` (the
kernel module's file and version).
"""

import os
import re

from . import read

QUERY_SECONDS = 4
JUDGED = ["nvidia-container-toolkit", "datacenter-gpu-manager*", "runc"]
APT, DNF = "/usr/bin/apt-get", "/usr/bin/dnf"
RPM_DATABASES = ("rpmdb.sqlite", "Packages", "Packages.db")
RUNNING = "/proc/driver/nvidia/version"
DEVICE = re.compile(r"/dev/nvidia(\d+|-uvm)$")
SERVICES = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine", "nvidia-imex", "nvsm_core", "dcgm-exporter")
"""Processes that hold the devices open on an idle node: the driver's own services, by the kernel's 15 characters."""


def collect(names, step):
    step("the package manager")
    manager = _manager()
    if "judged" in names:
        step("the packages that security notices judge")
        yield "judged", read.tried(_installed, manager, JUDGED)
    if set(names) == {"judged"}:
        return  # an audit, which needs nothing else of these
    yield "manager", read.value(manager) if manager else read.absent("neither apt nor dnf")
    asked = {kind: [] for kind in ("like", "file", "module")}
    for name in names:
        kind, _, rest = name.partition(".")
        if kind in asked and rest:
            asked[kind].append(rest)
    step("the list of installed packages")
    yield "installed", read.tried(_installed, manager, asked["like"])
    for path in asked["file"]:
        yield "file." + path, read.value(True) if read.exists(path) else read.absent()
    for module in asked["module"]:
        step("modinfo " + module)
        yield "module." + module, read.tried(_module, module)
    step(RUNNING)
    yield "running_driver", read.file_fact(RUNNING, _running)
    step("the processes that have the GPUs' devices open")
    yield "device_users", read.tried(_device_users)


def _manager():
    """Return the package manager of the system: a Debian host can also have dnf."""
    for name, tool, other in (("apt", APT, "dpkg-query"), ("dnf", DNF, "rpm")):
        if read.exists(tool) and read.find_tool(other):
            return name
    return ""


def _installed(manager, patterns):
    """Return {package: {version, maker}} of installed packages that match a pattern. Raise OSError."""
    if not manager:
        return read.absent("neither apt nor dnf")
    if not patterns:
        return read.value({})
    if manager == "apt":
        line = "${db:Status-Status}\\t${binary:Package}\\t${Version}\\t${Maintainer}\\n"
        rows = _rows(["dpkg-query", "-W", "-f", line, "--"] + patterns)
        rows = [row[1:] for row in rows if row[0] in ("installed", "half-configured", "unpacked", "triggers-pending")]
    elif _rpm_has_database():
        line = "%{NAME}\\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\t%{VENDOR} %{PACKAGER}\\n"
        rows = _rows(["rpm", "-qa", "--qf", line] + patterns)
    else:
        rows = []
    # multi-arch packages are shown with their architecture (libcuda1:amd64); rpm shows an epoch of 0 that nobody writes
    known = {row[0].partition(":")[0]: row[1:] for row in reversed(rows) if len(row) == 3}
    return read.value({name: {"version": re.sub("^0:", "", of[0]), "maker": of[1]} for name, of in known.items()})


def _rpm_has_database():
    """Return whether rpm has a database. A query would write one, on Debian into the home of who asks."""
    folder = _output(["rpm", "--eval", "%_dbpath"]).strip()
    return any(read.exists(os.path.join(folder, each)) for each in RPM_DATABASES)


def _rows(command):
    return [line.split("\t") for line in _output(command).splitlines()]


def _output(command):
    """Return the output of a query, even if dpkg-query fails because one of several patterns matches nothing."""
    shell = ["/bin/sh", "-c", '"$@" 2>/dev/null; [ $? -lt 2 ]', "sh"]
    return read.run(shell + command, QUERY_SECONDS)


def _module(name):
    """Return the module that `modprobe` would load for the running kernel."""
    tool = read.find_tool("modinfo")
    if not tool:
        return read.unread("modinfo is not installed (package kmod)")
    fields = dict(re.findall(r"^(filename|version):\s+(.*)$", _output([tool, name]), re.M))
    if "filename" not in fields:
        return read.absent("the running kernel has no such module")
    return read.value({"file": fields["filename"], "version": fields.get("version", "")})


def _running(content):
    """Return the version of the loaded driver, and whether it is the open one, from the line `NVRM version: …`."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", content + "\n", re.M)
    if not found:
        raise ValueError(content)
    return {"version": found.group(1), "open": "Open Kernel Module" in content}


def _device_users():
    """Return [[pid, name], …] of processes that hold a GPU open, without the driver's services.

    It works even if NVML does not answer.
    """
    if os.getuid() and not read.ROOT:
        return read.unread(read.lacks("the users of the GPUs' devices"))
    found = []
    for pid in filter(str.isdigit, read.names_in("/proc")):
        name = read.text_or("/proc/{}/comm".format(pid))
        if name not in SERVICES and _has_device(pid):
            found.append([int(pid), name])
    return read.value(found)


def _has_device(pid):
    folder = "{}/proc/{}/fd".format(read.ROOT, pid)
    try:
        return any(DEVICE.match(os.readlink(folder + "/" + each)) for each in os.listdir(folder))
    except OSError:
        return False  # it ended meanwhile
