"""What `verify` does with its options: hosts are measured and told of, or two results compared."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from nodetune import launch, measuring, nodeset, proof, show
from nodetune.commands import _options, _run
from nodetune.outcome import INCOMPLETE, OK, TOO_SLOW
from nodetune.proof import Proof, Tell
from nodetune.report import data, verify_changes, verify_data, verify_text
from nodetune.verdict import baseline
from nodetune.verdict import compare as comparing
from nodetune.verdict.machine import UNKNOWN
from nodetune.verdict.suites import Wanted
from nodetune.workflow import Choice, Reach


def verified(options: dict[str, Any], output_format: str, output: Path | None) -> int:
    """Measure, judge, tell."""
    wanted = _wanted(options)
    own = baseline.read(options["baseline"]) if options["baseline"] else None
    reach, way = _options.reach(options), WAYS[options["via"]]
    reach = way.hosts(reach)
    targets = reach.targets()
    asked = shlex.join([*shlex.split(_options.as_typed(reach, None, Choice(), None)), *way.words])
    with progress(len(targets)) as tell:
        prover = proof.Prover(wanted, reach, way.measure, tell, way.look)
        proofs = prover.prove(targets, own, options["even_if_busy"])
    if options["save_baseline"]:
        _save(options["save_baseline"], proofs)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            stream.write(data.text(verify_data.document(proofs, wanted, asked)))
        else:
            verify_text.print_verify(stream, proofs, wanted, asked)
    return proof.exit_code(proofs)


@dataclass(frozen=True)
class Way:
    """What starts the measurements: which hosts are meant, how they measure, what is made of a host's facts, and what to type."""

    hosts: Callable[[Reach], Reach]
    measure: proof.Measure
    look: proof.Look
    words: tuple[str, ...] = ()


def _allocated(reach: Reach) -> Reach:
    """Without an inventory the nodes of the allocation are meant. Raises click.UsageError outside of one."""
    if reach.inventory is not None:
        return reach
    nodes = launch.allocated()
    if not nodes:
        raise click.UsageError(
            "--via slurm: this is no allocation: name the nodes with -i, or run it in salloc or sbatch"
        )
    return replace(reach, inventory=nodeset.fold(nodes))


WAYS = {
    "ssh": Way(lambda reach: reach, measuring.measure, proof.reached),
    "slurm": Way(_allocated, launch.measure, proof.reached_or_not, ("--via", "slurm")),
}


def _wanted(options: dict[str, Any]) -> Wanted:
    """Raises click.UsageError for a measurement or a variable that is none."""
    known = measuring.names()
    for name in options["only"]:
        if name not in known:
            raise click.UsageError(f"no measurement is called {show.plain(name)}: there are {', '.join(known)}")
    for each in options["env"]:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", each, re.DOTALL):
            raise click.UsageError(f"--env {show.plain(each)}: write NAME=VALUE")
    return Wanted(
        suite=options["suite"],
        only=tuple(dict.fromkeys(options["only"])),
        gpus=tuple(sorted(set(options["gpus"]))),
        disk=options["disk"],
        pairs=options["pairs"],
        together=options["together"],
        nccl=options["nccl"],
        nccl_tests=options["nccl_tests"],
        env=dict(each.split("=", 1) for each in options["env"]),
        runs=options["repeat"],
    )


def _save(path: Path, proofs: Sequence[Proof]) -> None:
    """An empty baseline would hold nothing against anything: it is not written. Nor is one of hosts that nobody knows."""
    document = verify_data.kept([each for each in proofs if each.machine != UNKNOWN])  # it holds for like hosts only
    if not document["figures"]:
        click.echo(
            f"{path}: not written: there is no figure that did not fall short, of hardware that is known", err=True
        )
        return
    with _run.output_stream(path) as stream:
        stream.write(json.dumps(document, indent=1) + "\n")


def compared(before: Path, after: Path, output_format: str, output: Path | None) -> int:
    """5 where something became worse, 3 where nothing could be compared."""
    changes = comparing.compare(verify_data.read(before), verify_data.read(after))
    with _run.output_stream(output) as stream:
        if output_format == "json":
            stream.write(data.text(verify_data.compared(changes)))
        else:
            verify_changes.print_changes(stream, changes)
    if any(each.status == comparing.WORSE for each in changes):
        return TOO_SLOW
    return OK if any(each.status != comparing.UNSURE for each in changes) else INCOMPLETE


@contextmanager
def progress(hosts: int) -> Iterator[Tell]:
    """Shows on a terminal what is being measured; silent elsewhere."""
    on_terminal = sys.stderr.isatty()

    def tell(host: str, text: str) -> None:
        if on_terminal:
            line = text if hosts == 1 else f"{host}  {text}"
            click.echo(f"\r\033[K{show.plain(line, 100)}", nl=False, err=True)

    try:
        yield tell
    finally:
        if on_terminal:
            click.echo("\r\033[K", nl=False, err=True)
