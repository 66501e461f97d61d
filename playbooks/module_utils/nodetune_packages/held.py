"""What is installed, asked of dpkg and rpm themselves."""

from ansible.module_utils.nodetune_host import command

ASK = {
    "apt": ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\\n"],
    "dnf": ["rpm", "-q", "--qf", "ii|%{NAME}|%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"],
}


def versions(manager, names=()):
    """Name → version of those of `names` that are installed (apt, without names: of everything). Raises Problem."""
    lines = (line.split("|") for line in command.attempt([*ASK[manager], *names])[1].splitlines())
    return {each[1]: each[2] for each in lines if len(each) == 3 and each[0].strip() == "ii"}
