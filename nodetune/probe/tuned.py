"""tuned: the active profile."""

import os
import re

from . import read

MAIN = "/etc/tuned/tuned-main.conf"
WANTED = "/etc/systemd/system/multi-user.target.wants"
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


def reapplies_sysctl():
    """Return whether tuned, at each boot, reads sysctl.d once more and then /etc/sysctl.conf. Raise OSError.

    It does so after the settings of its own plugin for kernel parameters, with or without a link in sysctl.d.
    """
    active = profile().get("value")
    if active is None or "tuned.service" not in read.names_in(WANTED):
        return False
    plugins = [section.get("type", {}).get("value", name) for name, section in active["settings"].items()]
    return active["reapply_sysctl"] and "sysctl" in plugins
