"""TCP and storage tuned for real: two network namespaces with a delay between them, and a disk of this test's own."""

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.support import own_settings
from benchmarks.tuning_finds_best import alone
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.tune.benches import storage, tcp

REACH = ConnectionOptions(options=SessionOptions(seconds=120))
SMALL = [4096, 65536, 262144]
RMEM = "net.ipv4.tcp_rmem"

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and loop disks need root"),
]


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
    """Start a tuning; return its process when it has kept a trial and another one holds another buffer."""
    words = [sys.executable, "-m", "nodetune", "tune", "tcp", "-i", "hosts.ini", "--allow-settings", "--budget", "5m"]
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=said, start_new_session=True)
    while process.poll() is None:
        if kept(folder) and held(host) != SMALL[2]:
            return process
        time.sleep(0.02)
    raise AssertionError((folder / "said").read_text())


def kept(folder):
    """How many trials are in the file of an unfinished tuning."""
    file = folder / "tuning-tcp.json.trials"
    return len(file.read_text().splitlines()) - 1 if file.exists() else 0


@pytest.mark.full
def test_larger_buffers_fill_a_long_path_and_are_undone(hosts):
    bench = tcp.TcpBench(hosts, tcp.TcpRequest(allow_settings=True), REACH, alone)
    default, larger = (bench.measure(setting, bench.cases) for setting in ((), (("tcp_buffers", "16MiB"),)))
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
    assert kept(tmp_path) >= 1
    assert not (tmp_path / "tuning-tcp.json").exists()


def test_read_ahead_of_a_slow_disk_is_tried_and_undone(tmp_path):
    try:
        with own_settings.loop_disk(tmp_path) as (place, settings), own_settings.slow_disk(settings, 500) as slowed:
            (settings / "read_ahead_kb").write_text("128")
            python = tmp_path / "python"
            words = " ".join(map(repr, [*slowed, sys.executable]))
            python.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            python.chmod(0o755)
            target = Target("this", connection="local", python=str(python))
            wanted = storage.StorageRequest(str(place), allow_settings=True, size=64 << 20)
            bench = storage.StorageBench(target, wanted, REACH, alone)
            default, more = (bench.measure(each, bench.cases) for each in ((), (("read_ahead_kb", 2048),)))
            now = (settings / "read_ahead_kb").read_text().strip()
    except own_settings.UnavailableError as problem:
        pytest.skip(str(problem))
    assert default.counts and more.counts, (default, more)
    assert more.values["disk_buffered read"] > 2 * default.values["disk_buffered read"]
    assert now == "128"


def test_a_packet_for_an_end_that_is_not_up_yet_is_lost_and_ends_nothing():
    name = f"nt{secrets.token_hex(3)}"
    own_settings.run("ip", "netns", "add", name)
    words = f"from benchmarks.support.delayed_link import Link, device; end = device({name!r}); Link([end], 1, 0).give(end, b'E' * 40)"
    try:
        done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    finally:
        own_settings.run("ip", "netns", "del", name)
    if "/dev/net/tun" in done.stderr:
        pytest.skip("no TUN device on this machine")
    assert done.returncode == 0, done.stderr
