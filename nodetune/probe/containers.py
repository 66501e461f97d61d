"""Container engines and how GPUs reach containers: `containers.*`. No engine is asked."""

import json
import os
import re

from . import read

ENGINES = {"docker": "dockerd", "containerd": "containerd", "crio": "crio", "podman": "podman"}
CONTAINERD_CONFIGS = (
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
)
TOOLKIT = (
    "/usr/bin/nvidia-container-runtime",
    "/usr/local/nvidia/toolkit/nvidia-container-runtime",
    "/usr/local/bin/nvidia-container-runtime",
)
CTK = ("/usr/bin/nvidia-ctk", "/usr/local/nvidia/toolkit/nvidia-ctk", "/usr/local/bin/nvidia-ctk")
RUNTIME_CONFIGS = (
    "/etc/nvidia-container-runtime/config.toml",
    "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
)
PODMAN_CONFIGS = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
PODMAN_FOLDER = "/etc/containers/containers.conf.d"
CDI_FOLDERS = ("/etc/cdi", "/run/cdi")
GPU_FILE = r"\bpath[\"']?\s*:\s*[\"']?(/dev/nvidia\d{1,4})\b"
NVIDIA_MAJOR = "195"
CAP_SYS_NICE = 23


def collect(names, step):
    step("container engines")
    engines = sorted(engine for engine, program in ENGINES.items() if read.find_tool(program))
    embedded = [path for path in CONTAINERD_CONFIGS[1:] if read.exists(path)]
    yield "engines", read.value(sorted(set(engines + ["containerd"] * bool(embedded))))
    yield "present", read.value(bool(engines or embedded))
    yield "cgroup_v2", read.value(read.exists("/sys/fs/cgroup/cgroup.controllers"))
    step("/etc/docker/daemon.json")
    yield "docker", _docker() if "docker" in engines else read.absent("Docker is not installed")
    step("containerd's configuration")
    yield (
        "containerd",
        read.tried(_containerd) if "containerd" in engines or embedded else read.absent("containerd is not installed"),
    )
    step("CRI-O's configuration")
    yield "crio", read.tried(_crio) if "crio" in engines else read.absent("CRI-O is not installed")
    step("podman's configuration")
    yield "podman", read.tried(_podman) if "podman" in engines else read.absent("podman is not installed")
    step("runc --version")
    yield "runc", read.tried(_runc)
    step("NVIDIA Container Toolkit")
    yield "toolkit", _toolkit()
    yield "cdi", read.tried(_cdi)
    yield "dev_char_links", read.tried(_dev_char_links)
    yield "sys_nice", read.file_fact("/proc/self/status", _has_sys_nice)


def _docker():
    """Return the keys of daemon.json that affect containers; empty without the file."""
    fact = read.file_fact("/etc/docker/daemon.json", lambda content: json.loads(content or "{}"))
    if "absent" in fact:
        return read.value({"runtimes": []})
    if not isinstance(fact.get("value"), dict):
        return fact if "unread" in fact else read.unread("/etc/docker/daemon.json: not a JSON object")
    config = fact["value"]
    kept = {
        key: config[key]
        for key in ("cgroup-parent", "default-runtime", "default-shm-size", "default-ulimits", "exec-opts", "features")
        if key in config
    }
    runtimes = config.get("runtimes")
    kept["runtimes"] = sorted(runtimes) if isinstance(runtimes, dict) else []
    return read.value(kept)


def _containerd():
    """Return NVIDIA's runtime, CDI and the cgroup driver from containerd's files; None if no line sets it."""
    path = _first_file(CONTAINERD_CONFIGS)
    if path is None:
        return read.value(
            {"files": [], "nvidia_runtime": False, "default_runtime": None, "enable_cdi": None, "systemd_cgroup": None}
        )
    files = [path] + _imported(path)
    lines = "\n".join(_uncommented(read.text(each)) for each in files)
    default = re.search(r'^\s*default_runtime_name\s*=\s*["\'](\S+)["\']', lines, re.M)
    version = re.search(r"^\s*version\s*=\s*(\d{1,3})\s*$", _uncommented(read.text(path)), re.M)
    return read.value(
        {
            "files": files,
            "nvidia_runtime": bool(re.search(r"^\s*\[.*\.runtimes\.[\"']?nvidia", lines, re.M)),
            "default_runtime": default.group(1) if default else None,
            "enable_cdi": _flag("enable_cdi", lines),
            "systemd_cgroup": _flag("SystemdCgroup", lines),
            "config_version": int(version.group(1)) if version else 1,
        }
    )


def _first_file(paths):
    """Return the first path that exists. Raise OSError if that is unknown (a folder that only root may enter)."""
    for path in paths:
        try:
            read.text(path, 1)
        except FileNotFoundError:
            continue
        return path
    return None


def _imported(path):
    """Return files that `imports = ["/etc/containerd/conf.d/*.toml"]` names; a star matches only a name."""
    found = re.search(r"^\s*imports\s*=\s*\[(.*?)\]", _uncommented(read.text(path)), re.M | re.S)
    files = []
    for pattern in re.findall(r"[\"']([^\"']+)[\"']", found.group(1) if found else ""):
        folder, name = os.path.split(os.path.join(os.path.dirname(path), pattern))
        shape = re.compile(re.escape(name).replace(r"\*", ".*") + "$")
        files += [os.path.join(folder, each) for each in read.names_in(folder) if shape.match(each)]
    return files


def _uncommented(content):
    return re.sub(r"^\s*#.*$", "", content, flags=re.M)


def _flag(name, lines):
    found = re.findall(r"^\s*" + name + r"\s*=\s*(true|false)", lines, re.M)
    return None if not found else "true" in found


def _crio():
    """Return whether CRI-O knows a runtime called nvidia, and its cgroup manager where a line names it."""
    paths = ["/etc/crio/crio.conf"] if _first_file(["/etc/crio/crio.conf"]) else []
    paths += ["/etc/crio/crio.conf.d/" + name for name in read.names_in("/etc/crio/crio.conf.d")]
    lines = "\n".join(_uncommented(read.text(path)) for path in paths)
    manager = re.findall(r'^\s*cgroup_manager\s*=\s*"(\w+)"', lines, re.M)
    return read.value(
        {
            "pids_limit": _pids_limit(lines),
            **_ulimits(lines),
            "nvidia_runtime": bool(re.search(r"^\s*\[crio\.runtime\.runtimes\.[\"']?nvidia", lines, re.M)),
            "cgroup_manager": manager[-1] if manager else None,
        }
    )


def _podman():
    """Return what containers.conf sets for all containers; None for settings in no file."""
    paths = [*PODMAN_CONFIGS, *(PODMAN_FOLDER + "/" + name for name in read.names_in(PODMAN_FOLDER))]
    found = [_uncommented(read.text(path)) for path in paths if path.endswith(".conf") and _first_file([path])]
    lines = "\n".join(found)
    return read.value({"pids_limit": _pids_limit(lines), **_ulimits(lines)})


def _pids_limit(lines):
    found = re.findall(r"^[ \t]*pids_limit[ \t]*=[ \t]*(-?\d{1,9})\b", lines, re.M)
    return int(found[-1]) if found else None


def _ulimits(lines):
    """Return the last list of default limits, and its memlock limit as written: soft:hard, -1 for none."""
    lists = re.findall(r"^[ \t]*default_ulimits[ \t]*=[ \t]*\[([^\]]{0,4096})\]", lines, re.M)
    found = re.findall(r"[\"'](\w{1,32}=[\d:-]{1,64})[\"']", lists[-1]) if lists else []
    memlock = [each.partition("=")[2] for each in found if each.startswith("memlock=")]
    return {"ulimits": found, "memlock": memlock[0] if memlock else None}


def _runc():
    """Return the version of the runc that engines start containers with."""
    tool = read.find_tool("runc")
    if not tool:
        return read.absent("runc is not installed")
    said = read.run([tool, "--version"])
    found = re.search(r"^runc version v?(\d+\.\d+\.\d+)", said)
    return read.value(found.group(1)) if found else read.unread("runc --version says " + said[:60])


def _toolkit():
    """Return where NVIDIA's runtime and nvidia-ctk are, and the runtime's mode (auto, legacy, cdi)."""
    runtime, ctk = (next((path for path in paths if read.exists(path)), None) for paths in (TOOLKIT, CTK))
    if not (runtime or ctk):
        return read.absent("NVIDIA Container Toolkit is not installed")
    config = next((read.text_or(path) for path in RUNTIME_CONFIGS if read.exists(path)), "")
    section = re.search(r"^\[nvidia-container-runtime\]\n(.*?)(?=^\[|\Z)", _uncommented(config), re.M | re.S)
    mode = re.search(r'^\s*mode\s*=\s*"(\S+)"', section.group(1), re.M) if section else None
    return read.value({"runtime": runtime, "ctk": ctk, "mode": mode.group(1) if mode else "auto"})


def _cdi():
    """Return CDI specifications of NVIDIA devices: [{"file", "kind", "driver", "devices"}].

    `driver` is the version in their library names, `devices` are the device files of GPUs.
    """
    found = []
    for folder in CDI_FOLDERS:
        for name in read.names_in(folder):
            if not name.endswith((".yaml", ".yml", ".json")):
                continue
            content = read.text(os.path.join(folder, name))
            kind = re.search(r"\"?\bkind\"?\s*:\s*[\"']?(nvidia\.com/[\w.-]+)", content)
            version = re.search(r"lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)", content)
            if kind:
                found.append(
                    {
                        "file": os.path.join(folder, name),
                        "kind": kind.group(1),
                        "driver": version.group(1) if version else None,
                        "devices": sorted(set(re.findall(GPU_FILE, content))),
                    }
                )
    return read.value(found)


def _dev_char_links():
    """Return whether /dev/char has a link for any NVIDIA device.

    runc looks there for the devices that systemd may allow.
    """
    return read.value(any(name.startswith(NVIDIA_MAJOR + ":") for name in read.names_in("/dev/char")))


def _has_sys_nice(content):
    """Return whether this process, and so its container, has CAP_SYS_NICE."""
    return bool(int(re.search(r"^CapBnd:\s*([0-9a-f]+)", content, re.M).group(1), 16) >> CAP_SYS_NICE & 1)
