"""A device is found by any of its names, and shown by its index and address."""

import pytest

from nodetune.api.model import Each, Finding, HostFacts, Unread, Value
from nodetune.audit import devices

GPUS = {f"GPU{number}": f"0000:{number}1:00.0" for number in range(8)}
FACTS = HostFacts(
    "node",
    {
        "gpu.bdf": Each({gpu: Value(bdf) for gpu, bdf in GPUS.items()}),
        "gpu.uuid": Each({"GPU3": Value("GPU-3\x1b[31m")}),
        "rdma.ports": Value({"mlx5_2/1": {"bdf": "0000:4f:00.0", "netdev": "ens1"}, "odd": "text"}),
        "net.links": Value({"ens1": {"bdf": "0000:4f:00.0"}, "eno1": {"bdf": "0000:02:00.0"}, "lo": {"bdf": None}}),
        "block.nvme": Value({"nvme0": {"bdf": ".."}, "nvme1": {"bdf": "0000:82:00.0"}}),
    },
)
EVERY = tuple(devices.of_host(FACTS))


@pytest.mark.parametrize(
    ("subject", "shown", "key"),
    [
        ("GPU3", "GPU3 0000:31:00.0", "0000:31:00.0"),
        ("0000:31:00.0", "GPU3 0000:31:00.0", "0000:31:00.0"),
        ("mlx5_2/1", "mlx5_2/1 0000:4f:00.0", "0000:4f:00.0"),
        ("ens1", "ens1 0000:4f:00.0", "0000:4f:00.0"),
        ("nvme0", "nvme0", "nvme0"),
        ("login sessions", "login sessions", "login sessions"),
    ],
)
def test_each_name_of_a_device_leads_to_it(subject, shown, key):
    names = devices.Names(EVERY)
    assert (names.shown(subject), names.key(subject)) == (shown, key)


def test_a_host_cannot_name_a_device_in_colour():
    (gpu,) = devices.named([Finding("x", "fail", "low", subjects={"GPU3": "hot"})], FACTS)
    assert gpu.uuid == "GPU-3\\x1b[31m"


def test_many_devices_are_a_run_of_numbers_unless_to_be_repaired():
    seen = dict.fromkeys(GPUS, "off")
    assert devices.folded(seen, EVERY) == "GPU0-7: off"
    assert devices.folded(seen, EVERY, each=True).startswith("GPU0 0000:01:00.0, GPU1 0000:11:00.0, ")


def test_two_subjects_of_one_device_both_stay():
    seen = {"GPU3": "lost", "0000:31:00.0": "Xid 79"}
    assert devices.folded(seen, EVERY) == "GPU3: lost · 0000:31:00.0: Xid 79"


def test_the_line_of_a_finding_has_check_device_and_value():
    found = Finding("gpu-lost", "fail", "critical", subjects={"GPU1": "GPU is lost"})
    assert devices.line(found, EVERY) == "gpu-lost: GPU1 0000:11:00.0: GPU is lost"


@pytest.mark.parametrize(
    ("on_bus", "address"),
    [
        (["0000:01:00.0", "0000:11:00.0"], "0000:11:00.0"),
        (["0000:01:00.0", "0000:11:00.0", "0000:21:00.0"], None),
        (["0000:01:00.0", "0000:11:00.0", "0000:99:00.0"], "0000:11:00.0"),
        (["0000:01:00.0"], None),
    ],
    ids=["one is left", "two are left", "a virtual machine has the other", "it has left the bus"],
)
def test_a_lost_gpu_has_the_address_that_no_other_has(on_bus, address):
    facts = {
        "gpu.bdf": Each({"GPU0": Value("0000:01:00.0"), "GPU1": Unread("GPU is lost")}),
        "gpu.access": Each({"GPU0": Value("ok"), "GPU1": Value("GPU is lost")}),
        "pci.gpus": Value(on_bus),
        "pci.devices": Value({"0000:99:00.0": {"driver": "vfio-pci"}, "0000:11:00.0": {"driver": "nvidia"}}),
    }
    found = {each.name: each.address for each in devices.of_host(HostFacts("node", facts))}
    assert found.get("GPU1") == address
