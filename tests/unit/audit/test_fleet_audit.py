"""What an audit of several hosts says of the differences between them."""

import json
from dataclasses import replace

import pytest

from benchmarks.support import synthetic_fleet as synthetic
from nodetune.api.model import Each, FleetFinding, HostFacts, Unread, Value, Waiver
from nodetune.audit import auditor
from nodetune.audit.fleet import consensus
from nodetune.audit.fleet.observations import Item, entry_of
from nodetune.audit.selection import Selection, comparing
from nodetune.checks import fleet_comparisons
from nodetune.config import profile
from nodetune.facts import document
from nodetune.facts.saved import Saved
from tests.support import documents
from tests.unit.cli.test_cli import nodetune


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten hosts: two with another driver, one that could not be read there."""
    place = tmp_path_factory.mktemp("fleet")
    noise, base = synthetic.Noise(5), synthetic.machines()[0][1]
    for number in range(10):
        host = noise.host(base, f"gpu{number:03}")
        if number in (3, 7):
            host.facts["gpu.driver_version"] = Value("570.86.15")
        if number == 5:
            host.facts["gpu.driver_version"] = Unread("permission denied: needs root (--become)")
        (place / f"{host.host}.json").write_text(document.dump(host))
    return place


def test_the_odd_ones_are_folded_and_the_majority_is_named(folder):
    done = nodetune("audit", "--facts", folder, "-s", "fleet-driver-differs")
    assert done.returncode == 1
    assert "fleet-driver-differs  " in done.stdout
    assert "          gpu[003,007]\n" in done.stdout
    assert "as on 7 of 9 hosts (NVIDIA H200)" in done.stdout
    assert "10 hosts compared, NVIDIA H200: identical in 0 of 1 comparison" in done.stdout


def test_the_findings_count_by_fail_on_and_can_be_left_out(folder):
    only = ("audit", "--facts", folder, "-s", "fleet-driver-differs")
    assert nodetune(*only, "--fail-on", "high").returncode == 0
    assert nodetune("audit", "--facts", folder, "-s", "numa-balancing-on", "--no-compare").returncode == 0
    assert "compared, " not in nodetune("audit", "--facts", folder, "-s", "numa-balancing-on").stdout


def test_by_host_names_them_with_the_host(folder):
    shown = nodetune("audit", "--facts", folder, "-s", "fleet", "--group-by", "host").stdout
    assert "fleet-driver-differs: 570.86.15, wanted 580.178.04" in shown


def test_the_document_has_them_by_host_and_once_for_the_fleet(folder):
    done = nodetune("audit", "--facts", folder, "-s", "fleet-driver-differs", "--format", "json")
    told = documents.valid("audit", done.stdout)
    (found,) = told["fleet"]["findings"]
    assert found["hosts"] == ["gpu003", "gpu007"]
    assert (found["observed"], found["wanted"], found["agree"], found["compared"]) == ("570.86.15", "580.178.04", 7, 9)
    assert found["sources"] and found["why"] and found["next"]
    assert [len(group["hosts"]) for group in told["fleet"]["groups"]] == [10]
    by_host = {host["name"]: host["findings"][0] for host in told["hosts"]}
    assert by_host["gpu003"]["status"] == "fail" and by_host["gpu003"]["fleet"]["group"] == "NVIDIA H200"
    assert by_host["gpu005"]["status"] == "skip"


def test_missing_devices_are_named_in_the_order_of_the_hosts_that_have_them():
    ports = [f"mlx5_{number}" for number in range(40)]
    seen = tuple(Item(name, ("", "state", name, ""), "ACTIVE") for name in ports)
    comparison = fleet_comparisons.every()["fleet-rdma-ports-differ"]
    differs, _ = consensus.odd(comparison, (), consensus.common(comparison, {seen: 9, (): 1}))
    assert [*differs.has] == ports


def test_one_host_has_no_such_section():
    assert "compared, " not in nodetune("audit", "--facts", "h200-x4").stdout
    assert json.loads(nodetune("audit", "--facts", "h200-x4", "--format", "json").stdout)["fleet"]["findings"] == []


def test_a_golden_file_replaces_the_majority(folder):
    golden = folder / "gpu003.json"
    shown = nodetune("audit", "--facts", folder, "-s", "fleet-driver-differs", "--reference", golden).stdout
    assert "          gpu[000-002,004,006,008-009]\n" in shown
    assert "as on gpu003" in shown


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--reference", "nobody"], "not one of the 10 hosts"),
        (["--cohort", "host.kernl"], "--cohort host.kernl"),
        (["--cohort", "colour"], "unknown fact 'colour'"),
        (["--no-compare", "--reference", "gpu001"], "--no-compare"),
        (["-s", "fleet-nothing"], "no check matches fleet-nothing"),
    ],
)
def test_a_slip_is_one_line(folder, more, says):
    done = nodetune("audit", "--facts", folder, *more)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_single_host_and_nothing_but_the_fleet_is_a_slip():
    done = nodetune("audit", "--facts", "h200-x4", "-s", "fleet")
    assert done.returncode == 2
    assert "one host cannot be compared" in done.stderr


def test_a_waiver_names_comparison_and_hosts(folder):
    choice = comparing(Selection(select=("fleet-driver-differs",)))
    waiver = Waiver("fleet-driver-differs", "gpu[003-004]", "canary", "ops", "2999-01-01")
    site = replace(profile.shipped()["base"], when=(), waivers=(waiver,))
    choice = replace(choice, site=site)
    results = auditor.compared(auditor.audit_files(Saved(folder), choice), choice, "2026-11-21")
    status = {each.host: each.findings[0].status for each in results}
    assert status["gpu003"] == "waived"
    assert status["gpu007"] == "fail"
    assert isinstance(results[3].findings[0], FleetFinding)


def test_a_difference_that_the_hosts_own_check_names_is_one_cause(tmp_path):
    noise, base = synthetic.Noise(5), synthetic.machines()[0][1]
    for number in range(6):
        host = noise.host(base, f"gpu{number:03}")
        if number == 3:
            odd = Value({"active": list(range(17)), "inactive": [17]})
            host.facts["gpu.nvlink_state"] = Each({**host.facts["gpu.nvlink_state"].of, "GPU5": odd})
            width = {**host.facts["gpu.curr_pcie_link_width"].of, "GPU2": Value(8)}
            host.facts["gpu.curr_pcie_link_width"] = Each(width)
            host.facts["pci.gpus"] = Value(host.facts["pci.gpus"].value[:7])
        (tmp_path / f"{host.host}.json").write_text(document.dump(host))
    choice = comparing(Selection(select=("gpu", "fleet")))
    results = auditor.compared(auditor.audit_files(Saved(tmp_path), choice), choice)
    found = {each.check: each for each in results[3].failing()}
    leaders = {name: each.part_of for name, each in found.items() if isinstance(each, FleetFinding)}
    assert leaders == {
        "fleet-gpu-count-differs": "gpus-fewer-than-platform",
        "fleet-gpu-pcie-differs": "gpu-pcie-width-reduced",
        "fleet-nvlink-differs": "nvlink-down",
    }
    assert found["nvlink-down"].reason.endswith("with it: fleet-nvlink-differs (17)")
    assert found["gpu-pcie-width-reduced"].reason.endswith("with it: fleet-gpu-pcie-differs (8)")
    assert not any(isinstance(each, FleetFinding) for result in results for each in result.causes())


def test_two_files_of_one_host_are_two_hosts(tmp_path, folder):
    for number in range(5):
        (tmp_path / f"{number}.json").write_text((folder / "gpu000.json").read_text())
    (tmp_path / "odd.json").write_text((folder / "gpu003.json").read_text().replace('"gpu003"', '"gpu000"'))
    choice = comparing(Selection(select=("fleet-driver-differs",)))
    results = auditor.compared(auditor.audit_files(Saved(tmp_path), choice), choice)
    assert [each.findings[0].status for each in results] == ["pass"] * 5 + ["fail"]


def test_only_links_that_carry_data_are_to_have_one_mtu_over_the_fleet():
    link = {
        "type": "ethernet",
        "physical": True,
        "up": True,
        "virtual_function": False,
        "speed_mbps": 400_000,
        "mtu": 9000,
    }
    other = {
        "slow": {"speed_mbps": 1000},
        "down": {"up": False},
        "ib0": {"type": "infiniband"},
        "vf": {"virtual_function": True},
    }
    links = {"ens1": link, "ens2": {**link, "speed_mbps": None}, "docker0": {**link, "physical": False}}
    facts = {"net.links": Value(links | {name: link | more for name, more in other.items()})}
    found = entry_of(fleet_comparisons.every()["fleet-mtu-differs"], HostFacts("n1", facts))
    assert [(item.subject, item.text) for item in found] == [("ens1", "9000"), ("ens2", "9000")]
