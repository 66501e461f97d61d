"""The proposal of `nodetune tune nccl` on a machine: planned, applied, measured, rolled back.

The setting is the one that a tuning of two H200s accepted (2026-11-26). A machine has no GPU, so that NCCL itself does
not run here: what is shown is that the setting reaches the file that NCCL reads, and leaves it.
"""

import pytest
import yaml

from tests.machines.test_apply import Controller

PROPOSAL = {
    "add": [
        {"id": "site-nccl-buffsize", "nccl_conf": "NCCL_BUFFSIZE", "accept": "2097152", "set": "2097152"},
        {"id": "site-nccl-min-ctas", "nccl_conf": "NCCL_MIN_CTAS", "accept": "64", "set": "64"},
        {
            "id": "site-tuning-nccl-stale",
            "title": "The tuning of nccl is for another driver",
            "fact": "gpu.driver_version",
            "accept": {"equals": "580.159.04"},
            "severity": "info",
            "manual": "Tune again (nodetune tune nccl) and replace the proposal, or remove both from the site file.",
            "why": "The result of nodetune tune nccl is valid for driver 580.159.04: tune again.",
        },
    ],
    "checks": {"nccl-tuning-forced": {"severity": "info"}},
}
OWN = "# ours\nNCCL_IB_HCA=mlx5_0\n"
CHECKS = [each["id"] for each in PROPOSAL["add"]]


class Story(Controller):
    def hosts(self):
        site = self.folder / "tuning-nccl.site.yml"
        site.write_text(yaml.safe_dump(PROPOSAL))
        chosen = [word for check in CHECKS for word in ("-s", check)]
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", *chosen


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.write("/etc/nccl.conf", OWN)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def controller(machine, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machine)


def statuses(controller, code=0):
    (host,) = controller("audit", *controller.hosts(), code=code)["hosts"]
    return {each["check"]: each["status"] for each in host["findings"]}


@pytest.fixture(scope="module")
def applied(controller, machine):
    found = statuses(controller, code=1)
    assert [found[check] for check in CHECKS] == ["fail", "fail", "pass"]
    assert machine.read("/etc/nccl.conf") == OWN
    return controller.apply("--yes")["run"]


def test_a_tuned_nccl_setting_reaches_the_file_that_nccl_reads(controller, machine, applied):
    told = machine.ssh("cat /etc/nccl.conf").stdout
    assert told.startswith(OWN)
    assert {"NCCL_BUFFSIZE=2097152", "NCCL_MIN_CTAS=64"} <= set(told.splitlines())
    assert set(statuses(controller).values()) == {"pass"}


def test_the_machine_is_measured_with_its_tuned_setting(controller, applied):
    words = ("-i", str(controller.inventory), "--timeout", "240", "--only", "memory", "--repeat", "1")
    (host,) = controller("verify", *words)["hosts"]
    assert host["state"] == "ok"
    assert {each["measurement"] for each in host["measurements"]} == {"memory"}


def test_after_the_rollback_the_site_has_its_own_nccl_file(controller, machine, applied):
    controller("rollback", applied, "-i", str(controller.inventory), "--timeout", "240", "--yes")
    assert machine.read("/etc/nccl.conf") == OWN
    assert [statuses(controller, code=1)[check] for check in CHECKS] == ["fail", "fail", "pass"]
