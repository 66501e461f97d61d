"""The policy: made from a profile, checked where it is read."""

import json
import os
import time
from dataclasses import replace

import jsonschema
import pytest

from nodetune.api import remedies
from nodetune.api.model import HostFacts, HostResult
from nodetune.audit.selection import Selection
from nodetune.config import profile, site, site_file
from nodetune.foundation import paths, yaml_lines
from nodetune.guard.deploy import install
from nodetune.guard.deploy import policy as policies
from nodetune.guard.deploy.request import GuardDiffRequest
from nodetune.guard.node import policy
from nodetune.guard.node.invocation import InconclusiveError

SCHEMA = json.loads(paths.bundled("data/schemas/guard-policy.json").read_text())


def made(given="", **settings):
    resolved = profile.resolve(
        profile.named(["training"]), site_file.parsed(yaml_lines.parse(given, "site.yml"), "site") if given else None
    )
    return policies.make(resolved, "n01", settings)


@pytest.fixture
def write(tmp_path):
    def to_file(data, mode=0o644):
        path = tmp_path / "guard.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        path.chmod(mode)
        return str(path)

    return to_file


def test_only_stable_critical_checks_gate_by_default():
    data = made()
    assert {check["id"] for check in data["checks"]} == {
        "gpu-lost",
        "gpu-missing",
        "gpu-recovery-needed",
        "gpu-row-remap-failed",
        "gpu-sram-threshold-exceeded",
        "hardware-missing",
        "nouveau-loaded",
        "nvml-not-answering",
    }
    assert data["mode"] == "observe"


def test_group_values_and_waivers_reach_only_their_policies(tmp_path):
    path = tmp_path / "site.yml"
    waiver = "{id: gpu-missing, groups: spare, reason: r, owner: o, until: 2099-01-01}"
    path.write_text(f"groups:\n  spare: {{checks: {{gpu-lost: {{gate: false}}}}}}\nwaivers:\n  - {waiver}\n")
    found = site.read([path])
    site.expect(found, {"gpu1": (("spare", 1, 1),), "gpu2": ()})
    results = [HostResult(name, "ok", facts=HostFacts(name, {})) for name in ("gpu1", "gpu2")]
    request = GuardDiffRequest(selection=Selection(("training",), found))
    spare, other = install.with_policies(request, [], results).policies.values()
    assert {each["id"] for each in other["checks"]} - {each["id"] for each in spare["checks"]} == {"gpu-lost"}
    assert [[each["id"] for each in policy["waivers"]] for policy in (spare, other)] == [["gpu-missing"], []]


def test_a_sites_critical_check_gates_only_if_told_to():
    added = "add:\n  - {id: site-motd, file: /etc/motd, accept: {matches: hello}, severity: critical}\n"
    assert "site-motd" not in {check["id"] for check in made(added)["checks"]}
    said = "checks:\n  site-motd: {gate: true}\n" + added
    assert "site-motd" in {check["id"] for check in made(said)["checks"]}


OWN = {
    "file": "{id: site-own, file: /etc/motd, accept: {matches: hello}, severity: critical%s}",
    "sysctl": "{id: site-own, sysctl: vm.swappiness, accept: 1, severity: critical%s}",
    "service": "{id: site-own, service: nvidia-persistenced, accept: enabled, severity: critical%s}",
    "xid": "{id: site-own, xid: 31, accept: {at_most: 19}, severity: critical%s}",
    "kernel_arg": "{id: site-own, kernel_arg: iommu, accept: pt, severity: critical%s}",
}


@pytest.mark.parametrize("kind", OWN)
def test_no_kind_of_a_sites_own_check_gates_by_itself(kind):
    def gates(more="", override=""):
        data = made(f"add:\n  - {OWN[kind] % more}\n{override}")
        return "site-own" in {check["id"] for check in data["checks"]}

    assert not gates()
    assert not gates(override="checks:\n  site-own: {severity: critical}\n")
    assert not gates(more=", gate: false")
    assert gates(more=", gate: true")


def test_what_is_made_is_as_its_schema_says_and_is_read_back(write):
    site = """
checks:
  ksm-on: {gate: true}
  site-motd: {gate: true}
add:
  - {id: site-motd, file: /etc/motd, accept: {matches: hello}, severity: critical}
waivers:
  - {id: gpu-lost, hosts: "n*", reason: known, owner: ops, until: 2999-01-01}
  - {id: gpu-missing, hosts: other, reason: known, owner: ops, until: 2999-01-01}
"""
    data = made(site, shared="/shared", snapshot=["gpu.ecc_uncorrected_volatile"])
    jsonschema.validate(data, SCHEMA)
    chosen = policy.load(write(data))
    assert chosen.shared == "/shared"
    by_id = {check["id"]: check for check in chosen.checks}
    assert by_id["ksm-on"]["about"] == "node"
    assert by_id["gpu-lost"]["about"] == "gpu"
    assert by_id["site-motd"]["fact"] == "file./etc/motd"
    assert [each["id"] for each in chosen.waivers] == ["gpu-lost"], "those of other hosts are not this node's"


@pytest.mark.parametrize(("today", "waived"), [("2030-01-31", ["gpu-lost"]), ("2030-02-01", [])])
def test_a_waiver_counts_until_the_end_of_its_last_day(write, monkeypatch, today, waived):
    site = "waivers:\n  - {id: gpu-lost, hosts: '*', reason: known, owner: ops, until: 2030-01-31}\n"
    chosen = policy.load(write(made(site)))
    monkeypatch.setattr(policy.time, "gmtime", lambda: time.strptime(today, "%Y-%m-%d"))
    assert list(chosen.waived()) == waived


def test_what_the_next_boot_would_set_is_not_read():
    data = made("checks:\n  swappiness-high: {gate: true}\n")
    facts = {name for check in data["checks"] for name in check["facts"]}
    assert "sysctl.vm.swappiness" in facts
    assert not [name for name in facts if name.startswith("persisted.")]


def test_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="unknown guard setting 'mod'"):
        made(mod="enforce")


@pytest.mark.parametrize("mode", [0o646, 0o664])
def test_a_policy_that_others_could_write_is_refused(write, mode):
    with pytest.raises(InconclusiveError, match="must belong to root"):
        policy.load(write(made(), mode))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's file")
def test_a_policy_of_another_user_is_refused(write):
    path = write(made())
    os.chown(path, 65534, 65534)
    with pytest.raises(InconclusiveError, match="must belong to root"):
        policy.load(path)


def changed(**changes):
    return {**made(), **changes}


BAD = {
    "empty": ("", "not JSON"),
    "half": (json.dumps(made())[:300], "not JSON"),
    "deep": ("[" * 100_000, "not JSON"),
    "list": ([], "not a policy"),
    "newer": (changed(schema="nodetune.guard-policy/2"), "not a policy"),
    "mode": (changed(mode="enforced"), "mode is 'enforced' but must be one of observe, enforce"),
    "act": (changed(act="reboot"), "act is 'reboot'"),
    "seconds": (changed(seconds={"total": 0, "step": 3, "stuck": 20}), "total is 0"),
    "step": (changed(seconds={"total": 5, "step": 6, "stuck": 20}), "step is 6"),
    "true": (changed(reuse_seconds=True), "reuse_seconds is True"),
    "cap": (changed(cap_nodes_per_hour="5"), "cap_nodes_per_hour is '5'"),
    "shared": (changed(shared="here"), "shared is 'here' but must be an absolute path"),
    "checks": (changed(checks={}), "checks is missing or not a list"),
    "path": (changed(checks=[{**made()["checks"][0], "id": "../../x"}]), "is not a valid id of a check"),
    "facts": (changed(checks=[{**made()["checks"][0], "facts": [1]}]), "is not a name"),
    "accept": (
        changed(checks=[{k: v for k, v in made()["checks"][0].items() if k != "accept"}]),
        "has no accepted value",
    ),
    "accept null": (changed(checks=[{**made()["checks"][0], "accept": None}]), "has no accepted value"),
    "waivers": (changed(waivers=[{"id": "x"}]), "reason is missing"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_wrong_policy_gives_no_verdict_and_says_why(write, name):
    data, said = BAD[name]
    path = write(data)
    with pytest.raises(InconclusiveError) as problem:
        policy.load(path)
    assert said in str(problem.value)
    assert str(problem.value).startswith(path)


def test_a_policy_that_is_not_there_or_is_no_file_blinds(tmp_path):
    with pytest.raises(InconclusiveError, match="no such file"):
        policy.load(str(tmp_path / "none"))
    with pytest.raises(InconclusiveError, match="is a directory"):
        policy.load(str(tmp_path))


def test_the_environment_of_tasks_must_be_valid_lines():
    assert made()["environment"] == {}
    data = made(environment={"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "WARN"})
    assert data["environment"] == {"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "WARN"}
    jsonschema.validate(data, SCHEMA)
    for wrong in ("NCCL_DEBUG=WARN", {"A B": "1"}, {"A": "1\n2"}):
        with pytest.raises(ValueError, match="environment"):
            made(environment=wrong)


def test_the_profiles_nccl_settings_reach_the_tasks():
    resolved = profile.resolve(profile.named(["training"]), None)
    one = resolved.checks[0]
    own = replace(one, id="hca-unset", remedy=remedies.nccl_conf("NCCL_IB_HCA"), set="mlx5")
    data = policies.make(replace(resolved, checks=(*resolved.checks, own)), "n01")
    assert data["environment"] == {"NCCL_IB_HCA": "mlx5"}
