"""Measurements between two machines, over SSH: RDMA over soft-RoCE, TCP, two NUMA nodes, a disk.

Under emulation figures mean nothing; that they come, from where they say, and that nothing stays behind does.
"""

import contextlib

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.inventory import selection
from nodetune.remote.live_pool import Ended
from nodetune.verify import remote
from tests.machines import inventory
from tests.machines.place import until

DEADLINE = 240.0
PROGRAMS = "iperf3|ib_write_bw|ib_write_lat|fio|nodetune|python3 -I"
FABRIC = {"ens2", "ens10", "ens11"}
MESSAGE = 16 << 10
"""Bytes: small enough that some get through in each second although the emulated cable drops many packets."""
PLAN = (
    {"name": "tcp", "options": {"seconds": 2, "streams": 2}},
    {"name": "rdma", "options": {"seconds": 6, "size": MESSAGE, "queue_pairs": 1, "repeats": 2}},
    {"name": "rdma_latency", "options": {"writes": 100, "repeats": 2}},
    {"name": "tcp_latency", "options": {"seconds": 1, "repeats": 2}},
    {"name": "memory", "options": {"repeats": 2}},
    {"name": "disk", "options": {"dir": "/data", "size": 64 << 20, "seconds": 1, "repeats": 1, "jobs": 2}},
)
OVER_RDMA = {"rdma", "rdma_latency"}


@pytest.fixture(scope="module")
def two(fleet):
    """Machines with a soft-RoCE device each."""
    made = fleet(2)
    for each in made:
        each.ssh("modprobe rdma_rxe && rdma link add rxe0 type rxe netdev ens2")
    yield made
    for each in made:
        fleet.stop(each)


@pytest.fixture(scope="module")
def events(two, tmp_path_factory):
    """events([{name, options}]): (target, event) as both machines tell them."""
    spec = str(inventory.write(tmp_path_factory.mktemp("verify") / "inventory.yml", two))

    def run(items):
        targets = selection.targets(spec)
        plan = {
            "measurements": [{**item, "seconds": DEADLINE} for item in items],
            "group": {"hosts": [target.name for target in targets]},
        }
        return remote.measure(targets, lambda _: plan, ConnectionOptions(options=SessionOptions(seconds=DEADLINE)))

    return run


@pytest.fixture(scope="module")
def measure(two, events):
    """measure([{name, options}]): the records of each machine, by its name."""

    def run(items):
        records = {machine.name: [] for machine in two}
        for target, event in events(items):
            if isinstance(event, Ended):
                assert event.problem is None
            elif "record" in event:
                records[target.name].append(event["record"])
        return records

    return run


@pytest.fixture(scope="module")
def records(measure):
    """All of PLAN. The emulated cable drops packets, now and then more than a connection lives through: then RDMA once more."""
    found = measure(PLAN)
    for _ in range(3):
        failed = {each["measurement"] for of_host in found.values() for each in of_host if "failed" in each} & OVER_RDMA
        if not failed:
            break
        again = measure([each for each in PLAN if each["name"] in failed])
        for name, of_host in found.items():
            found[name] = [each for each in of_host if each["measurement"] not in failed] + again[name]
    return found


def figures(records, name):
    """{(metric, subject): record} of one measurement on all machines; each must be a figure above nothing."""
    found = [each for of_host in records.values() for each in of_host if each["measurement"] == name]
    complaints = [each for each in found if "samples" not in each]
    assert complaints == []
    assert min(sample for each in found for sample in each["samples"]) > 0
    return {(each["metric"], each["subject"]): each for each in found}


def test_rdma_is_measured_both_ways_and_names_its_link_layer(two, records):
    one, other = (each.name for each in two)
    found = figures(records, "rdma")
    assert set(found) == {("rdma", f"rxe0/1 {one}→{other}"), ("rdma", f"rxe0/1 {other}→{one}")}
    for record in found.values():
        assert record["unit"] == "Gb/s"
        assert record["about"] == {
            "adapter": "rxe0/1",
            "layer": "Ethernet",
            "software": True,
            "rate": None,
            "size": MESSAGE,
            "pairs_at_once": 1,
        }


def test_tcp_takes_a_network_on_which_the_machines_meet(two, records):
    """Each machine's default route leads to a network of its own, where all of them have the same address."""
    same = {each.ssh("ip -4 -o address show dev enp0s16 | grep -o 'inet [0-9.]*'").stdout for each in two}
    assert len(same) == 1
    one, other = (each.name for each in two)
    found = figures(records, "tcp")
    assert {subject for _, subject in found} == {f"{one}→{other}", f"{other}→{one}"}
    for record in found.values():
        assert len(record["samples"]) == 2
        assert record["about"]["interface"] in FABRIC
        assert record["about"]["mtu"] == 1500


def test_memory_is_measured_on_each_node_and_across(two, records):
    for machine in two:
        found = figures({machine.name: records[machine.name]}, "memory")
        assert set(found) == {
            *((metric, node) for metric in ("local", "local_one_thread") for node in ("node0", "node1")),
            *((metric, pair) for metric in ("remote", "far_share") for pair in ("node0→node1", "node1→node0")),
        }
        near, far = found["local", "node1"]["about"], found["remote", "node1→node0"]["about"]
        assert (near["local"], near["distance"], near["threads"]) == (True, 10, 2)
        assert (far["local"], far["distance"], far["threads"]) == (False, 21, 2)


def test_a_disk_is_measured_past_the_page_cache_and_left_clean(two, records):
    for machine in two:
        found = figures({machine.name: records[machine.name]}, "disk")
        assert {metric for metric, _ in found} == {"write", "read", "random_read", "random_read_p99"}
        about = found["read", "/data"]["about"]
        assert about["device"].startswith("/dev/nvme")
        assert (about["file_system"], about["direct"], about["engine"]) == ("ext4", True, "libaio")
        assert machine.ssh("find /data -name '*nodetune*'").stdout == ""


def until_all_is_gone(machines):
    for machine in machines:
        until(
            "the payload and its programs are gone",
            lambda machine=machine: machine.ssh(f"pgrep -af '{PROGRAMS}' | grep -v pgrep", check=False).returncode == 1,
            60,
        )


def test_no_program_is_left_running(two, records):
    assert all(records[machine.name] for machine in two)
    until_all_is_gone(two)


@pytest.mark.parametrize("name", ["rdma_latency", "tcp_latency"])
def test_latency_is_a_median_and_what_one_in_a_hundred_exceeds(two, records, name):
    found = figures(records, name)
    for subject in {subject for _, subject in found}:
        median, p99 = (found[metric, subject] for metric in ("median", "p99"))
        assert median["unit"] == p99["unit"] == "µs"
        assert all(low <= high for low, high in zip(median["samples"], p99["samples"], strict=True))
    ends = {subject.rpartition(" ")[2] for _, subject in found}
    one, other = (each.name for each in two)
    assert ends == {f"{one}→{other}", f"{other}→{one}"} if name == "rdma_latency" else len(ends) == 1


@pytest.mark.parametrize(("name", "program"), [("tcp", "iperf3"), ("rdma", "ib_write_bw")])
def test_a_run_broken_off_ends_its_programs_on_both_machines(two, events, name, program):
    with contextlib.closing(events([{"name": name, "options": {"seconds": 60}}])) as running:
        for _, event in running:
            if not isinstance(event, Ended) and event.get("step", {}).get("text", "").startswith("measuring with"):
                break
        for machine in two:
            until(f"{program} runs", lambda machine=machine: machine.ssh(f"pgrep -x {program}", check=False).stdout)
    until_all_is_gone(two)


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_tool_one_machine_lacks_is_a_skip_with_its_package(two, measure, lacking):
    without = two[lacking]
    without.ssh("mv /usr/bin/iperf3 /usr/bin/iperf3.away")
    try:
        found = measure(PLAN[:1])
    finally:
        without.ssh("mv /usr/bin/iperf3.away /usr/bin/iperf3")
    reason = "iperf3 is not installed: apt install iperf3, or dnf install iperf3"
    assert [each["skip"] for each in found[without.name]] == [reason]
    for told in found[two[1 - lacking].name]:
        assert told.get("skip") == f"{without.name}: {reason}", told
