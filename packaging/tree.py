"""The files of the packages: guard and collector of pull mode, as their own installers make them, and the zipapp of a controller."""

# ruff: noqa: INP001  (a program, not part of a package)

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune.audit.selection import Selection
from nodetune.cli import main
from nodetune.cli.commands import completion
from nodetune.foundation.request import built, one_of
from nodetune.guard.deploy import archive, node_changes, paths, slurm_conf
from nodetune.guard.deploy.kubernetes import manifests, pods
from nodetune.guard.deploy.paths import CHECK, POLICY, SERVICE, TIMER
from nodetune.guard.deploy.request import InstallRequest, ManifestsRequest
from nodetune.guard.node.policy import MODES
from nodetune.remote.pull import collector

LIB, UNITS, DOC = "/usr/lib/nodetune", "/usr/lib/systemd/system", "/usr/share/doc"
HOME = f"{LIB}/guard"
MAINTAINER, URL = "nodetune <maintainers@nodetune.invalid>", "https://nodetune.invalid"
"""Of what nobody has published: a name that no domain can have."""

COMPLETIONS = {
    "bash": "/usr/share/bash-completion/completions/nodetune",
    "fish": "/usr/share/fish/vendor_completions.d/nodetune.fish",
    "zsh": "/usr/share/zsh/vendor-completions/_nodetune",
}


@dataclass(frozen=True)
class PackagesRequest:
    """Build the packages: the policy of the guard, the folder, interval (in seconds) and user of the collector, and the zipapp."""

    selection: Selection = built()
    mode: str = one_of("observe", MODES)
    textfile: str = ""
    folder: str = "/var/lib/nodetune/facts"
    every: int = 1800
    user: str = ""
    maintainer: str = MAINTAINER
    url: str = URL
    zipapp: Path | None = None


@dataclass(frozen=True)
class Package:
    """One package: its files (path → mode, content), and which of them an operator may change."""

    name: str
    summary: str
    text: str
    python: str
    files: Mapping[str, tuple[int, bytes]]
    settings: tuple[str, ...]
    units: tuple[str, ...]
    enabled: str = ""
    program: str = ""
    folder: str = ""


def packages(request: PackagesRequest) -> tuple[Package, ...]:
    """Raise UserError for a wrong setting or site file."""
    settings = collector.Settings(request.folder, request.every, request.user)
    nodes = _guard(request), _pull(request.selection.facts(), settings)
    return (*nodes, _controller(request.zipapp)) if request.zipapp else nodes


def _controller(zipapp: Path) -> Package:
    found = b"#!/usr/bin/env python3"
    # as long as before: an archive states where in the file its parts begin
    program = zipapp.read_bytes().replace(found, b"#!/usr/bin/python3".ljust(len(found)), 1)
    page = (Path(__file__).parents[1] / "docs/nodetune.1").read_bytes()
    return Package(
        "nodetune",
        "audit of GPU servers",
        "nodetune audits GPU servers by OpenSSH, and judges saved facts. This is its zipapp, which has neither Ansible nor paramiko:"
        " to change hosts, install the wheel.",
        "3.10",
        {
            "/usr/bin/nodetune": (0o755, program),
            "/usr/share/man/man1/nodetune.1.gz": (0o644, gzip.compress(page, 9, mtime=0)),
            **_texts(0o644, {path: completion.script(main.group, shell) for shell, path in COMPLETIONS.items()}),
        },
        (),
        (),
    )


def _guard(request: PackagesRequest) -> Package:
    InstallRequest(textfile=request.textfile, timer=True)
    policy = {**manifests.guard_policy(ManifestsRequest(selection=request.selection)), "mode": request.mode}
    made = archive.archive()
    place = node_changes.GuardPaths(
        HOME, f"{HOME}/{made.name}", "/usr/bin/python3", "remove the package nodetune-guard"
    )
    conf = "".join(f"{name}={_words(value)}\n" for name, value in slurm_conf.LINES.items()).replace(paths.HOME, HOME)
    return Package(
        "nodetune-guard",
        "check of GPUs before and after jobs",
        "nodetune's guard runs gating checks before a job, after it, and while the node is idle. Slurm calls it;"
        " a timer runs it where there is no Slurm.",
        "3.9",
        {
            **{f"{place.program}/{name}": (0o644, archive.content(source)) for name, source in archive.files().items()},
            **_texts(0o755, node_changes.scripts(policy, place)),
            f"{HOME}/{CHECK}": (0o755, node_changes.check_script(policy, place).encode()),
            **_texts(
                0o644, {f"{UNITS}/{name}": text for name, text in node_changes.units(place, request.textfile).items()}
            ),
            POLICY: (0o644, pods.policy_text(policy).encode()),
            f"{DOC}/nodetune-guard/slurm.conf": (0o644, conf.encode()),
        },
        (POLICY,),
        (TIMER, SERVICE),
        program=place.program,
    )


def _pull(names: Iterable[str], settings: collector.Settings) -> Package:
    place = collector.Place(f"{LIB}/pull/collect", UNITS, "remove the package nodetune-pull")
    files = collector.files(names, settings, place)
    return Package(
        "nodetune-pull",
        "collector of the facts of a GPU server",
        f"nodetune's collector writes the facts of this node to {settings.folder}, by a timer. An audit reads them there.",
        "3.6",
        {path: (int(mode, 8), files[path]) for path, mode in place.files.items()},
        (),
        (collector.TIMER, collector.SERVICE),
        enabled=collector.TIMER,
        folder=settings.folder,
    )


def _texts(mode: int, texts: Mapping[str, str]) -> dict[str, tuple[int, bytes]]:
    return {path: (mode, text.encode()) for path, text in texts.items()}


def _words(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
