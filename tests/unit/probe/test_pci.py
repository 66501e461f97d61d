"""The PCI collector on planted devices: what it keeps, links, capabilities, error counters, IOMMU."""

import struct

import pytest

ROOT_PORT, UPSTREAM, DOWNSTREAM = "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"
GPU, NIC, DRIVE, SATA = "0000:19:00.0", "0000:1a:00.0", "0000:1b:00.0", "0000:00:17.0"
PATH = {
    ROOT_PORT: "/sys/devices/pci0000:15/" + ROOT_PORT,
    UPSTREAM: f"/sys/devices/pci0000:15/{ROOT_PORT}/{UPSTREAM}",
    DOWNSTREAM: f"/sys/devices/pci0000:15/{ROOT_PORT}/{UPSTREAM}/{DOWNSTREAM}",
    GPU: f"/sys/devices/pci0000:15/{ROOT_PORT}/{UPSTREAM}/{DOWNSTREAM}/{GPU}",
    NIC: f"/sys/devices/pci0000:1a/{NIC}",
    SATA: f"/sys/devices/pci0000:00/{SATA}",
}


def configuration(port=0, control=0x2810, acs=None, size=4096):
    """A configuration space: a power management capability, PCI Express behind it, AER and then ACS."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0, 0x10DE, 0x2335)
    struct.pack_into("<H", space, 6, 0x10)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes([0x01, 0x60])
    struct.pack_into("<BBHIH", space, 0x60, 0x10, 0, port << 4 | 2, 1, control)
    struct.pack_into("<I", space, 0x100, 0x148 << 20 | 1 << 16 | 0x0001)
    if acs is not None:
        struct.pack_into("<IHH", space, 0x148, 1 << 16 | 0x000D, 0x5F, acs)
    return bytes(space[:size])


@pytest.fixture
def bus(tree):
    def plant(*bdfs, **extra):
        for bdf in bdfs:
            kind = {GPU: "0x030200", NIC: "0x020700", DRIVE: "0x010802", SATA: "0x010601"}.get(bdf, "0x060400")
            folder = PATH.get(bdf, f"/sys/devices/pci0000:00/{bdf}")
            root = tree(
                {
                    f"{folder}/class": kind + "\n",
                    f"{folder}/vendor": ("0x10de" if bdf == GPU else "0x15b3") + "\n",
                    f"{folder}/device": "0x2335\n",
                    f"{folder}/numa_node": "1\n",
                    f"/sys/bus/pci/devices/{bdf}": f"-> ../../../..{folder}",
                    **{f"{folder}/{name}": text for name, text in extra.get("files", {}).items()},
                }
            )
            (root / folder[1:] / "config").write_bytes(extra.get("config", configuration()))
        return tree

    return plant


def test_only_devices_that_matter_and_their_bridges_are_kept(bus, collect):
    bus(ROOT_PORT, UPSTREAM, DOWNSTREAM, GPU, SATA, "0000:00:1c.0")
    devices = collect("pci")["pci.devices"]["value"]
    assert list(devices) == [ROOT_PORT, UPSTREAM, DOWNSTREAM, GPU]
    assert devices[GPU]["parents"] == [ROOT_PORT, UPSTREAM, DOWNSTREAM]
    assert devices[DOWNSTREAM]["parents"] == [ROOT_PORT, UPSTREAM]
    assert (devices[GPU]["vendor"], devices[GPU]["device"], devices[GPU]["class"]) == ("10de", "2335", "0302")
    assert devices[GPU]["numa_node"] == 1


def test_the_data_direct_function_of_a_card_is_kept_whatever_its_class(bus, collect):
    plant = bus(ROOT_PORT, SATA)
    folder = PATH[SATA]
    plant({folder + "/device": "0x2100\n"})
    assert SATA in collect("pci")["pci.devices"]["value"]
    plant({folder + "/vendor": "0x8086\n"})
    assert SATA not in collect("pci")["pci.devices"]["value"]


def test_gpus_are_nvidia_devices_only(bus, collect):
    bus(GPU, NIC)
    assert collect("pci")["pci.gpus"] == {"value": [GPU]}


def test_without_gpus_the_list_is_empty_without_pci_absent(bus, tree, collect):
    tree({"/proc/": None})
    assert collect("pci")["pci.gpus"] == {"absent": "no PCI bus on this host"}
    bus(NIC)
    assert collect("pci")["pci.gpus"] == {"value": []}


def test_a_link_has_speed_and_width_and_unknown_ones_are_null(bus, collect):
    bus(
        GPU,
        files={
            "current_link_speed": "2.5 GT/s PCIe\n",
            "current_link_width": "16\n",
            "max_link_speed": "32.0 GT/s PCIe\n",
            "max_link_width": "16\n",
        },
    )
    bus(NIC, files={"current_link_speed": "Unknown\n", "current_link_width": "0\n", "max_link_width": "255\n"})
    devices = collect("pci")["pci.devices"]["value"]
    assert [devices[GPU][key] for key in ("link_speed_gts", "link_width", "max_link_speed_gts", "max_link_width")] == [
        2.5,
        16,
        32.0,
        16,
    ]
    assert [devices[NIC][key] for key in ("link_speed_gts", "link_width", "max_link_speed_gts", "max_link_width")] == [
        None
    ] * 4


def test_driver_iommu_and_virtual_function_come_from_links(bus, collect):
    tree = bus(GPU, NIC)
    tree(
        {
            "/sys/kernel/iommu_groups/42/type": "DMA-FQ\n",
            "/sys/class/iommu/dmar0/": None,
            PATH[GPU] + "/iommu_group": "-> ../../../kernel/iommu_groups/42",
            PATH[GPU] + "/driver": "-> ../../bus/pci/drivers/nvidia",
            PATH[NIC] + "/physfn": "-> .",
        }
    )
    facts = collect("pci")
    assert facts["pci.devices"]["value"][GPU]["driver"] == "nvidia"
    assert facts["pci.devices"]["value"][GPU]["iommu_group"] == 42
    assert facts["pci.devices"]["value"][NIC]["virtual_function"] is True
    assert facts["pci.iommu.domains"]["each"] == {GPU: {"value": "DMA-FQ"}, NIC: {"absent": "in no IOMMU group"}}
    assert facts["pci.iommu.units"] == {"value": ["dmar0"]}


def test_the_largest_bar_counts(bus, collect):
    bus(
        GPU,
        files={
            "resource": "0x104002000000 0x104002ffffff 0x14220c\n0x0 0x0 0x0\n0x100000000000 0x103fffffffff 0x14220c\n"
        },
    )
    assert collect("pci")["pci.gpu_bar_mib"]["each"][GPU] == {"value": 262144}


def test_settings_come_from_the_capabilities(bus, collect):
    bus(NIC, config=configuration(control=0x5930))
    assert collect("pci")["pci.config"]["each"][NIC] == {
        "value": {
            "port": "endpoint",
            "max_payload": 256,
            "max_payload_able": 256,
            "max_read_request": 4096,
            "relaxed_ordering": True,
        }
    }


def test_access_control_bits_are_named_for_bridges(bus, collect):
    bus(ROOT_PORT, UPSTREAM, GPU)
    bus(DOWNSTREAM, config=configuration(port=6, acs=0x1D))
    acs = collect("pci")["pci.acs"]["each"]
    assert acs[DOWNSTREAM] == {
        "value": {"port": "downstream", "enabled": ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]}
    }
    assert acs[UPSTREAM] == {"absent": "no access control services"}
    assert GPU not in acs


def test_without_root_the_capabilities_are_unread_and_not_absent(bus, collect):
    bus(ROOT_PORT, UPSTREAM, DOWNSTREAM, GPU, config=configuration(size=64))
    facts = collect("pci")
    assert "needs root" in facts["pci.config"]["each"][GPU]["unread"]
    assert "needs root" in facts["pci.acs"]["each"][DOWNSTREAM]["unread"]
    assert facts["pci.answers"]["each"][GPU] == {"value": True}


def test_a_device_without_extended_space_has_no_access_control(bus, collect):
    bus(ROOT_PORT, UPSTREAM, DOWNSTREAM, GPU, config=configuration(port=6, size=256))
    assert "absent" in collect("pci")["pci.acs"]["each"][DOWNSTREAM]


def test_a_device_that_fell_off_the_bus_does_not_answer(bus, collect):
    bus(GPU, config=b"\xff" * 256)
    facts = collect("pci")
    assert facts["pci.answers"]["each"][GPU] == {"value": False}
    assert facts["pci.config"]["each"][GPU] == {"unread": "the device does not answer"}


def test_a_virtual_function_answers_though_its_numbers_are_ones(bus, collect):
    bus(NIC, config=b"\xff\xff\xff\xff" + configuration()[4:])
    facts = collect("pci")
    assert facts["pci.answers"]["each"][NIC] == {"value": True}
    assert facts["pci.config"]["each"][NIC]["value"]["port"] == "endpoint"


@pytest.mark.parametrize("endless", [0x100, 0x148])
def test_a_capability_list_that_runs_in_circles_ends(bus, collect, endless):
    space = bytearray(configuration())
    struct.pack_into("<I", space, 0x100, endless << 20 | 1 << 16 | 0x0001)
    struct.pack_into("<I", space, 0x148, 0x100 << 20 | 1 << 16 | 0x0002)
    space[0x40:0x42] = bytes([0x01, 0x40])
    bus(GPU, config=bytes(space))
    assert "absent" in collect("pci")["pci.config"]["each"][GPU]


def test_error_counters_are_read_in_old_and_new_spelling(bus, collect):
    bus(
        GPU,
        files={
            "aer_dev_correctable": "RxErr 2\nBadTLP 0\nTOTAL_ERR_COR 2\n",
            "aer_dev_nonfatal": "CmpltTO 1\nTOTAL_ERR_NONFATAL 1\n",
            "aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0\n",
        },
    )
    bus(NIC, files={"aer_dev_correctable": "Receiver Error 7\nReplay Timer Timeout 0\nTOTAL_ERR_COR 7\n"})
    bus(DRIVE)
    counted = collect("pci")["pci.aer"]["each"]
    assert counted[GPU] == {"value": {"correctable": {"RxErr": 2}, "nonfatal": {"CmpltTO": 1}, "fatal": {}}}
    assert counted[NIC] == {"value": {"correctable": {"Receiver Error": 7}}}
    assert DRIVE not in counted


def test_the_aspm_policy_is_the_bracketed_one(bus, collect):
    bus(NIC)({"/sys/module/pcie_aspm/parameters/policy": "default performance [powersave] powersupersave\n"})
    assert collect("pci")["pci.aspm_policy"] == {"value": "powersave"}
