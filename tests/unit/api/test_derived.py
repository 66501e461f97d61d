"""Values that are worked out from facts: for the sizes that hosts have."""

import pytest

from nodetune.api import derived
from nodetune.api.facts_view import FactAbsentError, FactsView
from nodetune.api.model import Absent, HostFacts, Unread, Value

GIB_KB = 1 << 20
MIB = 1 << 20


def found(function, **facts):
    view = FactsView(
        HostFacts("gpu1", {name.replace("__", "."): Value(value) for name, value in facts.items()}), function.needs
    )
    return function(view)


@pytest.mark.parametrize(
    ("speed", "memory_gib", "mib"),
    [
        (100_000, 2048, 32),
        (400_000, 2048, 128),
        (800_000, 2048, 256),
        (3_200_000, 2048, 256),
        (400_000, 8, 64),
        (400_000, 1, 16),
    ],
)
def test_a_flow_gets_twice_what_is_under_way_and_at_most_a_hundredth_of_memory(speed, memory_gib, mib):
    facts = {"derived__fastest_link_mbps": speed, "memory__total_kb": memory_gib * GIB_KB}
    assert found(derived.tcp_buffer_bytes, **facts) == mib * MIB


@pytest.mark.parametrize(("memory_gib", "mib"), [(4, 81.92), (64, 132), (512, 256), (1024, 512), (4096, 1024)])
def test_the_kernel_keeps_a_2048th_of_memory_free_within_bounds(memory_gib, mib):
    reserve = found(derived.min_free_kbytes, memory__total_kb=memory_gib * GIB_KB)
    assert reserve == int(mib * 1024)


@pytest.mark.parametrize(
    ("links", "speed"),
    [
        ({"eth0": {"physical": True, "speed_mbps": 100_000}, "eth1": {"physical": True, "speed_mbps": None}}, 100_000),
        ({"eth0": {"physical": True, "speed_mbps": 1000}, "bond0": {"physical": False, "speed_mbps": 2000}}, 1000),
    ],
)
def test_the_fastest_physical_link_counts(links, speed):
    assert found(derived.fastest_link_mbps, net__links=links) == speed


def test_links_below_10_gigabit_need_no_larger_buffers():
    assert found(derived.tcp_buffer_bytes, derived__fastest_link_mbps=10_000, memory__total_kb=64 * GIB_KB) == 16 * MIB
    for function, facts in (
        (derived.tcp_buffer_bytes, {"derived__fastest_link_mbps": 9_999, "memory__total_kb": 64 * GIB_KB}),
        (derived.fastest_link_mbps, {"net__links": {"bond0": {"physical": False, "speed_mbps": 2000}}}),
    ):
        with pytest.raises(FactAbsentError):
            found(function, **facts)


@pytest.mark.parametrize(("function", "way"), [(derived.tcp_rmem, "tcp_rmem"), (derived.tcp_wmem, "tcp_wmem")])
def test_only_the_largest_buffer_of_a_socket_is_raised(function, way):
    facts = {f"sysctl__net__ipv4__{way}": [4096, 131072, 6291456], "derived__tcp_buffer_bytes": 64 * MIB}
    assert found(function, **facts) == [4096, 131072, 64 * MIB]


@pytest.mark.parametrize(("cpus", "least"), [(8, 32768), (32, 32768), (33, 33792), (256, 262144)])
def test_every_cpu_has_1024_process_ids(cpus, least):
    assert found(derived.pid_max, cpu__count=cpus) == least
    assert found(derived.min_free_kbytes_ceiling, memory__total_kb=2000) == 100


def test_the_usual_power_limit_is_that_of_most_gpus_of_a_model_with_one_default():
    names = dict.fromkeys(("GPU0", "GPU1", "GPU2"), "H200") | dict.fromkeys(("GPU3", "GPU4"), "L4")
    limits = {"GPU0": 700, "GPU1": 600, "GPU2": 600, "GPU3": 72, "GPU4": 60}
    defaults = dict.fromkeys(("GPU0", "GPU1", "GPU2"), 700) | {"GPU3": 72, "GPU4": 70}
    facts = {"limit": limits, "default_limit": defaults}
    given = {f"gpu__power_management_{name}": each for name, each in facts.items()}
    assert found(derived.usual_power_limits, gpu__names=names, **given) == {"H200": 600}


@pytest.mark.parametrize(
    ("unit", "sets"),
    [
        ({"active": "active", "enabled": "enabled"}, {"sysctl": {"vm.swappiness": "10"}, "cpu": {"governor": "x"}}),
        ({"active": "active", "enabled": "disabled"}, {}),
        ({"active": "inactive", "enabled": "enabled"}, {}),
    ],
)
def test_tuned_sets_what_its_profile_says_where_it_starts_at_boot(unit, sets):
    settings = {
        "sysctl": {"vm.swappiness": {"value": '"10"'}},
        "mine": {"type": {"value": "cpu"}, "governor": {"value": "x"}},
    }
    facts = {"services__tuned": unit, "services__tuned_profile": {"settings": settings}}
    assert found(derived.tuned_settings, **facts) == sets


def test_a_derived_fact_is_found_with_all_that_it_rests_on():
    assert derived.raw_needs("derived.tcp_rmem") == {"sysctl.net.ipv4.tcp_rmem", "net.links", "memory.total_kb"}
    assert derived.raw_needs("memory.total_kb") == {"memory.total_kb"}
    with pytest.raises(KeyError, match=r"unknown derived fact derived.MIB"):
        derived.function("derived.MIB")


def test_a_derived_fact_is_absent_or_unread_as_what_it_needs():
    host = HostFacts(
        "gpu1", {"memory.total_kb": Value(1000), "net.links": Unread("timed out"), "cpu.count": Absent("none")}
    )
    assert derived.lookup(host, "derived.min_free_kbytes_ceiling") == Value(50)
    assert derived.lookup(host, "derived.tcp_buffer_bytes") == Unread("derived.fastest_link_mbps: net.links: timed out")
    assert derived.lookup(host, "derived.pid_max") == Absent("none")
    assert derived.lookup(host, "memory.total_kb") == Value(1000)
    other = HostFacts("gpu2", {"memory.total_kb": Value(2000)})
    assert derived.lookup(other, "derived.min_free_kbytes_ceiling") == Value(100)
