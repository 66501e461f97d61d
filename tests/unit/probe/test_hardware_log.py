"""What the kernel logged of cards, ports and CPUs that failed.

The lines are those of the kernel's sources and of reports, mostly NVIDIA/NVSentinel (pkg/nicdriver, issue 1334).
"""

import pytest

FAILED = "mlx5_core 0000:41:00.0: poll_health:852:(pid 0): device's health compromised - reached miss count"
RECOVERED = "mlx5_core 0000:41:00.0: mlx5_health_try_recover:335:(pid 9): health recovery succeeded"
DPC = "pcieport 0000:30:03.0: DPC: containment event, status:0x0005 source:0x3400"
GONE = "pcieport 0000:89:02.0: pciehp: Slot(400): Card not present"
LINK_DOWN = "pcieport 0000:89:02.0: pciehp: Slot(400): Link Down"
BACK = "pcieport 0000:89:02.0: pciehp: Slot(400): Link Up"
NO_LINK = "pcieport 0000:89:02.0: pciehp: Slot(400): No link"
NIC_LINES = {
    FAILED: ("0000:41:00.0", "failed"),
    "mlx5_core 0000:41:00.1: poll_health:801:(pid 0): Fatal error 1 detected": ("0000:41:00.1", "failed"),
    "mlx5_core: probe of 0000:03:00.0 failed with error -22": ("0000:03:00.0", "refused"),
    "mlx5_core 0000:03:00.0: probe with driver mlx5_core failed with error -110": ("0000:03:00.0", "refused"),
    "ixgbe 0000:81:00.1: probe with driver ixgbe failed with error -5": ("0000:81:00.1", "refused"),
    "igb: probe of 0001:02:00.0 failed with error -5": ("0001:02:00.0", "refused"),
    "mlx5_core 0000:03:00.0: mlx5_load_one failed with error code -22": ("0000:03:00.0", "refused"),
    "mlx5_core 0000:3b:00.0: mlx5_function_enable:1217:(pid 7): Firmware over 120000 MS in pre-initializing state, aborting": (
        "0000:3b:00.0",
        "refused",
    ),
    "r8169 0000:06:00.0: error -ENODEV: unknown chip XID 688, contact r8169 maintainers": ("0000:06:00.0", "refused"),
    "[qed_probe:506()]init pci failed": ("qed", "refused"),
    "[qed_init_pci:290()]No memory region found in bar #0": ("qed", "refused"),
    "mlx5_core 0000:d2:00.0: poll_health:825: device's health compromised - reached miss count.": (
        "0000:d2:00.0",
        "failed",
    ),
    "mlx5_core 0000:41:00.0: print_health_info:458:(pid 0): synd 0x8: unrecoverable hardware error": (
        "0000:41:00.0",
        "failed",
    ),
    "mlx5_core 0000:03:00.0: wait_func:964:(pid 112): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource": (
        "0000:03:00.0",
        "failed",
    ),
    "mlx5_core 0000:03:00.0: cb_timeout_handler:882:(pid 7): cmd[3]: CREATE_MKEY(0x200) Async, timeout. Will cause a leak of a"
    " command resource": ("0000:03:00.0", "failed"),
    "infiniband rdmap0s6: Admin queue is closed": ("rdmap0s6", "failed"),
    "mlx5_core: INFO: synd 0x8: unrecoverable hardware error.": ("mlx5_core", "failed"),
    "efa 0000:00:06.0 rdmap0s6: Admin queue is closed": ("0000:00:06.0", "failed"),
    "efa 0000:00:06.0: Wait for completion (polling) timeout": ("0000:00:06.0", "failed"),
    "infiniband rdmap16s27: The device didn't send any completion for admin cmd CREATE_QP(6) status 0 (ctx 0x000000001d2f9d31,"
    " sq producer: 12, sq consumer: 11, cq consumer: 11)": ("rdmap16s27", "failed"),
    "efa 0000:00:06.0: Reset indication didn't turn off": ("0000:00:06.0", "failed"),
    "efa 0000:00:06.0: Device isn't ready, abort com init": ("0000:00:06.0", "failed"),
    "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature": (
        "0000:5c:00.0",
        "hot",
    ),
    "mlx5_core 0002:01:00.0: mlx5_pcie_event:326:(pid 3202): Detected insufficient power on the PCIe slot (27W).": (
        "0002:01:00.0",
        "disturbed",
    ),
    "mlx5_core 0000:18:00.0 ens1f0np0: TX timeout detected": ("0000:18:00.0", "disturbed"),
    "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out": ("eth0", "disturbed"),
    "virtio_net virtio0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5376 ms": ("virtio0", "disturbed"),
    "bnxt_en 0000:18:00.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5376 ms": (
        "0000:18:00.0",
        "disturbed",
    ),
}
HARMLESS = (
    "mlx5_core 0000:03:00.0: firmware version: 28.45.4028",
    "mlx5_core 0000:41:00.1: Port module event: module 1, Cable unplugged",
    "mlx5_core 0000:03:00.0: cmd[3]: CREATE_MKEY(0x200) recovered after timeout",
    "mlx5_core 0000:03:00.0: print_health_info:458:(pid 0): synd 0x1: firmware internal error",
    "ena 0000:00:05.0 eth0: Admin queue is closed",
    "nvidia: probe of 0000:3b:00.0 failed with error -1",
    "mlx5_core 0000:03:00.0: handle_hca_cap failed",
    "INFO: task igb: probe of 0001:02:00.0 failed with error -5:7 blocked for more than 120 seconds.",
    "infiniband mlx5_0: Wait for completion (polling) timeout",
    "INFO: task mlx5_core 0000:03:00.0: TX timeout detected:7 blocked for more than 120 seconds.",
    "python3[12]: " + FAILED,
)


@pytest.fixture
def logged(tree, collect):
    """Facts of a kernel log with these messages, one second apart; `priority` 14 is that of a program."""

    def run(*messages, priority=3):
        lines = [f"{priority},{at},{at * 1000000},-;{text}\n" for at, text in enumerate(messages)]
        tree({"/dev/kmsg": "".join(lines)})
        return {name: fact["value"] for name, fact in collect("kernel_log").items()}

    return run


@pytest.mark.parametrize("line", NIC_LINES)
def test_a_message_of_a_failing_card_names_card_and_kind(logged, line):
    ((device, (found,)),) = logged(line)["kernel_log.nics"].items()
    assert (device, found["kind"]) == NIC_LINES[line]
    assert found["text"] in line


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_message_is_no_fault_of_a_card(logged, line):
    assert logged(line)["kernel_log.nics"] == {}


def test_what_a_program_writes_is_no_fault_of_hardware(logged):
    lines = [
        *NIC_LINES,
        DPC,
        GONE,
        "watchdog: BUG: soft lockup - CPU#94 stuck for 226906s!",
        "EDAC MC0: 1 UE on DIMM_B2",
    ]
    assert logged(*lines, priority=14) == logged()


def test_a_card_that_its_driver_takes_later_was_not_refused(logged):
    refused = "mlx5_core 0000:41:00.0: probe with driver mlx5_core failed with error -110"
    taken = "mlx5_core 0000:41:00.0: firmware version: 28.45.4028"
    assert logged(taken, refused, taken)["kernel_log.nics"] == {}
    assert len(logged(taken, refused)["kernel_log.nics"]) == 1


def test_a_card_that_recovered_has_no_fault(logged):
    assert logged(FAILED, RECOVERED)["kernel_log.nics"] == {}
    again = "mlx5_core 0000:41:00.0: firmware version: 28.45.4028"
    assert logged(FAILED, again)["kernel_log.nics"] == {}
    queue = "mlx5_core 0000:18:00.0 eth0: "
    assert logged(queue + "TX timeout detected", queue + "Recovered 2 eqes on EQ 0x1c")["kernel_log.nics"] == {}
    assert len(logged(RECOVERED, FAILED)["kernel_log.nics"]) == 1


def test_a_flood_of_one_card_hides_no_other_card(logged):
    found = logged(FAILED, *["infiniband rdmap0s6: Admin queue is closed"] * 100)["kernel_log.nics"]
    assert {
        card: [(each["times"], each["first"], each["time"]) for each in events] for card, events in found.items()
    } == {
        "0000:41:00.0": [(1, 0.0, 0.0)],
        "rdmap0s6": [(100, 1.0, 100.0)],
    }


@pytest.mark.parametrize(
    ("line", "cpu", "seconds"),
    [
        ("watchdog: BUG: soft lockup - CPU#94 stuck for 226906s! [swapper/94:0]", 94, 226906),
        ("NMI watchdog: BUG: soft lockup - CPU#113 stuck for 22s! [kopald:854]", 113, 22),
        ("BUG: soft lockup - CPU#1 stuck for 67s! [events/1:36]", 1, 67),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 2", 2, None),
        ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", 3, None),
    ],
)
def test_a_locked_cpu_is_told_with_its_number(logged, line, cpu, seconds):
    assert logged(line)["kernel_log.lockups"] == [{"time": 0.0, "cpu": cpu, "seconds": seconds}]


@pytest.mark.parametrize(
    ("line", "port", "kind"),
    [
        (DPC, "0000:30:03.0", "cut off"),
        (
            "pcieport 0000:00:01.4: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected",
            "0000:00:01.4",
            "cut off",
        ),
        (GONE, "0000:89:02.0", "gone"),
        ("dpc 0000:10:01.2:pcie010: DPC containment event, status:0x1f01 source:0x0000", "0000:10:01.2", "cut off"),
        ("pciehp 0000:89:02.0:pcie004: Slot(400): Card not present", "0000:89:02.0", "gone"),
        (LINK_DOWN, "0000:89:02.0", "gone"),
    ],
)
def test_a_port_that_lost_its_device_is_told(logged, line, port, kind):
    ((device, (found,)),) = logged(line)["kernel_log.pcie_ports"].items()
    assert (device, found["kind"], found["below"]) == (port, kind, {})
    assert found["text"] in line


def test_what_was_below_a_port_is_told_with_it(logged):
    found = logged(
        "pci 0000:30:03.0: PCI bridge to [bus 34]",
        "pci 0000:34:00.0: [144d:a80a] type 00 class 0x010802",
        "pci 0000:35:00.0: [10de:2330] type 00 class 0x030200",
        DPC,
    )["kernel_log.pcie_ports"]
    assert found["0000:30:03.0"][0]["below"] == {"0000:34:00.0": "0108"}


@pytest.mark.parametrize(
    "lines",
    [
        (DPC, "pcieport 0000:30:03.0: AER: device recovery successful"),
        (DPC, "pcieport 0000:30:03.0: pciehp: Slot(272): Link Down/Up ignored (recovered by DPC)"),
        (GONE, "pcieport 0000:89:02.0: pciehp: Slot(400): Card present"),
        ("pcieport 0003:00:00.0: pciehp: Slot(31): Powering off due to button press",),
        (LINK_DOWN, "pcieport 0000:89:02.0: pciehp: Slot(400): Card present"),
        (LINK_DOWN, BACK, NO_LINK, BACK),
        ("pciehp 0000:89:02.0:pcie004: Slot(400): Link Down",),  # before 4.19, also of a slot that was switched off
        (BACK, NO_LINK),  # nothing was there before
    ],
)
def test_a_device_that_recovered_or_came_back_is_not_lost(logged, lines):
    assert logged(*lines)["kernel_log.pcie_ports"] == {}


def test_a_device_that_did_not_recover_is_lost(logged):
    assert len(logged(DPC, "pcieport 0000:30:03.0: AER: device recovery failed")["kernel_log.pcie_ports"]) == 1


@pytest.mark.parametrize("end", ["No link", "Cannot train link: status 0x2000", "No device found"])
def test_a_device_that_the_kernel_cannot_add_again_is_lost(logged, end):
    failed = f"pcieport 0000:89:02.0: pciehp: Slot(400): {end}"
    (found,) = logged(LINK_DOWN, BACK, failed)["kernel_log.pcie_ports"]["0000:89:02.0"]
    assert (found["kind"], found["text"]) == ("gone", f"Slot(400): {end}")


def test_two_lines_about_one_loss_are_one_event(logged):
    (found,) = logged(LINK_DOWN, GONE)["kernel_log.pcie_ports"]["0000:89:02.0"]
    assert (found["text"], found["times"]) == ("Slot(400): Card not present", 1)


def test_what_was_behind_a_switch_or_in_a_dock_is_told_with_the_port(logged):
    found = logged(
        "pci 0000:00:07.0: PCI bridge to [bus 03-2c]",
        "pci 0000:2b:00.0: [8086:15f0] type 00 class 0x0c0330",
        "pci 0000:03:00.0: [8086:1576] type 01 class 0x060400",
        "pci 0000:2d:00.0: [10de:2330] type 00 class 0x030200",
        "pci 0001:03:00.0: [10de:2330] type 00 class 0x030200",
        "pcieport 0000:00:07.0: pciehp: Slot(3): Card not present",
    )["kernel_log.pcie_ports"]
    assert found["0000:00:07.0"][0]["below"] == {"0000:2b:00.0": "0c03", "0000:03:00.0": "0604"}
