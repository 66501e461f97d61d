"""The requests of the commands of `nodetune guard`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nodetune
from nodetune.foundation.request import RequestError, built, limited, one_of, part
from nodetune.guard.deploy import policy as guard_policy
from nodetune.guard.deploy.paths import PYTHONS
from nodetune.guard.node.policy import ACTS, MODES
from nodetune.hosts.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection

MANIFESTS = ("daemonset", "nrc", "npd", "dra", "alerts", "fixes", "verify", "clear", "all")
DNS_NAME = "[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
IMAGE = r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"


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
class ManifestsRequest:
    """Print manifests for Kubernetes. `enforce`: the checks that make a problem; `device`: POOL/DEVICE of device taints.

    `gpus`: how many an idle node has free, for a Job that measures it.
    """

    kind: str = one_of("daemonset", MANIFESTS)
    selection: Selection = built()
    enforce: tuple[str, ...] = ()
    image: str = f"nodetune-node:{nodetune.__version__}"
    kubernetes: str = "1.32"
    device: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ("nvidia.com/gpu.present=true",)
    gpus: int = limited(8, 1, 64)

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if not re.fullmatch(r"v?1\.\d{1,3}(\.\d+)?", self.kubernetes):
            raise RequestError(f"--kubernetes is {self.kubernetes!r}: give a version such as 1.32")
        for each in self.device:
            if not re.fullmatch(rf"{DNS_NAME}/{DNS_NAME}", each):
                raise RequestError(f"--device is {each!r}: give POOL/DEVICE, such as gpu-node-1/gpu-3")
        for each in self.node_labels:
            if not re.fullmatch(r"[\w./-]+=[\w.-]*", each, re.ASCII):
                raise RequestError(f"--node-label is {each!r}: give NAME=VALUE, such as nvidia.com/gpu.present=true")
        if not re.fullmatch(IMAGE, self.image):
            raise RequestError(f"--image is {self.image!r}: give REGISTRY/NAME:TAG, or REGISTRY/NAME@sha256:DIGEST")

    @property
    def version(self) -> tuple[int, int]:
        """The oldest API server of the cluster."""
        major, minor = self.kubernetes.removeprefix("v").split(".")[:2]
        return int(major), int(minor)

    @property
    def node_selector(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self.node_labels)


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
