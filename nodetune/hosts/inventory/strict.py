"""Explain in one line why an inventory could not be read, with the file and, if known, the place."""

import re
from collections.abc import Sequence
from pathlib import Path

from nodetune.foundation import text as plain_text
from nodetune.hosts.inventory.programs import short

_TYPE = re.compile(r", got: <class '[^']*'>")
"""A Python type, which does not help users."""


def message(source: str, reason: str, logged: Sequence[str]) -> str:
    """Describe where and why a source could not be read: `reason`, or what Ansible logged."""
    path = Path(source)
    text = reason or _reason(logged)
    number, line = _open_bracket(path) if "to unpack" in text else (0, "")
    if number:
        return f"{short(path)} line {number}: {plain_text.plain(line, 60)!r} lacks a bracket: write [group], or host[01:16]"
    last = _last_line_of_script(logged)
    if last and last not in text:
        text = f"{text.rstrip('.')}; it said: {last}"
    return f"{short(path)}{_place(path)}: {text}"


def one_line(text: str) -> str:
    """Return Ansible's message without its quotation of the file and its advice to debug."""
    if "decrypt" in text or "vault secret" in text.lower():
        variable = re.match(r"ansible_\w+(?=: )", text)
        return f"{variable[0] if variable else 'a variable'} is encrypted with Ansible Vault, and none of the given passwords opens it: use --ask-vault-pass, --vault-password-file, or vault_password_file in ansible.cfg"
    lines = [line.strip() for line in _TYPE.sub("", text).splitlines() if line.strip()]
    return plain_text.plain(" ".join(lines[:3]), 300)


def _reason(logged: Sequence[str]) -> str:
    """Return why no plugin could read a file."""
    failures = [" ".join(text.split()) for text in logged if "ailed to parse" in text]
    telling = [text for text in failures if "not YAML inventory" not in text] or failures
    if not telling:
        return "Ansible cannot read it as an inventory: try ansible-inventory --list -i on it"
    found = re.search(r"with '?(\w+)'? (?:inventory )?plugin:? (.*)", telling[-1])
    text = found[2] if found else telling[-1]
    text = re.split(r" Failed to parse inventory with| Origin: | <<< | The error appears| Syntax Error while", text)[0]
    text = _TYPE.sub("", text.removeprefix("Failed to parse inventory: "))
    return plain_text.plain(text, 300)


def _last_line_of_script(logged: Sequence[str]) -> str:
    """Return the last line that a failed script wrote to standard error (ansible-core before 2.19 has no reason)."""
    for text in logged:
        errors = text.partition("Standard error from inventory script:")[2].split("\n")
        lines = [line.strip() for line in errors if line.strip()]
        if lines:
            return plain_text.plain(lines[-1], 200)
    return ""


def _open_bracket(path: Path) -> tuple[int, str]:
    """Return line and text of the first section or host of an INI inventory with unbalanced brackets."""
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        text = line.strip() if line.lstrip().startswith("[") else f"{line} ".split(" ")[0]
        if text[:1] not in ("#", ";") and text.count("[") != text.count("]"):
            return number, text
    return 0, ""


def _place(path: Path) -> str:
    """Return where the YAML of a file is invalid, if anywhere."""
    import yaml

    if path.suffix not in (".yml", ".yaml"):
        return ""
    try:
        yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        return f" line {problem.problem_mark.line + 1}" if problem.problem_mark else ""
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return ""
