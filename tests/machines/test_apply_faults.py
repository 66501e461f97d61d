"""Faults while nodetune changes a real machine: what it says, how it ends, and that nothing is half-written.

One machine lives through all of them, one after the other; each test leaves it as it found it, and the last takes it down.
"""

import pytest
import yaml

from nodetune.hosts.inventory.selection import targets
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.play import PlayOptions
from tests.machines import place, scheduler
from tests.machines.faults import FREE, RESTARTING, SEVERAL, at_change, ended, once
from tests.machines.place import until

CHANGED = '[ "$(cat /proc/sys/vm/swappiness)" = 30 ]'
LOCKED = "[ -e /run/nodetune/lock ]"
SECOND_GROUP = 5
"""The number of its first change: the group of kernel parameters makes four."""
FILL = """
cd {folder} && mkdir filling && for size in 1G 100M 10M 1M 100K 4K; do
    number=0; while fallocate -l $size filling/$size-$number 2>/dev/null; do number=$((number + 1)); done
done; sync
"""
SLURMD = """\
[Service]
LimitNOFILE=4096
ExecStartPre=/bin/sh -c 'test ! -e /run/no-card || { echo there is no such card >&2; exit 1; }'
"""


def assert_nothing_was_done(cycle, answer, reason):
    assert answer.code == 4, answer
    assert set(answer.outcomes.values()) == {"not applied"}, answer
    assert set(answer.reasons.values()) == {reason}, answer
    assert "\n" not in reason
    cycle.assert_is(cycle.old_files, cycle.old_values)


# Cut at some moment


def test_a_run_killed_after_one_change_is_named_and_rolled_back(site, cycle):
    dead = cycle.cut(once(site, CHANGED), site.kill)
    assert site.says(LOCKED + " && echo held") == "held"
    assert f"{dead}" in site.says("cat /run/nodetune/lock")
    cycle.go_on(dead)


def test_a_run_killed_in_its_second_group_is_rolled_back_at_once(site, cycle):
    dead = cycle.cut(at_change(site, SECOND_GROUP), site.kill)
    cycle.take_back(dead)


def test_a_power_cut_leaves_complete_files_and_a_usable_journal(site, cycle):
    dead = cycle.cut(once(site, CHANGED), site.cut_power)
    assert site.left_behind() == ""
    cycle.go_on(dead)


# Nowhere to write


def test_a_full_disk_stops_it_before_anything_is_changed(site, cycle):
    site.machine.ssh(FILL.format(folder="/"))
    answer = site.apply(SEVERAL)
    site.machine.ssh("rm -r /filling")
    assert_nothing_was_done(
        cycle,
        answer,
        "no temporary file can be written on the host: free some space, or mount it writable (df -h /tmp)",
    )


def test_a_rollback_on_a_full_disk_needs_no_space_there(site, cycle):
    run = site.apply(SEVERAL).run
    site.machine.ssh(FILL.format(folder="/"))
    answer = site.roll_back(run)
    full = site.says("df --output=avail / | tail -1")
    site.machine.ssh("rm -r /filling")
    assert full == "0"
    assert answer.code == 0, answer
    cycle.assert_is(cycle.old_files, cycle.old_values)


def test_a_full_file_system_of_the_journal_prevents_any_change(site, cycle):
    home = "/var/lib/nodetune"
    site.machine.ssh(f"mkdir -p {home} && mount -t tmpfs -o size=64k tmpfs {home}")
    site.machine.ssh(FILL.format(folder=home))
    answer = site.apply(SEVERAL)
    site.machine.ssh(f"umount {home}")
    journal = f"{home}/runs/{answer.run}/journal.jsonl"
    reason = f"nothing is changed: {journal} cannot be written: no space left on device"
    assert_nothing_was_done(cycle, answer, reason)


def test_a_read_only_etc_is_told_by_file_and_values_are_restored(site, cycle):
    site.machine.ssh("mount --bind /etc /etc && mount -o remount,bind,ro /etc")
    answer = site.apply(SEVERAL)
    site.machine.ssh("umount /etc")
    told = "cannot be written: read-only file system"
    assert answer.code == 4, answer
    assert all(reason.startswith("/etc/") and reason.endswith(told) for reason in answer.reasons.values()), answer
    assert answer.outcomes["swappiness-high"] == answer.outcomes["remove-ipc-on"] == "not applied", answer
    assert site.files() == cycle.old_files
    cycle.take_back(answer.run)


# No way in


def test_a_user_without_sudo_is_not_reached_nor_recorded(site):
    _assert_not_reached(site, site.logins("nosudo"), "sudo")


def test_a_wrong_sudo_password_is_told_as_such(site):
    wrong = site.logins("op", ansible_become_password="guessed")
    _assert_not_reached(site, wrong, "password")


def test_a_host_without_python_says_what_is_missing(site):
    python = site.says("readlink -f /usr/bin/python3")
    site.machine.ssh(f"mv {python} {python}.away")
    try:
        _assert_not_reached(site, None, "python3")
    finally:
        site.machine.ssh(f"mv {python}.away {python}")


def _assert_not_reached(site, logins, word):
    before = site.run_ids()
    answer = site.apply(FREE, logins=logins)
    assert answer.code == 3, answer
    (lost,) = answer.data["not_reached"]
    assert word in lost["message"], answer
    assert "\n" not in lost["message"]
    assert site.run_ids() == before


# Somebody else is there


def test_the_second_run_at_once_is_told_who_holds_the_host(site, cycle):
    process, first = site.begin("apply", *(word for check in FREE for word in ("-s", check)))
    once(site, LOCKED)(process, first)
    with site.held_still(process):
        second = site.apply(("max-map-count-low",))
    done = ended(process)
    assert second.code == 4, second
    assert second.outcomes == {"max-map-count-low": "not applied"}
    assert second.reasons["max-map-count-low"].startswith(f"run {first} of "), second
    assert "has been running on this host since" in second.reasons["max-map-count-low"]
    assert (done.code, set(done.outcomes.values())) == (0, {"fixed"}), done
    cycle.take_back(first)


def test_a_process_that_computes_after_the_plan_delays_changes(site, cycle):
    site.machine.ssh("systemd-run --unit=work sleep 1000")
    pid = site.says("systemctl show --value -p MainPID work")
    gpu = "/run/nodetune-nvml/gpu0/processes"
    begins = f"until {LOCKED}; do sleep 0.05; done; mkdir -p {gpu}; echo 1000000 > {gpu}/{pid}"
    site.machine.ssh(f"systemd-run --unit=begins sh -c '{begins}'")
    answer = site.apply(SEVERAL)
    site.machine.ssh(f"systemctl stop work; rm -r {gpu}")
    assert answer.code == 4, answer
    assert answer.outcomes == {**dict.fromkeys(FREE, "fixed"), **dict.fromkeys(RESTARTING, "skipped")}, answer
    told = f"GPU0 is in use by process {pid} (/usr/bin/sleep 1000): nothing is changed"
    assert {answer.reasons[check] for check in RESTARTING} == {told}
    assert site.left_behind() == ""
    cycle.take_back(answer.run)


def test_a_change_of_a_link_never_confirmed_undoes_itself(site):
    """No new login is possible once the link has changed, and those that exist go on: a lost route looks like that."""
    rings = "ethtool -g ens11 | awk '/^RX:/ {print $2}' | tail -1"
    assert site.says(rings) == "256"
    change = {"change": "link", "link": "ens11", "setting": "rings", "value": "max", "confirm_seconds": 30}
    watch = f'until [ "$({rings})" = 4096 ]; do sleep 0.05; done; systemctl stop ssh'
    site.machine.ssh("cat > /run/watch && systemd-run --unit=watch sh /run/watch", input=watch)
    (target,) = targets(str(site.inventory))
    given = {"nodetune_run": "links", "nodetune_groups": [_group(change)], "nodetune_take_over": ""}
    outcomes = play.play("remediate", [target], {target.name: given}, PlayOptions(seconds=1200))
    outcome = outcomes[target.name]
    assert outcome.state == "unreachable", outcome
    assert outcome.gathered("done")[0]["changed"] is True
    until("the link undoes itself", lambda: site.says(rings) == "256", every=1)
    site.machine.ssh("systemctl start ssh; rm /run/nodetune/lock")


def _group(change):
    return {"group": "net_link", "disruption": "network flap", "guard": {}, "checks": ["x"], "changes": [change]}


# Slurm


@pytest.fixture(scope="module")
def node(site):
    """The machine as a node in service, whose slurmd has a limit that is too low. It stays one: the machine ends soon."""
    site.machine.write("/etc/systemd/system/slurmd.service.d/10-site.conf", SLURMD)
    scheduler.start(site.machine)
    return site.machine.name


def limit(site):
    return site.says("awk '/open files/ {print $4}' /proc/$(pidof slurmd)/limits")


def test_a_node_in_service_delays_disruption_and_says_what_next(site, node):
    answer = site.apply(("swappiness-high", "open-files-low"))
    assert answer.code == 4, answer
    assert answer.outcomes == {"swappiness-high": "fixed", "open-files-low": "skipped"}, answer
    told = f"Slurm may start jobs here ({node} is IDLE): drain it, or --drain slurm"
    assert answer.reasons["open-files-low"] == told
    assert limit(site) == "4096"
    assert site.roll_back(answer.run).code == 0


def test_a_drained_node_ends_its_job_and_returns_to_service(site, node):
    drained = "until sinfo -h -o %T | grep -q drain; do sleep 0.5; done"
    site.machine.ssh(f"sbatch -D /tmp --wrap '{drained}; touch /tmp/job-ended'")
    scheduler.reaches(site.machine, "allocated", "mixed")
    answer = site.apply(("open-files-low",), "--drain", "slurm")
    assert (answer.code, answer.outcomes) == (0, {"open-files-low": "fixed"}), answer
    assert site.says("ls /tmp/job-ended") == "/tmp/job-ended"
    assert limit(site) == "1048576"
    scheduler.reaches(site.machine, "idle")  # back in service
    back = site.roll_back(answer.run, "--assume-drained")
    assert back.code == 0, back
    assert limit(site) == "4096"


def test_a_failing_service_is_reported_and_a_foreign_drain_stays(site, node):
    site.machine.ssh(f"scontrol update NodeName={node} State=DRAIN Reason='ticket 4711'; touch /run/no-card")
    scheduler.reaches(site.machine, "drained")
    answer = site.apply(("swappiness-high", "open-files-low"), "--drain", "slurm")
    assert answer.code == 4, answer
    assert answer.outcomes["swappiness-high"] == "fixed"
    assert "restart slurmd.service" in answer.reasons["open-files-low"], answer
    assert answer.reasons["open-files-low"].endswith("there is no such card")
    site.machine.ssh("rm /run/no-card; systemctl start slurmd")
    until("slurmd is back", lambda: limit(site) == "1048576", every=1)
    assert "ticket 4711" in site.says(f"scontrol show node {node}")
    back = site.roll_back(answer.run)
    assert back.code == 0, back
    assert limit(site) == "4096"


# The end of the machine


def test_a_host_that_does_not_return_from_its_reboot_is_named(site):
    check = {"id": "site-watchdog-on", "kernel_arg": "nmi_watchdog", "accept": "0", "set": "0"}
    file = site.folder / "site.yml"
    file.write_text(yaml.safe_dump({"add": [check]}))
    words = ("-s", "site-watchdog-on", "--site", str(file), "--max-disruption", "reboot")
    site.machine.fail_at_reboot()
    answer = site.nodetune("apply", *words, "--reboot", "--reboot-wait", "0.5")
    assert answer.code == 4, answer
    site.machine.wait_for_end()
    assert answer.outcomes == {"site-watchdog-on": "not applied"}, answer
    assert answer.reasons["site-watchdog-on"].startswith("reboot: "), answer
    site.machine.power_on()
    assert "nmi_watchdog=0" in site.machine.read("/proc/cmdline").split()
    assert site.nodetune("apply", *words).code == 0
    assert place.OP_PASSWORD not in "".join(path.read_text() for path in site.runs.rglob("*") if path.is_file())
