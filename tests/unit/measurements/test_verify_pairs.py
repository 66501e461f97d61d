"""Hosts two by two: network namespaces joined by a bridge pose as hosts, iperf3 runs for real."""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from itertools import combinations

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.measurements import rdma, tcp
from nodetune.measurements.host import external_tool, pairs
from nodetune.measurements.host import report as reporting
from nodetune.onhost import protocol
from nodetune.remote import payload
from nodetune.verify import remote
from tests.support.verifying import gone, planted

OPTIONS = SessionOptions(seconds=60)


@pytest.mark.parametrize("count", range(2, 12))
def test_every_two_hosts_meet_once_and_nobody_is_in_two_places(count):
    played = pairs.rounds(count, 0)
    met = [pair for each in played for pair in each]
    assert sorted(met) == sorted(combinations(range(count), 2))
    for each in played:
        here = [host for pair in each for host in pair]
        assert len(here) == len(set(here))


def test_rounds_can_be_bounded():
    assert pairs.rounds(8, 1) == pairs.rounds(8, 0)[:1]
    assert len(pairs.rounds(8, 1)[0]) == 4


def test_a_fast_link_takes_several_iperf3():
    assert [tcp.processes(gbits) for gbits in (None, 1, 25, 100, 400)] == [1, 1, 1, 4, tcp.MAX_PROCESSES]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"error": "unable to connect to server: Connection refused"}', "iperf3: unable to connect to server"),
        ("nothing", "unexpected answer of iperf3"),
        ('{"start": {}, "intervals": [], "end": {}}', "unexpected answer of iperf3"),
    ],
)
def test_what_iperf3_complains_of_is_told(text, says):
    with pytest.raises(reporting.MeasurementError, match=says):
        tcp.read(text)


def test_seconds_of_iperf3_that_do_not_count_are_left_out():
    seconds = [(9e9, True), (1e9, False), (2e9, False)]
    text = {
        "start": {"version": "iperf 3.16", "tcp_mss_default": 1000},
        "intervals": [{"sum": {"bits_per_second": bits, "omitted": omitted}} for bits, omitted in seconds],
        "end": {"sum_sent": {"retransmits": 3, "bytes": 600_000}, "sender_tcp_congestion": "cubic"},
    }
    answer = tcp.read(json.dumps(text))
    assert answer == {
        "gbits": [1.0, 2.0],
        "retransmits": 3,
        "segments": 600.0,
        "version": "3.16",
        "congestion": "cubic",
    }
    assert tcp.lost([answer, answer])["retransmitted"] == 0.005
    del text["start"]["tcp_mss_default"], text["end"]["sum_sent"]["bytes"]
    assert "retransmitted" not in tcp.lost([tcp.read(json.dumps(text))]), "no share of nothing"


def test_the_first_reason_for_which_a_host_ended_counts():
    here, there = os.pipe()
    for why in ({"skip": "no iperf3 here"}, "its process ended"):
        os.write(there, json.dumps({"from": 1, "topic": protocol.ENDED, "data": why}).encode() + b"\n")
    report = reporting.Report("tcp", there, here, {"hosts": ["a", "b"], "self": 0})
    with pytest.raises(reporting.SkipError, match="b: no iperf3 here"):
        report.hear("word", 5, 1)
    os.close(here)
    os.close(there)


TABLE = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rxe0
 local address: LID 0000 QPN 0x0011 PSN 0x2dfbe5 RKey 0x000203 VAddr 0x007f0f0c9a2000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    70392            0.00               196.82 \t\t   0.023463
---------------------------------------------------------------------------------------
"""


def test_the_average_of_perftests_table_is_read():
    assert rdma.read(TABLE) == 196.82
    with pytest.raises(reporting.MeasurementError, match="ib_write_bw printed no figures: Couldn't connect"):
        rdma.read("Port number 1 state is Active\nCouldn't connect to 10.0.0.2:18515\n")
    with pytest.raises(reporting.MeasurementError, match="no figures"):
        rdma.read(TABLE.replace("Gb/sec", "MiB/sec"))


def test_the_address_of_roce_that_is_chosen_can_be_routed(tmp_path):
    kinds = {0: "IB/RoCE v1", 1: "RoCE v2", 2: "IB/RoCE v1", 3: "RoCE v2"}
    (tmp_path / "gid_attrs/types").mkdir(parents=True)
    (tmp_path / "gids").mkdir()
    for index, kind in kinds.items():
        (tmp_path / f"gid_attrs/types/{index}").write_text(kind + "\n")
        (tmp_path / f"gids/{index}").write_text("fe80:0000:0000:0000:0202:c9ff:fe00:0001\n")
    assert rdma.gid_index(str(tmp_path)) == 1
    (tmp_path / "gids/3").write_text("0000:0000:0000:0000:0000:ffff:0a63:0001\n")
    assert rdma.gid_index(str(tmp_path)) == 3
    assert rdma.gid_index(str(tmp_path / "missing")) is None


# Hosts that are network namespaces


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    """Targets h0, h1, h2 on one bridge."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces need root")
    if shutil.which("ip") is None:
        pytest.skip("no ip command: apt install iproute2 (CI does)")
    folder, name = tmp_path_factory.mktemp("hosts"), "nt" + secrets.token_hex(3)
    try:
        ip(f"link add {name} type bridge")
        ip(f"link set {name} up")
        yield [_host(folder, name, number) for number in range(3)]
    finally:
        for number in range(3):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip(f"netns del {name}-{number}")
        ip(f"link del {name}")


def ip(words):
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def _host(folder, name, number):
    space, cable = f"{name}-{number}", f"{name}v{number}"
    ip(f"netns add {space}")
    ip(f"link add {cable} type veth peer name eth0 netns {space}")
    ip(f"link set {cable} master {name} up")
    for more in ("link set lo up", f"addr add 10.199.7.{number + 1}/24 dev eth0", "link set eth0 up"):
        ip(f"-n {space} {more}")
    # At full speed iperf3 and the kernel would take all CPUs of this machine
    shaper = "qdisc add dev eth0 root tbf rate 1gbit burst 256kb latency 400ms"
    subprocess.run(["tc", "-n", space, *shaper.split()], check=True)
    python = folder / space
    python.write_text(f'#!/bin/sh\nexec ip netns exec {space} {sys.executable} "$@"\n')
    python.chmod(0o755)
    return Target(f"h{number}", connection="local", python=str(python))


@pytest.fixture
def measure(farm, monkeypatch):
    """measure(name, hosts, **options): the records, by subject; measure.every(…): all of them."""

    def every(name, hosts=3, **options):
        monkeypatch.setattr(remote, "new_run", str)  # whoever else measures on this machine
        targets = farm[:hosts]
        names = [target.name for target in targets]
        plan = {"measurements": [{"name": name, "options": options, "seconds": 120.0}], "group": {"hosts": names}}
        events = [event for _, event in remote.measure(targets, lambda _: plan, ConnectionOptions(options=OPTIONS))]
        return [event["record"] for event in events if isinstance(event, dict) and "record" in event]

    def run(name, hosts=3, **options):
        return {record.get("subject"): record for record in every(name, hosts, **options)}

    run.every = every
    return run


@pytest.fixture
def iperf3():
    if external_tool.find("iperf3") is None:
        pytest.skip("no iperf3 on this machine: apt install iperf3 (CI does)")


def test_all_pairs_of_hosts_are_measured_in_both_directions(measure, iperf3):
    found = measure("tcp", rounds=0, streams=2)
    names = ("h0", "h1", "h2")
    assert set(found) == {f"{one}→{other}" for one in names for other in names if one != other}
    for record in found.values():
        assert "failed" not in record
        assert record["unit"] == "Gb/s"
        assert len(record["samples"]) == 4
        assert all(sample > 0.05 for sample in record["samples"])
        assert record["about"]["interface"] == "eth0"
        assert record["about"]["mtu"] == 1500


def test_a_slow_cable_is_told_from_the_others(measure, farm, iperf3):
    space = farm[1].python.rpartition("/")[2]
    cable = space.replace("-", "v")
    subprocess.run(
        ["tc", "qdisc", "add", "dev", cable, "root", "tbf", "rate", "200mbit", "burst", "64kb", "latency", "50ms"],
        check=True,
    )
    try:
        found = measure("tcp", hosts=2, streams=2)
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", cable, "root"], check=True)
    median = {subject: sorted(record["samples"])[2] for subject, record in found.items()}
    assert median["h0→h1"] < 0.25
    assert median["h1→h0"] > 2 * median["h0→h1"]


def test_one_and_sixteen_streams_are_two_figures_with_losses(measure, farm, iperf3):
    space = farm[1].python.rpartition("/")[2]
    cable = space.replace("-", "v")
    subprocess.run(
        ["tc", "qdisc", "add", "dev", cable, "root", "tbf", "rate", "100mbit", "burst", "16kb", "limit", "24kb"],
        check=True,
    )
    try:
        found = measure.every("tcp", hosts=2)
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", cable, "root"], check=True)
    ways = {(each["metric"], each["subject"]): each["about"] for each in found}
    assert set(ways) == {(metric, way) for metric in ("one_stream", "tcp") for way in ("h0→h1", "h1→h0")}
    for (metric, way), about in ways.items():
        assert about["streams"] == (1 if metric == "one_stream" else 16)
        assert (about["retransmitted"] > 0.005) is (way == "h0→h1"), "only one way loses segments"


@pytest.fixture
def narrow(farm):
    """What the first host sends waits for its turn: some 16 ms for each small message."""
    space = farm[0].python.rpartition("/")[2]
    shaper = ["tc", "qdisc", "add", "dev", space.replace("-", "v"), "root", "tbf"]
    subprocess.run([*shaper, "rate", "64kbit", "burst", "1600", "latency", "900ms"], check=True)
    yield space
    subprocess.run(["tc", "qdisc", "del", "dev", space.replace("-", "v"), "root"], check=True)


def test_a_round_trip_waits_for_what_holds_messages_up(measure, farm, narrow):
    found = {record["metric"]: record for record in measure.every("tcp_latency", hosts=2, repeats=2)}
    assert set(found) == {"median", "p99"}
    for record in found.values():
        assert (record["subject"], record["unit"], record["about"]["interface"]) == ("h1→h0", "µs", "eth0")
        assert len(record["samples"]) == 2
        assert min(record["samples"]) > 10_000, "a message of 64 bytes and its headers at 64 kbit/s"
    assert listeners(farm[0]) == [], "the server has ended"


def until_there_is(something):
    end = time.monotonic() + 30
    while not something():
        assert time.monotonic() < end
        time.sleep(0.1)


def listeners(host):
    told = subprocess.run([host.python, "-c", "print(open('/proc/net/tcp').read())"], capture_output=True, text=True)
    return [line for line in told.stdout.splitlines()[1:] if line.split()[3:4] == ["0A"]]


def test_a_round_trip_is_twice_the_latency_that_sockperf_prints(measure, farm, narrow):
    sockperf = shutil.which("sockperf")
    if sockperf is None:
        pytest.skip("no sockperf on this machine: apt install sockperf (CI does)")
    spaces = [["ip", "netns", "exec", each.python.rpartition("/")[2], sockperf] for each in farm[:2]]
    with subprocess.Popen([*spaces[0], "server", "--tcp", "-i", "10.199.7.1"], stdout=subprocess.DEVNULL) as server:
        try:
            until_there_is(lambda: listeners(farm[0]))
            asked = [*spaces[1], "ping-pong", "--tcp", "-i", "10.199.7.1", "-m", "64", "-t", "3"]
            told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
        finally:
            server.terminate()
    half = float(re.search(r"percentile 50.000 =\s*([\d.]+)", told).group(1))
    found = {record["metric"]: record for record in measure.every("tcp_latency", hosts=2, repeats=1)}
    assert found["median"]["samples"][0] == pytest.approx(2 * half, rel=0.2)


def test_the_kernel_sees_the_bytes_of_a_rail_arrive(measure, farm):
    def arrived(host):
        told = subprocess.run(
            [host.python, "-c", "print(open('/proc/net/dev').read())"], capture_output=True, text=True
        )
        return int(re.search(r"eth0:\s*(\d+)", told.stdout)[1])

    before = [arrived(host) for host in farm]
    found = measure.every("rails", over="tcp", seconds=0.5)
    after = [arrived(host) for host in farm]
    assert [each.get("failed") for each in found] == [None] * 3
    counted = sum(each["about"]["bytes"] for each in found)
    assert 1 <= (sum(after) - sum(before)) / counted < 1.1  # headers, and what acknowledges the bytes sent


def test_an_interface_that_is_not_there_is_told_for_the_pair(measure, iperf3):
    found = measure("tcp", hosts=2, interface="eth7")
    assert found["h1→h0"]["failed"].endswith("the interface eth7 does not exist or has no IPv4 address")


def test_the_requested_network_is_measured(measure, farm, iperf3):
    try:
        for number, each in enumerate(farm[:2]):
            space = each.python.rpartition("/")[2]
            ip(f"-n {space} link add rail type veth peer name other")
            ip(f"-n {space} link set other netns {farm[2].python.rpartition('/')[2]} name rail{number}")
            ip(f"-n {space} addr add 10.198.{number}.1/16 dev rail")
            ip(f"-n {space} link set rail up")
        between = farm[2].python.rpartition("/")[2]
        ip(f"-n {between} link add rails type bridge")
        for name in ("rail0", "rail1"):
            ip(f"-n {between} link set {name} master rails up")
        ip(f"-n {between} link set rails up")
        found = measure("tcp", hosts=2, streams=1, seconds=1, network="10.198.0.0/16")
    finally:
        for each in farm[:2]:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip(f"-n {each.python.rpartition('/')[2]} link del rail")
        with contextlib.suppress(subprocess.CalledProcessError):
            ip(f"-n {between} link del rails")
    for subject in ("h0→h1", "h1→h0"):
        about = found[subject]["about"]
        assert (about["interface"], about["address"], about["network"]) == ("rail", "10.198.0.1", "10.198.0.0/16")


def test_a_host_outside_of_the_network_is_told_with_what_it_has(measure, iperf3):
    found = measure("tcp", hosts=2, network="10.77.0.0/16")
    assert "h0: this host has no address in 10.77.0.0/16: it has " in found["h1→h0"]["failed"]
    assert "10.199.7.1 on eth0" in found["h1→h0"]["failed"]


def test_an_address_that_does_not_answer_is_told_in_time(measure, farm, iperf3):
    space = farm[0].python.rpartition("/")[2]
    ip(f"-n {space} addr add 10.222.0.1/24 dev lo")
    found = measure("tcp", hosts=2, addresses={"h0": "10.222.0.1"})
    assert {record["failed"].partition(":")[0] for record in found.values()} == {"iperf3"}


def test_no_server_is_left_running(measure, farm, iperf3):
    measure("tcp", hosts=2, seconds=1, streams=1)
    assert gone(lambda: running(farm)) == []


def running(farm):
    """The processes on these hosts: those of other workers have the same addresses."""
    spaces = [each.python.rpartition("/")[2] for each in farm]
    return [pid for space in spaces for pid in subprocess.check_output(["ip", "netns", "pids", space]).split()]


def test_without_an_adapter_rdma_is_skipped_on_each_host(measure):
    if os.path.isdir(rdma.CLASS) and os.listdir(rdma.CLASS):
        pytest.skip("this machine has an RDMA adapter")
    package = (
        "no RDMA adapter" if external_tool.find("ib_write_bw") else "ib_write_bw is not installed: apt install perftest"
    )
    assert measure("rdma", hosts=2)[""]["skip"].startswith(package)


def test_one_host_alone_has_no_pair(measure):
    package = "iperf3 is not installed" if external_tool.find("iperf3") is None else "two hosts are needed: select more"
    assert measure("tcp", hosts=1)[""]["skip"].startswith(package)


MISSING = """
from nodetune.measurements.host import external_tool, pairs
def measure(options, report):
    if report.hosts[report.self] == "h1":
        external_tool.need("no-such-tool", "its-package")
    import contextlib
    @contextlib.contextmanager
    def serve():
        yield {"address": report.self}
    def ask(here, there, known, at_once):
        report.result(here + " " + there, [1 + known["address"]], "s")
    pairs.play(report, {"rounds": 0}, serve, ask)
"""


def test_a_host_without_the_tool_costs_the_other_pairs_nothing(measure, tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, missing=MISSING))
    found = measure("missing")
    assert found["h2 h0"]["samples"] == [1.0]
    assert found["h2→h1"]["skip"].startswith("h1: no-such-tool is not installed")
    assert found[""]["skip"].startswith("no-such-tool is not installed")


ANSWERS = {
    "an option": {"ways": [["--logfile=/tmp/x", 1]], "door": None},
    "a name": {"ways": [["evil.example", 1]], "door": None},
    "a number": {"ways": [[5, 1]], "door": None},
    "no ways": {"ways": [], "door": None},
    "ways that are none": {"ways": 7, "door": None},
    "a door that is none": {"ways": [["127.0.0.1", 1]], "door": "-x"},
    "a port out of range": {"ways": [["127.0.0.1", 1]], "door": 1 << 20},
    "no answer": "x",
}


@pytest.mark.parametrize("known", ANSWERS.values(), ids=list(ANSWERS))
def test_a_partner_with_an_address_that_is_none_is_named(known):
    with pytest.raises(reporting.MeasurementError, match="there: "):
        pairs.way_to(known, "there")


@pytest.mark.parametrize("gbits", ["x", True, float("nan"), float("inf"), -1, 10**400, [1]])
def test_a_partners_link_speed_that_is_none_is_not_known(gbits):
    assert pairs.way_to({"ways": [["127.0.0.1", gbits]], "door": None}, "there") == ("127.0.0.1", None)


def test_a_partners_address_is_written_again():
    assert pairs.way_to({"ways": [["127.0.0.1", 25]], "door": None}, "there") == ("127.0.0.1", 25)


@pytest.mark.parametrize("ports", ["x", ["--logfile"], [0], [True], [1.5], [65536], [], list(range(1, 1000)), None])
def test_a_partners_ports_that_are_none_are_refused(ports):
    with pytest.raises(reporting.MeasurementError, match="there: "):
        pairs.ports_of(ports, "there")


def test_nothing_of_a_partner_becomes_an_option(tmp_path, monkeypatch):
    """The program is real; it writes down what it is started with."""
    seen = tmp_path / "seen"
    program = tmp_path / "iperf3"
    program.write_text(f'#!/bin/sh\necho "$@" >> {seen}\n')
    program.chmod(0o755)
    monkeypatch.setattr(external_tool, "need", lambda *_: str(program))
    here, there = os.pipe()
    hostile = {"ways": [["127.0.0.1", 1]], "door": None, "ports": ["--logfile=/tmp/x"]}
    message = {"from": 0, "topic": "server 0 1", "data": hostile}
    os.write(there, json.dumps(message).encode() + b"\n")
    out, into = os.pipe()
    tcp.measure({}, reporting.Report("tcp", into, here, {"hosts": ["a", "b"], "self": 1}))
    records = os.read(out, 1 << 16).decode()
    for handle in (here, there, out, into):
        os.close(handle)
    assert "which is not a port" in records
    assert not seen.exists()
