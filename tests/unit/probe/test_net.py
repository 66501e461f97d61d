"""What the network collector makes of /sys/class/net, and of what drivers answer."""

import errno
import struct

import pytest

from nodetune.probe import ethtool

NIC = "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"
DATA = "/sys/class/net/dat0"
ROUTES = """\
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
dat0\t00000000\t010200C0\t0003\t0\t0\t200\t00000000\t0\t0\t0
mgt0\t00000000\t013364C6\t0003\t0\t0\t100\t00000000\t0\t0\t0
dat0\t000200C0\t00000000\t0001\t0\t0\t200\t00FFFFFF\t0\t0\t0
dat1\t000200C0\t00000000\t0001\t0\t0\t201\t00FFFFFF\t0\t0\t0
dat0\t0A0200C0\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
"""


def link(name, device=None, **attributes):
    files = {f"/sys/class/net/{name}/{key}": str(text) for key, text in {"type": 1, "mtu": 1500, **attributes}.items()}
    return {**files, **({f"/sys/class/net/{name}/device": f"-> {device}"} if device else {})}


@pytest.fixture
def host(tree):
    """One 100 Gb/s port on node 1, its folder in the device tree linked from the class."""
    root = tree({})
    device = str(root) + NIC
    tree(
        {
            NIC + "/numa_node": "1",
            NIC + "/local_cpulist": "32-63,96-127",
            NIC + "/driver": "-> ../../../../bus/pci/drivers/mlx5_core",
            **link("dat0", device, mtu=9000, speed=100000, duplex="full", carrier=1, carrier_changes=2),
            **{
                f"{DATA}/statistics/{name}": str(count) for name, count in (("rx_packets", 50), ("rx_missed_errors", 3))
            },
        }
    )
    return tree


@pytest.mark.usefixtures("host")
def test_a_port_tells_speed_driver_address_and_node(collect):
    assert collect("net")["net.links"]["value"]["dat0"] == {
        "speed_mbps": 100000,
        "duplex": "full",
        "physical": True,
        "mtu": 9000,
        "driver": "mlx5_core",
        "bdf": "0000:18:00.0",
        "numa_node": 1,
        "up": True,
        "type": "ethernet",
        "master": None,
        "virtual_function": False,
    }


def test_counters_and_local_cpus_are_of_links_with_a_device_only(host, collect):
    host(link("lo", type=772, carrier=1))
    facts = collect("net")
    assert facts["net.links"]["value"]["lo"]["type"] == "loopback"
    assert facts["net.carrier_changes"] == {"each": {"dat0": {"value": 2}}}
    assert facts["net.local_cpus"] == {"each": {"dat0": {"value": 64}}}
    assert facts["net.statistics"] == {"each": {"dat0": {"value": {"rx_packets": 50, "rx_missed_errors": 3}}}}


@pytest.mark.parametrize("speed", ["-1", "4294967295", "0", ""])
def test_a_speed_that_the_driver_does_not_know_is_none(tree, collect, speed):
    tree(link("dat0", speed=speed, carrier=1))
    assert collect("net")["net.links"]["value"]["dat0"]["speed_mbps"] is None


def test_a_link_that_is_down_has_no_speed_and_is_not_up(tree, collect):
    tree(link("dat0"))  # reading speed and carrier of such a link fails with EINVAL
    seen = collect("net")["net.links"]["value"]["dat0"]
    assert (seen["speed_mbps"], seen["up"], seen["duplex"]) == (None, False, None)


def test_a_bond_is_no_physical_link_and_its_members_name_it(host, collect):
    host({**link("bond0", carrier=1), DATA + "/master": "-> ../bond0"})
    links = collect("net")["net.links"]["value"]
    assert links["bond0"]["physical"] is False
    assert links["dat0"]["master"] == "bond0"


def test_the_address_of_a_link_is_the_one_that_the_kernel_gives(tree, collect):
    tree(
        {
            "/sys/class/net/lo/type": "772",
            "/sys/class/net/lo/mtu": "65536",
            "/sys/class/net/lo/device/vendor": "",
            "/sys/class/net/none0/type": "1",
            "/sys/class/net/none0/mtu": "1500",
            "/sys/class/net/none0/device/vendor": "",
        }
    )
    assert collect("net", ["addresses"])["net.addresses"]["each"] == {
        "lo": {"value": "127.0.0.1"},
        "none0": {"absent": "no IPv4 address"},
    }


def test_a_file_in_the_class_folder_is_no_link(tree, collect):
    tree({"/sys/class/net/bonding_masters": "bond0\n"})
    assert collect("net")["net.links"] == {"value": {}}


def test_the_representor_of_a_virtual_function_is_not_physical(host, collect):
    root = host({})
    host(link("rep0", str(root) + NIC, phys_port_name="pf0vf3"))
    assert collect("net")["net.links"]["value"]["rep0"]["physical"] is False


def test_a_virtio_port_has_the_address_of_its_function(tree, collect):
    root = tree({})
    device = f"{root}/sys/devices/pci0000:00/0000:00:03.0/virtio1"
    tree({device.removeprefix(str(root)) + "/uevent": "", **link("dat0", device, carrier=1)})
    assert collect("net")["net.links"]["value"]["dat0"]["bdf"] == "0000:00:03.0"


def test_a_usb_port_has_no_pci_address(tree, collect):
    root = tree({})
    device = f"{root}/sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0"
    tree({device.removeprefix(str(root)) + "/uevent": "", **link("usb0", device, carrier=1)})
    assert collect("net")["net.links"]["value"]["usb0"]["bdf"] is None


def test_subnets_name_their_links_once_and_leave_out_host_routes(tree, collect):
    tree({"/proc/net/route": ROUTES})
    facts = collect("net")
    assert facts["net.subnets"] == {"value": {"192.0.2.0/24": ["dat0", "dat1"]}}
    assert facts["net.default_interface"] == {"value": "mgt0"}


def test_filters_are_read_for_links_with_a_subnet_and_for_all(tree, collect):
    names = [
        (name, key) for name in ("all", "dat0", "dat1", "veth9") for key in ("rp_filter", "arp_ignore", "arp_announce")
    ]
    tree({"/proc/net/route": ROUTES, **{f"/proc/sys/net/ipv4/conf/{name}/{key}": "2" for name, key in names}})
    conf = collect("net")["net.ipv4_conf"]["value"]
    assert sorted(conf) == ["all", "dat0", "dat1"]
    assert conf["dat1"] == {"rp_filter": 2, "arp_ignore": 2, "arp_announce": 2}


def test_a_host_without_routes_has_no_default_interface(tree, collect):
    tree({"/proc/net/route": ROUTES.splitlines()[0] + "\n"})
    assert "absent" in collect("net")["net.default_interface"]


def test_refusals_of_the_neighbour_table_are_summed_over_cpus(tree, collect):
    tree(
        {
            "/proc/net/stat/arp_cache": "entries allocs table_fulls\n00000010 00000001 00000002\n00000010 00000001 0000001a\n"
        }
    )
    assert collect("net")["net.neighbours"] == {"value": {"entries": 16, "table_fulls": 28}}


@pytest.mark.usefixtures("host")
def test_drivers_are_asked_only_for_what_is_wanted(collect):
    assert "net.rings" not in collect("net")
    asked = collect("net", ["rings", "dcb"])
    # no link of this name exists for the kernel
    assert asked["net.rings"] == {"each": {"dat0": {"absent": "the driver does not support this"}}}
    assert asked["net.dcb"] == {"each": {"dat0": {"absent": "the driver does not support this"}}}


def parsed(query, *words, rest=b""):
    command, size, parse = ethtool.QUERIES[query]
    data = struct.pack(f"={len(words) + 1}I", command, *words) + rest
    assert len(data) == size, "the kernel's structure"
    return parse(data)


def test_ring_sizes_stand_at_their_places_in_the_structure():
    assert parsed("rings", 8192, 0, 0, 4096, 1024, 0, 0, 512) == {"rx_max": 8192, "tx_max": 4096, "rx": 1024, "tx": 512}


def test_queue_counts_stand_at_their_places_in_the_structure():
    assert parsed("channels", 1, 2, 3, 63, 0, 0, 1, 32) == {
        "rx_max": 1,
        "tx_max": 2,
        "combined_max": 63,
        "rx": 0,
        "tx": 0,
        "combined": 32,
    }


def test_moderation_and_pause_are_truth_values():
    seen = parsed("coalescing", 8, 128, 0, 0, 16, 64, 0, 0, 0, 1, 0, *[0] * 11)
    assert (seen["rx_usecs"], seen["tx_frames"], seen["adaptive_rx"], seen["adaptive_tx"]) == (8, 64, True, False)
    assert parsed("pause", 0, 1, 0) == {"autoneg": False, "rx": True, "tx": False}


def test_driver_texts_end_at_their_zero_byte():
    texts = b"".join(
        text.ljust(32, b"\0") for text in (b"mlx5_core", b"6.8.0", b"28.43.2026 (MT_0000000838)", b"0000:18:00.0")
    )
    assert parsed("driver_info", rest=texts + bytes(64)) == {
        "driver": "mlx5_core",
        "version": "6.8.0",
        "firmware": "28.43.2026 (MT_0000000838)",
        "bus": "0000:18:00.0",
    }


def test_the_drivers_own_counters_go_by_their_names(monkeypatch):
    names = [b"rx_packets", b"rx_discards_phy", b"tx_pause_storm_warning_events ", b"rx_prio3_buf_discard"]
    names += [b"tx_prio3_packets", b"tx_prio3_bytes", b"tx_vport_rdma_unicast_packets"]
    answers = {
        ethtool.SET_INFO: struct.pack("=IIQI", ethtool.SET_INFO, 0, 1 << ethtool.STATISTICS, 7),
        ethtool.STRINGS: bytes(12) + b"".join(name.ljust(32, b"\0") for name in names) + bytes(64),
        ethtool.COUNTS: bytes(8) + struct.pack("=7Q", 10**12, 7, 8, 2**40, 9, 10, 11) + bytes(64),
    }
    monkeypatch.setattr(ethtool, "_ioctl", lambda link, command, size, *words: answers[command])
    assert ethtool.ask_counters("dat0") == {
        "value": {
            "rx_discards_phy": 7,
            "tx_pause_storm_warning_events": 8,
            "rx_prio3_buf_discard": 2**40,
            "tx_prio3_packets": 9,
            "tx_vport_rdma_unicast_packets": 11,
        }
    }
    answers[ethtool.SET_INFO] = struct.pack("=IIQI", ethtool.SET_INFO, 0, 0, 0)
    assert "absent" in ethtool.ask_counters("dat0")


def test_a_link_without_counters_has_none():
    assert "absent" in ethtool.ask_counters("lo")
    assert "absent" in ethtool.ask_counters("no-such-link")


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EOPNOTSUPP, "absent"), (errno.ENODEV, "absent"), (errno.EPERM, "unread")]
)
def test_a_refusal_is_absent_only_where_there_is_nothing_to_tell(number, kind, monkeypatch):
    def refuse(*_):
        raise OSError(number, "refused")

    monkeypatch.setattr(ethtool, "_ioctl", refuse)
    assert kind in ethtool.ask("dat0", "rings")
    assert kind in ethtool.ask_counters("dat0")


def attribute(kind, content):
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def dcb_reply(mask, *entries):
    pfc = attribute(ethtool.DCB_ATTR_IEEE_PFC, bytes([8, mask, 0, 0]) + bytes(132))
    table = b"".join(attribute(1, struct.pack("=BBH", *entry)) for entry in entries)
    inside = pfc + attribute(ethtool.DCB_ATTR_IEEE_APP_TABLE | 0x8000, table)
    return attribute(ethtool.DCB_ATTR_IFNAME, b"dat0\0") + attribute(ethtool.DCB_ATTR_IEEE | 0x8000, inside)


def test_lossless_priorities_and_classes_are_parsed(monkeypatch):
    monkeypatch.setattr(ethtool, "_dcb_reply", lambda _: dcb_reply(0b1000, (5, 3, 26), (5, 6, 48), (1, 4, 0x8906)))
    assert ethtool.ask_dcb("dat0") == {"value": {"pfc": [3], "dscp_priority": {"26": 3, "48": 6}}}


def test_an_answer_without_pfc_is_absent(monkeypatch):
    monkeypatch.setattr(ethtool, "_dcb_reply", lambda _: attribute(ethtool.DCB_ATTR_IFNAME, b"dat0\0"))
    assert "absent" in ethtool.ask_dcb("dat0")
