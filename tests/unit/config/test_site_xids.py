"""Xids that a site judges by a threshold of its own, in an audit and by the guard."""

import pytest

from nodetune.audit import evaluate
from nodetune.config import site, site_checks
from nodetune.facts import document
from nodetune.foundation import UserError
from nodetune.foundation.yaml_lines import load
from nodetune.guard.node import decide, gating_checks
from nodetune.guard.node.invocation import Job

GPU0, GPU1 = "0000:3b:00.0", "0000:5e:00.0"
WHERE = {"pci.gpus": {"value": [GPU0, GPU1]}}


@pytest.fixture
def check(tmp_path):
    path = tmp_path / "site.yml"
    path.write_text(
        "add:\n  - {id: site-xid-31, xid: 31, accept: {at_most: 19}, severity: high, manual: Ask the owner.}\n"
    )
    return site_checks.read(load(path))[0]


def logged(*events):
    given = [{"bdf": bdf, "xid": xid, "time": 9.0, "text": "", **more} for bdf, xid, more in events]
    return {**WHERE, "xid.events": {"value": given}}


def judged(check, facts):
    return evaluate.judge(check, document.from_data({"host": "gpu1", "facts": facts}))


FREQUENT = logged(
    (GPU0, 31, {"first": 1.0, "count": 20}), (GPU1, 31, {"first": 1.0, "count": 19}), (GPU1, 13, {"count": 99})
)


def test_an_xid_over_the_threshold_fails_for_its_gpu(check):
    found = judged(check, FREQUENT)
    assert (found.status, found.severity, list(found.subjects), found.manual) == (
        "fail",
        "high",
        [GPU0],
        "Ask the owner.",
    )
    assert "20" in found.observed


def test_below_the_threshold_and_without_the_xid_it_passes(check):
    assert judged(check, logged((GPU1, 31, {"first": 1.0, "count": 19}))).status == "pass"
    assert judged(check, logged((GPU1, 79, {"first": 1.0, "count": 1}))).status == "pass"
    assert judged(check, {"pci.gpus": {"value": []}, "xid.events": {"value": []}}).status == "skip"


def test_facts_of_earlier_versions_have_each_event_by_itself(check):
    assert judged(check, logged(*[(GPU0, 31, {})] * 20)).status == "fail"
    assert judged(check, logged(*[(GPU0, 31, {})] * 19)).status == "pass"


@pytest.mark.parametrize(("gpu", "verdict"), [("0", "fail"), ("1", "pass")])
def test_the_guard_holds_a_job_only_for_its_own_gpus(check, gpu, verdict):
    each = {"GPU0": {"value": GPU0}, "GPU1": {"value": GPU1}}
    numbers = {"GPU0": {"value": 0}, "GPU1": {"value": 1}}
    facts = {**FREQUENT, "gpu.bdf": {"each": each}, "gpu.minor_number": {"each": numbers}}
    entry = gating_checks.entry(check)
    assert (entry["xid"], entry["about"]) == (31, "gpu")
    host = gating_checks.host_facts(facts, {})
    job = Job({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": gpu})
    assert decide.decide(gating_checks.findings([entry], host), [entry], host, job, {}).verdict == verdict


@pytest.mark.parametrize("more", ["set: 1", "xid: 0", "xid: 31x"])
def test_what_an_xid_cannot_have_is_told(tmp_path, more):
    path = tmp_path / "site.yml"
    key = "" if more.startswith("xid") else "xid: 31, "
    path.write_text(f"add:\n  - {{id: site-xid-31, {key}{more}, accept: 0}}\n")
    with pytest.raises(UserError):
        site.read([path])
