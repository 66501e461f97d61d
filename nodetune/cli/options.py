"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nodetune.api.model import SEVERITIES
from nodetune.audit.selection import Selection
from nodetune.cli import outputs, renamed
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
    return click.option(
        "--transport",
        type=renamed.Choice(["auto", "paramiko", "openssh", *slurm, "local"], was=OLD_TRANSPORTS),
        default="auto",
        show_default=True,
        help="How to reach hosts. auto uses paramiko, and OpenSSH where paramiko lacks a feature."
        + (" slurm uses srun; without -i, on all nodes of the allocation." if slurm else ""),
    )


_hosts = _stack(
    click.option(
        "-i",
        "--inventory",
        metavar="INV",
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
    click.option(
        "--forks", type=click.IntRange(1, 4096), default=64, show_default=True, help="Number of hosts in parallel."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(1, 3600),
        default=40,
        show_default=True,
        metavar="SECONDS",
        help="Deadline for each host.",
    ),
    click.option("-u", "--user", help="Log in as this user."),
    click.option("-b", "--become", is_flag=True, help="Become root with sudo."),
    click.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password once. Default: sudo -n."),
    click.option("--accept-new-host-keys", is_flag=True, help="Accept unknown host keys."),
)

hosts = _stack(_hosts, _transport())
hosts_or_nodes = _stack(
    _hosts, _transport("slurm"), renamed.alias("--via", "--transport", values={"ssh": None, "slurm": "slurm"})
)

judging = _stack(
    click.option(
        "-p",
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete("profiles"),
        help="Profile to use instead of training. May be repeated. Matching profiles (vm, grace …) are added.",
    ),
    click.option(
        "--site",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Site file with overrides, checks and waivers. May be repeated: later files win.",
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


runs_folder = click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of run records. Default: NODETUNE_RUNS, or ~/.local/state/nodetune/runs.",
)
agree = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation. Required without a terminal.")


def _minutes(word: str, least: float, most: float, default: float, text: str) -> Callable[[F], F]:
    return click.option(
        word, type=click.FloatRange(least, most), default=default, show_default=True, metavar="MINUTES", help=text
    )


reboot_wait = _minutes("--reboot-wait", 0.5, 1440, 30, "Maximum time for a reboot.")
drain_wait = _minutes("--drain-wait", 0, 10080, 60, "Maximum time to wait for jobs.")
drain = click.option(
    "--drain", type=click.Choice(["slurm"]), help="Drain nodes, wait for their jobs, and resume the nodes afterwards."
)
assume_drained = click.option(
    "--assume-drained",
    is_flag=True,
    help="Assume that no scheduler uses the hosts, without asking it.",
)
provision_site = click.option(
    "--site",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    metavar="FILE",
    help="Site file with repositories and components under `provision`. May be repeated: later files win.",
)


def batches(batch: str, canary: str) -> Callable[[F], F]:
    """Return --batch and --canary with these help texts."""
    return _stack(
        click.option("--batch", default="", metavar="N|N%", help=batch),
        click.option("--canary", type=click.IntRange(0), default=1, show_default=True, metavar="N", help=canary),
    )


def choice(
    profiles: tuple[str, ...], site: tuple[Path, ...], select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> Selection:
    """Turn the selection options into a Selection. Raise yaml_lines.FileError."""
    profile.named(profiles)
    return Selection(profiles, _site(site), select, ignore)


def _site(paths: tuple[Path, ...]) -> profile.Overlay | None:
    if not paths:
        return None
    from nodetune.config import site  # most runs have none

    return site.read(paths)


def reach(options: dict[str, Any]) -> ConnectionOptions:
    """Turn the host options into ConnectionOptions and remove them from `options`. May ask for the sudo password."""
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
