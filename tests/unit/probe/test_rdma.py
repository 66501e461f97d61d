"""What the RDMA collector makes of /sys/class/infiniband."""

import errno
import os

import pytest

from nodetune.probe import read

CLASS = "/sys/class/infiniband/mlx5_0"
PORT = CLASS + "/ports/1"
NIC = "/sys/devices/pci0000:17/0000:18:00.0"
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"
LOCAL = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
MAPPED = "0000:0000:0000:0000:0000:ffff:c000:0201"


@pytest.fixture
def port(tree):
    """An InfiniBand port at 400 Gb/s; the fixture's value plants more."""
    root = tree({})
    tree(
        {
            CLASS + "/device": f"-> {root}{NIC}",
            CLASS + "/fw_ver": "28.43.2026",
            CLASS + "/board_id": "MT_0000000838",
            CLASS + "/hca_type": "MT4129",
            CLASS + "/node_type": "1: CA",
            NIC + "/vendor": "0x15b3",
            NIC + "/numa_node": "0",
            NIC + "/driver": "-> ../../../bus/pci/drivers/mlx5_core",
            NIC + "/net/ibp24s0/dev_port": "0",
            PORT + "/state": "4: ACTIVE",
            PORT + "/phys_state": "5: LinkUp",
            PORT + "/rate": "400 Gb/sec (4X NDR)",
            PORT + "/link_layer": "InfiniBand",
            PORT + "/lid": "0x1f",
            PORT + "/sm_lid": "0x1",
        }
    )
    return tree


@pytest.mark.usefixtures("port")
def test_a_port_tells_state_rate_and_where_it_sits(collect):
    assert collect("rdma")["rdma.ports"]["value"] == {
        "mlx5_0/1": {
            "state": "ACTIVE",
            "phys_state": "LinkUp",
            "rate_gbps": 400.0,
            "width": 4,
            "link_layer": "InfiniBand",
            "sm_lid": 1,
            "netdev": "ibp24s0",
            "bdf": "0000:18:00.0",
            "numa_node": 0,
            "model": "MT_0000000838",
            "virtual_function": False,
        }
    }


@pytest.mark.usefixtures("port")
def test_a_device_tells_firmware_model_and_vendor(collect):
    device = collect("rdma")["rdma.devices"]["value"]["mlx5_0"]
    assert (device["firmware"], device["board_id"], device["vendor"], device["node_type"]) == (
        "28.43.2026",
        "MT_0000000838",
        "15b3",
        "CA",
    )


def test_without_rdma_devices_there_are_no_ports(tree, collect):
    tree({"/sys/class/": None})
    facts = collect("rdma")
    assert facts["rdma.ports"] == {"value": {}}
    assert facts["rdma.devices"] == {"value": {}}
    assert facts["rdma.gids"] == {"each": {}}


def test_only_addresses_that_are_set_are_told_with_type_and_link(port, collect):
    entries = {0: (LOCAL, "IB/RoCE v1"), 1: (LOCAL, "RoCE v2"), 2: (ZERO, None), 10: (MAPPED, "RoCE v2")}
    port({f"{PORT}/gids/{index}": gid for index, (gid, _) in entries.items()})
    port({f"{PORT}/gid_attrs/types/{index}": kind for index, (_, kind) in entries.items() if kind})
    port({f"{PORT}/gid_attrs/ndevs/{index}": "dat0" for index in (0, 1, 10)})
    facts = collect("rdma")
    assert facts["rdma.gids"]["each"]["mlx5_0/1"]["value"] == [
        {"index": 0, "gid": LOCAL, "type": "IB/RoCE v1", "netdev": "dat0"},
        {"index": 1, "gid": LOCAL, "type": "RoCE v2", "netdev": "dat0"},
        {"index": 10, "gid": MAPPED, "type": "RoCE v2", "netdev": "dat0"},
    ]
    assert facts["rdma.ports"]["value"]["mlx5_0/1"]["netdev"] == "dat0"


def test_of_several_links_the_one_with_its_number_is_the_ports(port, collect):
    port({NIC + "/net/ibp24s0d1/dev_port": "1", CLASS + "/ports/2/state": "1: DOWN"})
    ports = collect("rdma")["rdma.ports"]["value"]
    assert (ports["mlx5_0/1"]["netdev"], ports["mlx5_0/2"]["netdev"]) == ("ibp24s0", "ibp24s0d1")


def test_a_port_that_is_down_keeps_its_state(port, collect):
    (port({}) / PORT.lstrip("/") / "state").write_text("1: DOWN\n")
    (port({}) / PORT.lstrip("/") / "phys_state").write_text("2: Polling\n")
    seen = collect("rdma")["rdma.ports"]["value"]["mlx5_0/1"]
    assert (seen["state"], seen["phys_state"]) == ("DOWN", "Polling")


def test_counters_are_read_only_when_wanted(port, collect):
    port({PORT + "/counters/symbol_error": "7", PORT + "/counters/unknown_one": "1"})
    assert "rdma.counters" not in collect("rdma")
    facts = collect("rdma", ["counters", "hw_counters"])
    assert facts["rdma.counters"] == {"each": {"mlx5_0/1": {"value": {"symbol_error": 7}}}}
    assert "absent" in facts["rdma.hw_counters"]["each"]["mlx5_0/1"]


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (errno.EINVAL, {"value": {"symbol_error": 7}}),
        (errno.EIO, {"unread": f"{PORT}/counters/link_downed: input/output error"}),
    ],
)
def test_a_counter_that_the_card_lacks_is_left_out_and_one_that_fails_is_told(
    port, collect, monkeypatch, problem, told
):
    port({PORT + "/counters/symbol_error": "7", PORT + "/counters/link_downed": "1"})
    text = read.text

    def refused(path, *more):
        if path.endswith("link_downed"):
            raise OSError(problem, os.strerror(problem))
        return text(path, *more)

    monkeypatch.setattr(read, "text", refused)
    assert collect("rdma", ["counters"])["rdma.counters"] == {"each": {"mlx5_0/1": told}}


def test_a_traffic_class_is_told_only_where_one_is_set_for_all(port, collect):
    path = CLASS + "/tc/1/traffic_class"
    port({path: "Global tclass=106\n", "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "106\n"})
    facts = collect("rdma")
    assert facts["rdma.traffic_class"]["each"]["mlx5_0/1"] == {"value": 106}
    assert facts["rdma.cm_tos"]["each"]["mlx5_0/1"] == {"value": 106}
    (port({}) / path.lstrip("/")).write_text("")
    assert "absent" in collect("rdma")["rdma.traffic_class"]["each"]["mlx5_0/1"]


def test_an_ip_over_infiniband_link_tells_mode_and_mtu(tree, collect):
    folder = "/sys/class/net/ib0"
    tree({folder + "/type": "32", folder + "/mode": "datagram", folder + "/mtu": "4092", folder + "/carrier": "1"})
    tree({"/sys/class/net/dat0/type": "1", "/sys/class/net/dat0/mode": "other"})
    assert collect("rdma")["rdma.ipoib"] == {"each": {"ib0": {"value": {"mode": "datagram", "mtu": 4092, "up": True}}}}


def test_a_virtual_device_has_no_address_on_the_bus(tree, collect):
    tree(
        {
            "/sys/class/infiniband/rxe0/ports/1/state": "4: ACTIVE",
            "/sys/class/infiniband/rxe0/ports/1/link_layer": "Ethernet",
        }
    )
    seen = collect("rdma")["rdma.ports"]["value"]["rxe0/1"]
    assert (seen["state"], seen["bdf"], seen["numa_node"], seen["rate_gbps"]) == ("ACTIVE", None, None, None)


def test_network_plugins_are_found_where_their_packages_put_them(tree, collect):
    sharp = "/opt/hpcx-v2.20/sharp/lib/libsharp_coll.so.5"
    plugin = "/opt/hpcx-v2.20/nccl_rdma_sharp_plugin/lib/libnccl-net.so"
    amazon = "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so"
    tree({sharp: "", plugin: "", amazon: ""})
    found = collect("rdma", ["net_plugins"])["rdma.net_plugins"]["value"]
    assert found == {"sharp": [sharp], "nccl_rdma_sharp": [plugin], "aws_ofi": [amazon], "libfabric": [], "other": []}
    assert "rdma.net_plugins" not in collect("rdma")


def test_a_device_of_its_own_tells_its_guid(port, collect):
    port({CLASS + "/node_guid": "0c42:a103:0065:1b2e\n"})
    assert collect("rdma")["rdma.guid"]["each"] == {"mlx5_0": {"value": "0c42:a103:0065:1b2e"}}
    port({NIC + "/physfn/vendor": "0x15b3"})
    assert collect("rdma")["rdma.guid"]["each"] == {}


DEVINFO = """#!/bin/sh
printf 'hca_id:\\tmlx5_0\\n\\ttransport:\\t\\tInfiniBand (0)\\n\\t\\tport:\\t1\\n\\t\\t\\tstate:\\t\\tPORT_ACTIVE (4)\\n'
printf '\\t\\t\\tmax_mtu:\\t4096 (5)\\n\\t\\t\\tactive_mtu:\\t2048 (4)\\n\\n'
"""


def test_the_active_mtu_is_what_ibv_devinfo_prints(port, collect):
    tool = port({"/usr/bin/ibv_devinfo": DEVINFO}) / "usr/bin/ibv_devinfo"
    tool.chmod(0o755)
    port({PORT + "/link_layer": "Ethernet", "/sys/class/net/ibp24s0/mtu": "9000"})
    assert collect("rdma", ["active_mtu"])["rdma.active_mtu"] == {
        "each": {"mlx5_0/1": {"value": {"bytes": 2048, "by": "ibv_devinfo"}}}
    }
    tool.write_text("#!/bin/sh\nexit 1\n")
    told = collect("rdma", ["active_mtu"])["rdma.active_mtu"]["each"]["mlx5_0/1"]
    assert told == {"value": {"bytes": 4096, "by": "the MTU of ibp24s0, 9000"}}


@pytest.mark.parametrize(("mtu", "active"), [(9000, 4096), (4200, 4096), (4191, 2048), (1500, 1024), (1280, 1024)])
def test_without_ibv_devinfo_roce_has_what_the_kernel_makes_of_the_links_mtu(port, collect, mtu, active):
    port({PORT + "/link_layer": "Ethernet", "/sys/class/net/ibp24s0/mtu": str(mtu)})
    told = collect("rdma", ["active_mtu"])["rdma.active_mtu"]["each"]["mlx5_0/1"]
    assert told == {"value": {"bytes": active, "by": f"the MTU of ibp24s0, {mtu}"}}


def test_the_mtu_of_ipoib_says_nothing_of_infiniband(port, collect):
    port({"/sys/class/net/ibp24s0/mtu": "2044"})
    assert "ibv_devinfo" in collect("rdma", ["active_mtu"])["rdma.active_mtu"]["each"]["mlx5_0/1"]["absent"]
    port({PORT + "/state": "1: DOWN"})
    assert collect("rdma", ["active_mtu"])["rdma.active_mtu"] == {"each": {}}


def test_devices_that_programs_can_open_have_a_file(port, collect):
    verbs = "/sys/class/infiniband_verbs"
    port({verbs + "/abi_version": "6", verbs + "/uverbs0/ibdev": "mlx5_0", verbs + "/uverbs1/ibdev": "mlx5_1"})
    assert collect("rdma", ["device_files"])["rdma.device_files"] == {"value": {}}
    port({"/dev/infiniband/uverbs0": ""})
    assert collect("rdma", ["device_files"])["rdma.device_files"] == {"value": {"mlx5_0": "/dev/infiniband/uverbs0"}}


def test_the_counters_of_efa_are_read(port, collect):
    port({PORT + "/hw_counters/retrans_timeout_events": "3", PORT + "/hw_counters/roce_slow_restart": "4"})
    counted = collect("rdma", ["hw_counters"])["rdma.hw_counters"]["each"]["mlx5_0/1"]
    assert counted == {"value": {"retrans_timeout_events": 3, "roce_slow_restart": 4}}
