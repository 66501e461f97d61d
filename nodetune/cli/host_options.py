"""Options that say which hosts a command works on and how it reaches them, and what they turn into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.core import ParameterSource

from nodetune.audit.request import AuditRequest
from nodetune.cli import settings, verbosity
from nodetune.cli.requests import F, complete, of, stack
from nodetune.hosts.connection_options import MAX_FORKS, Cluster, ConnectionOptions, SessionOptions, Vault

SCHEDULERS = {
    "slurm": " slurm: srun; without -i, on all nodes of the allocation.",
    "kubernetes": " kubernetes: exec into nodetune's pods; without -i, on all nodes; -i 'nodes: SELECTOR' by labels.",
}


def _transport(*schedulers: str) -> Callable[[F], F]:
    return click.option(
        "--transport",
        cls=settings.Setting,
        type=click.Choice(["auto", "paramiko", "openssh", *schedulers, "local"]),
        default="auto",
        show_default=True,
        help="How to reach hosts. auto: paramiko, or OpenSSH if that lacks a feature."
        + "".join(SCHEDULERS[each] for each in schedulers),
    )


class _Inventory(settings.Setting):
    def locate(self, folder: Path, value: str) -> str:
        """Return the inventory that a settings file in this folder means: one there, else what is typed."""
        if value.startswith("nodes:"):  # of Kubernetes
            return value
        endings = ("", ".yml", ".yaml", ".ini")
        there = [folder / value, *(folder / "inventories" / f"{value}{ending}" for ending in endings)]
        found = None if "," in value else next(filter(Path.exists, there), None)
        return str(found or (folder / value if "/" in value and "[" not in value else value))


class _VaultId(settings.Setting):
    def locate(self, folder: Path, value: str) -> str:
        label, at, file = value.rpartition("@")
        return value if file.startswith("prompt") else f"{label}{at}{folder / file}"


def _forks(more: str = "") -> Callable[[F], F]:
    told = f"Hosts in parallel{more}."
    return click.option("--forks", cls=settings.Setting, metavar="N", **of(ConnectionOptions, "forks"), help=told)


def _named(default: str) -> Callable[[F], F]:
    return stack(
        click.option(
            "-i",
            "--inventory",
            cls=_Inventory,
            metavar="INV",
            shell_complete=complete("inventory"),
            help=f"Inventory: a name in inventories/, a path, or hosts: gpu[001-128],login1. Default: {default}.",
        ),
        click.option(
            "-l",
            "--limit",
            metavar="PATTERN",
            shell_complete=complete("limit"),
            help="Only these hosts: Ansible patterns or node set.",
        ),
    )


def _which(default: str = "this host") -> Callable[[F], F]:
    return stack(
        _named(default),
        click.option(
            "--failed-of",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            metavar="FILE",
            help="Only hosts that failed in this audit, apply or verify (--format json).",
        ),
    )


_reached = stack(
    click.option(
        "--timeout",
        cls=settings.Setting,
        **of(SessionOptions, "seconds"),
        metavar="SECONDS",
        help="Deadline of a host.",
    ),
    click.option("-u", "--user", cls=settings.Setting, metavar="NAME", help="Log in as this user."),
    click.option(
        "-b",
        "--become/--no-become",
        cls=settings.Setting,
        default=False,
        help="Become root with sudo, or do not.",
    ),
    click.option(
        "-K",
        "--ask-become-pass",
        cls=settings.Setting,
        is_flag=True,
        help="Ask for the sudo password. Default: sudo -n.",
    ),
    click.option(
        "--private-key",
        cls=settings.Setting,
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Log in with this SSH key.",
    ),
    click.option("--port", cls=settings.Setting, **of(ConnectionOptions, "port"), metavar="PORT", help="Port of sshd."),
    click.option(
        "--vault-id",
        cls=_VaultId,
        multiple=True,
        metavar="LABEL@FILE",
        help="Ansible Vault: a label's password file, or LABEL@prompt. May be repeated.",
    ),
    click.option(
        "--vault-password-file",
        cls=settings.Setting,
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Ansible Vault: the password file.",
    ),
    click.option("--ask-vault-pass", cls=settings.Setting, is_flag=True, help="Ansible Vault: ask for the password."),
    click.option("--accept-new-host-keys", is_flag=True, help="Accept unknown host keys."),
    verbosity.options,
)

ANSIBLE_FORKS = f"; Ansible runs at most {MAX_FORKS}"
CLUSTER = {
    "context": ("NAME", "Kubernetes: the context of the kubeconfig. Default: the current one."),
    "namespace": ("NAME", "Kubernetes: the namespace of nodetune's pods."),
    "image": ("IMAGE", "Kubernetes: on nodes without a pod, run one of this image while they are read."),
}
_cluster = stack(
    *(
        click.option(f"--{name}", cls=settings.Setting, **of(Cluster, name), metavar=metavar, help=told)
        for name, (metavar, told) in CLUSTER.items()
    )
)
named = _named("all hosts of the history and the documents")
hosts = stack(_which(), _forks(), _reached, _transport())
one_host = stack(_which("HOST, by its name"), _forks(), _reached, _transport())
slurm_nodes = stack(_which("all nodes of Slurm, by their names"), _forks(), _reached, _transport())
changed_hosts = stack(_which(), _forks(ANSIBLE_FORKS), _reached, _transport())
hosts_of_run = stack(
    _which("the hosts of that run"), _forks(ANSIBLE_FORKS), _reached, _transport("kubernetes"), _cluster
)
changed_nodes = stack(_which(), _forks(ANSIBLE_FORKS), _reached, _transport("kubernetes"), _cluster)
hosts_or_nodes = stack(_which(), _forks(), _reached, _transport("slurm"))
hosts_or_pods = stack(_which(), _forks(), _reached, _transport("slurm", "kubernetes"), _cluster)


@dataclass(frozen=True)
class HostOptions:
    """The options as typed."""

    inventory: str | None = None
    limit: str | None = None
    failed_of: Path | None = None
    forks: int = ConnectionOptions.forks
    timeout: float = SessionOptions.seconds
    user: str | None = None
    become: bool = False
    ask_become_pass: bool = False
    private_key: str | None = None
    port: int | None = None
    vault_id: tuple[str, ...] = ()
    vault_password_file: str | None = None
    ask_vault_pass: bool = False
    accept_new_host_keys: bool = False
    transport: str = "auto"
    context: str | None = None
    namespace: str = Cluster.namespace
    image: str | None = None

    def built(self, become_password: str | None = None) -> ConnectionOptions:
        """Return what they say. May ask for passwords that are not given."""
        return _connection(self._without_needless_settings(), become_password)

    def _without_needless_settings(self) -> HostOptions:
        """Ignore settings that what was typed leaves no room for: saved facts need no host, and srun no login."""
        context = click.get_current_context(silent=True)
        if context is None:
            return self
        reaches_none = context.params.get("facts_path") or context.params.get("compare")
        needless = FOR_HOSTS if reaches_none else FOR_SSH.get(self.transport, ())
        if context.get_parameter_source("become") is ParameterSource.COMMANDLINE and not self.become:
            needless = (*needless, "ask_become_pass")
        return replace(self, **{name: getattr(NONE, name) for name in needless if settings.is_implicit(context, name)})


def _connection(typed: HostOptions, password: str | None) -> ConnectionOptions:
    settings.explain(vars(typed))
    only = _failed_of(typed.failed_of)
    inventory, limit = typed.inventory, typed.limit
    for name in FOR_SSH.get(typed.transport, ()):
        if getattr(typed, name):
            raise click.UsageError(f"{SSH_ONLY[name]} is for SSH only: {WITHOUT_SSH[typed.transport]}")
    if typed.transport == "slurm":
        from nodetune.cli import allocation

        inventory, limit = allocation.nodes(inventory, limit)
    _check_cluster(typed)
    asked = typed.ask_become_pass
    return ConnectionOptions(
        inventory=inventory,
        inventory_named_by=settings.named_by_project("inventory"),
        limit=limit,
        forks=typed.forks,
        transport=typed.transport,
        options=SessionOptions(
            seconds=typed.timeout,
            accept_new_host_keys=typed.accept_new_host_keys,
            cluster=Cluster(typed.context, typed.namespace, typed.image),
        ),
        become=typed.become or asked,
        become_password=password or (_become_password() if asked else None),
        user=typed.user,
        private_key=typed.private_key,
        port=typed.port,
        vault=_vault(typed),
        only=only,
        failed_of=str(typed.failed_of or ""),
    )


NONE = HostOptions()
SSH_ONLY = {"user": "-u", "ask_become_pass": "-K", "private_key": "--private-key", "port": "--port", "become": "-b"}
WITHOUT_SSH = {
    "slurm": "srun uses the user who runs nodetune",
    "kubernetes": "the kubeconfig says who you are, pods are root",
}
FOR_SSH = {"slurm": tuple(SSH_ONLY)[:-1], "kubernetes": tuple(SSH_ONLY)}
"""Options that these transports cannot use. With Slurm, sudo on the node can be asked for."""

FOR_HOSTS = (*FOR_SSH["slurm"], "vault_id", "vault_password_file", "ask_vault_pass", "inventory", "transport", "become")
"""Options for connections."""


def _check_cluster(typed: HostOptions) -> None:
    context = click.get_current_context(silent=True)
    if typed.transport == "kubernetes" or context is None:
        if typed.image:
            settings.refuse_folder("image", "which image runs on nodes")
        return
    for name in CLUSTER:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} needs --transport kubernetes")


def _become_password() -> str:
    from nodetune.cli import passwords

    return passwords.asked("sudo password", "-K", "use sudo without a password (-b), or ansible_become_password")


def _vault(typed: HostOptions) -> Vault:
    if not (typed.vault_id or typed.vault_password_file or typed.ask_vault_pass):
        return Vault()
    from nodetune.cli import passwords

    return passwords.vault(typed.vault_id, typed.vault_password_file, typed.ask_vault_pass)


def _failed_of(path: Path | None) -> frozenset[str] | None:
    """Return the hosts that failed in a saved result. End the command with 0 if none did."""
    if path is None:
        return None
    from nodetune.cli import failed_hosts as failed

    found = failed.hosts(path)
    if not found:
        verbosity.note(f"{path}: no hosts failed: nothing to do")
        raise click.exceptions.Exit(0)
    return found


comparing = stack(
    click.option(
        "--cohort",
        **of(AuditRequest, "cohort"),
        metavar="gpu|inventory|all|FACT",
        help="Compare hosts with the same GPUs, inventory groups, or value of a fact.",
    ),
    click.option(
        "--reference",
        metavar="HOST|FILE",
        help="Compare with this host, or the one in this fact file, instead of with the majority.",
    ),
    click.option("--no-compare", is_flag=True, help="Do not compare hosts with each other."),
)
"""How an audit compares hosts with each other."""
