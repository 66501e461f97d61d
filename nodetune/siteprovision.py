"""The `provision:` key of a site file: where packages come from, which parts a node gets, what becomes of it at the end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nodetune.located import Located

PARTS = (
    "driver",
    "fabric-manager",
    "persistenced",
    "imex",
    "dcgm",
    "container-toolkit",
    "rdma",
    "tools",
    "time",
    "nccl",
)
"""In the order in which they are installed."""

DEFAULT_PARTS = tuple(part for part in PARTS if part != "imex")
"""IMEX is for GPUs whose NVLink fabric joins several nodes (GB200 NVL72 …): only a site knows that it has one."""

MODULES, BUILDS, STACKS = ("auto", "open", "proprietary"), ("dkms",), ("inbox", "doca")
GUARDS, JOINS = (False, "observe", "enforce"), ("none", "slurm", "kubernetes")
KEYS = ("repositories", "parts", "driver", "rdma", "nccl", "guard", "join", "baseline")
ADDRESS = re.compile(r"(https?|file)://?[^\s\"']+")
LARGEST_KEY = 1 << 20


@dataclass(frozen=True)
class Repository:
    """Where packages come from. `apt` or `dnf` as in the file, with the text of the key instead of its name."""

    name: str
    systems: tuple[str, ...] = ()
    apt: Mapping[str, str] | None = None
    dnf: Mapping[str, str] | None = None

    def serves(self, manager: str, names: tuple[str, ...]) -> bool:
        """Whether it is meant for a host with this package manager that goes by these names (rocky-9.4, rhel-9)."""
        if (self.apt if manager == "apt" else self.dnf) is None:
            return False
        return not self.systems or any(fnmatchcase(name, pattern) for name in names for pattern in self.systems)

    def data(self, manager: str) -> dict[str, Any]:
        """As the playbook takes it."""
        return {"name": self.name, manager: dict((self.apt if manager == "apt" else self.dnf) or {})}


@dataclass(frozen=True)
class Provision:
    """All of it, checked."""

    file: str = ""
    repositories: tuple[Repository, ...] = ()
    parts: tuple[str, ...] = DEFAULT_PARTS
    branch: str = ""
    modules: str = "auto"
    build: str = "dkms"
    rdma: str = "inbox"
    nccl: str = ""
    """A folder with NCCL on the hosts; empty: from packages."""

    guard: str = ""
    join: str = "none"
    baseline: Path | None = None


def read(file: Located) -> Provision | None:
    """The key of a site file; None where it has none. Raises located.BadFile."""
    given = (file.data or {}).get("provision")
    if given is None:
        return None
    _known(file, given, KEYS, "provision")
    driver = _section(file, given, "driver", ("branch", "modules", "build"))
    if driver.get("build") == "precompiled":
        file.fail(
            "build: precompiled is not supported: the names of such packages are not known; write build: dkms, or leave it out",
            *("provision", "driver", "build"),
        )
    parts = _parts(file, given)
    branch = str(driver.get("branch", ""))
    if "driver" in parts and not re.fullmatch(r"\d{3,4}", branch):
        file.fail('driver wants a branch, such as {branch: "580"}', "provision", "driver", "branch")
    return Provision(
        file.file,
        _repositories(file, given),
        parts,
        branch,
        _one_of(file, driver, MODULES, "driver", "modules"),
        _one_of(file, driver, BUILDS, "driver", "build"),
        _one_of(file, _section(file, given, "rdma", ("stack",)), STACKS, "rdma", "stack"),
        _nccl(file, given),
        _one_of(file, given, GUARDS, "guard") or "",
        _one_of(file, given, JOINS, "join"),
        _baseline(file, given),
    )


def _known(file: Located, given: Any, keys: tuple[str, ...], *path: Any) -> None:
    if not isinstance(given, dict):
        file.fail(f"{path[-1]} wants a mapping with: {', '.join(keys)}", *path)
    for key in given:
        if key not in keys:
            file.fail(f"{path[-1]} has no {key!r}: there are {', '.join(keys)}", *path, key)


def _section(file: Located, given: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = given.get(name, {})
    _known(file, found, keys, "provision", name)
    return found


def _one_of(file: Located, given: Mapping[str, Any], words: tuple[Any, ...], *path: str) -> Any:
    """A setting that is one of a few words; the first where it is not given."""
    found = given.get(path[-1], words[0])
    if found not in words or isinstance(found, bool) != (found is False):
        shown = ", ".join("false" if word is False else word for word in words)
        file.fail(f"{path[-1]} is one of {shown}", "provision", *path)
    return found


def _parts(file: Located, given: Mapping[str, Any]) -> tuple[str, ...]:
    found = given.get("parts", list(DEFAULT_PARTS))
    if not isinstance(found, list) or not found:
        file.fail(f"parts wants a list of: {', '.join(PARTS)}", "provision", "parts")
    for number, each in enumerate(found):
        if each not in PARTS:
            file.fail(f"no part is called {each!r}: there are {', '.join(PARTS)}", "provision", "parts", number)
    needs_driver = [part for part in ("fabric-manager", "persistenced", "imex") if part in found]
    if needs_driver and "driver" not in found:
        file.fail(f"{needs_driver[0]} has to be of the driver's version: name driver as well", "provision", "parts")
    return tuple(part for part in PARTS if part in found)


def _nccl(file: Located, given: Mapping[str, Any]) -> str:
    found = _section(file, given, "nccl", ("packages", "path"))
    path = found.get("path")
    if path is not None and (not isinstance(path, str) or not path.startswith("/")):
        file.fail("path wants the full path of a folder on the hosts, such as /sw/nccl", "provision", "nccl", "path")
    if path and found.get("packages"):
        file.fail("nccl comes from packages or from a path: keep one", "provision", "nccl")
    return path or ""


def _baseline(file: Located, given: Mapping[str, Any]) -> Path | None:
    found = given.get("baseline")
    if found is not None and (not isinstance(found, str) or not found):
        file.fail("baseline wants the name of a file, such as baselines/good.json", "provision", "baseline")
    return Path(file.file).parent / found if found else None


def _repositories(file: Located, given: Mapping[str, Any]) -> tuple[Repository, ...]:
    found = given.get("repositories", [])
    if not isinstance(found, list):
        file.fail("repositories wants a list of {name, apt or dnf, systems}", "provision", "repositories")
    made = tuple(_repository(file, number, each) for number, each in enumerate(found))
    names = [each.name for each in made]
    for number, name in enumerate(names):
        if name in names[:number]:
            file.fail(f"two repositories are called {name}", "provision", "repositories", number, "name")
    return made


def _repository(file: Located, number: int, given: Any) -> Repository:
    at = ("provision", "repositories", number)
    if not isinstance(given, dict):
        file.fail("a repository is {name, apt or dnf, systems}", *at)
    for key in given:
        if key not in ("name", "systems", "apt", "dnf"):
            file.fail(f"a repository has no {key!r}: there are name, systems, apt, dnf", *at, key)
    name = given.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        file.fail("name wants small letters, digits and dashes: it is part of a file's name on the hosts", *at, "name")
    systems = given.get("systems", [])
    systems = [systems] if isinstance(systems, str) else systems
    if not isinstance(systems, list) or not all(isinstance(each, str) for each in systems):
        file.fail("systems wants a list such as [debian-12, rhel-*]", *at, "systems")
    kinds = [kind for kind in ("apt", "dnf") if given.get(kind) is not None]
    if len(kinds) != 1:
        file.fail(f"{name} wants one of apt and dnf", *at)
    texts = _texts(file, given[kinds[0]], kinds[0], *at, kinds[0])
    return Repository(name, tuple(systems), **{kinds[0]: texts})


TEXTS = {"apt": ("uris", "suites", "components", "key"), "dnf": ("baseurl", "key")}


def _texts(file: Located, given: Any, kind: str, *at: Any) -> dict[str, str]:
    """What one repository says of itself: words that end up in a file of the package manager, so one line each."""
    _known(file, given, TEXTS[kind], *at)
    found = {key: " ".join(each) if isinstance(each, list) else each for key, each in given.items()}
    for key, each in found.items():
        if not isinstance(each, str) or not each.isprintable():
            file.fail(f"{key} wants one line of text", *at, key)
    place = TEXTS[kind][0]
    addresses = found.get(place, "").split()
    if not addresses or not all(ADDRESS.fullmatch(each) for each in addresses):
        file.fail(f"{place} wants an address: http://…, https://… or file:/…", *at, place)
    if kind == "apt" and not found.get("suites"):
        file.fail('apt wants suites ("/" for a repository without any)', *at)
    return {**{key: each for key, each in found.items() if key != "key"}, "key_text": _key(file, found, *at)}


def _key(file: Located, found: Mapping[str, str], *at: Any) -> str:
    """The text of the key that the packages are signed with."""
    if not found.get("key"):
        file.fail("key is missing: the file with the public key that this repository is signed with", *at)
    path = Path(file.file).parent / found["key"]
    try:
        text = path.read_bytes()[:LARGEST_KEY].decode("ascii")
    except OSError as problem:
        file.fail(f"{path}: {(problem.strerror or str(problem)).lower()}", *at, "key")
    except UnicodeDecodeError:
        text = ""
    if "-----BEGIN PGP PUBLIC KEY BLOCK-----" not in text:
        file.fail(f"{path} is no armoured public key: gpg --armor --export KEY > {path}", *at, "key")
    return text
