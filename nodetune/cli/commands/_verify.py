"""Measure hosts and report, or compare two saved results."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune.cli import latest, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.progress import Progress
from nodetune.foundation import json_document
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts import nodeset
from nodetune.hosts.target import ConnectionOptions
from nodetune.report import rows, verify_rows
from nodetune.report.text import verify, verify_changes
from nodetune.verify import baseline, before_after, remote, run, slurm
from nodetune.verify import compare as comparing
from nodetune.verify import document as verify_document
from nodetune.verify.catalogue import of_scope
from nodetune.verify.machine import UNKNOWN
from nodetune.verify.model import Figure
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import Wanted

ROOM = 1 << 20
"""Bytes that a result needs at least where it is written to."""


def verified(options: dict[str, Any], output_format: str, output: Path | None) -> int:
    """Measure, evaluate and report."""
    wanted = _wanted(options)
    own = baseline.read(options["baseline"]) if options["baseline"] else None
    for path in (output, options["save_baseline"]):
        _writable(path)
    reach = cli_options.reach(options)
    targets = selected_hosts(reach)
    asked = shlex.join([*reach.words, *_judged(options)])
    with Progress("verify", len(targets), before_after.once(wanted) * wanted.runs) as shown:
        proofs = _run_with(wanted, reach, shown).prove(targets, own, options["allow_busy"])
    saved = _save(options["save_baseline"], proofs) if options["save_baseline"] else True
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(verify_document.document(proofs, wanted, asked)))
        elif output_format in rows.FORMATS:
            rows.write(stream, output_format, verify_rows.HEAD, verify_rows.rows(proofs))
        else:
            propose = not (own or options["save_baseline"])
            verify.print_verify(stream, proofs, wanted, asked, propose)
        if output:
            verbosity.note("".join(verify.totals(proofs)))
    if not (wanted.only or wanted.gpus or any(each.state == "interrupted" for each in proofs)):
        lost = sum(each.state != "ok" for each in proofs)
        short = sum(bool(each.short) for each in proofs)
        latest.keep("verify", f"{asked} {shlex.join(wanted.words)}".strip(), hosts=len(proofs), lost=lost, short=short)
    return run.exit_code(proofs) or (OK if saved else INCOMPLETE)


def _run_with(wanted: Wanted, reach: ConnectionOptions, shown: Progress) -> run.VerifyRun:
    """Choose how measurements are started. With srun, facts still come over SSH where hosts allow it."""
    if reach.transport == "slurm":
        over_ssh = replace(reach, transport="auto")
        return run.VerifyRun(wanted, over_ssh, slurm.measure, shown.step, run.reached_or_not, shown.done)
    return run.VerifyRun(wanted, reach, remote.measure, shown.step, run.reached, shown.done)


def _judged(options: dict[str, Any]) -> list[str]:
    """Return the options that select busy hosts and the baseline."""
    baseline_words = ["--baseline", str(options["baseline"])] if options["baseline"] else []
    return [*baseline_words, *(["--allow-busy"] if options["allow_busy"] else [])]


def _writable(path: Path | None) -> None:
    """Check that the file can be written before measuring starts. Raise OSError."""
    if path is not None and (path.is_file() or not path.exists()):
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:
                os.posix_fallocate(file.fileno(), 0, ROOM)
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror, str(path)) from None


def _wanted(options: dict[str, Any]) -> Wanted:
    """Turn the options into a request. Raise click.UsageError for an unknown measurement, variable or network."""
    known = remote.names()
    for name in options["only"]:
        if name not in known:
            raise click.UsageError(f"no measurement is called {plain_text.plain(name)}: choose from {', '.join(known)}")
    for each in options["env"]:
        if not re.fullmatch(r"[A-Za-z_]\w*=.*", each, re.DOTALL):
            raise click.UsageError(f"--env {plain_text.plain(each)}: write NAME=VALUE")
    if options["network"] and not options["pairs"] and not set(of_scope("pair")) & set(options["only"]):
        raise click.UsageError("--network needs --pairs")
    return Wanted(
        suite=options["suite"] or ("full" if options["only"] else "quick"),
        only=tuple(dict.fromkeys(options["only"])),
        gpus=tuple(sorted(set(options["gpus"]))),
        disk=options["disk"],
        pairs=options["pairs"],
        together=options["multi_node"],
        network=_network(options["network"]),
        nccl=options["nccl"],
        nccl_tests=options["nccl_tests"],
        env=dict(each.split("=", 1) for each in options["env"]),
        runs=options["repeat"],
    )


def _network(given: str) -> str:
    """Return the network in canonical form. Raise click.UsageError if it is none."""
    try:
        return str(ipaddress.IPv4Network(given, strict=False)) if given else ""
    except ValueError:
        raise click.UsageError(
            f"--network {plain_text.plain(given)}: write an IPv4 network, such as 10.1.0.0/16"
        ) from None


def _save(path: Path, proofs: Sequence[HostVerification]) -> bool:
    """Write a baseline, unless it would be empty: hosts with unknown hardware or at other work do not count.

    Return False if others at work kept a host out of it.
    """
    known = [each for each in proofs if each.machine != UNKNOWN]
    disturbed = [each for each in known if each.disturbed]
    document = verify_document.kept(known)
    if disturbed:
        what = (
            f"written without {nodeset.fold([each.host for each in disturbed])}"
            if document["figures"]
            else "not written"
        )
        name, why = disturbed[0].disturbed[0]
        on = f" on {disturbed[0].host}" if len(proofs) > 1 else ""
        click.echo(
            f"{path}: {what}: during {name}{on} {why}: end that work, or wait for it, and measure again", err=True
        )
    elif not document["figures"]:
        click.echo(f"{path}: not written: no result on known hardware reached its target", err=True)
    if document["figures"]:
        _write(path, document)
    return not disturbed


def _write(path: Path, document: dict[str, Any]) -> None:
    with cli_options.writing(path) as stream:
        stream.write(json.dumps(document, indent=1) + "\n")


def compared(before: Path, after: Path, output_format: str, output: Path | None) -> int:
    """Compare two results. Return 5 if something became worse, 3 if nothing could be compared."""
    return report_changes(verify_document.read(before), verify_document.read(after), output_format, output)


def report_changes(before: list[Figure], after: list[Figure], output_format: str, output: Path | None) -> int:
    """Print how the figures changed, and return the exit code."""
    changes = comparing.compare(before, after)
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(verify_document.compared(changes)))
        else:
            verify_changes.print_changes(stream, changes)
    if any(each.status == comparing.WORSE for each in changes):
        return TOO_SLOW
    return OK if any(each.status != comparing.UNSURE for each in changes) else INCOMPLETE
