"""Inventories that a project's settings file names: the user did not choose them, so nothing in them runs a program."""

import sys
from dataclasses import replace

from nodetune.foundation import text
from nodetune.hosts.target import Target

HARMLESS = """addressfamily batchmode bindaddress ciphers compression connectionattempts connecttimeout controlmaster
controlpath controlpersist gssapiauthentication hostkeyalgorithms hostname identitiesonly identityfile kexalgorithms
loglevel macs numberofpasswordprompts passwordauthentication port preferredauthentications proxyjump
pubkeyauthentication serveralivecountmax serveraliveinterval stricthostkeychecking tcpkeepalive user
userknownhostsfile""".split()  # noqa: SIM905  (thirty words)
"""Keywords of ssh_config that start no program. ProxyCommand, KnownHostsCommand, PKCS11Provider and Include are not among them."""


MAY_RUN = "may run programs"


def refusal(what: str, named_by: str) -> str:
    """Return why something of an inventory is not used, and how to use it."""
    return (
        f"{what}, and {text.plain(named_by)} names this inventory: to trust it, name it with -i or in your own settings"
    )


def explained(problem: str, named_by: str) -> str:
    """Return a problem; one that child.py has only with --data, with the way to use the inventory."""
    return refusal(problem, named_by) if named_by and problem.endswith(MAY_RUN) else problem


def checked(target: Target, named_by: str) -> Target:
    """Return a host, with a problem if reaching it would run a program that the inventory names."""
    if target.problem:
        return replace(target, problem=explained(target.problem, named_by))
    why = _program_of(target)
    return replace(target, problem=refusal(why, named_by)) if why else target


def _program_of(target: Target) -> str:
    if target.connection == "local" and target.python not in ("python3", sys.executable):
        return "ansible_python_interpreter would run on this host"
    words = iter(target.ssh_args)
    for word in words:
        if word in ("-C", "-4", "-6", "-q"):
            continue
        flag, value = word[:2], word[2:] or next(words, "")
        keyword = value.strip().replace("=", " ").partition(" ")[0]
        if flag != "-J" and (flag != "-o" or keyword.lower() not in HARMLESS):
            return f"the SSH argument {text.plain(f'{flag} {value}', 60)} {MAY_RUN}"
    return ""
