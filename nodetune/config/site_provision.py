"""The `provision:` key of a site file: package sources, the parts of a node, and the final steps."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nodetune.foundation.yaml_lines import LocatedYaml

PARTS = (
    "driver",
    "fabric-manager",
    "persistenced",
    "imex",
    "dcgm",
    "dcgm-exporter",
    "container-toolkit",
    "rdma",
    "gds",
    "tools",
    "time",
    "nccl",
)
"""In the order of installation."""

DEFAULT_PARTS = tuple(part for part in PARTS if part not in ("imex", "dcgm-exporter", "gds"))
"""IMEX is for GPUs whose NVLink fabric joins several nodes (GB200 NVL72 …), the exporter for a site that has a Prometheus, GPUDirect
Storage for one whose storage and programs use it: only the site knows.
"""

ADDRESS = re.compile(r"(https?|file)://?[^\s\"']+")
LARGEST_KEY = 1 << 20


@dataclass(frozen=True)
class Repository:
    """A package source: `apt` or `dnf` as in the file, with the content of the key instead of its path."""

    name: str
    systems: tuple[str, ...] = ()
    apt: Mapping[str, str] | None = None
    dnf: Mapping[str, str] | None = None

    def serves(self, manager: str, names: tuple[str, ...]) -> bool:
        """Return whether it serves this package manager and one of these systems (rocky-9.4, rhel-9)."""
        if (self.apt if manager == "apt" else self.dnf) is None:
            return False
        return not self.systems or any(fnmatchcase(name, pattern) for name in names for pattern in self.systems)

    def data(self, manager: str) -> dict[str, Any]:
        """Return the data for the playbook."""
        return {"name": self.name, manager: dict((self.apt if manager == "apt" else self.dnf) or {})}


@dataclass(frozen=True)
class Provision:
    """The whole key, checked."""

    file: str = ""
    repositories: tuple[Repository, ...] = ()
    parts: tuple[str, ...] = DEFAULT_PARTS
    branch: str = ""
    modules: str = "auto"
    build: str = "dkms"
    rdma: str = "inbox"
    nccl: str = ""
    """A folder with NCCL on the hosts; empty if NCCL comes from packages."""

    guard: str = ""
    join: str = "none"
    baseline: Path | None = None


def read(file: LocatedYaml) -> Provision | None:
    """Read the key of a site file, or return None if it is missing. Raise FileError."""
    given = (file.data or {}).get("provision")
    if given is None:
        return None
    driver, parts = given.get("driver", {}), _parts(file, given)
    branch = str(driver.get("branch", ""))
    if "driver" in parts and not re.fullmatch(r"\d{3,4}", branch):
        file.fail('driver needs a branch such as {branch: "580"}', "provision", "driver", "branch")
    return Provision(
        file.file,
        _repositories(file, given.get("repositories", [])),
        parts,
        branch,
        driver.get("modules", Provision.modules),
        driver.get("build", Provision.build),
        given.get("rdma", {}).get("stack", Provision.rdma),
        _nccl(file, given.get("nccl", {})),
        given.get("guard") or Provision.guard,
        given.get("join", Provision.join),
        Path(file.file).parent / given["baseline"] if "baseline" in given else None,
    )


def _parts(file: LocatedYaml, given: Mapping[str, Any]) -> tuple[str, ...]:
    found = given.get("parts", DEFAULT_PARTS)
    needs_driver = [part for part in ("fabric-manager", "persistenced", "imex") if part in found]
    if needs_driver and "driver" not in found:
        file.fail(f"{needs_driver[0]} must have the driver's version: also set driver", "provision", "parts")
    if "dcgm-exporter" in found and "dcgm" not in found:
        file.fail("dcgm-exporter needs the libraries of DCGM: also set dcgm", "provision", "parts")
    if "gds" in found and given.get("driver", {}).get("modules") == "proprietary":
        file.fail("gds needs the open kernel modules of the driver: modules: open", "provision", "parts")
    return tuple(part for part in PARTS if part in found)


def _nccl(file: LocatedYaml, given: Mapping[str, Any]) -> str:
    if "path" in given and given.get("packages"):
        file.fail("nccl comes from packages or from a path: keep one", "provision", "nccl")
    return str(given.get("path", ""))


def _repositories(file: LocatedYaml, given: Sequence[Mapping[str, Any]]) -> tuple[Repository, ...]:
    made = tuple(_repository(file, number, each) for number, each in enumerate(given))
    names = [each.name for each in made]
    for number, name in enumerate(names):
        if name in names[:number]:
            file.fail(f"two repositories have the name {name}", "provision", "repositories", number, "name")
    return made


def _repository(file: LocatedYaml, number: int, given: Mapping[str, Any]) -> Repository:
    systems = given.get("systems", [])
    kind = "apt" if "apt" in given else "dnf"
    texts = _texts(file, given[kind], kind, "provision", "repositories", number, kind)
    return Repository(given["name"], (systems,) if isinstance(systems, str) else tuple(systems), **{kind: texts})


def _texts(file: LocatedYaml, given: Mapping[str, Any], kind: str, *at: Any) -> dict[str, str]:
    """Read one repository. Its texts go into a file of the package manager, so each must be one line."""
    found = {key: " ".join(each) if isinstance(each, list) else each for key, each in given.items()}
    for key, each in found.items():
        if not each.isprintable() or not (each or key == "components"):
            file.fail(f"{key} must be one line of text", *at, key)
    place = "uris" if kind == "apt" else "baseurl"
    addresses = found[place].split()
    if not addresses or not all(ADDRESS.fullmatch(each) for each in addresses):
        file.fail(f"{place} must be an address: http://…, https://… or file:/…", *at, place)
    return {**{key: each for key, each in found.items() if key != "key"}, "key_text": _key(file, found, *at)}


def _key(file: LocatedYaml, found: Mapping[str, str], *at: Any) -> str:
    """Read the key that signs the packages."""
    path = Path(file.file).parent / found["key"]
    try:
        text = path.read_bytes()[:LARGEST_KEY].decode("ascii")
    except OSError as problem:
        file.fail(f"{path}: {(problem.strerror or str(problem)).lower()}", *at, "key")
    except UnicodeDecodeError:
        text = ""
    if "-----BEGIN PGP PUBLIC KEY BLOCK-----" not in text:
        file.fail(f"{path} is not an armoured public key: gpg --armor --export KEY > {path}", *at, "key")
    return text
