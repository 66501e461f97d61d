"""`nodetune verify`."""

from pathlib import Path

import click

from nodetune.cli import measuring_options, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.requests import of
from nodetune.verify import suites
from nodetune.verify.request import VerifyRequest
from nodetune.verify.suites import SuiteRequest


def _suite(context: click.Context, _parameter: click.Parameter, typed: str | None) -> str:
    return typed or ("full" if context.params.get("only") else "quick")


def _required(context: click.Context, parameter: click.Parameter, typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in lists with commas. Raise click.UsageError."""
    return measuring_options.known_measurements(
        context, parameter, tuple(name.strip() for each in typed for name in each.split(","))
    )


def _list(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the measurements and end."""
    if wanted and not context.resilient_parsing:
        from nodetune.cli.commands import _verify

        _verify.print_measurements()
        context.exit()


@requests.command("verify", VerifyRequest)
@cli_options.hosts_or_nodes
@click.option(
    "--suite",
    type=click.Choice(suites.NAMES),
    callback=_suite,
    help="Measurements to run. Default: quick; full with --only.",
)
@measuring_options.only("Run only this measurement of the suite. May be repeated.")
@click.option(
    "--require",
    multiple=True,
    callback=_required,
    metavar="NAMES",
    help="These measurements have to pass on every host, else exit with 3: nccl,gemm. May be repeated.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List the measurements, with the suite or option that runs each, and exit.",
)
@measuring_options.gpus("Measure only this GPU. May be repeated.")
@measuring_options.disk
@click.option(
    "--demand",
    **of(SuiteRequest, "demand"),
    metavar="GB/S",
    help="Rate that all hosts together must read at, with --only disk_hosts --multi-node.",
)
@measuring_options.pairs
@click.option(
    "--multi-node", is_flag=True, help="Run NCCL, and disk_hosts, across all hosts instead of within each host."
)
@measuring_options.load_seconds(SuiteRequest)
@measuring_options.nccl
@click.option("--nccl-tests", default="", metavar="DIR", help="Folder on the hosts with nccl-tests binaries to use.")
@measuring_options.environment("Set an environment variable for the measurements, such as NCCL_…")
@click.option(
    "--repeat",
    **of(SuiteRequest, "repeat"),
    metavar="N",
    help="Number of repetitions (--compare needs at least 5).",
)
@click.option("--allow-busy", is_flag=True, help="Measure hosts whose GPUs are in use. Disturbs their jobs.")
@click.option(
    "--baseline",
    **cli_options.FILE,
    help="Baseline of this site. Hosts with the same hardware are compared with it first.",
)
@click.option(
    "--save-baseline",
    **cli_options.FILE,
    help="Save the results as the baseline of this site, without those below target and without disturbed hosts.",
)
@click.option(
    "--compare",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="A B",
    help="Compare two saved results (--format json), as nodetune diff A B does. Measures nothing.",
)
@click.option(
    "--find-slow",
    **of(VerifyRequest, "find_slow"),
    help="Find which host, GPU, NIC, path, link or uplink makes runs over several hosts slow.",
)
@click.option(
    "--leaf",
    multiple=True,
    metavar="HOSTS",
    help="Hosts of one leaf switch (gpu[001-008]), for --find-slow. May be repeated. Default: one switch for all.",
)
@click.option(
    "--expect",
    **of(VerifyRequest, "expect"),
    metavar="FIGURE",
    help="Expected figure of all hosts as one, a rail, for --find-slow. Default: that of a pair.",
)
@click.option(
    "--more-rounds",
    **of(VerifyRequest, "more_rounds"),
    metavar="N",
    help="Rounds of --find-slow beyond the usual limit, to decide more.",
)
@click.option(
    "--round-seconds",
    **of(VerifyRequest, "round_seconds"),
    metavar="SECONDS",
    help="Deadline of a run of --find-slow: one that takes longer hangs.",
)
@cli_options.site
@cli_options.history
@cli_options.notify
@cli_options.format_option(["text", "json", "lines", "csv", "prometheus"])
@cli_options.output
@verbosity.progress_option
def command(
    request: VerifyRequest,
    compare: tuple[Path, Path] | None,
    site: tuple[Path, ...],
    output_format: str,
    output: Path | None,
) -> int:
    """Measure hosts and find those that are too slow.

    \b
    nodetune verify                                       this machine, at most a minute
    nodetune verify -i prod -l 'gpu[001-008]' --suite full
    nodetune verify -i prod --only gpu_copy --gpu 2       one measurement on one GPU
    nodetune verify -i prod --save-baseline site.json     save the results as the baseline
    nodetune verify -i prod --baseline site.json          compare other hosts with the baseline
    salloc -N4 --gpus-per-node=8 nodetune verify --transport slurm --suite nccl --multi-node
    nodetune verify --compare before.json after.json      find changes that are not noise
    nodetune verify -i prod --find-slow                   name the part that makes all of them slow

    Results are compared with the baseline, with similar hosts, and with reference figures. Changes and installs
    nothing. Skips hosts whose GPUs are in use. Says what others did on a host meanwhile, and then blames no part of it.
    Exit code: 0 as expected, 2 usage, 3 hosts or measurements are missing, skipped on GPUs or disturbed, 5 below target.
    """
    from nodetune.cli.commands import _verify
    from nodetune.verify import document

    if compare and output_format not in ("text", "json"):
        raise click.UsageError("--compare writes text or json")
    if request.find_slow:
        if compare or output_format not in ("text", "json"):
            raise click.UsageError("--find-slow writes text or json, and compares no files")
        return _verify.found_slow(request, output_format, output)
    if compare:
        before, after = map(document.read, compare)
        return _verify.report_changes(before, after, output_format, output)
    return _verify.verified(request, site, output_format, output)
