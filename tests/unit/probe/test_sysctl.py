"""How kernel parameters are read."""

import errno

from nodetune.probe import read


def test_a_parameter_is_a_number_a_list_of_numbers_or_text(tree, collect):
    tree(
        {
            "/proc/sys/vm/swappiness": "60\n",
            "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
            "/proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
        }
    )
    facts = collect("sysctl", ["vm.swappiness", "net.ipv4.tcp_rmem", "net.ipv4.tcp_congestion_control"])
    assert [fact["value"] for fact in facts.values()] == [60, [4096, 131072, 6291456], "cubic"]


def test_zero_is_a_value_and_a_missing_parameter_is_absent(tree, collect):
    tree({"/proc/sys/kernel/numa_balancing": "0\n"})
    facts = collect("sysctl", ["kernel.numa_balancing", "vm.zone_reclaim_mode"])
    assert facts["sysctl.kernel.numa_balancing"] == {"value": 0}
    assert "absent" in facts["sysctl.vm.zone_reclaim_mode"]


def test_a_slash_stands_for_a_dot_inside_an_interface_name(tree, collect):
    tree({"/proc/sys/net/ipv4/conf/eth0.200/rp_filter": "2\n"})
    assert collect("sysctl", ["net.ipv4.conf.eth0/200.rp_filter"])["sysctl.net.ipv4.conf.eth0/200.rp_filter"] == {
        "value": 2
    }


def test_a_parameter_that_only_root_may_read_says_so(collect, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(read, "text", denied)
    fact = collect("sysctl", ["vm.mmap_rnd_bits"])["sysctl.vm.mmap_rnd_bits"]
    assert fact == {"unread": "/proc/sys/vm/mmap_rnd_bits: permission denied: needs root (--become)"}
