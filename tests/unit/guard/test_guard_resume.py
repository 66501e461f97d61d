"""Which drained nodes may take jobs again, by what an audit finds on them now."""

import pytest

from nodetune.api.model import Finding, HostFacts, HostResult
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.guard.deploy import resume
from nodetune.guard.node.scontrol import SlurmNode

REASON = "nodetune: gpu-lost: GPU0"


def fate(*statuses, state="IDLE+DRAIN", blamed=("gpu-lost",)):
    """What happens to a node without a policy: `statuses` are (check, status) of its gating checks."""
    node = SlurmNode(f"NodeName=n01 State={state} Reason={REASON} [root@2026-11-21T10:00:00]")
    drained = resume.Drained(node, ({"reason": REASON, "checks": list(blamed)},))
    findings = tuple(Finding(check, status, "critical", observed="GPU0", gates=True) for check, status in statuses)
    return resume.decide(drained, HostResult("n01", "ok", facts=HostFacts("n01", {}), findings=findings))


@pytest.mark.parametrize("status", ["pass", "waived"])
def test_a_node_whose_gating_checks_pass_may_come_back(status):
    found = fate(("gpu-lost", status), ("gpu-missing", "skip"))
    assert (found.state, found.code) == (resume.MAY, OK)


@pytest.mark.parametrize(("status", "code"), [("fail", FINDINGS), ("unknown", INCOMPLETE)])
def test_a_check_that_fails_or_is_unknown_keeps_the_node(status, code):
    found = fate(("gpu-lost", "pass"), ("gpu-missing", status))
    assert (found.state, found.code, found.check) == (resume.STAYS, code, "gpu-missing")


@pytest.mark.parametrize("now", [(), (("gpu-lost", "skip"),)])
def test_a_check_that_is_not_judged_any_more_keeps_the_node(now):
    found = fate(*now)
    assert (found.state, found.code) == (resume.STAYS, INCOMPLETE)
    assert found.why == "it was drained for gpu-lost, which is not judged there now"


@pytest.mark.parametrize("state", ["DOWN+DRAIN", "FAIL+DRAIN", "IDLE"])
def test_a_node_with_another_trouble_in_slurm_stays(state):
    found = fate(("gpu-lost", "pass"), state=state)
    assert (found.state, found.why, found.code) == (resume.STAYS, f"Slurm reports {state}", FINDINGS)
