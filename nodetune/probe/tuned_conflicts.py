"""Conflicts of tuned's active profile with sysctl.d."""

import re

from nodetune.onhost import sysctl

from . import persisted, read, tuned


def conflicts():
    """Return kernel parameters that tuned and a sysctl.d file set to different values: [{name, tuned, …}]."""
    active = tuned.profile().get("value")
    if active is None:
        return read.absent("no tuned profile is active")
    settings = active["settings"].get("sysctl", {})
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
