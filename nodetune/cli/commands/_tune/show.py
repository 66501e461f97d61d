"""`nodetune tune show`."""

from pathlib import Path

import click

from nodetune.cli import options


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@options.format_option(["text", "html", "json", "csv", "prometheus", "site"])
@options.output
def command(file: Path, output_format: str, output: Path | None) -> int:
    """Show the result of a tuning.

    \b
    nodetune tune show tuning-nccl.json
    nodetune tune show tuning-nccl.json -o tuning.html     with a picture of every case
    nodetune tune show tuning-nccl.json --format site      the proposal, for a site file

    Exit code: 0 shown, 2 usage.
    """
    from nodetune.cli.commands._tune import _study
    from nodetune.tune import document as tuning

    _study.print_result(tuning.read(file), output_format, output)
    return 0
