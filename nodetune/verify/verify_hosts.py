"""Measure hosts, judge their figures, and save a baseline."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nodetune.facts.machine import UNKNOWN
from nodetune.foundation import file_io, json_document, nodeset, text
from nodetune.foundation.stage_output import Phase, Show
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.verify import baseline, before_after, remote, run, slurm
from nodetune.verify import document as verify_document
from nodetune.verify.conclude import concluded
from nodetune.verify.request import VerifyRequest
from nodetune.verify.run import HostVerification


def measure_by(connection: ConnectionOptions) -> run.Measure:
    """Return what starts measurements on hosts: srun, or a connection to each host."""
    return slurm.measure if connection.transport == "slurm" else remote.measure


def verify_hosts(request: VerifyRequest, show: Show) -> list[HostVerification]:
    """Return the verification of each host, by name. Raise InventoryError, DocumentError, OSError."""
    own = baseline.read(request.baseline) if request.baseline else None
    targets = selected_hosts(request.connection, show.detail)
    seconds = before_after.once(request.measure) * request.measure.repeat
    with show.phase("verify", len(targets), seconds) as phase:
        found = _verify_run(request, phase).prove(targets, own, request.allow_busy)
    if request.history:
        from nodetune.history import keeping  # most runs have no history

        figures = [(each.host, None, _figures(each)) for each in found]
        keeping.keep(request.history, show, measured=figures, concluded=concluded(found, int(time.time())))
    return found


def _figures(verification: HostVerification) -> dict[str, float]:
    """Return the figures that nothing disturbed."""
    figures = [verdict.figure for verdict in verification.verdicts]
    return {
        f"verify.{each.measurement}.{each.metric}/{text.plain(each.subject)}": each.value
        for each in figures
        if not each.disturbance and math.isfinite(each.value)
    }


def _verify_run(request: VerifyRequest, phase: Phase) -> run.VerifyRun:
    """Choose how measurements are started. With srun, facts still come over SSH where hosts allow it."""
    connection = request.connection
    if connection.transport == "slurm":
        over_ssh = replace(connection, transport="auto")
        return run.VerifyRun(request.measure, over_ssh, slurm.measure, phase.step, run.reached_or_not, phase.done)
    return run.VerifyRun(request.measure, connection, remote.measure, phase.step, run.reached, phase.done)


def save_baseline(path: Path, verifications: Sequence[HostVerification], show: Show) -> bool:
    """Write a baseline, unless it would be empty. Hosts with unknown hardware, or where others were working, do not count.

    Return False if the work of others kept a host out of it. Raise OSError.
    """
    known = [each for each in verifications if each.machine != UNKNOWN]
    disturbed = [each for each in known if each.disturbed]
    document = verify_document.kept(known)
    if disturbed:
        what = (
            f"written without {nodeset.fold([each.host for each in disturbed])}"
            if document["figures"]
            else "not written"
        )
        name, why = disturbed[0].disturbed[0]
        on = f" on {disturbed[0].host}" if len(verifications) > 1 else ""
        show.warn(f"{path}: {what}: during {name}{on} {why}: end that load or wait for it, then measure again")
    elif not document["figures"]:
        show.warn(f"{path}: not written: no result on known hardware reached its target")
    if document["figures"]:
        with file_io.output(path) as stream:
            stream.write(json_document.text(document))
        if path.is_file():
            show.note(f"written to {path}")
    return not disturbed
