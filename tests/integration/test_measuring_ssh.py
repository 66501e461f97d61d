"""Measuring over real SSH: both transports, sudo, a cable that is cut, and nothing left on the host."""

import os
import secrets
import signal
from pathlib import Path

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.remote import payload
from nodetune.remote.live_pool import Ended
from nodetune.verify import remote
from tests.support.verifying import SLEEPS, alive, gone, planted

BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
ECHO = """
import os
def measure(options, report):
    report.tell("who", {"index": report.self, "bulk": "x" * 200000})
    heard = report.hear_all("who", 60)
    report.result("x", [len(each["bulk"]) for each in heard.values()] or [0], "s", uid=os.getuid(), env=os.environ.get("NODETUNE_ASKED"))
"""


@pytest.fixture(autouse=True)
def _planted(tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, echo=ECHO, sleeps=SLEEPS))
    monkeypatch.setattr(remote, "new_run", str)  # other tests may measure on this machine too


def reach(transport):
    return ConnectionOptions(options=SessionOptions(seconds=60.0, connect_seconds=10.0), transport=transport)


def run(targets, transport, plan):
    """{host: (its record or None, how it ended)}."""
    found = {}
    for target, event in remote.measure(targets, lambda _: plan, reach(transport)):
        record, _ = found.get(target.name, (None, None))
        if isinstance(event, Ended):
            found[target.name] = (record, event.problem)
        elif "record" in event:
            found[target.name] = (event["record"], None)
    return found


@BOTH
def test_hosts_of_a_group_hear_each_other_over_ssh(farm, transport):
    targets = [farm.target(each, name=name) for each, name in zip(farm.good, ("a", "b"), strict=True)]
    plan = {
        "measurements": [{"name": "echo", "seconds": 60}],
        "group": {"hosts": ["a", "b"]},
        "env": {"NODETUNE_ASKED": "1"},
    }
    found = run(targets, transport, plan)
    assert len(found) == 2
    for record, problem in found.values():
        assert problem is None
        assert record["samples"] == [200000]
        assert record["about"]["env"] == "1"


@BOTH
@pytest.mark.parametrize("password", [None, "not asked for"])
def test_measuring_through_sudo(farm, transport, password):
    if os.getuid() != 0:
        pytest.skip("only root needs no password of its own for sudo")
    target = farm.target(farm.good[0], become=True, become_password=password)
    ((record, problem),) = run([target], transport, {"measurements": [{"name": "echo", "seconds": 60}]}).values()
    assert problem is None
    assert record["about"]["uid"] == 0


def until_asleep(running):
    for _, event in running:
        if isinstance(event, dict) and event.get("step", {}).get("text") == "sleeping":
            return


@pytest.fixture
def asleep(farm):
    """asleep(transport): a run that sleeps on a host, and the marker of its processes."""
    runs = []

    def start(transport):
        marker = f"nodetune-test-{secrets.token_hex(8)}"
        plan = {"measurements": [{"name": "sleeps", "options": {"marker": marker}, "seconds": 300}]}
        running = remote.measure([farm.target(farm.good[0])], lambda _: plan, reach(transport))
        runs.append(running)
        until_asleep(running)
        assert gone(lambda: not alive(marker)) is False
        return running, marker

    yield start
    for each in runs:
        each.close()


@BOTH
def test_leaving_ends_everything_on_the_host(asleep, transport):
    running, marker = asleep(transport)
    running.close()
    assert gone(lambda: alive(marker)) == []


@BOTH
def test_a_cut_connection_is_named_and_ends_the_host_processes(asleep, transport):
    running, marker = asleep(transport)
    for pid in _sessions_above(alive(marker)[0]):
        os.kill(pid, signal.SIGKILL)
    (*_, (_, ended)) = running
    assert ended.problem.state == "dropped"
    assert "sleeping" in ended.problem.message
    assert gone(lambda: alive(marker)) == []


def _sessions_above(pid):
    """The sshd processes that serve the connection below which a process runs: not the one that listens."""
    found = []
    while pid > 1:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        if words.startswith(b"sshd") and b"@" in words:
            found.append(pid)
        pid = int(fields[1])
    assert found
    return found
