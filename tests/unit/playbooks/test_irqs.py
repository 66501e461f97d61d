"""Where interrupts go. The kernel's files are planted here; the machines of tests/machines have real ones."""

import os
import shutil
import socket
import struct
import subprocess
import sys

import pytest
from nodetune_host.resources import irqs

NIC, GPU, DISK, BRIDGE = "0x020000", "0x030200", "0x010802", "0x060400"


class Tree:
    """A host's files: two sockets of four cores with two threads each, CPUs 0-3 and 8-11 on the first."""

    def __init__(self, root):
        self.root = root
        self.next_irq = 30
        self.write("cpu/online", "0-15")
        for cpu in range(16):
            self.write(f"cpu/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 8},{cpu % 8 + 8}")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text + "\n")

    def device(self, bdf, kind, vectors, *, local="0-3,8-11", driver="mlx5_core", vendor="0x15b3"):
        self.write(f"pci/{bdf}/class", kind)
        self.write(f"pci/{bdf}/vendor", vendor)
        self.write(f"pci/{bdf}/local_cpulist", local)
        (self.root / f"pci/{bdf}/driver").symlink_to(f"/drivers/{driver}")
        made = range(self.next_irq, self.next_irq + vectors)
        self.next_irq += vectors
        for irq in made:
            self.write(f"pci/{bdf}/msi_irqs/{irq}", "msix")
            self.write(f"irq/{irq}/smp_affinity_list", "0-15")
            self.write(f"actions/{irq}/actions", f"{driver}@{irq}")
        return list(made)

    def now(self, irq):
        return (self.root / f"irq/{irq}/smp_affinity_list").read_text().strip()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name, folder in (("PCI", "pci"), ("CPUS", "cpu"), ("IRQS", "irq"), ("ACTIONS", "actions")):
        monkeypatch.setattr(irqs, name, str(tmp_path / folder))
    return Tree(tmp_path)


def places():
    return irqs.wanted({}, irqs.read({}))


def test_queues_go_to_near_cores_and_to_second_threads_last(tree):
    tree.device("0000:3b:00.0", NIC, 9)
    assert places() == {"0000:3b:00.0": ["0", "1", "2", "3", "8", "9", "10", "11", "0"]}


def test_devices_on_one_node_do_not_pile_up_on_its_first_cores(tree):
    tree.device("0000:3b:00.0", NIC, 3)
    tree.device("0000:3c:00.0", GPU, 2, driver="nvidia", vendor="0x10de")
    tree.device("0000:af:00.0", NIC, 2, local="4-7,12-15")
    assert places() == {"0000:3b:00.0": ["0", "1", "2"], "0000:3c:00.0": ["3", "8"], "0000:af:00.0": ["4", "5"]}


@pytest.mark.parametrize("name", ["isolated", "nohz_full"])
def test_cpus_that_are_set_apart_get_no_interrupts(tree, name):
    tree.write(f"cpu/{name}", "1-3,9-11")
    tree.device("0000:3b:00.0", NIC, 3)
    assert places() == {"0000:3b:00.0": ["0", "8", "0"]}


def test_a_card_whose_near_cpus_are_all_offline_gets_others(tree):
    tree.write("cpu/online", "0-3")
    tree.device("0000:af:00.0", NIC, 2, local="4-7")
    assert places() == {"0000:af:00.0": ["0", "1"]}


def test_only_interrupts_of_gpus_and_adapters_are_moved(tree):
    tree.device("0000:01:00.0", DISK, 4, driver="nvme")
    tree.device("0000:02:00.0", BRIDGE, 1, driver="pcieport")
    tree.device("0000:03:00.0", GPU, 1, driver="ast", vendor="0x1a03")
    tree.device("0000:04:00.0", NIC, 1, driver="vfio-pci")
    assert irqs.read({}) == {}


def test_unused_and_managed_vectors_are_left_alone(tree):
    first, second, third = tree.device("0000:3b:00.0", NIC, 3)
    tree.write(f"actions/{second}/actions", "")
    (tree.root / f"irq/{third}/smp_affinity_list").chmod(0o444)
    assert places() == {"0000:3b:00.0": ["0"]}
    irqs.put({}, places())
    assert [tree.now(irq) for irq in (first, second, third)] == ["0", "0-15", "0-15"]


def test_done_again_it_changes_nothing_and_it_can_be_undone(tree):
    vectors = tree.device("0000:3b:00.0", NIC, 2)
    before = irqs.read({})
    irqs.put({}, places())
    assert irqs.read({}) == places() == {"0000:3b:00.0": ["0", "1"]}
    irqs.put({}, before)
    assert {tree.now(irq) for irq in vectors} == {"0-15"}


def test_more_interrupts_since_are_no_change_by_others_if_they_are_placed_too(tree):
    tree.device("0000:3b:00.0", NIC, 2)
    left = places()
    more = tree.device("0000:86:00.0", NIC, 1)
    assert not irqs.moved_by_kernel(left, irqs.read({}))
    irqs.put({}, places())
    assert irqs.moved_by_kernel(left, irqs.read({}))
    tree.write(f"irq/{more[0]}/smp_affinity_list", "7")
    assert not irqs.moved_by_kernel(left, irqs.read({}))


def test_a_device_that_went_is_told(tree):
    tree.device("0000:3b:00.0", NIC, 1)
    with pytest.raises(irqs.ChangeError, match=r"0000:ff:00\.0 is gone"):
        irqs.put({}, {"0000:ff:00.0": ["0"]})


def test_a_host_without_pci_has_nothing_to_place(tree):
    assert places() == {}


def test_the_diff_names_card_and_interrupt(tree):
    tree.device("0000:3b:00.0", NIC, 1)
    tree.write("pci/0000:3b:00.0/net/ens2/mtu", "1500")
    assert irqs.show({}, places()) == "0000:3b:00.0 ens2 interrupt 1: 0\n"


def event(number):
    """What netlink sends about the link of that number."""
    return struct.pack("=IHHIIBBHi", 32, 16, 0, 0, 0, 0, 0, 1, number)


def test_new_cards_are_noticed_and_container_links_are_not(tree, monkeypatch):
    monkeypatch.setattr(irqs, "LINKS", str(tree.root / "net"))
    tree.write("net/ens2/device/class", NIC)
    tree.write("net/ens2/ifindex", "2")
    tree.write("net/veth1/ifindex", "7")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        for number in (7, 7, 2, 7):
            theirs.send(event(number))
        irqs.wait_for_card(ours)
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_gpus_that_are_opened_later_are_looked_for_unasked(tree, monkeypatch):
    monkeypatch.setattr(irqs, "LINKS", str(tree.root / "net"))
    tree.write("net/veth1/ifindex", "7")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        irqs.wait_for_card(ours, seconds=0.01)
        theirs.send(event(7))
        irqs.wait_for_card(ours, seconds=0.01)


def test_the_kernel_tells_of_links_in_the_form_looked_for():
    code = (
        f"import socket, subprocess, sys\nsys.path[:0] = {sys.path!r}\nfrom nodetune_host.resources import irqs\n"
        "events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)\n"
        "events.bind((0, irqs.RTMGRP_LINK))\n"
        "events.settimeout(60)\n"
        "subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)\n"
        "print(irqs.HEAD.unpack_from(events.recv(65536))[-1] == socket.if_nametoindex('lo'))\n"
    )
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if (
        not all(map(shutil.which, ("ip", "unshare")))
        or subprocess.run([*alone, "true"], capture_output=True).returncode
    ):
        pytest.skip("needs iproute2 and the right to make a network namespace")
    assert subprocess.check_output([*alone, sys.executable, "-c", code], text=True) == "True\n"
