"""Answers about inventories, kept in the user's cache folder until something that determines them changes.

An answer is kept only if files alone determine it: Ansible's own plugins read plain files, and no connection variable
has a template in it. Answers with a password or a file encrypted by Ansible Vault are never kept. An answer is valid
while the inventory, its variables, every ansible.cfg, the ANSIBLE_* variables of the environment, Ansible itself and
this package are unchanged: it contains a digest of all their contents.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nodetune.foundation import file_io

MAX_ENTRIES = 100
MAX_FILES = 20_000
MAX_BYTES = 64 << 20
"""Limits for a digest. A folder with more content is not a folder of inventories."""

VAULT = b"$ANSIBLE_VAULT"
PASSWORDS = ("password", "become_password")

Answer = dict[str, Any]


class NoDigestError(Exception):
    """The answer depends on something other than file contents, or on a secret."""


def load(path: Path) -> Answer | None:
    """Return the cached answer if Ansible would give it again."""
    try:
        with _entry(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():
                return None  # ssh's arguments start programs: nobody else may give them to us
            kept = json.load(stream)
        answer: Answer = kept["answer"]
        return answer if kept["digest"] == digest(path) else None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, NoDigestError):
        return None


def store(path: Path, ask: Callable[[], Answer]) -> Answer:
    """Return the answer of `ask`. Cache it if files alone determine it and none changed meanwhile."""
    before = _known_digest(path)
    answer = ask()
    fixed = answer.pop("fixed") and not any(host[name] for host in answer["hosts"] for name in PASSWORDS)
    if fixed and before and before == _known_digest(path):
        with suppress(OSError, RuntimeError):
            entry = _entry(path)
            entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file_io.write(entry, json.dumps({"digest": before, "answer": answer}))
            _prune(entry.parent)
    return answer


def _prune(folder: Path) -> None:
    """Keep the newest answers: inventories written for one run are never used again."""
    for each in sorted(folder.glob("*.json"), key=lambda entry: entry.stat().st_mtime)[:-MAX_ENTRIES]:
        each.unlink(missing_ok=True)


def _entry(path: Path) -> Path:
    """Return one file for an inventory as seen from the current folder, which may have an ansible.cfg."""
    above = os.environ.get("XDG_CACHE_HOME") or ""
    folder = Path(above) if above.startswith("/") else Path.home() / ".cache"
    place = hashlib.sha256(json.dumps([str(path.absolute()), str(Path.cwd())]).encode())
    return folder / "nodetune" / "inventories" / f"{place.hexdigest()[:32]}.json"


def _known_digest(path: Path) -> str:
    with suppress(OSError, RuntimeError, NoDigestError):
        return digest(path)
    return ""


def digest(path: Path) -> str:
    """Digest everything that determines Ansible's answer about an inventory.

    Raise NoDigestError, OSError or RuntimeError.
    """
    settings = {name: text for name, text in os.environ.items() if name.startswith("ANSIBLE_")}
    if any("$" in text for text in settings.values()):
        raise NoDigestError("another variable of the environment counts")
    found = hashlib.sha256(json.dumps([_place(path), sorted(settings.items())]).encode())
    size = 0
    for number, (name, content) in enumerate(_contents(path)):
        size += len(content)
        if number > MAX_FILES or size > MAX_BYTES or VAULT in content:
            raise NoDigestError(name)
        found.update(json.dumps([name, hashlib.sha256(content).hexdigest()]).encode())
    return found.hexdigest()


def _place(path: Path) -> list[Any]:
    """Return the user and folder of the call.

    Ansible ignores ansible.cfg in a world-writable folder, and uses the user's plugins.
    """
    folders = Path.home() / ".ansible" / "plugins", Path("/usr/share/ansible/plugins")
    plugins = [folder / kind for folder in folders for kind in ("inventory", "vars")]
    here = Path.cwd()
    return [
        str(path.absolute()),
        str(here),
        here.stat().st_mode,
        str(Path.home()),
        [str(each) for each in plugins if each.is_dir()],
    ]


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the relevant files."""
    variables = [] if path.is_dir() else [path.parent / "group_vars", path.parent / "host_vars"]
    for source in (path, *variables):
        for file in files(source):
            yield f"{file} {_is_executable(file)}", file.read_bytes()
    for file in _settings_files():
        content = file.read_bytes()
        if b"$" in content:
            raise NoDigestError(str(file))
        yield str(file), content
    for program in _programs():
        state = program.stat()
        yield f"{program} {state.st_size} {state.st_mtime_ns}", b""


def files(source: Path) -> Iterator[Path]:
    """Yield the files that Ansible may read for a source: the source itself, or all visible files below it."""
    if not source.is_dir():
        yield from [source] if source.exists() else []
        return
    for each in sorted(source.iterdir()):
        if not each.name.startswith("."):
            yield from files(each)


def _is_executable(file: Path) -> bool:
    """Return whether a file may be a script. Raise NoDigestError for a pipe or device: it can be read only once."""
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode):
        raise NoDigestError(str(file))
    return bool(mode & stat.S_IXUSR)


def _settings_files() -> list[Path]:
    """Return every ansible.cfg that Ansible may use."""
    named = Path(os.environ.get("ANSIBLE_CONFIG") or "ansible.cfg").expanduser()
    own = Path("ansible.cfg"), Path.home() / ".ansible.cfg", Path("/etc/ansible/ansible.cfg")
    places = (named, named / "ansible.cfg", *own)
    return [each for each in places if each.is_file()]


def _programs() -> list[Path]:
    """Return files that differ in another version of Ansible or of this package."""
    ansible = find_spec("ansible")
    folders = [Path(ansible.origin).parent] if ansible and ansible.origin else []
    return [folder / "release.py" for folder in folders] + sorted(Path(__file__).parent.glob("*.py"))
