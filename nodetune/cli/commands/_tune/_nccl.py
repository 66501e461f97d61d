"""The options of `nodetune tune nccl`, and the bench that they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from nodetune.cli import options as cli_options
from nodetune.cli import verbosity
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.commands._tune import _study
from nodetune.cli.host_options import stack
from nodetune.config import quantities
from nodetune.foundation import file_io
from nodetune.foundation import text as plain_text
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.tune import document as tuning
from nodetune.tune.benches import nccl_profile, nccl_space, nccl_tuner
from nodetune.tune.benches.nccl import NcclBench
from nodetune.tune.benches.nccl_cases import Wanted
from nodetune.tune.model import Setting
from nodetune.verify import remote, slurm

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = 16 << 30
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
MOST_SIZES = 8

options = stack(
    cli_options.hosts_or_nodes,
    click.option(
        "--objective",
        type=click.Choice(nccl_space.OBJECTIVES),
        default="bandwidth",
        show_default=True,
        help="bandwidth: busbw of large messages. overlap: time of a collective and a GEMM at once. latency: of small messages.",
    ),
    click.option(
        "--sizes", metavar="LIST", help="Message sizes to improve, such as 256MiB,1GiB. Default: by objective."
    ),
    click.option(
        "--collective",
        "collectives",
        type=click.Choice(COLLECTIVES),
        multiple=True,
        help="Tune for this collective. May be repeated. Default: by objective.",
    ),
    click.option(
        "--profile",
        "job_profile",
        type=click.Path(path_type=Path, exists=True),
        metavar="FILE",
        help="Take sizes and collectives from a job: JSON of NCCL's inspector, a file or a folder.",
    ),
    click.option("--multi-node", is_flag=True, help="Run NCCL across all hosts. Without it, one host is tuned."),
    click.option(
        "--gpu",
        "gpus",
        type=click.IntRange(0, 1023),
        multiple=True,
        metavar="N",
        help="Use only this GPU. May be repeated.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16"]),
        default="float32",
        show_default=True,
        help="Type of the data.",
    ),
    click.option("--nccl", default="", metavar="PATH", help="Path of libnccl.so.2 on the hosts."),
    click.option(
        "--env",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set an environment variable in every trial, and do not tune it.",
    ),
    click.option(
        "--parameter",
        "only",
        multiple=True,
        metavar="NAME",
        help="Tune only this variable, even if the site has set it. May be repeated.",
    ),
    click.option(
        "--plugin",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Tune algorithms, and write a tuner plugin with its rows into this folder.",
    ),
    click.option("--allow-busy", is_flag=True, help="Tune hosts whose GPUs are in use. Disturbs their jobs."),
)


def bench(given: dict[str, Any], wanted: Wanted) -> NcclBench:
    """Return the bench for the options. Raise click.UsageError and BenchError."""
    reach = _study.reach(given)
    targets = _targets(reach, together=given["multi_node"])
    return NcclBench(targets, wanted, reach, slurm.measure if reach.transport == "slurm" else remote.measure)


def _targets(reach: ConnectionOptions, *, together: bool) -> Sequence[Target]:
    targets = selected_hosts(reach)
    if len(targets) > 1 and not together:
        raise click.UsageError(f"{len(targets)} hosts: --multi-node tunes NCCL across them, -l HOST tunes within one")
    if len(targets) < 2 and together:
        raise click.UsageError("--multi-node needs two hosts or more")
    return targets


def _wanted(given: dict[str, Any]) -> Wanted:
    """Turn the options into a request. Raise click.UsageError and UserError."""
    sizes, collectives = sizes_of(given["sizes"]), tuple(given["collectives"])
    if given["job_profile"]:
        if sizes:
            raise click.UsageError("--profile and --sizes: keep one")
        found = nccl_profile.read(given["job_profile"])
        sizes, collectives = found.sizes, collectives or found.collectives
    if given["plugin"] and given["objective"] != "bandwidth":
        raise click.UsageError("--plugin chooses algorithms by their bandwidth: leave --objective out")
    if given["plugin"] and given["only"]:
        raise click.UsageError("--plugin and --parameter: keep one")
    both = sorted(set(_environment(given["env"])) & set(given["only"]))
    if both:
        raise click.UsageError(f"{both[0]}: --env keeps it as it is, and --parameter tunes it: keep one")
    return Wanted(
        objective=given["objective"],
        sizes=sizes,
        collectives=collectives,
        gpus=tuple(sorted(set(given["gpus"]))),
        nccl=given["nccl"],
        dtype=given["dtype"],
        env=_environment(given["env"]),
        only=_named(given["only"]),
        plugin=bool(given["plugin"]),
        allow_busy=given["allow_busy"],
    )


def sizes_of(given: str | None) -> tuple[int, ...]:
    """Return the bytes of a list such as 256MiB,1GiB. Raise click.UsageError."""
    words = [word.strip() for word in (given or "").split(",") if word.strip()]
    found = {_size(word) for word in words}
    if len(found) > MOST_SIZES or (given is not None and not found):
        raise click.UsageError(
            f"--sizes {plain_text.plain(given)}: name one to {MOST_SIZES} sizes, such as 256MiB,1GiB"
        )
    return tuple(sorted(found))


def _size(word: str) -> int:
    try:
        found = int(word) if word.isascii() and word.isdigit() else quantities.converted(word, "bytes")
    except ValueError:  # UserError is one
        found = None
    if not isinstance(found, int) or not 4 <= found <= LARGEST:
        raise click.UsageError(f"--sizes {plain_text.plain(word)}: write 4 bytes to 16GiB, such as 64KiB or 256MiB")
    return found


def _environment(given: Sequence[str]) -> dict[str, str]:
    for each in given:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", each, re.DOTALL):
            raise click.UsageError(f"--env {plain_text.plain(each)}: write NAME=VALUE")
    return dict(each.split("=", 1) for each in given)


def _named(given: Sequence[str]) -> tuple[str, ...]:
    known = [knob.name for knob in nccl_space.KNOBS]
    for each in given:
        if each not in (*known, *nccl_space.OLD_NAMES.values()):
            near = plain_text.alike(each, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"tuned are {', '.join(known)}"
            raise click.UsageError(f"--parameter {plain_text.plain(each)}: {hint}")
    return tuple(dict.fromkeys(given))


def tuned(given: dict[str, Any]) -> int:
    """Tune, and write the plugin if an algorithm was accepted. Return the exit code."""
    made: list[NcclBench] = []
    wanted = _wanted(given)  # a mistake is told before anything else
    subject = "nccl-plugin" if wanted.plugin else "nccl"
    if given["plugin"]:
        file_io.check((given["plugin"] if given["plugin"].is_dir() else given["plugin"].parent) / "plugin")

    def make() -> NcclBench:
        made.append(bench(given, wanted))
        left = "; ".join(f"{name}: {why}" for name, why in _worth_telling(made[0].left_out, wanted))
        if left:
            verbosity.note(f"left as they are: {left}")
        for said in made[0].notes:
            verbosity.note(said)
        if made[0].xids_unknown:
            verbosity.note(f"Xids are not seen: {made[0].xids_unknown}")
        return made[0]

    code = _study.run(make, subject, given)
    saved = given["save"] or Path(f"tuning-{subject}.json")
    if given["plugin"] and code == 0:
        setting = tuple((str(name), value) for name, value in tuning.read(saved)["setting"].items())
        for path in plugin_written(given["plugin"], made[0], setting):
            verbosity.note(f"written: {path}")
    return code


def _worth_telling(left_out: Mapping[str, str], wanted: Wanted) -> list[tuple[str, str]]:
    """Return what the site keeps as it is, and what was asked for and cannot be tuned here."""
    told = {name: "has set" in why or (wanted.only and why != nccl_space.NOT_ASKED) for name, why in left_out.items()}
    return [(name, why) for name, why in left_out.items() if told[name]]


def plugin_written(folder: Path, found: NcclBench, setting: Setting) -> list[Path]:
    """Write the tuner plugin with the rows of a setting that was accepted. Return the files: none if it has no row."""
    rows = nccl_tuner.rows(setting, found.wanted, found.survey)
    return nccl_tuner.write(folder, rows, found.survey) if rows else []
