"""An apply that could not judge what it may fix does not end with success."""

import pytest

from nodetune.api.model import Finding, HostResult
from nodetune.foundation import json_document
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.remediation import document
from nodetune.remediation.apply import Prepared
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.request import ApplyRequest
from tests.support.documents import valid

PASSES = Finding("max-map-count-low", "pass", "low")
SKIPPED = Finding("gpu-lost", "skip", "low", reason="no GPU")


def unread(check):
    return Finding(check, "unknown", "low", reason="permission denied: needs root (--become)")


def prepared(*findings, most="new-sessions", state="ok"):
    result = HostResult("gpu1", state, findings=findings)
    return Prepared(ApplyRequest(selection=PlanSelection(), max_disruption=most), (), [HostPlan(result)])


@pytest.mark.parametrize(
    ("findings", "most", "code"),
    [
        ((PASSES, SKIPPED), "new-sessions", OK),
        ((PASSES, unread("swappiness-high")), "new-sessions", INCOMPLETE),
        ((PASSES, unread("iommu-translates-dma")), "new-sessions", OK),
        ((PASSES, unread("iommu-translates-dma")), "reboot", INCOMPLETE),
        ((PASSES, unread("gpu-ecc-uncorrected")), "reboot", OK),
        ((SKIPPED, unread("gpu-ecc-uncorrected")), "new-sessions", INCOMPLETE),
        ((), "new-sessions", OK),
    ],
)
def test_an_unknown_check_that_a_run_may_fix_makes_it_incomplete(findings, most, code):
    assert prepared(*findings, most=most).code == code


def test_a_host_that_was_not_reached_still_makes_it_incomplete():
    assert prepared(state="refused").code == INCOMPLETE


def test_the_documents_name_what_could_not_be_judged():
    made = prepared(unread("swappiness-high"))
    told = [{"check": "swappiness-high", "reason": unread("").reason, "hosts": ["gpu1"]}]
    applied = document.applied(document.ApplyReport(None, made.skipped), made.results)
    assert valid("apply", json_document.text(applied))["unknown"] == told
    assert valid("rehearsal", json_document.text(document.dry_run({}, {}, {}, made.results)))["unknown"] == told


def test_these_checks_have_and_lack_a_fix():
    kinds = {check.id: check.remedy.kind for check in PlanSelection().judged()}
    assert (kinds["swappiness-high"], kinds["gpu-ecc-uncorrected"]) == ("sysctl", "manual")
