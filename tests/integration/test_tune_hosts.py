"""TCP and storage tuned for real: two network namespaces with a delay between them, and a disk of this test's own."""

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from benchmarks import own_settings
from benchmarks.tune_hosts import alone
from nodetune.hosts.target import ConnectionOptions, SessionOptions, Target
from nodetune.tune.benches import storage, tcp
from nodetune.tune.model import BenchError, Trial
from nodetune.verify import remote

REACH = ConnectionOptions(options=SessionOptions(seconds=120))
SMALL = [4096, 65536, 262144]
RMEM = "net.ipv4.tcp_rmem"
RIVAL = "another verify is running"
OWN_RUN = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh")
"""Before a program: the settings that it holds are nobody's turn in other tests."""

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and loop disks need root"),
]


@pytest.fixture(autouse=True)
def _others(monkeypatch):
    monkeypatch.setattr(remote, "new_run", lambda: secrets.token_hex(4))


@pytest.fixture
def hosts(tmp_path):
    """Two hosts 20 ms apart, whose buffers are too small for it."""
    try:
        with own_settings.distant_hosts(tmp_path, 200, 20) as targets:
            for target in targets:
                for name in ("rmem", "wmem"):
                    words = ("sysctl", "-qw", f"net.ipv4.tcp_{name}={' '.join(map(str, SMALL))}")
                    own_settings.run("ip", "netns", "exec", target.name, *words)
            yield targets
    except own_settings.UnavailableError as problem:
        pytest.skip(str(problem))


def held(host):
    """The maximum of a host's receive buffer, now."""
    return int(own_settings.run("ip", "netns", "exec", host, "sysctl", "-n", RMEM).split()[2])


def becomes(host, condition):
    end = time.monotonic() + 60
    while not condition(held(host)) and time.monotonic() < end:
        time.sleep(0.02)
    return held(host)


def tuning_in_a_trial(folder, host):
    """Start a tuning; return its process when a trial holds another buffer. Other tests may measure on this machine first."""
    words = [sys.executable, "-m", "nodetune", "tune", "tcp", "-i", "hosts.ini", "--allow-settings", "--budget", "5m"]
    end = time.monotonic() + 300
    while time.monotonic() < end:
        (folder / "tuning-tcp.json.trials").unlink(missing_ok=True)
        with (folder / "said").open("w") as said:
            process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=said, start_new_session=True)
        while process.poll() is None:
            if held(host) != SMALL[2]:
                return process
            time.sleep(0.02)
        assert RIVAL in (folder / "said").read_text(), (folder / "said").read_text()
        time.sleep(1)
    raise AssertionError("other tests measure all the time")


def in_turn(measure):
    """Return what `measure` makes once no other test measures on this machine."""
    end = time.monotonic() + 300
    while True:
        try:
            made = measure()
            if not (isinstance(made, Trial) and RIVAL in made.disturbed) or time.monotonic() > end:
                return made
        except BenchError as problem:
            if RIVAL not in str(problem) or time.monotonic() > end:
                raise
        time.sleep(1)


def measured(bench, setting):
    return in_turn(lambda: bench.measure(setting, bench.cases))


def test_larger_buffers_fill_a_long_path_and_are_taken_back(hosts):
    bench = in_turn(lambda: tcp.TcpBench(hosts, tcp.Wanted(allow_settings=True), REACH, alone))
    default, larger = (measured(bench, setting) for setting in ((), (("tcp_buffers", "16MiB"),)))
    assert default.counts and larger.counts, (default, larger)
    one = [case.id for case in bench.cases if case.objective]
    assert len(one) == 2
    for case in one:
        assert larger.values[case] > 2 * default.values[case]
    assert [held(target.name) for target in hosts] == [SMALL[2]] * 2


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)], ids=["interrupted", "killed"])
def test_a_tuning_killed_in_a_trial_leaves_hosts_as_they_were(hosts, tmp_path, how, code):
    lines = [f"{each.name} ansible_connection=local ansible_python_interpreter={each.python}" for each in hosts]
    (tmp_path / "hosts.ini").write_text("\n".join(lines) + "\n")
    process = tuning_in_a_trial(tmp_path, hosts[0].name)
    process.send_signal(how)
    assert process.wait(60) == code, (tmp_path / "said").read_text()
    for target in hosts:
        assert becomes(target.name, lambda now: now == SMALL[2]) == SMALL[2]
    assert (tmp_path / "tuning-tcp.json.trials").exists()
    assert not (tmp_path / "tuning-tcp.json").exists()


def test_read_ahead_of_a_slow_disk_is_tried_and_taken_back(tmp_path):
    try:
        with own_settings.loop_disk(tmp_path) as (place, settings), own_settings.slow_disk(settings, 500) as slowed:
            (settings / "read_ahead_kb").write_text("128")
            python = tmp_path / "python"
            words = " ".join(map(repr, [*OWN_RUN, *slowed, sys.executable]))
            python.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            python.chmod(0o755)
            target = Target("this", connection="local", python=str(python))
            wanted = storage.Wanted(str(place), allow_settings=True, size=64 << 20)
            bench = in_turn(lambda: storage.StorageBench(target, wanted, REACH, alone))
            default, more = (measured(bench, each) for each in ((), (("read_ahead_kb", 2048),)))
            now = (settings / "read_ahead_kb").read_text().strip()
    except own_settings.UnavailableError as problem:
        pytest.skip(str(problem))
    assert default.counts and more.counts, (default, more)
    assert more.values["disk_buffered read"] > 2 * default.values["disk_buffered read"]
    assert now == "128"


def test_a_packet_for_an_end_that_is_not_up_yet_is_lost_and_ends_nothing():
    name = f"nt{secrets.token_hex(3)}"
    own_settings.run("ip", "netns", "add", name)
    words = f"from benchmarks.delayed_link import Link, device; end = device({name!r}); Link([end], 1, 0).give(end, b'E' * 40)"
    try:
        done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    finally:
        own_settings.run("ip", "netns", "del", name)
    if "/dev/net/tun" in done.stderr:
        pytest.skip("no TUN device on this machine")
    assert done.returncode == 0, done.stderr
