"""How the hosts of a run are selected and reached: the options of the command line, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nodetune.foundation.request import limited, one_of

if TYPE_CHECKING:
    from nodetune.hosts.target import Target

MAX_FORKS = 16
"""Hosts at a time for Ansible. Each is a process of some 60 MiB, where a probe is a thread."""

TRANSPORTS = ("auto", "paramiko", "openssh", "slurm", "kubernetes", "local")


@dataclass(frozen=True)
class Cluster:
    """A Kubernetes cluster, and the pods through which its nodes are reached.

    `context` is one of the kubeconfig (None: the current one). `image`: for a pod on nodes that have none.
    """

    context: str | None = None
    namespace: str = "nodetune"
    image: str | None = None


@dataclass(frozen=True)
class SessionOptions:
    """Limits and options for the sessions of all hosts in a run.

    `seconds` is the deadline of one host from name look-up to the last byte; `connect_seconds` for the connection.
    """

    seconds: float = limited(40, 1, 3600, whole=False)
    connect_seconds: float = 10.0
    most_bytes: int = 4 << 20
    """Limit for one answer, a hundred times a real one. Unpacked: onhost/protocol.py; one fact: facts/shapes.py."""

    most_said: int = 16 << 20
    """Limit for everything in a live session, which may take hours."""

    accept_new_host_keys: bool = False
    cluster: Cluster = field(default_factory=Cluster)


@dataclass(frozen=True)
class Vault:
    """Passwords for Ansible Vault in addition to those of ansible.cfg: labels with files and labels with passwords."""

    files: tuple[tuple[str, str], ...] = ()
    passwords: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    typed: tuple[str, ...] = ()
    """The options as typed, for proposed commands."""


@dataclass(frozen=True)
class ConnectionOptions:
    """How to reach the hosts: see the options of the same names on the command line."""

    inventory: str | None = None
    inventory_named_by: str = ""
    """The place in a project's settings that names the inventory; empty if the user names it."""

    limit: str | None = None
    forks: int = limited(64, 1, 4096)
    transport: str = one_of("auto", TRANSPORTS)
    options: SessionOptions = field(default_factory=SessionOptions)
    become: bool = False
    become_password: str | None = None
    user: str | None = None
    private_key: str | None = None
    port: int | None = limited(None, 1, 65535)
    vault: Vault = field(default_factory=Vault)
    only: frozenset[str] | None = None
    """The hosts that --failed-of selects; None for all."""

    failed_of: str = ""
    """The file given to --failed-of, for proposed commands."""

    @property
    def words(self) -> list[str]:
        """The options that select these hosts and the way to them, for proposed commands."""
        given = (
            ("--transport", "" if self.transport == "auto" else self.transport),
            *self._cluster,
            ("-i", self.inventory),
            ("-l", self.limit),
            ("--failed-of", self.failed_of),
            ("-u", self.user),
            ("--private-key", self.private_key),
            ("--port", self.port),
        )
        found = [word for option, value in given if value for word in (option, str(value))]
        become = ["-b" if self.become_password is None else "-K"] if self.become else []
        return [*found, *self.vault.typed, *become]

    @property
    def _cluster(self) -> tuple[tuple[str, str | None], ...]:
        given = self.options.cluster
        if self.transport != "kubernetes":
            return ()
        namespace = "" if given.namespace == Cluster.namespace else given.namespace
        return ("--context", given.context), ("--namespace", namespace), ("--image", given.image)

    def wants(self, host: str) -> bool:
        """Return whether --failed-of selects a host."""
        return self.only is None or host in self.only

    def applied_to(self, target: Target) -> Target:
        """Return a host of the inventory with these options instead of its own."""
        changes: dict[str, object] = {"connection": "local"} if self.transport == "local" else {}
        if self.become:
            changes["become"] = True
        if self.become_password is not None:
            changes["become_password"] = self.become_password
        given = {"user": self.user, "key_file": self.private_key, "port": self.port}
        changes.update({name: value for name, value in given.items() if value})
        return replace(target, **changes) if changes else target  # type: ignore[arg-type]
