"""Installed packages according to dpkg and rpm."""

from ansible.module_utils.nodetune_host import command

ASK = {
    "apt": ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\\n"],
    "dnf": ["rpm", "-q", "--qf", "ii|%{NAME}|%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"],
}


def versions(manager, names=()):
    """Return name → version of the installed ones of `names` (apt, without names: all packages). Raise ChangeError."""
    return {name: found[-1] for name, found in every_version(manager, names).items()}


def every_version(manager, names=()):
    """Return all versions of each package: rpm has two after an interrupted transaction. Raise ChangeError."""
    found = {}
    for each in (line.split("|") for line in command.attempt([*ASK[manager], *names])[1].splitlines()):
        if len(each) == 3 and each[0].strip() == "ii" and each[2] not in found.setdefault(each[1], []):
            found[each[1]].append(each[2])
    return found
