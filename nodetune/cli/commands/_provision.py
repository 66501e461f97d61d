"""The plan and the dry run of `provision`, as text or JSON."""

import shlex
from collections.abc import Mapping
from typing import TextIO

from nodetune.api.model import HostResult
from nodetune.foundation import json_document
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.provision import STAGES
from nodetune.provision.preflight import Preflight
from nodetune.provision.record import FAILED
from nodetune.remediation import document
from nodetune.remediation.ansible.events import Outcome
from nodetune.report.text import apply, provision


def print_plan(stream: TextIO, found: Preflight) -> None:
    """Print what each host gets."""
    provision.print_plan(stream, found.decisions, found.came, shlex.join(found.request.connection.words))


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
