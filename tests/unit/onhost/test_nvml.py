"""The numbers of NVML that programs on hosts know, against those of NVIDIA's binding; and how its answers are read."""

import pynvml
import pytest

from nodetune.onhost import nvml

ERRORS = {
    "INVALID_ARGUMENT": nvml.INVALID_ARGUMENT,
    "NO_PERMISSION": nvml.NO_PERMISSION,
    "NOT_FOUND": nvml.NOT_FOUND,
    "DRIVER_NOT_LOADED": nvml.DRIVER_NOT_LOADED,
    "LIBRARY_NOT_FOUND": nvml.LIBRARY_NOT_FOUND,
    "GPU_IS_LOST": nvml.GPU_IS_LOST,
    "LIB_RM_VERSION_MISMATCH": nvml.VERSION_MISMATCH,
    "ARGUMENT_VERSION_MISMATCH": nvml.ARGUMENT_VERSION,
}
ABSENT = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "VGPU_ECC_NOT_SUPPORTED", "DEPRECATED")
OF_GPU = ("INSUFFICIENT_POWER", "IRQ_ISSUE", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED")
REASONS = {
    "idle": "GpuIdle",
    "applications_clocks_setting": "ApplicationsClocksSetting",
    "sw_power_cap": "SwPowerCap",
    "hw_slowdown": "HwSlowdown",
    "sync_boost": "SyncBoost",
    "sw_thermal_slowdown": "SwThermalSlowdown",
    "hw_thermal_slowdown": "HwThermalSlowdown",
    "hw_power_brake_slowdown": "HwPowerBrakeSlowdown",
    "display_clock_setting": "DisplayClockSetting",
}


def error(name):
    return getattr(pynvml, f"NVML_ERROR_{name}")


def test_errors_have_the_numbers_of_nvidias_binding():
    assert {name: error(name) for name in ERRORS} == ERRORS
    assert tuple(map(error, ABSENT)) == nvml.ABSENT
    assert tuple(map(error, OF_GPU)) == nvml.OF_GPU


def test_reasons_of_low_clocks_have_the_bits_of_nvidias_binding():
    bits = {name: getattr(pynvml, f"nvmlClocksEventReason{theirs}") for name, theirs in REASONS.items()}
    assert {name: bit for bit, name in nvml.EVENT_REASONS} == bits


class Driver:
    def __init__(self, version):
        self.version = version

    def nvmlSystemGetDriverVersion(self):  # noqa: N802  (a name of NVML)
        return self.version


@pytest.mark.parametrize(
    ("version", "first"),
    [
        (b"570.211.01", None),
        ("574.99", None),
        ("575.0", 251),
        ("580.65.06", 251),
        ("580.66", None),
        ("580.81.99", None),
        ("580.82.07", 269),
        ("610.43.02", 269),
    ],
)
def test_a_driver_counts_in_its_own_fields_what_holds_clocks_back(version, first):
    slowdowns = {} if first is None else {"sw_thermal": first, "hw_thermal": first + 1, "power_brake": first + 2}
    assert nvml.held_back_fields(Driver(version)) == {"power": 74, "thermal": 75, "reliability": 79, **slowdowns}


def test_an_error_is_told_with_what_helps_or_as_nvml_does():
    assert nvml.explain(pynvml.NVMLError(nvml.NO_PERMISSION)) == "no permission: needs root (--become)"
    assert nvml.explain(pynvml.NVMLError(error("TIMEOUT"))) == str(pynvml.NVMLError(error("TIMEOUT")))
    assert [nvml.decoded(each) for each in ("é", "é".encode(), b"\xff")] == ["é", "é", "\\xff"]


def test_a_library_is_looked_for_in_the_folders_of_a_drivers_container():
    assert nvml.in_driver_container("libx.so", "/host")[1] == "/host/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libx.so"
    assert not nvml.loads("libno-such-library.so.9")
    assert nvml.loads("libc.so.6")
