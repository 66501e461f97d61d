"""One planted fault for each fact of a GPU, on a sound tray of four GB200s: it is found, and the tray has no other."""

import json
from functools import cache

import pytest

from nodetune.api.model import HostResult
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document
from tests.data.synthetic import build

LINKS = list(range(18))
REMAPPED = {"correctable": 0, "uncorrectable": 1, "pending": False, "failure": False}
SPARES = {"max": 3070, "high": 0, "partial": 0, "low": 0, "none": 2}
THREE = ["0008:01:00.0", "0009:01:00.0", "0019:01:00.0"]
HEALTHY_FABRIC = {"state": "completed", "status": "success"}

FAULTS = {
    "access": ("NVML: GPU is lost", "gpu-lost"),
    "applications_clock.sm": (1200, "gpu-applications-clock-low"),
    "c2c_mode": ("disabled", "gpu-c2c-off"),
    "clocks_event_reasons": (["hw_power_brake_slowdown"], "gpu-slowdown-active"),
    "compute_mode": ("prohibited", "gpu-compute-mode-restricted"),
    "ecc_corrected_volatile": (30_000_000, "gpu-ecc-corrected-frequent"),
    "ecc_mode": ("disabled", "gpu-ecc-change-pending"),
    "ecc_uncorrected_volatile": (3, "gpu-ecc-uncorrected"),
    "fabric": ({**HEALTHY_FABRIC, "state": "in_progress"}, "gpu-fabric-not-ready"),
    "load_without_program": (100, "gpu-busy-without-program"),
    "memory_temperature": (97, "gpu-memory-hot"),
    "mig_mode_pending": ("enabled", "mig-mode-change-pending"),
    "nvlink_errors": ({"crc": {}, "recovery": {}, "replay": {}, "link_recovery_failed": {"4": 9}}, "nvlink-errors"),
    "nvlink_speed": ({"50000": 17, "25000": 1}, "nvlink-speed-unequal"),
    "nvlink_state": ({"active": LINKS[:-1], "inactive": LINKS[-1:]}, "nvlink-down"),
    "pcie_replay_counter": (900_000, "gpu-pcie-replays-frequent"),
    "persistence_mode": ("disabled", "gpu-persistence-mode-off"),
    "power_management_limit": (900_000, "gpu-power-limit-lowered"),
    "recovery_action": ("reboot the node", "gpu-recovery-needed"),
    "remapped_rows": ({**REMAPPED, "pending": True}, "gpu-row-remap-pending"),
    "repair_pending": ({"channel": True, "tpc": False}, "gpu-repair-pending"),
    "row_remapper_histogram": (SPARES, "gpu-row-remap-exhausted"),
    "sram_threshold_exceeded": (True, "gpu-sram-threshold-exceeded"),
    "temperature_margin": (1, "gpu-temperature-margin-small"),
    "unrepairable_memory": (True, "gpu-memory-unrepairable"),
    "vbios_version": ("97.00.61.00.00", "gpu-firmware-unequal"),
}
"""Fact → (the value of GPU2, the check that finds it)."""

OF_HOST = {
    "gpu.bdf": ({"each": {f"GPU{index}": {"value": bdf} for index, bdf in enumerate(THREE)}}, "gpu-missing"),
    "gpu.count": ({"value": 3}, "gpus-not-all-offered"),
    "gpu.driver_version": ({"value": "570.86.15"}, "gpu-driver-vulnerable"),
    "gpu.nvml_status": ({"value": "Driver/library version mismatch"}, "nvml-not-answering"),
    "pci.gpus": ({"value": THREE}, "gpus-fewer-than-platform"),
}


@cache
def tray():
    return (build.HERE / "grace-gb200.json").read_text()


def failing(change):
    data = json.loads(tray())
    change(data["facts"])
    facts = document.from_data(data, "tray")
    return {found.check: found for found in Auditor(Selection()).audit(HostResult("tray", "ok", facts=facts)).failing()}


def test_the_tray_itself_has_no_fault_of_a_gpu():
    assert [check for check in failing(lambda facts: None) if check.startswith(("gpu", "nvlink", "nvml", "mig"))] == []


@pytest.mark.parametrize("fact", FAULTS)
def test_a_fault_of_one_gb200_is_found_there(fact):
    value, check = FAULTS[fact]
    found = failing(lambda facts: facts[f"gpu.{fact}"]["each"].update(GPU2={"value": value}))
    assert check in found
    assert any("GPU2" in subject for subject in found[check].subjects)


@pytest.mark.parametrize("fact", OF_HOST)
def test_a_fault_of_a_whole_tray_is_found(fact):
    value, check = OF_HOST[fact]
    assert check in failing(lambda facts: facts.update({fact: value}))
