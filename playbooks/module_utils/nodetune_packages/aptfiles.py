"""The files of a provision for apt: the site's repositories and pins. Pure."""

import re

from .ownfiles import HEADER, of_repositories

SOURCES = "/etc/apt/sources.list.d"
KEYS = "/etc/apt/keyrings"
PINS = "/etc/apt/preferences.d/nodetune.pref"
LEFT_ALONE = "/etc/apt/apt.conf.d/52nodetune"


def repository_files(repositories, root=""):
    """Return path → text of the files that add the site's repositories to apt."""
    source, key = f"{root}{SOURCES}/nodetune-{{}}.sources", f"{root}{KEYS}/nodetune-{{}}.asc"
    return of_repositories(repositories, "apt", source, key, _lines)


def _lines(name, apt, key):
    lines = ["Types: deb", f"URIs: {apt['uris']}", f"Suites: {apt['suites']}"]
    lines += [f"Components: {apt['components']}"] if apt.get("components") else []
    return lines + ([f"Signed-By: {key}"] if key else [])


def pin_files(versions):
    """Return path → text of files that pin these versions: apt and unattended upgrades install no others."""
    if not versions:
        return {PINS: None, LEFT_ALONE: None}
    pins = [pin(name, version) for name, version in sorted(versions.items())]
    plain = (re.sub("[.+]", r"[\g<0>]", name) for name in sorted(versions))  # the names are patterns there
    names = "".join(f'  "^{name}$";\n' for name in plain)
    end = "; apt may then move these packages"
    return {
        # 1001: also back to an older version (apt_preferences(5))
        PINS: HEADER.format(end) + "\n" + "\n".join(pins),
        LEFT_ALONE: HEADER.format(end) + "Unattended-Upgrade::Package-Blacklist {\n" + names + "};\n",
    }


def pin(names, version, priority=1001):
    return f"Package: {names}\nPin: version {version}\nPin-Priority: {priority}\n"
