"""What `verify` does with its options: hosts are measured and told of, or two results compared."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from nodetune import launch, measuring, nodeset, proof, show
from nodetune.choice import Choice
from nodetune.commands import _options, _run
from nodetune.outcome import INCOMPLETE, OK, TOO_SLOW
from nodetune.proof import Proof, Tell
from nodetune.report import data, verify_changes, verify_data, verify_text
from nodetune.verdict import baseline
from nodetune.verdict import compare as comparing
from nodetune.verdict.figures import OF_PAIRS
from nodetune.verdict.machine import UNKNOWN
from nodetune.verdict.suites import Wanted
from nodetune.workflow import Reach

ROOM = 1 << 20
"""Bytes that a result needs at least where it is written to."""


def verified(options: dict[str, Any], output_format: str, output: Path | None) -> int:
    """Measure, judge, tell."""
    wanted = _wanted(options)
    own = baseline.read(options["baseline"]) if options["baseline"] else None
    for path in (output, options["save_baseline"]):
        _writable(path)
    reach, way = _options.reach(options), WAYS[options["via"]]
    reach = way.hosts(reach)
    targets = reach.targets()
    asked = shlex.join([*_typed(reach), *way.words, *_judged(options)])
    with progress(len(targets)) as tell:
        prover = proof.Prover(wanted, reach, way.measure, tell, way.look)
        proofs = prover.prove(targets, own, options["even_if_busy"])
    if options["save_baseline"]:
        _save(options["save_baseline"], proofs)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            stream.write(data.text(verify_data.document(proofs, wanted, asked)))
        else:
            propose = not (own or options["save_baseline"])
            verify_text.print_verify(stream, proofs, wanted, asked, propose)
    return proof.exit_code(proofs)


def _typed(reach: Reach) -> list[str]:
    """The options that name the hosts and how they are reached."""
    words = shlex.split(_options.as_typed(reach, None, Choice(), None))
    if reach.become_password is not None:
        words = ["-K" if word == "-b" else word for word in words]
    return words if "-u" in words or not reach.user else [*words, "-u", reach.user]


def _judged(options: dict[str, Any]) -> list[str]:
    """The options that say which hosts are measured, and what they are held against."""
    baseline_words = ["--baseline", str(options["baseline"])] if options["baseline"] else []
    return [*baseline_words, *(["--even-if-busy"] if options["even_if_busy"] else [])]


def _writable(path: Path | None) -> None:
    """Minutes of measuring are not to end in a file that cannot be written. Raises OSError."""
    if path is not None and (path.is_file() or not path.exists()):
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:
                os.posix_fallocate(file.fileno(), 0, ROOM)
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror, str(path)) from None


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
    """Raises click.UsageError for a measurement, variable or network that is none."""
    known = measuring.names()
    for name in options["only"]:
        if name not in known:
            raise click.UsageError(f"no measurement is called {show.plain(name)}: there are {', '.join(known)}")
    for each in options["env"]:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", each, re.DOTALL):
            raise click.UsageError(f"--env {show.plain(each)}: write NAME=VALUE")
    if options["network"] and not options["pairs"] and not set(OF_PAIRS) & set(options["only"]):
        raise click.UsageError("--network says over which network hosts are measured in pairs: add --pairs")
    return Wanted(
        suite=options["suite"] or ("full" if options["only"] else "quick"),
        only=tuple(dict.fromkeys(options["only"])),
        gpus=tuple(sorted(set(options["gpus"]))),
        disk=options["disk"],
        pairs=options["pairs"],
        together=options["together"],
        network=_network(options["network"]),
        nccl=options["nccl"],
        nccl_tests=options["nccl_tests"],
        env=dict(each.split("=", 1) for each in options["env"]),
        runs=options["repeat"],
    )


def _network(given: str) -> str:
    """Raises click.UsageError."""
    try:
        return str(ipaddress.IPv4Network(given, strict=False)) if given else ""
    except ValueError:
        raise click.UsageError(f"--network {show.plain(given)}: write an IPv4 network, such as 10.1.0.0/16") from None


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
