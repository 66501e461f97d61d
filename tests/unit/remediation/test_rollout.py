"""Drained nodes, and runs that are ended or lose hosts while nodes are drained; what Ansible says is given by the test."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune.api.model import HostResult
from nodetune.audit import auditor
from nodetune.config import site
from nodetune.facts import document
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation import apply, host_operations, rollout
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.host_operations import HostOperations
from nodetune.remediation.outcomes import NOT_APPLIED
from nodetune.remediation.plan import PlanSelection
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs.record import Run

MACHINE = Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json"
DRAINED = Event("gpu1", "Drain", changed=True, result={"changed": True, "busy": ""})


def request_for(**given):
    return ApplyRequest(ConnectionOptions(), PlanSelection(), **given)


def planned(how, *, slurmd, computing, host="gpu1"):
    """An untuned host as `rollout.prepare` sees it."""
    data = json.loads(MACHINE.read_text())
    data["facts"]["services.processes"] = {"value": {"slurmd": 1} if slurmd else {}}
    users = [{"pid": 7, "used_memory": 1, "name": "python", "uid": 1000}] if computing else []
    data["facts"]["gpu.compute_running_processes"] = {"each": {"GPU0": {"value": users}}}
    data["about"] = {**data.get("about", {}), "uid": 0}
    facts = document.from_data(data, host)
    return rollout.prepare(replace(auditor.Auditor(PlanSelection(), "2026-11-01").result(facts), facts=facts), how)


@pytest.mark.parametrize(
    ("drain", "slurmd", "computing", "disturbs"),
    [
        (None, True, False, True),
        (None, True, True, False),
        ("slurm", True, True, True),  # its job ends by itself while the node is drained
        ("slurm", False, True, False),  # nothing ends what no scheduler started
    ],
)
def test_a_busy_node_is_changed_if_slurm_can_drain_it(drain, slurmd, computing, disturbs):
    found = planned(request_for(max_disruption="reboot", drain=drain), slurmd=slurmd, computing=computing)
    assert found.disturbs is disturbs
    assert found.findings


@pytest.mark.parametrize(("kernel", "changed"), [("6.8.0-1028-nvidia-64k", False), ("6.14.0-1007-nvidia-64k", True)])
def test_an_apply_changes_no_host_that_would_lose_cuda(tmp_path, kernel, changed):
    data = json.loads(MACHINE.with_name("grace-gb200.json").read_text())
    above = data["facts"]["pci.devices"]["value"]["0008:01:00.0"]["parents"]
    redirects = {"value": {"port": "root", "enabled": ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]}}
    data["facts"] |= {"pci.acs": {"each": {above[0]: redirects}}, "host.kernel": {"value": kernel}}
    data["facts"] |= {
        "cmdline.running.iommu.passthrough": {"value": "0"},
        "services.docker": {"absent": "not installed"},
    }
    data["facts"] |= {"cmdline.installed": {"value": {"arguments": {}, "file": "/boot/grub/grub.cfg"}}}
    data["about"] = {**data.get("about", {}), "uid": 0}
    facts = document.from_data(data, "tray1")
    wants = {"id": "site-passthrough", "kernel_arg": "iommu.passthrough", "accept": "1", "set": "1"}
    (tmp_path / "site.yml").write_text(json.dumps({"add": [wants]}))
    selection = PlanSelection(site=site.read([tmp_path / "site.yml"]), select=("site-passthrough",))
    request = ApplyRequest(ConnectionOptions(), selection, max_disruption="reboot")
    audited = replace(auditor.Auditor(selection, "2026-11-01").result(facts), facts=facts)
    prepared = apply.planned(request, [Target("tray1")], [audited])
    assert bool(prepared.busy) is changed
    assert [each.changes == () for each in prepared.plans] == [not changed]
    assert ["CUDA would start on no GPU" in each.reason for each in prepared.skipped] == [True] * (not changed)


class Ansible:
    """Replaces `play.play`: what each play came to, by its name, and which hosts it was played on."""

    def __init__(self, monkeypatch, **answers):
        self.answers, self.played = answers, []
        monkeypatch.setattr(host_operations.play, "play", self)

    def __call__(self, name, targets, *_):
        hosts = [target.name for target in targets]
        if hosts:
            self.played.append((name, hosts))
        return {host: self.answers.get(name, {}).get(host, Outcome(host)) for host in hosts}

    def names(self):
        return [name for name, _ in self.played]


def run_on(tmp_path, *hosts):
    return Run.create("apply", {}, hosts, None, tmp_path)


def operations_on(tmp_path, *hosts, **how):
    return HostOperations(
        [Target(host) for host in hosts],
        request_for(**how),
        run_on(tmp_path, *hosts),
        lambda _event: None,
    )


def test_a_run_stopped_while_draining_changes_nothing_more(tmp_path, monkeypatch):
    ended = Outcome("gpu1", "interrupted", "ended by Ctrl-C")
    ansible = Ansible(monkeypatch, drain={"gpu1": ended})
    how = request_for(max_disruption="reboot", drain="slurm")
    work = planned(how, slurmd=True, computing=False)
    rolling = rollout.Rollout([Target("gpu1")], how, run_on(tmp_path, "gpu1"), lambda _event: None)
    done = [each for each in rolling.apply([work]) if each.check in {found.check for found in work.findings}]
    assert ansible.names() == ["drain"]
    assert {(each.outcome, each.reason) for each in done} == {(NOT_APPLIED, "ended by Ctrl-C")}
    assert list(rolling.operations.left_drained) == ["gpu1"]
    assert "perhaps" in rolling.operations.left_drained["gpu1"]


def test_a_node_lost_while_it_was_drained_is_given_back(tmp_path, monkeypatch):
    lost = {host: Outcome(host, "unreachable", "no route") for host in ("gpu1", "gpu2", "gpu3")}
    back = {"gpu1": Outcome("gpu1", results=(replace(DRAINED, task="Resume"),)), "gpu3": lost["gpu3"]}
    ansible = Ansible(monkeypatch, drain=lost, resume=back)
    here = operations_on(tmp_path, "gpu1", "gpu2", "gpu3", "gpu4")
    to_give_back, waits = here.drained(["gpu1", "gpu2", "gpu3", "gpu4"])
    assert set(waits) == {"gpu1", "gpu2", "gpu3"}
    here.give_back(to_give_back)
    assert ansible.names() == ["drain", "resume"]
    assert ansible.played[1][1] == ["gpu1", "gpu2", "gpu3"]
    assert list(here.left_drained) == ["gpu3"]
    assert here.left_drained["gpu3"] == "perhaps: the host was lost during the drain: no route"


def test_a_node_that_someone_drained_again_is_named(tmp_path, monkeypatch):
    Ansible(monkeypatch, drain={"gpu1": Outcome("gpu1", results=(DRAINED,))})
    here = operations_on(tmp_path, "gpu1")
    here.give_back(here.drained(["gpu1"])[0])
    assert here.left_drained == {"gpu1": "slurmd does not run there, or someone else has drained it since"}


def test_a_host_that_failed_after_a_change_is_audited(tmp_path, monkeypatch):
    put = Event("gpu1", "Put", changed=True, result={"entries": [{"n": 0}]})
    lost = {"gpu1": Outcome("gpu1", "failed", "it broke", (put,)), "gpu2": Outcome("gpu2", "unreachable", "no route")}
    Ansible(monkeypatch, remediate=lost)
    monkeypatch.setattr(
        rollout.audit_hosts, "audit_hosts", lambda targets, *_: [HostResult(each.name, "ok") for each in targets]
    )
    how = request_for(canary=0)
    hosts = ("gpu1", "gpu2")
    rolling = rollout.Rollout(map(Target, hosts), how, run_on(tmp_path, *hosts), lambda _event: None)
    done = rolling.apply([planned(how, slurmd=False, computing=False, host=host) for host in hosts])
    assert [each.host for each in rolling.after()] == ["gpu1"]
    reasons = {each.host: each.reason for each in done if each.outcome == NOT_APPLIED}
    assert reasons == {"gpu1": "it broke", "gpu2": "no route"}


def test_without_facts_there_is_nothing_to_do():
    assert rollout.prepare(HostResult("gpu1", "unreachable", "no route"), request_for(drain="slurm")).findings == ()
