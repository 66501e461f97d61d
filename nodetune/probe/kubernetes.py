"""The kubelet's settings, what its managers remember, and the devices registered with it: `kubernetes.*`.

The API server is not asked. A setting comes from a flag of the running kubelet, else its drop-in folder, else its
configuration file. A name that none of them contains is left out: the kubelet then uses its documented default, which a
check may know. Options of a policy are written as in their flag: `full-pcpus-only=true,strict-cpu-reservation=true`.
"""

import json
import os
import re

from nodetune.onhost import cpu_list
from . import processes, read

CONFIG = "/var/lib/kubelet/config.yaml"
MANAGERS = {"cpu": "/var/lib/kubelet/cpu_manager_state", "memory": "/var/lib/kubelet/memory_manager_state"}
PLUGINS = "/var/lib/kubelet/device-plugins"
UNITS = (
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service",
    "/lib/systemd/system/kubelet.service",
)
SETTINGS = {
    "topologyManagerPolicy": "--topology-manager-policy",
    "topologyManagerPolicyOptions": "--topology-manager-policy-options",
    "topologyManagerScope": "--topology-manager-scope",
    "cpuManagerPolicy": "--cpu-manager-policy",
    "cpuManagerPolicyOptions": "--cpu-manager-policy-options",
    "reservedSystemCPUs": "--reserved-cpus",
    "memoryManagerPolicy": "--memory-manager-policy",
    "podPidsLimit": "--pod-max-pids",
    "failSwapOn": "--fail-swap-on",
    "cgroupDriver": "--cgroup-driver",
    "containerRuntimeEndpoint": "--container-runtime-endpoint",
}
OPTION = r"[\"']?([\w-]{1,64})[\"']?[ \t]*:[ \t]*[\"']?([\w.-]{1,64})"


def collect(names, step):
    step("processes")
    words, embedded = _running()
    installed = bool(read.find_tool("kubelet")) or any(read.exists(path) for path in (CONFIG, *UNITS))
    yield "present", read.value(bool(words or embedded or installed))
    step("kubelet's configuration")
    yield "kubelet", _kubelet(words, embedded, installed)
    step("state of the kubelet's managers")
    yield "managers", read.each({name: read.file_fact(path, _manager) for name, path in MANAGERS.items()})
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

    This is not a YAML parser: these entries are always a top-level `name: value` on one line, or below it for options.
    """
    if content.startswith("{"):
        data = json.loads(content)
        found = [(name, _as_flag(data[name])) for name in SETTINGS if name in data]
    else:
        found = re.findall(r"^(\w+):[ \t]*[\"']?([^\"'#\n{]*?)[\"']?[ \t]*(?:#.*)?$", content, re.M)
        below = re.findall(r"^(\w+Options):[ \t]*(?:#.*)?\n((?:[ \t]+.*(?:\n|\Z))+)", content, re.M)
        inline = re.findall(r"^(\w+Options):[ \t]*\{(.*)\}", content, re.M)
        found += [(name, _as_flag(dict(re.findall(OPTION, text)))) for name, text in below + inline]
    return {name: text for name, text in found if name in SETTINGS and text}


def _as_flag(value):
    """Return a value as its flag takes it."""
    if isinstance(value, dict):
        return ",".join("{}={}".format(name, value[name]) for name in sorted(value))
    return json.dumps(value).strip('"')


def _manager(content):
    """Return the policy in the state of a manager, and for CPUs all that the state knows: shared and given to pods."""
    state = json.loads(content)
    try:
        found = {"policy": str(state["policyName"])}
        if "defaultCpuSet" in state:
            lists = [state["defaultCpuSet"], *_texts(state.get("entries") or {})]
            found["cpus"] = cpu_list.fold({cpu for each in lists for cpu in cpu_list.parse(each)})
    except (AttributeError, TypeError):
        raise ValueError("not the state of a manager")
    return found


def _texts(entries):
    """Return the CPU lists in {pod: {container: list}}, which older kubelets write as {container: list}."""
    lists = []
    for each in entries.values():
        lists += [each] if isinstance(each, str) else each.values()
    return lists


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
