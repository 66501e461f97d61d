"""`nodetune verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options
from nodetune.verdict.suites import SUITES


@click.command("verify")
@_options.hosts
@click.option(
    "--suite",
    type=click.Choice(list(SUITES)),
    help="Which measurements to make: quick, or with --only as full has them.",
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only this measurement (several may be named), as the suite has it."
)
@click.option("--gpu", "gpus", type=click.IntRange(0, 1023), multiple=True, metavar="N", help="Only this GPU.")
@click.option("--disk", default="", metavar="DIR", help="Measure the file system of this folder too (with fio).")
@click.option("--pairs", is_flag=True, help="Measure the network between pairs of hosts too (iperf3, perftest).")
@click.option(
    "--network",
    default="",
    metavar="CIDR",
    help="The network that --pairs takes (10.1.0.0/16), else that of the default route.",
)
@click.option("--together", is_flag=True, help="NCCL over all the hosts at once, not within each.")
@click.option(
    "--via",
    type=click.Choice(["ssh", "slurm"]),
    default="ssh",
    show_default=True,
    help="What starts the measurements; slurm is srun, in an allocation without -i on all its nodes.",
)
@click.option("--nccl", default="", metavar="PATH", help="The libnccl.so.2 to use on the hosts.")
@click.option("--nccl-tests", default="", metavar="DIR", help="Use the nccl-tests binaries there instead of our own.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="Set for what is measured, such as NCCL_…")
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Go through everything so often; --compare wants 5.",
)
@click.option("--even-if-busy", is_flag=True, help="Measure although processes use the GPUs. Disturbs them.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="This site's own figures, held against like hosts before anything else.",
)
@click.option(
    "--save-baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep what is measured as this site's figures; what falls short is left out.",
)
@click.option(
    "--compare",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="A B",
    help="Compare two saved results (--format json); measures nothing.",
)
@_options.output_format
@_options.output
def command(compare: tuple[Path, Path] | None, output_format: str, output: Path | None, **options: Any) -> int:
    """Measure whether hosts are as fast as they should be, and as their siblings.

    \b
    nodetune verify                                       this machine, at most a minute
    nodetune verify -i prod -l 'gpu[001-008]' --suite full
    nodetune verify -i prod --only gpu_copy --gpu 2       just that
    nodetune verify -i prod --save-baseline site.json     keep it as what is right here …
    nodetune verify -i prod --baseline site.json          … and hold others against it
    salloc -N4 --gpus-per-node=8 nodetune verify --via slurm --suite nccl --together
    nodetune verify --compare before.json after.json      real change, or noise

    Nothing is changed or installed. Hosts whose GPUs are in use are left alone.
    Exit code: 0 as expected, 2 usage, 3 hosts or measurements are missing, 5 something fell short.
    """
    from nodetune.commands import _verify

    if compare:
        return _verify.compared(*compare, output_format, output)
    return _verify.verified(options, output_format, output)
