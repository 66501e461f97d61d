"""Commands that cloud-init runs at each boot: `bootcmd`, and scripts in per-boot.

Source: cloud-init's documentation of bootcmd ("runs on every boot") and of its paths. A list of user data replaces that of
the system's files. What runs once an instance (runcmd, write_files) rivals no file at the next boot.
"""

import os
import re

from . import read

ENABLED = "/run/cloud-init/enabled"
"""Made at each boot by cloud-init's generator where it is enabled."""

SYSTEM, DROP_INS, USER_DATA = (
    "/etc/cloud/cloud.cfg",
    "/etc/cloud/cloud.cfg.d",
    "/var/lib/cloud/instance/cloud-config.txt",
)
PER_BOOT = "/var/lib/cloud/scripts/per-boot"
MAX_BYTES = 256 << 10
KEY = re.compile(r"bootcmd\s*:(.*)")
FLOW = re.compile(r"^[\[\s]+|[\[\],]+\s+|[\s\]]+$")


def scripts():
    """Return the scripts that run at the end of each boot, in their order."""
    paths = [os.path.join(PER_BOOT, name) for name in read.names_or_empty(PER_BOOT)] if read.exists(ENABLED) else []
    return [path for path in paths if os.access(read.ROOT + path, os.X_OK)]


def commands():
    """Return (file, line number, text) of each command of the `bootcmd` in force."""
    if not read.exists(ENABLED):
        return []
    parts = [os.path.join(DROP_INS, name) for name in read.names_or_empty(DROP_INS) if name.endswith(".cfg")]
    for path in (USER_DATA, *reversed(parts), SYSTEM):
        found = _bootcmd(read.text_or(path)[:MAX_BYTES])
        if found is not None:
            return [(path, number, text) for number, text in found]
    return []


def _bootcmd(content):
    found, within = None, False
    for number, line in enumerate(content.splitlines(), 1):
        key = KEY.match(line)
        if key:
            found, within, outermost = [(number, _plain(key.group(1)))], True, None
        elif within and line[:1] not in ("", " ", "-", "#"):
            within = False
        elif within and line.strip()[:1] not in ("", "#"):
            indent = len(line) - len(line.lstrip())
            outermost = indent if outermost is None else outermost
            text = _plain(line)
            if indent > outermost and line.lstrip().startswith("- "):  # a word of a command that is a list
                found[-1] = (found[-1][0], found[-1][1] + " " + text)
            else:
                found.append((number, text))
    return found


def _plain(line):
    """Return an item as a command line: `- [sysctl, -w, a=1]` as `sysctl -w a=1`."""
    text = re.sub(r"^(-\s+)+", "", line.strip())
    return FLOW.sub(" ", text).strip() if text.startswith("[") else text
