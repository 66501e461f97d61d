"""Settings of Lustre clients, from the files behind `lctl get_param`: `lustre.*`.

A file system may have thousands of targets, so values are reported for each file system: those of any target.
"""

import re

from . import read

FOLDERS = ("/sys/fs/lustre", "/proc/fs/lustre")
"""The folders of the files in releases from 2.12 on and before."""

SETTINGS = {
    "osc": ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb", "checksums"),
    "llite": ("max_read_ahead_mb", "max_read_ahead_per_file_mb", "statahead_max"),
}
TARGET = {"osc": re.compile(r"([\w.]{1,64})-OST[0-9a-f]{4}-osc-"), "llite": re.compile(r"([\w.]{1,64})-[0-9a-f]{6,}$")}
"""Names of devices: lustre-OST0000-osc-ffff9f0e6533a000 (a server has some without the number), lustre-ffff9f0e6533a000."""

NUMBER = re.compile(r"(\d{1,12})(?:\.\d+)?$")
MAX_DEVICES = 4096
MAX_VALUES = 16


def collect(names, step):
    for kind, settings in SETTINGS.items():
        step("settings of " + kind)
        yield kind, read.tried(_settings, kind, settings)


def _settings(kind, settings):
    """Return {file system: {"folder", "devices", setting: [the smallest values that any of its devices has]}}."""
    found = {}
    for folder in FOLDERS:
        for name in read.names_in("{}/{}".format(folder, kind))[:MAX_DEVICES]:
            known = TARGET[kind].match(name)
            if known:
                about = found.setdefault(known.group(1), {"folder": folder, "devices": 0})
                about["devices"] += about["folder"] == folder
                for setting in settings:
                    number = NUMBER.match(read.text_or("{}/{}/{}/{}".format(folder, kind, name, setting)))
                    about.setdefault(setting, set()).update([int(number.group(1))] if number else [])
    for about in found.values():
        about.update((setting, sorted(about[setting])[:MAX_VALUES]) for setting in settings)
    return read.value(found) if found else read.absent("no Lustre file system is mounted")
