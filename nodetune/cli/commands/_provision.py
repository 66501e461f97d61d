"""The output and questions of `provision`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TextIO

from nodetune.api.model import HostResult
from nodetune.foundation import json_document, nodeset
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.provision import STAGES
from nodetune.provision.preflight import Preflight
from nodetune.provision.record import FAILED
from nodetune.provision.run import ProvisionReport
from nodetune.remediation import document
from nodetune.remediation.ansible.events import Outcome
from nodetune.report.text import apply, provision
from nodetune.verify.compare import MIN_RUNS


def print_plan(stream: TextIO, found: Preflight) -> None:
    """Print what each host gets."""
    provision.print_plan(stream, found.decisions, found.came, shlex.join(found.request.connection.words))


def question(found: Preflight) -> str:
    request, hosts = found.request, nodeset.fold(found.decisions)
    moved = len({name for each in found.decisions.values() for name, _, _ in each.changes()})
    parts = [plain_text.count(moved, "package")] if request.runs("packages") else []
    if request.runs("reboot"):
        parts.append("a reboot if the driver needs it")
    if request.upgrade:
        parts.append(f"measured {MIN_RUNS} times before and after")
    else:
        done = {"tune": True, "guard": bool(found.site.guard), "join": found.site.join != "none"}
        parts += [stage for stage, wanted in done.items() if wanted and request.runs(stage)]
    what = "Upgrade" if request.upgrade else "Provision"
    return (
        f"{what} {plain_text.count(len(found.decisions), 'host')} ({plain_text.plain(hosts, 60)}): {', '.join(parts)}?"
    )


def print_report(stream: TextIO, report: ProvisionReport, output_format: str) -> None:
    """Print what was done."""
    if output_format == "json":
        stream.write(json_document.text(report.document))
    else:
        provision.print_record(stream, report.document)
        apply.print_drained(stream, report.drained)


def print_dry_run(stream: TextIO, found: Preflight, outcomes: Mapping[str, Outcome], output_format: str) -> None:
    """Print what would change in packages, and the later stages."""
    failed, diffs = apply.failures_of(outcomes), apply.diffs_of(outcomes)
    if output_format == "json":
        refused = {host: each.message for host, each in found.came.items() if not each.ok and each.code != INCOMPLETE}
        unknown = [
            HostResult(host, FAILED, each.message) for host, each in found.came.items() if each.code == INCOMPLETE
        ]
        told = {**{host: [] for host in refused}, **diffs}
        stream.write(json_document.text(document.dry_run(told, {}, {**refused, **failed}, unknown)))
        return
    single = len(found.targets) == 1
    apply.print_diffs(stream, diffs, single)
    apply.print_problems(stream, {}, failed, single)
    problems = len(failed) + sum(not each.ok for each in found.came.values())
    left = [stage for stage in STAGES[2:] if found.request.runs(stage)]
    provision.print_rest(stream, left, found.site, found.decisions, problems)
