"""Findings of one cause are reported as one, and every check keeps its own verdict."""

from pathlib import Path

import pytest

from nodetune import checks
from nodetune.api.model import SEVERITIES, Check, Finding, HostResult
from nodetune.api.remedies import manual
from nodetune.audit import summary
from nodetune.audit.auditor import Auditor, OneCause
from nodetune.audit.selection import Selection
from nodetune.facts import document

MACHINE = Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json"
LEADER, PARTS = (
    "tcp-rmem-below-bandwidth",
    ("rmem-max-below-bandwidth", "tcp-wmem-below-bandwidth", "wmem-max-below-bandwidth"),
)
WITH_PARTS = [each for each in checks.load_all() if each.part_of]
PART = Check(accept=1, severity="low", remedy=manual("x"), id="part", part_of="leader")


def judged(*select):
    facts = document.load(MACHINE)
    return Auditor(Selection(select=select)).audit(HostResult("node", "ok", facts=facts))


def findings(leader="fail", part="fail", **more):
    return Finding("leader", leader, "low", observed="1"), Finding("part", part, "low", **{"observed": "2", **more})


def test_four_buffers_that_are_too_small_are_one_finding():
    result = judged("network")
    shown = {each.check: each for each in result.causes()}
    assert LEADER in shown
    assert not set(PARTS) & set(shown)
    assert all(part in shown[LEADER].reason for part in PARTS)
    assert shown.keys() < {each.check for each in result.failing()}


def test_the_summary_counts_findings_of_one_cause_once():
    result = judged("network")
    counted = summary.summarise([result])
    assert sum(counted.failing.values()) == len(list(result.causes()))
    assert counted.statuses["fail"] == len(list(result.failing()))


def test_every_part_keeps_its_own_fix():
    parts = [each for each in judged("network").failing() if each.part_of == LEADER]
    assert len(parts) == len(PARTS)
    assert all(each.fix for each in parts)


def test_a_part_selected_alone_stands_alone():
    (found,) = judged(PARTS[0]).causes()
    assert (found.check, found.part_of) == (PARTS[0], "")


@pytest.mark.parametrize(
    "given",
    [
        findings(leader="pass"),
        findings(leader="waived"),
        findings(part="pass"),
        (findings()[0], Finding("part", "fail", "high")),
        findings(gates=True),
    ],
)
def test_a_part_stands_alone_where_the_leader_says_too_little(given):
    assert OneCause([PART]).joined(given) == given


def test_hosts_with_the_same_findings_share_the_joined_ones():
    causes, given = OneCause([PART]), findings()
    first, again = causes.joined(given), causes.joined(given)
    assert first == again
    assert all(one is other for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("check", WITH_PARTS, ids=lambda check: check.id)
def test_a_part_names_a_check_that_stands_alone(check):
    assert checks.load(check.part_of).part_of == ""
    assert SEVERITIES.index(check.severity) <= SEVERITIES.index(checks.load(check.part_of).severity)
