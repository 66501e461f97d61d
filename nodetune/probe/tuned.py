"""tuned: the active profile, and its conflicts with sysctl.d."""

import os
import re

from nodetune.onhost import sysctl

from . import persisted, read

MAIN = "/etc/tuned/tuned-main.conf"
FOLDERS = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")


def profile():
    """Return the active profile with its included profiles, and every setting with its file."""
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
            "post_loaded": read.text_or("/etc/tuned/post_loaded_profile").strip(),
            "reapply_sysctl": _main().get("reapply_sysctl", "1").lower() not in ("0", "false", "no", "off"),
            "home": _home(),
        }
    )


def _main():
    """Return the settings of tuned-main.conf, which has no sections."""
    return ini(read.text_or(MAIN)).get("", {})


def _home():
    """Return the folder for the host's own profiles, empty if tuned reads neither: 2.23 moved them."""
    asked = re.split(r"[,;]", _main().get("profile_dirs", ""))
    if asked != [""]:
        return next((folder for folder in FOLDERS[:2] if folder in [each.strip() for each in asked]), "")
    return FOLDERS[0] if read.exists(FOLDERS[2]) else FOLDERS[1]


def _add_profile(name, chain, settings):
    """Append a profile after its included profiles: later settings win. `chain` starts with the active one."""
    folders = [os.path.join(folder, name, "tuned.conf") for folder in FOLDERS]
    path = next((each for each in folders if read.exists(each)), None)
    if path is None or name in [each["name"] for each in chain] or len(chain) > 20:
        return
    chain.append({"name": name, "file": path})
    sections = ini(read.text(path))
    for included in re.split(r"[,;\s]+", sections.get("main", {}).get("include", "")):
        _add_profile(included.lstrip("-"), chain, settings)
    for section, pairs in sections.items():
        for key, setting in pairs.items():
            settings.setdefault(section, {})[key] = {"value": setting, "file": path}


def ini(content):
    """Parse a simple configuration file into {section: {key: text}}."""
    sections, current = {}, ""
    for line in map(str.strip, content.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            current = line[1:-1]
        elif "=" in line and line[0] not in "#;":
            key, _, setting = line.partition("=")
            sections.setdefault(current, {})[key.strip()] = re.split(r"\s#", setting)[0].strip()
    return sections


def conflicts():
    """Return kernel parameters that tuned and a sysctl.d file set to different values: [{name, tuned, …}]."""
    active = profile().get("value")
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
