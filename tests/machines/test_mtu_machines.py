"""A larger MTU on two machines of one network: proven by pings of one to the other, kept over a boot, rolled back."""

import json
from types import SimpleNamespace
from unittest.mock import ANY

import pytest

from tests.machines import inventory, place, witness
from tests.machines.test_apply import Controller

CHECK, SET = "mtu-inconsistent", "checks: {mtu-inconsistent: {set: 9000}}\n"
LARGE_ELSEWHERE = """
mkdir -p /root/played /etc/systemd/network/20-ens10.network.d
printf '[Link]\\nMTUBytes=9000\\n' > /etc/systemd/network/20-ens10.network.d/site.conf
ip link set dev ens10 mtu 9000
echo 100000 > /root/played/speed
for link in ens2 ens10; do mount --bind /root/played/speed /sys/class/net/$link/speed; done
"""
"""Two fast links of a kind, one of which already has large frames: so the MTUs are inconsistent."""
MTUS = "cat /sys/class/net/ens2/mtu /sys/class/net/ens10/mtu"
OWN = "cat /etc/systemd/network/20-ens2.network.d/zz-nodetune.conf 2>&1 | tail -1"
TIMERS = "systemctl list-units --all --plain --no-legend 'nodetune-link-*'"


class Story(Controller):
    def __init__(self, folder, machines):
        super().__init__(folder, machines[0])
        given = {"ansible_become": True, "ansible_become_password": place.OP_PASSWORD}
        self.inventory = inventory.write(folder / "inventory.yml", machines, user="op", **given)
        self.site = folder / "site.yml"
        self.site.write_text(SET)

    def hosts(self):
        return "-i", str(self.inventory), "--site", str(self.site), "--select", CHECK, "--timeout", "240"


def addresses(machines):
    return [f"10.10.0.{each.number}" for each in machines]


def says(machines, command):
    return [each.ssh(command, check=False).stdout.strip() for each in machines]


def large_frames_pass(machines):
    pairs = zip(machines, reversed(addresses(machines)), strict=True)
    return [each.ssh(f"ping -c 3 -W 5 -M do -s 8972 {other}", check=False).returncode for each, other in pairs]


@pytest.fixture(scope="module")
def machines(fleet):
    made = sorted(fleet(2), key=lambda each: each.number)
    for each in made:
        each.ssh(LARGE_ELSEWHERE)
    yield made
    for each in made:
        fleet.stop(each)


@pytest.fixture(scope="module")
def nodetune(machines, tmp_path_factory):
    return Story(tmp_path_factory.mktemp("controller"), machines)


@pytest.fixture(scope="module")
def story(nodetune, machines):
    """What the machines are before, after the run, after a boot of the first, and after the rollback."""
    seen = {"files": [witness.files(each) for each in machines], "before": says(machines, MTUS)}
    applied = nodetune.apply("--yes", code=ANY)
    seen |= {"outcomes": [(step["host"], step["outcome"], step["reason"]) for step in applied["steps"]]}
    seen |= {"after": says(machines, MTUS), "passes": large_frames_pass(machines), "timers": says(machines, TIMERS)}
    machines[0].reboot()
    seen |= {"booted": says(machines, MTUS), "passes_then": large_frames_pass(machines)}
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    seen |= {"back": says(machines, MTUS), "files_then": [witness.files(each) for each in machines]}
    return SimpleNamespace(**seen)


def test_without_a_value_of_the_site_it_is_advice(nodetune):
    nodetune.site.write_text("{}\n")
    found = nodetune("plan", *nodetune.hosts(), code=ANY)
    nodetune.site.write_text(SET)
    assert CHECK in json.dumps(found)
    assert found["steps"] == []


def test_a_larger_mtu_is_set_on_one_host_and_then_on_the_other(story):
    assert story.before == ["1500\n9000"] * 2
    assert [outcome for _, outcome, _ in story.outcomes] == ["fixed"] * 2, story.outcomes
    assert (story.after, story.passes, story.timers) == (["9000\n9000"] * 2, [0, 0], ["", ""])


def test_it_holds_after_a_boot(story):
    assert (story.booted, story.passes_then) == (["9000\n9000"] * 2, [0, 0])


def test_a_rollback_restores_it_and_every_file(story):
    assert story.back == story.before
    assert [witness.changed(*pair) for pair in zip(story.files, story.files_then, strict=True)] == [{}, {}]


def test_a_host_whose_large_frames_do_not_pass_sets_it_back_at_once(nodetune, machines, story):
    machines[0].ssh(LARGE_ELSEWHERE)
    machines[1].ssh(f"ip route add {addresses(machines)[0]}/32 dev ens2 mtu lock 1500")
    applied = nodetune.apply("--yes", code=ANY)
    steps = {step["host"]: step for step in applied["steps"]}
    assert says(machines, MTUS) == ["9000\n9000", "1500\n9000"]
    assert says(machines, OWN)[0] == "MTUBytes=9000"
    assert "No such file" in says(machines, OWN)[1]
    assert "set back to 1500: frames of 9000 bytes did not reach" in steps[max(steps)]["reason"]
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert says(machines, MTUS) == story.before
