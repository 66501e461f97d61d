"""The collector for nodes that nobody logs in to, under a systemd that runs: installed, by its timer, over a reboot, taken away."""

import json
import subprocess
import sys

import pytest

from tests.machines import witness
from tests.machines.place import until

FACTS = "/data/facts"
UNITS = "nodetune-pull.timer nodetune-pull.service"
FIRST_SECONDS = 300
"""A minute after the start, half a minute of chance and what the timer may be late; the run itself, emulated, as much again."""


def nodetune(*words, code=0):
    made = [sys.executable, "-m", "nodetune", *map(str, words)]
    done = subprocess.run(made, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout


def collected(machine):
    """When the machine's facts were collected; None while there are none."""
    text = machine.ssh(f"cat {FACTS}/{machine.name}.json", check=False).stdout
    return json.loads(text)["about"]["time"] if text else None


@pytest.fixture(scope="module")
def node(fleet):
    """A machine of these tests' own."""
    made = fleet(1)[0]
    made.ssh(f"mkdir -m 700 {FACTS}")
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pull") / "bundle"
    nodetune("pull", "bundle", "--dir", FACTS, "--every", "1m", "-o", folder)
    return folder


@pytest.fixture(scope="module")
def before(node):
    return witness.files(node)


@pytest.fixture(scope="module")
def installed(node, bundle, before):
    node.put(bundle, "/root/bundle")
    return node.ssh("/root/bundle/install")


@pytest.fixture(scope="module")
def first(node, installed):
    """What the timer brought without anybody asking."""
    return until("the timer collects", lambda: collected(node), FIRST_SECONDS, every=2)


@pytest.fixture(scope="module")
def rebooted(node, first):
    node.reboot()
    return until(
        "the timer collects after a boot", lambda: collected(node) != first and collected(node), FIRST_SECONDS, 2
    )


def test_the_timer_runs_as_soon_as_it_is_installed(node, installed):
    assert "wrote /etc/systemd/system/nodetune-pull.timer" in installed.stdout
    asked = node.ssh("systemctl is-active nodetune-pull.timer; systemctl is-enabled nodetune-pull.timer")
    assert asked.stdout.split() == ["active", "enabled"]
    assert node.ssh(f"systemctl show -P NeedDaemonReload {UNITS}").stdout.split() == ["no", "no"]


def test_installing_again_changes_nothing(node, installed):
    assert node.ssh("/root/bundle/install").stdout == ""


def test_the_timer_leaves_facts_that_an_audit_judges(node, first, tmp_path):
    (tmp_path / f"{node.name}.json").write_text(node.read(f"{FACTS}/{node.name}.json"))
    told = json.loads(nodetune("audit", "--facts", tmp_path, "--format", "json", "--fail-on", "never"))
    (host,) = told["hosts"]
    assert (host["name"], host["state"]) == (node.name, "ok")
    assert "too-few-cores-per-gpu" in {each["check"] for each in host["findings"] if each["status"] == "fail"}


def test_the_service_ends_well_and_says_nothing(node, first):
    node.ssh("systemctl start nodetune-pull.service")  # waits for a run that is under way, as it is of one shot
    shown = node.ssh("systemctl show -P Result -P ExecMainStatus nodetune-pull.service").stdout.split()
    assert shown == ["success", "0"]
    assert node.ssh("journalctl -q -b -o cat _SYSTEMD_UNIT=nodetune-pull.service").stdout == ""


def test_after_a_reboot_it_goes_on_by_itself(node, first, rebooted):
    assert rebooted > first


def test_uninstalling_leaves_nothing_but_the_facts(node, before, rebooted):
    node.ssh("/root/bundle/uninstall; rm -rf /root/bundle")
    assert node.ssh(f"systemctl is-active {UNITS}", check=False).stdout.split() == ["inactive", "inactive"]
    left = {path for path in witness.changed(before, witness.files(node)) if not path.startswith(FACTS)}
    assert left == set()
    assert node.ssh("ls /opt").stdout == ""
    assert collected(node)
