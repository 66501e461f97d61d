"""What is found of nodetune's files, and of the .link files that ours hide."""

import hashlib

import pytest

NIC = "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"
DEFAULT = "/usr/lib/systemd/network/99-default.link"
KNOWN = f"E:ID_PATH=pci-0000:18:00.0\nE:ID_NET_NAME_MAC=enx0200000000ff\nE:ID_NET_LINK_FILE={DEFAULT}\nI:12\n"


def files(tree, collect, planted):
    tree(planted)
    return collect("own", ["files"])["own.files"]


def test_a_host_that_was_never_touched_has_none(tree, collect):
    assert files(tree, collect, {"/etc/sysctl.d/99-sysctl.conf": "a=1"}) == {"value": {}}


def test_our_files_are_found_wherever_their_kind_lives(tree, collect):
    ours = {
        "/etc/sysctl.d/zz-nodetune.conf": "vm.swappiness = 10\n",
        "/etc/udev/rules.d/99-zz-nodetune-block.rules": "",
        "/etc/systemd/system/slurmd.service.d/zz-nodetune.conf": "[Service]\n",
        "/etc/systemd/system/nodetune-cpu.service": "[Unit]\n",
        "/etc/systemd/logind.conf.d/zz-nodetune.conf": "[Login]\n",
        "/etc/nodetune/gpu.json": "{}\n",
        "/etc/tuned/nodetune/tuned.conf": "[main]\n",
        "/etc/tuned/profiles/nodetune/tuned.conf": "[main]\n",
    }
    others = {
        "/etc/tuned/site/tuned.conf": "x",
        "/etc/systemd/system/slurmd.service.d/override.conf": "x",
        "/etc/systemd/logind.conf": "x",
    }
    assert files(tree, collect, {**ours, **others}) == {"value": ours}


def test_no_file_is_read_without_end(tree, collect):
    found = files(tree, collect, {"/etc/sysctl.d/zz-nodetune.conf": "x" * 100_000})
    assert len(found["value"]["/etc/sysctl.d/zz-nodetune.conf"]) == 65536


@pytest.fixture
def link(tree, collect):
    """The fact of one network card, with files planted next to it."""

    def planted(known, more):
        root = tree({})
        card = {
            "/sys/class/net/eth0/ifindex": "2",
            "/sys/class/net/eth0/device": f"-> {root}{NIC}",
            NIC + "/vendor": "",
        }
        bridge = {"/sys/class/net/br0/ifindex": "3"}
        tree({**card, **bridge, **({"/run/udev/data/n2": known} if known else {}), **more})
        return collect("own", ["links"])["own.links"]["each"]

    return planted


def test_a_link_has_slot_address_and_matching_lines(link):
    text = "# c\n[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel\nMACAddressPolicy = persistent\n"
    assert link(KNOWN, {DEFAULT: text}) == {
        "eth0": {
            "value": {
                "id_path": "pci-0000:18:00.0",
                "mac_address": "02:00:00:00:00:ff",
                "file": DEFAULT,
                "sections": [["Link", [["NamePolicy", "keep kernel"], ["MACAddressPolicy", "persistent"]]]],
                "owner": {"by": "", "file": None, "line": None, "text": None},
            }
        }
    }


UUID = "0f1e2d3c-0000-4000-8000-000000000001"
KEYFILE = f"[connection]\nid=data\nuuid={UUID}\n\n[ethernet]\nmtu=1500\n"
INTERFACES = "source interfaces.d/*\nauto eth1\niface eth1 inet manual\n    mtu 9000\nauto eth0\niface eth0 inet static\n    address 192.0.2.1/24\n"


@pytest.mark.parametrize(
    ("more", "owner"),
    [
        ({"/run/systemd/netif/links/2": "ADMIN_STATE=unmanaged\n"}, ("", None, None, None)),
        (
            {
                "/run/systemd/netif/links/2": "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/20-data.network\n"
            },
            ("networkd", "/etc/systemd/network/20-data.network", None, None),
        ),
        (
            {
                "/run/NetworkManager/devices/2": f"[device]\nmanaged=true\nconnection-uuid={UUID}\n",
                "/etc/NetworkManager/system-connections/a.nmconnection": KEYFILE.replace("1\n", "2\n"),
                "/etc/NetworkManager/system-connections/data.nmconnection": KEYFILE,
            },
            ("NetworkManager", "/etc/NetworkManager/system-connections/data.nmconnection", 6, "mtu=1500"),
        ),
        (
            {
                "/run/NetworkManager/devices/2": f"[device]\nconnection-uuid={UUID}\n",
                "/etc/sysconfig/network-scripts/ifcfg-eth0": f'DEVICE=eth0\nUUID="{UUID}"\n',
            },
            ("NetworkManager", "/etc/sysconfig/network-scripts/ifcfg-eth0", None, None),
        ),
        (
            {"/run/NetworkManager/devices/2": f"[device]\nconnection-uuid={UUID}\n"},
            ("NetworkManager", None, None, None),
        ),
        ({"/etc/network/interfaces": INTERFACES}, ("ifupdown", "/etc/network/interfaces", None, None)),
        (
            {"/etc/network/interfaces": INTERFACES + "\tmtu 1500\nallow-hotplug eth2\n"},
            ("ifupdown", "/etc/network/interfaces", 8, "\tmtu 1500"),
        ),
        (
            {"/etc/network/interfaces.d/data": "iface eth0 inet static\n    mtu 1500\niface eth0 inet6 auto\n"},
            ("ifupdown", "/etc/network/interfaces.d/data", 2, "    mtu 1500"),
        ),
    ],
)
def test_who_sets_a_link_at_boot_and_the_line_of_its_mtu(link, more, owner):
    found = link(KNOWN, {DEFAULT: "", **more})["eth0"]["value"]["owner"]
    assert (found["by"], found["file"], found["line"], found["text"]) == owner


def test_drop_ins_of_the_file_that_holds_are_read_with_it(link):
    more = {
        DEFAULT: "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep\n",
        "/etc/systemd/network/99-default.link.d/10-mtu.conf": "[Link]\nMTUBytes=9000\n",
    }
    assert link(KNOWN, more)["eth0"]["value"]["sections"] == [
        ["Link", [["NamePolicy", "keep"]]],
        ["Link", [["MTUBytes", "9000"]]],
    ]


def test_a_link_that_udev_does_not_know_is_absent(link):
    assert link("", {}) == {"eth0": {"absent": "udev has no data for this link"}}


def test_a_link_file_that_is_gone_is_unread(link):
    assert DEFAULT in link(KNOWN, {})["eth0"]["unread"]


def test_programs_are_known_by_their_digests(tree, collect):
    there = "/usr/local/lib/nodetune/cpu"
    tree(
        {
            f"{there}/nodetune_host/__init__.py": "",
            f"{there}/nodetune_host/resources/cpu.py": "x = 1\n",
            f"{there}/nodetune_host/__pycache__/cpu.pyc": "made by Python",
        }
    )
    assert collect("own", ["programs"])["own.programs"] == {
        "value": {
            f"{there}/nodetune_host/__init__.py": hashlib.sha256(b"").hexdigest(),
            f"{there}/nodetune_host/resources/cpu.py": hashlib.sha256(b"x = 1\n").hexdigest(),
        }
    }


def test_a_host_without_programs_has_none(tree, collect):
    tree({"/etc/hostname": "gpu1\n"})
    assert collect("own", ["programs"]) == {"own.programs": {"value": {}}}
