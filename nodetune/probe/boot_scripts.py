"""Settings of the site's own units and scripts at boot, after sysctl.d and tmpfiles.d: enabled services, rc.local, cloud-init.

Only literal values are found: `sysctl -w NAME=VALUE` and `echo VALUE > FILE`. Of what GPUs lose at a boot the command is found
that brings it back, also in cron's tables (@reboot) and udev's rules.
"""

import os
import re

from nodetune.onhost import sysctl

from . import cloud_init, read, udev_rules

SCRIPTS = ("/etc/rc.local", "/etc/rc.d/rc.local")
UNITS = "/etc/systemd/system"
OURS = "nodetune-"
MAX_BYTES = 64 << 10
MAX_LINE_LENGTH = 1000
MENTIONS = re.compile(r"\bsysctl\b|/proc/sys/|/sys/")
PATH = re.compile(r"(?<![\w./])/(?!proc/|sys/|dev/)[\w./@+-]+")
END = r"(?=\s+[\w./-]+=|\s+-|\s+\d>|\s*[>\"';&|#]|\s*$)"
LITERAL = r"[\w.:,+-][\w.:,+ \t-]*?"
OF_GPUS = {
    "persistence_mode": re.compile(
        r"\bnvidia-smi\b[^;&|]*(-pm|--persistence-mode)[ =]?(1|ENABLED)\b|\bnvidia-persistenced\b"
    ),
    "mig_devices": re.compile(
        r"\bnvidia-smi\s+mig\b[^;&|]*(-cgi|--create-gpu-instance)\b|\b(nvidia-)?mig-(parted|manager)\b"
    ),
}
OWN_UNITS = ("nvidia-persistenced.service", "nvidia-mig-manager.service")
"""Their facts say whether the next boot starts them, and whether they failed at this one."""
CRON, CRON_FOLDER = ("/etc/crontab", "/var/spool/cron/root", "/var/spool/cron/crontabs/root"), "/etc/cron.d"
RELOADS = re.compile(r"\bsysctl\s+(-\w*\s+)*(--system|-p|--load)\s*($|[;&|>\"'#])")


def files():
    """Return enabled services and scripts of the site that run at boot, scripts last."""
    found = []
    for folder in read.names_or_empty(UNITS):
        if folder.endswith((".wants", ".requires")):
            names = read.names_or_empty(os.path.join(UNITS, folder))
            found += [os.path.join(UNITS, folder, name) for name in names if name.endswith(".service")]
    return sorted(found) + [path for path in SCRIPTS if read.exists(path)] + cloud_init.scripts()


def lines():
    """Return (file, line number, text) of each line of these, and of the scripts that they start, that may set a value."""
    return [line for line in _all_lines() if MENTIONS.search(line[2])]


def of_gpus(name):
    """Return {value: command, file, line} of what sets a setting of GPUs (a name of OF_GPUS) at each boot, or None. Raise OSError."""
    rules = [(path, number, text) for path, number, text in udev_rules.lines() if "nvidia" in text]
    for path, number, text in _all_lines() + _cron() + rules:
        command = OF_GPUS[name].search(text)
        if command and os.path.basename(path) not in OWN_UNITS:
            return {"value": command.group(), "file": path, "line": number}
    return None


def _cron():
    """Return the lines that cron runs at each boot. Raise OSError: only root may read root's table."""
    paths = CRON + tuple(os.path.join(CRON_FOLDER, name) for name in read.names_or_empty(CRON_FOLDER))
    found = [(path, number, text) for path in paths for number, text in read.numbered_lines(path)]
    return [line for line in found if line[2].startswith("@reboot")]


def _all_lines():
    found = cloud_init.commands()
    for path in files():
        if not os.path.basename(path).startswith(OURS):
            found += _lines_of(path)
    return found


def _lines_of(path):
    found = _text_lines(path)
    if path.endswith(".service"):
        drop_ins = os.path.join(UNITS, os.path.basename(path) + ".d")
        for name in read.names_or_empty(drop_ins):
            found += _text_lines(os.path.join(drop_ins, name))
        found = [each for each in found if not each[2].startswith(("ExecStop", "ExecReload"))]
        started = [PATH.findall(text) for _, _, text in found if text.startswith("Exec")]
        for script in [each for paths in started for each in paths]:
            if _is_script(script):
                found += _text_lines(script)
    return found


def _is_script(path):
    try:
        return read.raw_bytes(path, 2) == b"#!"  # most are programs, of up to 100 MB
    except OSError:
        return False


def _text_lines(path):
    try:
        content = read.text(path, MAX_BYTES)
    except OSError:
        return []
    numbered = ((number, line.strip()) for number, line in enumerate(content.splitlines(), 1))
    return [
        (path, number, line)
        for number, line in numbered
        if line[:1] not in ("", "#", ";") and len(line) < MAX_LINE_LENGTH
    ]


def sets_sysctl(name, found):
    """Return {value, file, line} of the last of the lines that sets a kernel parameter, or None."""
    path = sysctl.path_of(name)
    found = [line for line in found if name in line[2] or sysctl.swapped(name) in line[2] or path in line[2]]
    known = "(?:{}|{})".format(re.escape(name), re.escape(sysctl.swapped(name)))
    written = r"\bsysctl\b.*(?<![\w./]){}\s*=\s*[\"']?({}){}".format(known, LITERAL, END)
    return _last([written, _redirected(path)], found)


def sets_file(path, found):
    """Return {value, file, line} of the last of the lines that writes a file of the kernel, or None."""
    return _last([_redirected(path)], [line for line in found if path in line[2]])


def reloads_sysctl_conf(found):
    """Return whether one of the lines has procps read /etc/sysctl.conf."""
    return any(RELOADS.search(text) for _, _, text in found)


def _redirected(path):
    target = r"[\"']?{}(?![\w/])".format(re.escape(path))
    return r"\b(?:echo|printf)\s+(?:-\w+\s+)?[\"']?({})[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s+(?:-\w+\s+)?)\s*{}".format(
        LITERAL, target
    )


def _last(patterns, found):
    for path, number, text in reversed(found):
        for pattern in patterns:
            setting = re.search(pattern, text)
            if setting:
                return {"value": read.number_or_text(setting.group(1).strip()), "file": path, "line": number}
    return None
