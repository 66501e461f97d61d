"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from nodetune.api.model import SEVERITIES
from nodetune.audit.selection import Selection
from nodetune.cli import outputs, renamed, settings
from nodetune.config import profile
from nodetune.foundation import paths
from nodetune.hosts.target import ConnectionOptions, SessionOptions
from nodetune.report import MAKERS

F = TypeVar("F", bound=Callable[..., Any])

OLD_TRANSPORTS = {"ssh": "openssh"}
"""Transports of the previous release: on command lines, and in records of runs."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def span(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
    """Return the seconds of a duration such as 90s, 30m, 2h or 1d."""
    if given is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5})([smhd])", given)
    if not found:
        raise click.BadParameter(f"{given!r} is not a duration: use 90s, 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def _stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _complete(name: str) -> Callable[..., Any]:
    """Return the function of this name in completion.py, which only a press of Tab needs."""

    def complete(*given: Any) -> Any:
        from nodetune.cli import completion

        return getattr(completion, name)(*given)

    return complete


def _transport(*slurm: str) -> Callable[[F], F]:
    return settings.option(
        "--transport",
        type=renamed.Choice(["auto", "paramiko", "openssh", *slurm, "local"], was=OLD_TRANSPORTS),
        default="auto",
        show_default=True,
        help="How to reach hosts. auto uses paramiko, and OpenSSH where paramiko lacks a feature."
        + (" slurm uses srun; without -i, on all nodes of the allocation." if slurm else ""),
    )


def _inventory(folder: Path, given: str) -> str:
    """Return the inventory that a settings file in this folder means: one there, else what is typed."""
    endings = ("", ".yml", ".yaml", ".ini")
    there = [folder / given, *(folder / "inventories" / f"{given}{ending}" for ending in endings)]
    found = None if "," in given else next(filter(Path.exists, there), None)
    return str(found or (folder / given if "/" in given and "[" not in given else given))


_hosts = _stack(
    settings.option(
        "-i",
        "--inventory",
        metavar="INV",
        locate=_inventory,
        shell_complete=_complete("inventory"),
        help="Inventory: a name in inventories/, a path, or hosts such as gpu[001-128],login1. Default: this host.",
    ),
    click.option(
        "-l",
        "--limit",
        metavar="PATTERN",
        shell_complete=_complete("limit"),
        help="Limit to these hosts: Ansible patterns or a node set.",
    ),
    settings.option(
        "--forks", type=click.IntRange(1, 4096), default=64, show_default=True, help="Number of hosts in parallel."
    ),
    settings.option(
        "--timeout",
        type=click.FloatRange(1, 3600),
        default=40,
        show_default=True,
        metavar="SECONDS",
        help="Deadline for each host.",
    ),
    settings.option("-u", "--user", help="Log in as this user."),
    settings.option(
        "-b",
        "--become/--no-become",
        default=False,
        help="Become root with sudo (--no-become undoes a setting).",
    ),
    settings.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password once. Default: sudo -n."),
    click.option("--accept-new-host-keys", is_flag=True, help="Accept unknown host keys."),
)

_to_nodes = _transport("slurm")
hosts = _stack(_hosts, _transport())
hosts_or_nodes = _stack(
    _hosts, _to_nodes, renamed.alias("--via", "--transport", values={"ssh": None, "slurm": "slurm"})
)

judging = _stack(
    settings.option(
        "-p",
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete("profiles"),
        help="Profile to use instead of training. May be repeated. Matching profiles (vm, grace …) are added.",
    ),
    settings.option(
        "--site", type=click.Path(path_type=Path), metavar="FILE", help="Site file with overrides, checks and waivers."
    ),
)

selection = _stack(
    judging,
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="ID",
        shell_complete=_complete("selected"),
        help="Run only these checks or areas (shell patterns).",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="ID",
        shell_complete=_complete("selected"),
        help="Skip these checks or areas.",
    ),
)


def _saved(_context: click.Context, _parameter: click.Parameter, given: Path | None) -> Path | None:
    """Return an existing path, also for the name of a bundled machine."""
    if given is None or given.exists():
        return given
    bundled = {each.stem: each for each in sorted(paths.bundled("facts/recorded").glob("*.json"))}
    if str(given) in bundled:
        return bundled[str(given)]
    raise click.BadParameter(f"no such file or folder: {given} (bundled machines: {', '.join(bundled)})")


saved_facts = click.option(
    "--facts",
    "facts_path",
    type=click.Path(path_type=Path),
    callback=_saved,
    metavar="FILE|DIR",
    shell_complete=_complete("saved_facts"),
    help="Use saved facts instead of connecting to hosts.",
)
fail_on = click.option(
    "--fail-on",
    type=click.Choice([*reversed(SEVERITIES), "never"]),
    default="medium",
    show_default=True,
    help="Exit with 1 on findings of this severity or higher.",
)
output_format = outputs.format_option(["text", "json"])
audit_format = outputs.format_option(list(MAKERS))
output = outputs.output
previous = renamed.option(
    "--previous",
    was="--since",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Mark new and fixed findings since an earlier audit, saved as HTML or JSON (--format html).",
)
measurements = renamed.option(
    "--measurements",
    was="--measured",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Add results of nodetune verify --format json to the page (--format html). May be repeated.",
)


runs_folder = settings.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of run records. Default: ~/.local/state/nodetune/runs.",
)
agree = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation. Required without a terminal.")


def _minutes(word: str, least: float, most: float, default: float, text: str) -> Callable[[F], F]:
    return settings.option(
        word, type=click.FloatRange(least, most), default=default, show_default=True, metavar="MINUTES", help=text
    )


reboot_wait = _minutes("--reboot-wait", 0.5, 1440, 30, "Maximum time for a reboot.")
drain_wait = _minutes("--drain-wait", 0, 10080, 60, "Maximum time to wait for jobs.")
drain = settings.option(
    "--drain", type=click.Choice(["slurm"]), help="Drain nodes, wait for their jobs, and resume the nodes afterwards."
)
assume_drained = click.option(
    "--assume-drained",
    is_flag=True,
    help="Assume that no scheduler uses the hosts, without asking it.",
)
provision_site = settings.option(
    "--site",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Site file with repositories and components under `provision`.",
)


batches = _stack(
    settings.option(
        "--batch", default="", metavar="N|N%", help="Number of hosts per batch, or a percentage. Default: all."
    ),
    settings.option(
        "--canary",
        type=click.IntRange(0),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of hosts in the first batch.",
    ),
)


def choice(
    profiles: tuple[str, ...], site: Path | None, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> Selection:
    """Turn the selection options into a Selection. Raise yaml_lines.FileError."""
    profile.named(profiles)
    return Selection(profiles, profile.read(site) if site else None, select, ignore)


def reach(options: dict[str, Any]) -> ConnectionOptions:
    """Turn the host options into ConnectionOptions and remove them from `options`. May ask for passwords."""
    _without_settings_for_hosts(options)
    if options["transport"] == "slurm":
        from nodetune.cli import allocation

        allocation.use(options)
    ask = options.pop("ask_become_pass")
    password = click.prompt("sudo password", hide_input=True, err=True) if ask else None
    return ConnectionOptions(
        inventory=options.pop("inventory"),
        limit=options.pop("limit"),
        forks=options.pop("forks"),
        transport=options.pop("transport"),
        options=SessionOptions(
            seconds=options.pop("timeout"), accept_new_host_keys=options.pop("accept_new_host_keys")
        ),
        become=options.pop("become") or ask,
        become_password=password,
        user=options.pop("user"),
    )


FOR_SSH = {"user": None, "ask_become_pass": False}
FOR_HOSTS = {**FOR_SSH, "inventory": None, "transport": "auto", "become": False}
"""Options for connections → their defaults."""


def _without_settings_for_hosts(options: dict[str, Any]) -> None:
    """Ignore settings that what was typed leaves no room for: saved facts need no host, and srun no login."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    needless: Mapping[str, Any] = FOR_HOSTS if context.params.get("facts_path") else {}
    if not needless and options["transport"] == "slurm":
        needless = FOR_SSH
    if context.get_parameter_source("become") is ParameterSource.COMMANDLINE and not options["become"]:
        needless = {**needless, "ask_become_pass": False}
    options.update({name: default for name, default in needless.items() if settings.is_implicit(context, name)})
