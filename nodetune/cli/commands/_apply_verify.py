"""The additions of `apply --verify`: measure hosts before and after their changes, and report the effect."""

from __future__ import annotations

from collections.abc import Sequence

from nodetune.cli import as_typed, progress, verbosity
from nodetune.cli.commands._apply import Work
from nodetune.remediation.batches import batches
from nodetune.remediation.host_operations import ApplyOptions
from nodetune.remediation.runs import Run
from nodetune.verify import before_after as verify_before_after
from nodetune.verify import document as verify
from nodetune.verify import remote
from nodetune.verify.before_after import BeforeAfter
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest


def before_after(wanted: SuiteRequest, work: Work, run: Run) -> BeforeAfter:
    """Measures the hosts of `work`, and keeps what it measures in the record of `run`."""
    asked = as_typed.text(work.reach)

    def keep(when: str, proofs: Sequence[HostVerification]) -> None:
        run.save(f"{when}-verify", verify.document(proofs, wanted, asked))

    return BeforeAfter(wanted, work.targets, work.reach, remote.measure, progress.measuring, keep)


def announce(wanted: SuiteRequest, work: Work, options: ApplyOptions) -> None:
    """Print how long it will take, before the confirmation."""
    parts = batches([each.host for each in work.busy], options.canary, options.batch)
    verbosity.note(verify_before_after.duration(wanted, len(parts)))
