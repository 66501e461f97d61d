"""The kubelet's settings and the devices registered with it: `kubernetes.*`. The API server is not asked.

A setting comes from a flag of the running kubelet, else its drop-in folder, else its configuration file. A name that
none of them contains is left out: the kubelet then uses its documented default, which a check may know.
"""

import json
import os
import re

from . import processes, read

CONFIG = "/var/lib/kubelet/config.yaml"
PLUGINS = "/var/lib/kubelet/device-plugins"
UNITS = (
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service",
    "/lib/systemd/system/kubelet.service",
)
SETTINGS = {
    "topologyManagerPolicy": "--topology-manager-policy",
    "topologyManagerScope": "--topology-manager-scope",
    "cpuManagerPolicy": "--cpu-manager-policy",
    "reservedSystemCPUs": "--reserved-cpus",
    "memoryManagerPolicy": "--memory-manager-policy",
    "podPidsLimit": "--pod-max-pids",
    "failSwapOn": "--fail-swap-on",
    "cgroupDriver": "--cgroup-driver",
    "containerRuntimeEndpoint": "--container-runtime-endpoint",
}


def collect(names, step):
    step("processes")
    words, embedded = _running()
    installed = bool(read.find_tool("kubelet")) or any(read.exists(path) for path in (CONFIG, *UNITS))
    yield "present", read.value(bool(words or embedded or installed))
    step("kubelet's configuration")
    yield "kubelet", _kubelet(words, embedded, installed)
    step(PLUGINS)
    yield "plugins", read.tried(_plugins)
    yield "devices", read.file_fact(PLUGINS + "/kubelet_internal_checkpoint", _devices)


def _running():
    """Return the running kubelet's command line, and the distribution that contains it (k3s)."""
    try:
        found = processes.running()
    except OSError:
        return [], None
    words = processes.cmdline(processes.daemon(found["kubelet"])) if "kubelet" in found else []
    return words, next((name for name in ("k3s", "rke2") if name in found), None)


def _kubelet(words, embedded, installed):
    flags = dict(re.match(r"(--[\w-]+)=?(.*)", word).groups() for word in words if word.startswith("--"))
    flags.update((word, words[at + 1]) for at, word in enumerate(words[:-1]) if word in flags and "=" not in word)
    path = flags.get("--config") or CONFIG
    if not words and embedded:
        return read.absent(
            "{} runs the kubelet in its own process: its settings are not in a separate file".format(embedded)
        )
    if not words and not installed:
        return read.absent("no kubelet on this host")
    try:
        settings = settings_of(_text_if_there(path))
        for name in _drop_ins(flags.get("--config-dir")):
            settings.update(settings_of(read.text(name)))
    except OSError as problem:
        return read.unread("{}: {}".format(problem.filename or path, read.why(problem)))
    except ValueError:
        return read.unread("{}: not a kubelet configuration".format(path))
    if not settings and not words:
        return read.absent("no kubelet runs and {} has no settings".format(path))
    settings.update((name, flags[flag]) for name, flag in SETTINGS.items() if flag in flags)
    return read.value({"file": path, "settings": settings, "running": bool(words)})


def _text_if_there(path):
    try:
        return read.text(path)
    except FileNotFoundError:
        return ""


def _drop_ins(folder):
    return [os.path.join(folder, name) for name in read.names_in(folder) if name.endswith(".conf")] if folder else []


def settings_of(content):
    """Return the wanted top-level entries of a KubeletConfiguration, YAML or JSON, as text.

    This is not a YAML parser: these entries are always a top-level `name: value` on one line.
    """
    if content.startswith("{"):
        data = json.loads(content)
        found = [(name, json.dumps(data[name]).strip('"')) for name in SETTINGS if name in data]
    else:
        found = re.findall(r"^(\w+):[ \t]*[\"']?([^\"'#\n]*?)[\"']?[ \t]*(?:#.*)?$", content, re.M)
    return {name: text for name, text in found if name in SETTINGS and text}


def _plugins():
    """Return sockets of device plugins, and of plugins that registered by the newer way (DRA drivers)."""
    sockets = [name for name in read.names_in(PLUGINS) if name.endswith(".sock") and name != "kubelet.sock"]
    drivers = [name for name in read.names_in("/var/lib/kubelet/plugins_registry") if name.endswith(".sock")]
    return read.value(sorted(sockets + drivers))


def _devices(content):
    """Return {resource: registered devices} from the kubelet's record; replicas of a shared GPU count once."""
    try:
        registered = json.loads(content)["Data"]["RegisteredDevices"] or {}
        return {
            name: len({device.partition("::")[0] for device in devices or []}) for name, devices in registered.items()
        }
    except (AttributeError, TypeError):
        raise ValueError("not the kubelet's record")
