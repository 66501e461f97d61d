"""Which kind a leaf is: the first row of its fact in the catalogue that fits it, at last that of the fact."""

import pytest

from nodetune.history import kinds

KINDS = {
    "gpu.temperature/GPU0": "heat",
    "gpu.temperature_margin/GPU0": "gauge",
    "gpu.clock_info.sm/GPU0": "gauge",
    "gpu.nvlink_errors": "errors",
    "gpu.nvlink_errors/GPU3/recovery/7": "errors",
    "gpu.violations/GPU0/power": "counter",
    "gpu.violations/GPU0/hw_thermal": "errors",
    "gpu.remapped_rows/GPU0/correctable": "errors",
    "gpu.remapped_rows/GPU0/pending": "setting",
    "gpu.fabric/GPU0/cluster_uuid": "identity",
    "gpu.fabric/GPU0/clique_id": "setting",
    "rdma.counters/mlx5_0/1/port_xmit_wait": "counter",
    "rdma.counters/mlx5_0/1/symbol_error": "errors",
    "rdma.hw_counters/mlx5_0/1/rnr_nak_retry_err": "errors",
    "net.driver_info/eth0/firmware": "identity",
    "net.driver_info/eth0/driver": "setting",
    "net.neighbours/entries": "passing",
    "net.neighbours/table_fulls": "counter",
    "block.smart/nvme0/media_errors": "errors",
    "pci.aer/0000:01:00.0/correctable/BadTLP": "errors",
    "memory.hugepages/2048/free": "passing",
    "memory.ksm.pages_sharing": "passing",
    "memory.ksm.run": "setting",
    "mounts.usage//data/size_bytes": "setting",
    "mounts.usage//data/percent": "gauge",
    "limits.memlock/login sessions/source": "passing",
    "services.sshd/restarts": "errors",
    "services.sshd/pid": "passing",
    "services.sshd/sub": "setting",
    "sysctl.vm.x": "setting",
    "host.dmi.bios_version": "identity",
    "xid.events": "event",
    "verify.gemm/GPU0": "gauge",
    "watch.util/GPU0": "gauge",
    "tune.nccl.all_reduce/busbw": "gauge",
}


@pytest.mark.parametrize(("leaf", "kind"), KINDS.items())
def test_the_kind_of_a_leaf_is_that_of_the_first_row_that_fits(leaf, kind):
    assert kinds.of(leaf) == kind


def test_what_only_a_newer_probe_sends_is_kept_when_it_changes():
    assert [kinds.of(leaf) for leaf in ("gpu.made_up/GPU0", "made.up", "net.neighbours/made_up", "/pid")] == [
        "setting"
    ] * 4


def test_a_name_of_a_device_or_a_path_says_nothing_of_the_kind():
    assert kinds.of("mounts.nfs//serial/pid/rsize") == "setting"
    assert kinds.of("sysctl.vm.my_serial_1/pid") == "setting"
    assert kinds.of("net.channels/firmware0\npid/rx") == "setting"


@pytest.mark.parametrize("sensors", ["temperatures", "power_supplies", "fans"])
def test_what_a_sensor_reads_is_no_setting_and_its_state_is(sensors):
    assert kinds.of(f"bmc.{sensors}/Inlet/reading") == "gauge"
    assert kinds.of(f"bmc.{sensors}/Inlet/status") == "setting"


def test_the_limits_of_a_running_program_are_never_kept():
    assert kinds.of("gpu.process_settings") == kinds.of("gpu.process_settings/4711/cpus") == "passing"


def test_a_counter_in_the_part_itself_outlives_a_boot_and_others_do_not():
    lasting = (
        "gpu.ecc_corrected_aggregate/GPU0",
        "gpu.remapped_rows/GPU0/uncorrectable",
        "block.smart/nvme0/media_errors",
        "mounts.ext4_errors//",
    )
    assert all(map(kinds.outlives_a_boot, lasting))
    cleared = (
        "gpu.ecc_corrected_volatile/GPU0",
        "gpu.pcie_replay_counter/GPU0",
        "net.statistics/eth0/rx_errors",
        "made.up",
    )
    assert not any(map(kinds.outlives_a_boot, cleared))


def test_a_judged_figure_may_have_a_limit():
    assert kinds.limit("gpu.nvlink_errors/GPU3/recovery") == 500
    assert kinds.limit("gpu.nvlink_errors/GPU3/replay") is None
    assert kinds.limit("gpu.temperature/GPU0") == 12
