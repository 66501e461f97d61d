"""`nodetune tune storage`."""

from pathlib import Path

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests, verbosity
from nodetune.cli.commands._tune import _study
from nodetune.cli.requests import of
from nodetune.config import quantities
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.tune.benches.storage import StorageBench, StorageRequest
from nodetune.verify.verify_hosts import measure_by

SMALLEST, LARGEST = 64 << 20, 64 << 30


def _bytes(ctx: click.Context, param: click.Parameter, typed: str) -> int:  # noqa: ARG001
    """Return the bytes of a size such as 1GiB."""
    try:
        found = quantities.converted(typed, "bytes")
    except ValueError:  # UserError is one
        found = None
    if not isinstance(found, int) or not SMALLEST <= found <= LARGEST:
        raise click.BadParameter("write 64MiB to 64GiB, such as 1GiB")
    return found


@requests.command("storage", StorageRequest)
@cli_options.hosts_or_nodes
@click.option("--disk", "folder", required=True, metavar="DIR", help="Folder of the host on the file system to tune.")
@click.option("--allow-settings", is_flag=True, help="Change settings of the host while measuring. Required.")
@click.option(
    "--objective",
    **of(StorageRequest, "objective"),
    help="Objective: reading a file, writing one with fsync, or random reads of 4 KiB. The others must not become worse.",
)
@click.option(
    "--size",
    default="1GiB",
    callback=_bytes,
    show_default=True,
    metavar="SIZE",
    help="Size of the test file: at most a tenth of the free space.",
)
@_study.options
def command(request: StorageRequest, output_format: str, output: Path | None) -> int:
    """Find read-ahead, scheduler and dirty limits for a disk.

    \b
    nodetune tune storage -i prod -l gpu001 -b --disk /scratch --allow-settings
    nodetune tune storage -i prod -l gpu001 -b --disk /scratch --allow-settings --objective write

    Each trial writes a file without a name in the folder, and reads it: through the page cache, and with fio past it. It
    changes settings of the disk and of the host's dirty limits while it measures, and restores what held before, also when
    it is killed. The result is a proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    connection = request.connection
    return _study.run(request.study, "storage", lambda: _bench(request), connection, output_format, output)


def _bench(request: StorageRequest) -> StorageBench:
    targets = selected_hosts(request.connection, verbosity.detail)
    if len(targets) != 1:
        raise click.UsageError(f"{len(targets)} hosts: storage is tuned on one host at a time: select it with -l HOST")
    return StorageBench(targets[0], request, request.connection, measure_by(request.connection))
