"""Options that several commands share, and what they turn into."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nodetune import paths, profile, whole
from nodetune.choice import Choice
from nodetune.commands import _complete
from nodetune.model import SEVERITIES
from nodetune.transport import Options
from nodetune.workflow import Reach

F = TypeVar("F", bound=Callable[..., Any])


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def span(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
    """A time such as 90s, 30m, 2h or 1d → seconds."""
    if given is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5})([smhd])", given)
    if not found:
        raise click.BadParameter(f"{given!r} is no time: write 90s, 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def _stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


hosts = _stack(
    click.option(
        "-i",
        "--inventory",
        metavar="INV",
        shell_complete=_complete.inventory,
        help="An inventory: a name under inventories/, a path, or hosts such as gpu[001-128],login1. Without it: this host.",
    ),
    click.option(
        "-l",
        "--limit",
        metavar="PATTERN",
        shell_complete=_complete.limit,
        help="Only these hosts: Ansible patterns or a node set.",
    ),
    click.option("--forks", type=click.IntRange(1, 4096), default=64, show_default=True, help="Hosts at a time."),
    click.option(
        "--timeout",
        type=click.FloatRange(1, 3600),
        default=40,
        show_default=True,
        metavar="SECONDS",
        help="Deadline of one host.",
    ),
    click.option(
        "--transport",
        type=click.Choice(["auto", "paramiko", "ssh"]),
        default="auto",
        show_default=True,
        help="How to connect; auto is paramiko, and OpenSSH for what paramiko cannot do.",
    ),
    click.option("-u", "--user", help="Log in as this user."),
    click.option("-b", "--become", is_flag=True, help="Read as root, through sudo."),
    click.option("-K", "--ask-become-pass", is_flag=True, help="Ask once for the sudo password (otherwise sudo -n)."),
    click.option(
        "--accept-new-host-keys", is_flag=True, help="Trust the key of a host that is seen for the first time."
    ),
)

via = click.option(
    "--via",
    "probed_via",
    type=click.Choice(["ssh", "slurm"]),
    default="ssh",
    show_default=True,
    help="What starts the probe; slurm is srun, in an allocation without -i on all its nodes.",
)

judging = _stack(
    click.option(
        "-p",
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME",
        shell_complete=_complete.profiles,
        help="Profile to judge by (several stack up) instead of training; what the facts call for (vm, grace …) is added.",
    ),
    click.option(
        "--site", type=click.Path(path_type=Path), metavar="FILE", help="Your site's overrides, checks and waivers."
    ),
)

selection = _stack(
    judging,
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="ID",
        shell_complete=_complete.selected,
        help="Only these checks or areas (shell patterns).",
    ),
    click.option(
        "--ignore", multiple=True, metavar="ID", shell_complete=_complete.selected, help="Not these checks or areas."
    ),
)


def _saved(_context: click.Context, _parameter: click.Parameter, given: Path | None) -> Path | None:
    """A path that exists, or the name of a bundled machine."""
    if given is None or given.exists():
        return given
    bundled = {each.stem: each for each in sorted(paths.bundled("machines").glob("*.json"))}
    if str(given) in bundled:
        return bundled[str(given)]
    raise click.BadParameter(f"no such file or folder: {given} (bundled machines: {', '.join(bundled)})")


saved_facts = click.option(
    "--facts",
    "facts_path",
    type=click.Path(path_type=Path),
    callback=_saved,
    metavar="FILE|DIR",
    shell_complete=_complete.saved_facts,
    help="Judge saved facts instead of connecting.",
)
fail_on = click.option(
    "--fail-on",
    type=click.Choice([*reversed(SEVERITIES), "never"]),
    default="medium",
    show_default=True,
    help="Exit with 1 for findings of this severity and above.",
)
output_format = click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
audit_format = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "html", "junit", "markdown", "prometheus"]),
    default="text",
    show_default=True,
)
since = click.option(
    "--since",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Mark what is new and what is gone since an earlier audit: its HTML page or its JSON (--format html).",
)
measured = click.option(
    "--measured",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Draw what nodetune verify --format json measured, too; several for several parts of the fleet (--format html).",
)


def _writable(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """The path, tried before hosts are worked for. Raises OSError."""
    if path:
        whole.check(path)
    return path


output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_writable,
    metavar="FILE",
    help="Write there instead of to standard output.",
)

runs_folder = click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where runs are recorded. Default: NODETUNE_RUNS, or ~/.local/state/nodetune/runs.",
)
agree = click.option("-y", "--yes", is_flag=True, help="Do not ask (needed where there is no terminal).")
reboot_wait = click.option(
    "--reboot-wait",
    type=click.FloatRange(0.5, 1440),
    default=30,
    show_default=True,
    metavar="MINUTES",
    help="How long to wait for a host that reboots.",
)
drain = click.option(
    "--drain", type=click.Choice(["slurm"]), help="Drain nodes first, wait for their jobs, resume them after."
)
drain_wait = click.option(
    "--drain-wait",
    type=click.FloatRange(0, 10080),
    default=60,
    show_default=True,
    metavar="MINUTES",
    help="How long to wait for jobs.",
)
assume_drained = click.option(
    "--assume-drained", is_flag=True, help="Trust that no scheduler uses the hosts: do not ask it."
)
provision_site = click.option(
    "--site",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Your site file: its key provision names repositories and parts.",
)


def choice(
    profiles: tuple[str, ...], site: Path | None, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> Choice:
    """The selection options as a Choice. Raises located.BadFile."""
    profile.named(profiles)
    return Choice(profiles, profile.read(site) if site else None, select, ignore)


def reach(options: dict[str, Any]) -> Reach:
    """The host options as a Reach; takes them out of `options`. Asks for the sudo password where that was wanted."""
    by = options.pop("probed_via", "ssh")
    if by == "slurm":
        _as_slurm_can(options)
    ask = options.pop("ask_become_pass")
    password = click.prompt("sudo password", hide_input=True, err=True) if ask else None
    return Reach(
        inventory=options.pop("inventory"),
        limit=options.pop("limit"),
        forks=options.pop("forks"),
        transport=options.pop("transport"),
        options=Options(seconds=options.pop("timeout"), accept_new_host_keys=options.pop("accept_new_host_keys")),
        become=options.pop("become") or ask,
        become_password=password,
        user=options.pop("user"),
        via=by,
    )


def _as_slurm_can(options: dict[str, Any]) -> None:
    """Without an inventory the nodes of the allocation are meant, else of all nodes those that the limit leaves.

    Raises click.UsageError, sinfo.BadSlurm and hosts.BadInventory.
    """
    from nodetune import hosts as patterns
    from nodetune import nodeset
    from nodetune.transport import sinfo

    for name, typed in (("user", "-u"), ("ask_become_pass", "-K")):
        if options[name]:
            raise click.UsageError(f"{typed} holds for SSH only: srun starts the probe as the user who runs nodetune")
    sinfo.check()
    if options["inventory"] is None:
        nodes = sinfo.allocated() or (sinfo.every() if options["limit"] else [])
        if not nodes:
            raise click.UsageError(
                "--via slurm: this is no allocation: name the nodes with -i or -l, or run it in salloc or sbatch"
            )
        limit, options["limit"] = options["limit"], None
        options["inventory"] = nodeset.fold(patterns.pick(limit, nodes, {}) if limit else nodes)


def as_typed(reach_to: Reach | None, facts_path: Path | None, choose: Choice, site: Path | None) -> str:
    """The options that say which hosts and profile this run is about, for the commands that a report proposes."""
    import shlex

    words: list[str] = []
    if reach_to and reach_to.via == "slurm":
        words += ["--via", "slurm"]
    if facts_path:
        bundled = facts_path.parent == paths.bundled("machines")
        words += ["--facts", facts_path.stem if bundled else str(facts_path)]
    if reach_to and reach_to.inventory:
        words += ["-i", reach_to.inventory]
    if reach_to and reach_to.limit:
        words += ["-l", reach_to.limit]
    if reach_to and reach_to.become:
        words += ["-b"]
    for name in choose.profiles:
        words += ["-p", name]
    if site:
        words += ["--site", str(site)]
    return shlex.join(words)
