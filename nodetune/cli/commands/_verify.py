"""Measure hosts and report, or compare two saved results."""

import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from nodetune.cli import last_results, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.report import rows, verify_metrics, verify_rows
from nodetune.report.text import verify, verify_changes
from nodetune.report.text.lines import Lines, console
from nodetune.verify import catalogue
from nodetune.verify import compare as comparing
from nodetune.verify import document as verify_document
from nodetune.verify.conclude import concluded
from nodetune.verify.document import MeasuredResult
from nodetune.verify.exit_code import exit_code
from nodetune.verify.request import VerifyRequest
from nodetune.verify.scaling import scaling
from nodetune.verify.verify_hosts import save_baseline, verify_hosts

ROOM = 1 << 20
"""Bytes that a result needs at least where it is written to."""


def print_measurements() -> None:
    """Print each measurement with the suites or the option that runs it, and what it measures."""
    lines = Lines(console(sys.stdout))
    rows = [(each.name, ", ".join(each.runs), each.about) for each in catalogue.measurements().values()]
    name_width, runs_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, runs, about in rows:
        head = f"{runs:{runs_width}}  "
        lines.line((f"{name:{name_width}}  ", "bold"), head, about, hang=" " * (name_width + 2 + len(head)))


def verified(request: VerifyRequest, site: tuple[Path, ...], output_format: str, output: Path | None) -> int:
    """Measure, evaluate and report."""
    for path in (output, request.save_baseline):
        _writable(path)
    known = cli_options.site_file(site)
    gpu_hour = known.gpu_hour if known else None
    measure, show = request.measure, Terminal()
    asked = shlex.join([*request.connection.words, *request.judged])
    verifications = verify_hosts(request, show)
    saved = save_baseline(request.save_baseline, verifications, show) if request.save_baseline else True
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(verify_document.document(verifications, measure, asked, gpu_hour)))
        elif output_format in rows.FORMATS:
            rows.write(stream, output_format, verify_rows.HEAD, verify_rows.rows(verifications))
        elif output_format == "prometheus":
            verify_metrics.write(verifications, stream)
        else:
            propose = not (request.baseline or request.save_baseline)
            verify.Printer(console(stream), verifications, measure, asked, propose, gpu_hour).verify()
        if output:
            verbosity.note("".join(verify.totals(verifications)))
    if not (measure.only or measure.gpus or any(each.state == "interrupted" for each in verifications)):
        lost = sum(each.state != "ok" for each in verifications)
        short = sum(bool(each.short) for each in verifications)
        whole = f"{asked} {shlex.join(measure.words)}".strip()
        last_results.keep("verify", whole, {"hosts": len(verifications), "lost": lost, "short": short})
    if request.notify:
        from nodetune.cli import receivers

        receivers.tell(
            request.notify, concluded(verifications, int(time.time())), f"verify {shlex.join(measure.words)}"
        )
    return exit_code(verifications, measure.require, measure.gpus) or (OK if saved else INCOMPLETE)


def found_slow(request: VerifyRequest, output_format: str, output: Path | None) -> int:
    """Search the slow part and report it."""
    from nodetune.history import keeping
    from nodetune.report.text import find_slow as report
    from nodetune.verify.find_slow import conclude, document
    from nodetune.verify.find_slow import run as searching

    _writable(output)
    found, asked = searching.find_slow(request, Terminal()), [*request.connection.words, *request.judged]
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(document.document(found, asked)))
        else:
            report.print_search(stream, found, request.connection.words)
    known = conclude.concluded(found, int(time.time()))
    keeping.keep(request.history, Terminal(), concluded=known)
    if request.notify:
        from nodetune.cli import receivers

        receivers.tell(request.notify, known, conclude.SOURCE)
    return document.exit_code(found)


def _writable(path: Path | None) -> None:
    """Check that the file can be written before measuring starts. Raise OSError."""
    if path is not None and (path.is_file() or not path.exists()):
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:
                os.posix_fallocate(file.fileno(), 0, ROOM)
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror, str(path)) from None


def report_changes(before: MeasuredResult, after: MeasuredResult, output_format: str, output: Path | None) -> int:
    """Print how the figures changed. Return 5 if something became worse, 3 if figures are missing or none is judged."""
    changes = comparing.compare(before.figures, after.figures)
    states = [each.unmeasured for each in (before, after)]
    lost = {host: (states[0].get(host, "ok"), states[1].get(host, "ok")) for host in sorted({**states[0], **states[1]})}
    scaled = scaling(before.figures, after.figures)
    known = [each.before for each in scaled]
    missing = [
        each
        for each in comparing.missing(before.figures, after.figures)
        if each.host not in states[1] and each not in known
    ]
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(verify_document.compared(changes, missing, lost, scaled)))
        else:
            verify_changes.print_changes(stream, changes, missing, lost, scaled)
    if any(each.status == comparing.WORSE for each in changes):
        return TOO_SLOW
    unsure = all(each.status == comparing.UNSURE for each in changes) and not scaled
    return INCOMPLETE if lost or missing or unsure else OK
