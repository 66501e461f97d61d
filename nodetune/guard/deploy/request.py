"""The requests of the commands of `nodetune guard`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune.foundation.request import RequestError, built, one_of, part
from nodetune.guard.deploy import policy as guard_policy
from nodetune.guard.deploy.paths import PYTHONS
from nodetune.guard.node.policy import ACTS, MODES
from nodetune.hosts.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection


@dataclass(frozen=True)
class PolicySettings:
    """Settings of the policy. None, and what `settings` does not name: as installed, or the default."""

    mode: str | None = one_of(None, MODES)
    act: str | None = one_of(None, ACTS)
    shared: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise SettingError."""
        guard_policy.check_settings(self.by_name)

    @property
    def by_name(self) -> dict[str, Any]:
        """The settings as the policy has them, those that were given."""
        named = {"mode": self.mode, "act": self.act, "shared": self.shared}
        return {**self.settings, **{name: value for name, value in named.items() if value is not None}}


@dataclass(frozen=True)
class GuardDiffRequest:
    """Make the policy that an install would put on hosts."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    policy: PolicySettings = part(PolicySettings)


@dataclass(frozen=True)
class InstallRequest(GuardDiffRequest):
    """Install the guard with that policy. `textfile` is the metrics file that the timer writes."""

    python: str | None = None
    write_slurm_conf: bool = False
    reconfigure: bool = False
    timer: bool = False
    textfile: str = ""
    runs_folder: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.textfile and not self.timer:
            raise RequestError("--textfile needs --timer")
        if self.textfile and not self.textfile.endswith(".prom"):
            raise RequestError("the name of --textfile must end in .prom, as node-exporter requires")

    @property
    def pythons(self) -> tuple[str, ...]:
        """The interpreters that may run the program, best first."""
        return (self.python,) if self.python else PYTHONS


@dataclass(frozen=True)
class UninstallRequest:
    """Remove the guard from hosts."""

    connection: ConnectionOptions = built()
    reconfigure: bool = False
    runs_folder: Path | None = None


@dataclass(frozen=True)
class StatusRequest:
    """Look at nodes of Slurm (node sets; none: all)."""

    connection: ConnectionOptions = built()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResumeRequest:
    """Resume nodes of Slurm (node sets; none: all) that pass their checks again."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    nodes: tuple[str, ...] = ()
