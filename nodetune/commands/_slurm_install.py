"""`nodetune slurm install`, `uninstall` and `diff`: the guard put on nodes, taken off, and what an upgrade would gate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options


def _setting(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value that is no JSON is a text."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE, such as reuse_seconds=120")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _full_path(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    if given and not given.startswith("/"):
        raise click.BadParameter(f"{given!r} is not a full path: it is one on the nodes")
    return given


POLICY = (
    click.option("--mode", type=click.Choice(["observe", "enforce"]), help="Default: as installed, else observe."),
    click.option(
        "--act",
        type=click.Choice(["slurm", "drain"]),
        help="Leave the drain to Slurm, or drain with the guard's own reason. Default: as installed, else slurm.",
    ),
    click.option(
        "--shared", callback=_full_path, metavar="DIR", help="A folder that all nodes see: cap and kill switch."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_setting,
        metavar="NAME=VALUE",
        help="Another setting of the policy, such as cap_nodes_per_hour=3.",
    ),
)


def _policy_options(function: Any) -> Any:
    for option in reversed(POLICY):
        function = option(function)
    return function


@click.command("install")
@_options.hosts
@_options.judging
@_policy_options
@click.option("--python", callback=_full_path, metavar="PATH", help="The interpreter (3.10 or newer) on the nodes.")
@click.option(
    "--write-slurm-conf", is_flag=True, help="Write the lines into slurm.conf as well, instead of showing them."
)
@click.option("--reconfigure", is_flag=True, help="Let Slurm read its configuration anew afterwards.")
@click.option("--timer", is_flag=True, help="Also run the gating checks once a minute, without Slurm.")
@click.option(
    "--textfile",
    callback=_full_path,
    metavar="FILE",
    default="",
    help="Where the timer writes metrics for node-exporter, such as /var/lib/prometheus/node-exporter/nodetune.prom.",
)
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@_options.agree
@_options.runs_folder
def install(runs_folder: Path | None, **options: Any) -> int:
    """Put the guard on nodes, or bring it up to date.

    \b
    nodetune slurm install -i prod -b --dry-run               show what would land where
    nodetune slurm install -i prod -b                         observe: decide and log, hold no job
    nodetune slurm install -i prod -b --mode enforce          hold jobs back from sick nodes

    Never restarts slurmd. `nodetune slurm uninstall` takes it off; `nodetune rollback RUN` takes back what one run did.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be installed.
    """
    from nodetune.commands import _slurm_guard

    if options["textfile"] and not options["timer"]:
        raise click.UsageError("--textfile wants --timer")
    if options["textfile"] and not options["textfile"].endswith(".prom"):
        raise click.UsageError("--textfile wants a name that ends in .prom: node-exporter reads no other")
    return _slurm_guard.install(options, runs_folder, sys.stdout)


@click.command("uninstall")
@_options.hosts
@click.option("--reconfigure", is_flag=True, help="Let Slurm read its configuration anew before hooks are removed.")
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@_options.agree
@_options.runs_folder
def uninstall(runs_folder: Path | None, **options: Any) -> int:
    """Take the guard off nodes: slurm.conf as it was before, then hooks, policy and program.

    Hooks stay where the running Slurm still calls them: it would drain a node without them. Journals and the program's
    archive stay under /var/lib/nodetune, so that `nodetune rollback RUN` can put the guard back.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something is left.
    """
    from nodetune.commands import _slurm_guard

    return _slurm_guard.uninstall(options, runs_folder, sys.stdout)


@click.command("diff")
@_options.hosts
@_options.judging
@_policy_options
def diff(**options: Any) -> int:
    """Show what an install would newly gate, against the policies that are installed, and which hosts would fail now.

    Exit code: 0 nothing would change and no host fails, 1 something would, 2 usage, 3 hosts not reached.
    """
    from nodetune.commands import _slurm_guard

    return _slurm_guard.diff(options, sys.stdout)
