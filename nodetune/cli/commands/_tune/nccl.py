"""`nodetune tune nccl`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from nodetune.cli import measuring_options, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands._tune import _study
from nodetune.cli.requests import of, stack
from nodetune.config import quantities
from nodetune.foundation import file_io
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import OK
from nodetune.hosts.target import Target
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.tune import document as tuning
from nodetune.tune.benches import nccl_profile, nccl_space, nccl_tuner
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.model import Setting
from nodetune.verify.verify_hosts import measure_by

LARGEST = 16 << 30
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
MAX_SIZES = 8


def _sizes(_context: click.Context, _parameter: click.Parameter, typed: str | None) -> tuple[int, ...]:
    """Return the bytes of a list such as 256MiB,1GiB. Raise click.UsageError."""
    words = [word.strip() for word in (typed or "").split(",") if word.strip()]
    found = {_size(word) for word in words}
    if len(found) > MAX_SIZES or (typed is not None and not found):
        raise click.UsageError(f"--sizes {plain_text.plain(typed)}: give one to {MAX_SIZES} sizes, such as 256MiB,1GiB")
    return tuple(sorted(found))


def _size(word: str) -> int:
    try:
        found = int(word) if word.isascii() and word.isdigit() else quantities.converted(word, "bytes")
    except ValueError:  # UserError is one
        found = None
    if not isinstance(found, int) or not 4 <= found <= LARGEST:
        raise click.UsageError(f"--sizes {plain_text.plain(word)}: write 4 bytes to 16GiB, such as 64KiB or 256MiB")
    return found


def _named(_context: click.Context, _parameter: click.Parameter, typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return known variables, each once. Raise click.UsageError."""
    known = [knob.name for knob in nccl_space.KNOBS]
    for each in typed:
        if each not in (*known, *nccl_space.OLD_NAMES.values()):
            near = plain_text.alike(each, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"tuned are {', '.join(known)}"
            raise click.UsageError(f"--parameter {plain_text.plain(each)}: {hint}")
    return tuple(dict.fromkeys(typed))


options = stack(
    cli_options.hosts_or_nodes,
    click.option(
        "--objective",
        **of(NcclRequest, "objective"),
        help="overlap: time of collectives and GEMMs at once, as in training. bandwidth: busbw of large messages alone. "
        "latency: of small messages. auto: overlap, with --plugin bandwidth.",
    ),
    click.option(
        "--ratio",
        **of(NcclRequest, "ratio"),
        help="Time of the GEMMs to that of the collectives, where both run at once.",
    ),
    click.option(
        "--sizes",
        callback=_sizes,
        metavar="LIST",
        help="Message sizes to improve, such as 256MiB,1GiB. Default: by objective.",
    ),
    click.option(
        "--collective",
        "collectives",
        type=click.Choice(COLLECTIVES),
        multiple=True,
        help="Tune for this collective. May be repeated. Default: by objective.",
    ),
    click.option(
        "--mix",
        "--profile",
        "mix",
        type=click.Path(path_type=Path, exists=True),
        metavar="FILE",
        help="Take sizes, collectives and their weights from a job: JSON of NCCL's inspector or NCCL's debug log, a file or a folder.",
    ),
    click.option("--multi-node", is_flag=True, help="Run NCCL across all hosts. Default: tune one host."),
    measuring_options.gpus("Use only this GPU. May be repeated."),
    click.option("--dtype", **of(NcclRequest, "dtype"), help="Type of the data."),
    measuring_options.nccl,
    measuring_options.environment("Set an environment variable in every trial, and do not tune it."),
    click.option(
        "--parameter",
        "only",
        multiple=True,
        callback=_named,
        metavar="NAME",
        help="Tune only this variable, even if the site has set it. May be repeated.",
    ),
    click.option(
        "--plugin",
        **cli_options.FOLDER,
        help="Tune channels and algorithms by size, and write a tuner plugin with its rows into this folder.",
    ),
    click.option("--allow-busy", is_flag=True, help="Tune hosts whose GPUs are in use. Disturbs their jobs."),
)


@requests.command("nccl", NcclRequest)
@options
@_study.options
def command(request: NcclRequest, mix: Path | None, output_format: str, output: Path | None) -> int:
    """Find NCCL settings that are better than the hosts' own.

    \b
    nodetune tune nccl -i gpu001                           collectives and GEMMs at once, on one host
    nodetune tune nccl -i prod --multi-node --budget 1h    across all hosts
    nodetune tune nccl -i gpu001 --objective bandwidth     large messages alone
    nodetune tune nccl -i gpu001 --mix inspector/          the calls of a job
    salloc -N2 --gpus-per-node=8 nodetune tune nccl --transport slurm --multi-node

    Changes nothing on a host: settings are given to processes of its own. All data and the kernel log are checked. The result
    is a proposal for a site file, or that nothing beats the default.
    Exit code: 0 for a decision, 2 usage, 3 if there is none, 130 after Ctrl-C.
    """
    return _tuned(request, mix, output_format, output)


def _bench(request: NcclRequest) -> NcclBench:
    """Return the bench of a request. Raise click.UsageError and BenchError."""
    connection = request.connection
    return NcclBench(_targets(request), request, connection, measure_by(connection))


def _targets(request: NcclRequest) -> Sequence[Target]:
    targets = selected_hosts(request.connection, verbosity.detail)
    if len(targets) > 1 and not request.multi_node:
        raise click.UsageError(f"{len(targets)} hosts: --multi-node tunes NCCL across them, -l HOST within one")
    if len(targets) < 2 and request.multi_node:
        raise click.UsageError("--multi-node needs two hosts or more")
    return targets


def _of_job(request: NcclRequest, mix: Path | None) -> NcclRequest:
    """Return the request with the sizes, collectives and weights of a job. Raise click.UsageError and UserError."""
    if mix is None:
        return request
    if request.sizes:
        raise click.UsageError("--mix and --sizes: keep one")
    found = nccl_profile.read(mix)
    weights = {f"{name} {size}": weight for (name, size), weight in found.weights.items()}
    names = request.collectives or found.collectives
    if not any(name in names for name, _ in found.weights):
        raise click.UsageError(f"--mix {mix}: the job has no {', '.join(names)} there: remove --collective")
    return replace(request, sizes=found.sizes, collectives=names, weights=weights)


def _tuned(request: NcclRequest, mix: Path | None, output_format: str, output: Path | None) -> int:
    """Tune, and write the plugin if one by size was accepted. Return the exit code."""
    request = _of_job(request, mix)
    made: list[NcclBench] = []
    if request.plugin:
        file_io.check((request.plugin if request.plugin.is_dir() else request.plugin.parent) / "plugin")

    def make() -> NcclBench:
        made.append(_bench(request))
        left = "; ".join(f"{name}: {why}" for name, why in _worth_telling(made[0].left_out, request))
        if left:
            verbosity.note(f"left unchanged: {left}")
        for said in made[0].notes:
            verbosity.note(said)
        if made[0].xids_unknown:
            verbosity.note(f"Xids are unknown: {made[0].xids_unknown}")
        return made[0]

    code = _study.run(request.study, request.subject, make, request.connection, output_format, output)
    if request.plugin and code == OK:
        found = tuning.read(request.study.file(request.subject))["setting"]
        setting = tuple((str(name), value) for name, value in found.items())
        for path in plugin_written(request.plugin, made[0], setting):
            verbosity.note(f"written: {path}")
    return code


def _worth_telling(left_out: Mapping[str, str], request: NcclRequest) -> list[tuple[str, str]]:
    """Return what the site keeps as it is, and what was asked for and cannot be tuned here."""
    told = {name: "has set" in why or (request.only and why != nccl_space.NOT_ASKED) for name, why in left_out.items()}
    return [(name, why) for name, why in left_out.items() if told[name]]


def plugin_written(folder: Path, found: NcclBench, setting: Setting) -> list[Path]:
    """Write the tuner plugin with the rows of a setting that was accepted. Return the files: none if it has no row."""
    return nccl_tuner.write(folder, setting, found.survey) if nccl_tuner.rows(setting) else []
