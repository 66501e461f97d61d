"""Settings of a playbook as changes for role changes. Files come from nodetune's own templates, filled in as nodetune does."""

import fnmatch
import json
import os

from ansible.errors import AnsibleFilterError
from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "templates")
HOST_CODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3, "module_utils", "nodetune_host")
SETTINGS = "# settings: "
FREE = ("none", "new sessions")
"""Disruptions that disturb no running work; all others wait for idle GPUs."""

SWAPPED = str.maketrans("./", "/.")


def group(changes, name, disruption="none"):
    """Return a group of changes."""
    guard = {} if disruption in FREE else {"gpu_idle": True}
    return {"group": name, "disruption": disruption, "timed": False, "guard": guard, "checks": [], "changes": changes}


def values(settings):
    """Return the changes of files of the kernel: {path: value}."""
    return [{"change": "value", "path": path, "value": text} for path, text in texts(settings).items()]


def sysctls(settings):
    """Return the changes of kernel parameters: {name: value}."""
    return values({"/proc/sys/" + name.translate(SWAPPED): value for name, value in settings.items()})


def texts(settings):
    """Return settings as texts, a list as its parts."""
    return {name: _text(name, value) for name, value in settings.items()}


def _text(name, value):
    if isinstance(value, (list, tuple)):
        return " ".join(_text(name, each) for each in value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise AnsibleFilterError(f"{name}: {value!r} is neither a number nor a text: write it in quotes")
    text = str(value)
    if not text.isprintable() or text != text.strip():
        raise AnsibleFilterError(f"{name}: {text!r} is not one line of plain text")
    return text


def file(settings, path, template, subject, **more):
    """Return the change of a file that the playbook owns."""
    back = f"ansible-playbook playbooks/{subject}.yml -e nodetune_state=reverted"
    text = _templates().get_template(template).render(settings=_plain(settings), back=back, **more)
    return {"change": "file", "path": path, "content": text, "mode": "0644"}


def edit(keys, path, how, name):
    """Return the change of a file of others: `how` is a function of edits.py, `name` what it takes the keys as."""
    return {"change": "edit", "path": path, "how": how, "with": {name: _plain(keys)}}


def handlers(commands):
    """Return the commands that make files effective."""
    return [{"change": "run", "run": command} for command in commands]


def program(modules, name):
    """Return the files of the program of nodetune-NAME.service: the modules that also make the change now."""
    found = []
    for module in modules:
        with open(os.path.join(HOST_CODE, module + ".py")) as source:
            path = f"/usr/local/lib/nodetune/{name}/nodetune_host/{module}.py"
            found.append({"change": "file", "path": path, "content": source.read(), "mode": "0644"})
    return found


def limits(units, settings, subject, restart):
    """Return a drop-in with these limits for each unit, and what makes them effective."""
    found = []
    for unit in units if settings else ():
        path = f"/etc/systemd/system/{unit}.d/zz-nodetune-{subject}.conf"
        found.append(file({"Service": texts(settings)}, path, "dropin.conf.j2", subject))
    if not restart or not found:
        return found
    restarts = [{"change": "run", "run": f"restart {unit}", "of": one["path"]} for unit, one in zip(units, found)]
    return found + handlers(["daemon-reload"]) + restarts


def queues(settings, disks):
    """Return the changes of disks' queues: {attribute: {pattern: value}}."""
    return [
        {"change": "value", "path": f"/sys/block/{disk}/queue/{attribute}", "value": _text(attribute, value)}
        for attribute, patterns in settings.items()
        for pattern, value in patterns.items()
        for disk in sorted(fnmatch.filter(disks, pattern))
    ]


def mounts(settings):
    """Return the changes of mount options: {mount point: option}."""
    found = []
    for point, option in settings.items():
        given = {"mount_point": point, "option": _text(point, option)}
        found.append({"change": "edit", "path": "/etc/fstab", "how": "fstab_option", "with": given})
        found.append(dict(given, change="mount"))
    return found


def gpu_changes(settings, gpus):
    """Return the changes of GPUs: {setting: value}."""
    return [
        {"change": "gpu", "setting": setting, "gpus": _plain(gpus), "value": _plain(value)}
        for setting, value in settings.items()
    ]


def gpu_boot(before, settings, gpus):
    """Return what is set at boot: what was before, and these settings for these GPUs. The GPU itself keeps ECC."""
    lines = [line for line in before.splitlines() if line.startswith(SETTINGS)]
    found = json.loads(lines[0][len(SETTINGS) :]) if lines else {}
    for setting, value in settings.items():
        if setting != "ecc_mode":
            found.setdefault(setting, {}).update({str(gpu): _plain(value) for gpu in gpus})
    return found


def _plain(value):
    """Return data without what Ansible adds to it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _templates():
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["line"] = lambda settings: SETTINGS + json.dumps(settings, sort_keys=True)
    return made


class FilterModule:
    def filters(self):
        every = (
            group,
            values,
            sysctls,
            texts,
            file,
            edit,
            handlers,
            program,
            limits,
            queues,
            mounts,
            gpu_changes,
            gpu_boot,
        )
        return {f"nodetune_{each.__name__}": each for each in every}
