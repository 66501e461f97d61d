"""An inventory is read whole or not at all: what Ansible would pass over, and why a file could not be read, in words."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from nodetune import show
from nodetune.hosts import BadInventory
from nodetune.inventory import programs


def manager(said: list[str]) -> Any:
    """Ansible's InventoryManager, made to fail where it would go on without a part of the inventory."""
    from ansible import constants
    from ansible.inventory.manager import InventoryManager

    class Strict(InventoryManager):  # type: ignore[misc]
        def parse_source(self, source: str, cache: bool = False) -> bool:
            """One file, or a folder of them, by the plugins that a file of its kind is meant for."""
            path, enabled = Path(source), constants.INVENTORY_ENABLED
            if path.is_dir():
                return bool(super().parse_source(source, cache=cache))
            heard = len(said)
            constants.INVENTORY_ENABLED = [name for name in enabled if name.rpartition(".")[2] not in _unfit(path)]
            try:
                with programs.watched(_short(path)) as watch:
                    parsed = bool(super().parse_source(source, cache=cache))
            finally:
                constants.INVENTORY_ENABLED = enabled
            if not parsed:
                raise BadInventory(f"{_short(path)}{_why(path, said[heard:], watch)}")
            return parsed

    return Strict


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _unfit(path: Path) -> tuple[str, ...]:
    """Plugins that would make something of a file that is not meant for them: INI of broken YAML or of a script's source."""
    if path.suffix in (".yml", ".yaml", ".json"):
        return ("ini", "host_list", "advanced_host_list", "script")
    try:
        with path.open("rb") as stream:
            is_script = stream.read(2) == b"#!" and os.fstat(stream.fileno()).st_mode & stat.S_IXUSR
    except OSError as problem:
        raise BadInventory(f"{_short(path)}: {(problem.strerror or str(problem)).lower()}") from None
    return (
        ("ini", "yaml", "toml", "auto", "host_list", "advanced_host_list")
        if is_script
        else ("host_list", "advanced_host_list")
    )


def _reason(said: list[str]) -> str:
    """Why no plugin could read a file, from what Ansible said meanwhile."""
    failures = [" ".join(text.split()) for text in said if "ailed to parse" in text]
    telling = [text for text in failures if "not YAML inventory" not in text] or failures
    if not telling:
        return "Ansible cannot read it as an inventory: try ansible-inventory --list -i on it"
    found = re.search(r"with '?(\w+)'? (?:inventory )?plugin:? (.*)", telling[-1])
    text = found[2] if found else telling[-1]
    text = re.split(r" Failed to parse inventory with| Origin: | <<< | The error appears| Syntax Error while", text)[0]
    text = text.removeprefix("Failed to parse inventory: ")
    return show.plain(text, 300)


def _why(path: Path, said: list[str], watch: programs.Watch) -> str:
    """Where and why no plugin could read a file, as what follows its name."""
    if watch.given_up:
        return f": {watch.given_up}"
    reason = _reason(said)
    number, text = _open_bracket(path) if "to unpack" in reason else (0, "")
    if number:
        return f" line {number}: {show.plain(text, 60)!r} lacks a bracket: write [group], or host[01:16]"
    if watch.last_words and watch.last_words not in reason:
        reason = f"{reason.rstrip('.')}; it said: {watch.last_words}"
    return f"{_line(path)}: {reason}"


def _open_bracket(path: Path) -> tuple[int, str]:
    """Line and text of the first section or host of an INI inventory that has a bracket too few or too many."""
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        text = line.strip() if line.lstrip().startswith("[") else f"{line} ".split(" ")[0]
        if text[:1] not in ("#", ";") and text.count("[") != text.count("]"):
            return number, text
    return 0, ""


def _line(path: Path) -> str:
    """Where the YAML of a file breaks, if it does."""
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
