"""Ansible inventories → hosts with their connection variables.

Ansible's own classes read them in a separate process (child.py): they need settings and state of the whole process,
start programs without a time limit, and print anywhere. Reading the formats without them would be a second
Ansible, and a wrong list of hosts is worse than a slow one. The cost (half a second of CPU) is paid once: while
no relevant file changes, cache.py has the answer.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nodetune.foundation import ownership, text
from nodetune.hosts.connection_options import Vault
from nodetune.hosts.inventory import cache, child, data_only, programs, strict
from nodetune.hosts.patterns import InventoryError
from nodetune.hosts.target import Target

Groups = dict[str, list[str]]
ANSIBLE_CFG = Path("ansible.cfg")


ENDING = re.compile(r"\.(ya?ml|ini|json|toml)$")
"""Endings of file names that host names do not have."""


FACTS = re.compile(rb'"schema":\s*"nodetune\.facts/')
FIRST = 1 << 16
"""Bytes of a file that name its schema."""

MAX_SEEN = 20


def read(path: Path, typed: str = "/", vault: Vault | None = None, named_by: str = "") -> tuple[list[Target], Groups]:
    """Read every host of an Ansible inventory, and its groups. Raise InventoryError.

    `typed` is what the user typed. If it is not a path, a program in the current folder that has the name of a host
    must not run, and a file of another user that has the name of a host is not read. `named_by` is the place in a project's
    settings that names the inventory, for one that the user did not name: nothing in it may run a program.
    """
    answer = None if named_by and ANSIBLE_CFG.exists() else cache.load(path)
    if answer is None:
        answer = cache.store(path, lambda: _checked(path, _ask(path, typed, vault or Vault(), named_by), named_by))
    found = [_target(each) for each in answer["hosts"]]
    return [data_only.checked(each, named_by) for each in found] if named_by else found, answer["groups"]


def _ask(path: Path, typed: str, vault: Vault, named_by: str) -> programs.Answer:
    own = [each for each in cache.files(path) if _is_program(each)]
    if own and named_by:
        raise InventoryError(data_only.refusal(f"{programs.short(own[0])} is a program", named_by))
    if own and "/" not in typed:
        raise InventoryError(
            f"{programs.short(own[0])} is a program: to run it as an inventory, write -i {_typed(own[0])}"
        )
    if "/" not in typed and not ENDING.search(typed):  # its variables may call programs
        _refuse_foreign(path)
    for each in own:
        why = ownership.writable_by_others(each)
        if why:
            raise InventoryError(f"{programs.short(each)} is a program and is not run: {why}")
    _check_vault(vault)
    with _settings(named_by) as settings:
        answer = programs.ask(path, own, settings, vault, data=bool(named_by))
    return {**answer, "fixed": False} if settings and "hosts" in answer else answer


def _check_vault(vault: Vault) -> None:
    """Raise InventoryError for a vault password file that is missing, or that is a program that others can write."""
    for _, name in vault.files:
        path = Path(name)
        if not path.is_file():
            raise InventoryError(f"the vault password file {programs.short(path)} is missing")
        why = ownership.writable_by_others(path) if os.access(path, os.X_OK) else ""
        if why:
            raise InventoryError(f"{programs.short(path)} is a program and is not run: {why}")


def _refuse_foreign(path: Path) -> None:
    """Raise InventoryError for an inventory that others can write and that has the name of a host."""
    why = next(filter(None, map(ownership.writable_by_others, cache.files(path))), "")
    if why:
        name = programs.short(path)
        raise InventoryError(
            f"{name} may be a host name, so the file is not read ({why}): to use it as an inventory, write -i {_typed(path)}"
        )


def _typed(path: Path) -> str:
    """Return a path as a user must type it so that it is not taken for a name."""
    name = programs.short(path)
    return name if "/" in name else f"./{name}"


def _is_program(path: Path) -> bool:
    """Return whether the file is a program; the child reports files that cannot be read."""
    try:
        return child.is_program(str(path))
    except child.SourceError:
        return False


@contextmanager
def _settings(named_by: str) -> Iterator[dict[str, str]]:
    """Yield variables that make Ansible ignore an ansible.cfg here that it must not use: it can name programs."""
    here = ANSIBLE_CFG.absolute()
    why = ""
    if not os.environ.get("ANSIBLE_CONFIG") and here.exists():
        why = f"{named_by} names the inventory (-i uses it)" if named_by else ownership.writable_by_others(here)
    if not why:
        yield {}
        return
    print(f"nodetune: ansible.cfg is ignored: {text.plain(why)}", file=sys.stderr)
    own = (Path.home() / ".ansible.cfg", Path("/etc/ansible/ansible.cfg"))
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "ansible.cfg"
        empty.touch()
        yield {"ANSIBLE_CONFIG": str(next((each for each in own if each.is_file()), empty))}


def _checked(path: Path, answer: programs.Answer, named_by: str) -> programs.Answer:
    """Return an answer with hosts in it. Raise InventoryError."""
    if ("source" in answer or "error" in answer or not answer["hosts"]) and _has_facts(path):
        name = programs.short(path)
        raise InventoryError(f"{name} has saved facts and is not an inventory: did you mean --facts {name}?")
    if "source" in answer:
        raise InventoryError(data_only.explained(strict.message(**answer), named_by))
    if "error" in answer:
        raise InventoryError(f"{path}: {strict.one_line(answer['error'])}")
    names = [host["name"] for host in answer["hosts"]]
    if not names:
        raise InventoryError(f"{path} lists no hosts: add hosts, or name them on the command line")
    for name in names:
        if text.plain(name) != name:
            raise InventoryError(f"{path}: {text.plain(name, 60)!r} is not a host name: is this file an inventory?")
    return answer


def _has_facts(path: Path) -> bool:
    """Return whether this is a file of saved facts, or a folder with some."""
    files = sorted(path.glob("*.json"))[:MAX_SEEN] if path.is_dir() else [path]
    with suppress(OSError):
        for each in files:
            if each.is_file():
                with each.open("rb") as stream:
                    if FACTS.search(stream.read(FIRST)):
                        return True
    return False


def _target(host: Mapping[str, Any]) -> Target:
    ranks = tuple((name, depth, priority) for name, depth, priority in sorted(host["ranks"]))
    if "problem" in host:
        return Target(host["name"], ranks=ranks, problem=f"in the inventory: {strict.one_line(host['problem'])}")
    groups = tuple(name for name, _, _ in ranks if name not in ("all", "ungrouped"))
    return Target(**{**host, "ssh_args": tuple(host["ssh_args"]), "groups": groups, "ranks": ranks})
