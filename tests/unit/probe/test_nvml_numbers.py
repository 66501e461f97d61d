"""The numbers by which the probe asks NVML and reads its answers, against those of NVIDIA's binding."""

import pynvml
import pytest

from nodetune.probe import gpu_facts, gpu_power, nvlink

BY_LINK = {
    "speed": "SPEED_MBPS",
    "crc_flit": "CRC_FLIT_ERROR_COUNT",
    "crc_data": "CRC_DATA_ERROR_COUNT",
    "replay": "REPLAY_ERROR_COUNT",
    "recovery": "RECOVERY_ERROR_COUNT",
}
BY_SCOPE = {"speed": "GET_SPEED", "crc": "ERROR_DL_CRC", "replay": "ERROR_DL_REPLAY", "recovery": "ERROR_DL_RECOVERY"}
OF_NVLINK_5 = {
    "speed": "GET_SPEED",
    "receive": "COUNT_RCV_ERRORS",
    "malformed_packet": "COUNT_MALFORMED_PACKET_ERRORS",
    "buffer_overrun": "COUNT_BUFFER_OVERRUN_ERRORS",
    "link_recovery": "COUNT_LINK_RECOVERY_EVENTS",
    "link_recovery_failed": "COUNT_LINK_RECOVERY_FAILED_EVENTS",
    "effective": "COUNT_EFFECTIVE_ERRORS",
    "symbol": "COUNT_SYMBOL_ERRORS",
}
HEALTH = {
    "degraded_bandwidth": "DEGRADED_BW",
    "route_recovery": "ROUTE_RECOVERY",
    "route_unhealthy": "ROUTE_UNHEALTHY",
    "access_timeout_recovery": "ACCESS_TIMEOUT_RECOVERY",
    "incorrect_configuration": "INCORRECT_CONFIGURATION",
    "partition_assigned": "PARTITION_ASSIGNED",
    "manager": "GFM_STATE",
}
WORDS = {
    "yes": "TRUE",
    "no": "FALSE",
    "connected": "CONNECTED",
    "disconnected": "DISCONNECTED",
    "none": "NONE",
    "system GUID": "INCORRECT_SYSGUID",
    "chassis serial number": "INCORRECT_CHASSIS_SN",
    "no partition": "NO_PARTITION",
    "too few NVLinks": "INSUFFICIENT_NVLINKS",
    "incompatible GPU firmware": "INCOMPATIBLE_GPU_FW",
    "invalid location": "INVALID_LOCATION",
    "invalid GPU state": "GPU_STATE_INVALID",
}


def number(name):
    return getattr(pynvml, f"NVML_{name}")


def test_counters_of_links_have_the_fields_of_nvidias_binding():
    fields = {name: tuple(number(f"FI_DEV_NVLINK_{its}_L{link}") for link in (0, 6)) for name, its in BY_LINK.items()}
    assert fields == nvlink.NVLINK_BY_LINK
    assert {name: number(f"FI_DEV_NVLINK_{its}") for name, its in BY_SCOPE.items()} == nvlink.NVLINK_BY_SCOPE
    assert {name: number(f"FI_DEV_NVLINK_{its}") for name, its in OF_NVLINK_5.items()} == nvlink.NVLINK_5


@pytest.mark.parametrize("part", nvlink.FABRIC_HEALTH, ids=lambda part: part[0])
def test_the_health_of_a_fabric_has_the_bits_of_nvidias_binding(part):
    name, shift, width, words = part
    its = f"GPU_FABRIC_HEALTH_MASK_{{}}{HEALTH[name]}".format
    assert (shift, width) == (number(its("SHIFT_")), number(its("WIDTH_")))
    assert words == {number(f"{its('')}_{WORDS[word]}"): word for word in words.values()}


def test_states_of_fabrics_links_and_pairs_have_the_numbers_of_nvidias_binding():
    states = ("not_started", "in_progress", "completed")
    assert {number(f"GPU_FABRIC_STATE_{each.upper()}"): each for each in states} == nvlink.FABRIC_STATES
    health = ("healthy", "unhealthy", "limited capacity")
    summary = {number(f"GPU_FABRIC_HEALTH_SUMMARY_{each.upper().replace(' ', '_')}"): each for each in health}
    assert summary == nvlink.FABRIC_SUMMARY
    versions = nvlink.NVLINK_VERSIONS.values()
    assert {number(f"NVLINK_VERSION_{each.replace('.', '_')}"): each for each in versions} == nvlink.NVLINK_VERSIONS
    remotes = {"gpu": "GPU", "cpu": "IBMNPU", "switch": "SWITCH", "unknown": "UNKNOWN"}
    assert {number(f"NVLINK_DEVICE_TYPE_{its}"): each for each, its in remotes.items()} == nvlink.NVLINK_REMOTES
    pairs = {
        "ok": "OK",
        "chipset not supported": "CHIPSET_NOT_SUPPORTED",
        "GPU not supported": "GPU_NOT_SUPPORTED",
        "topology not supported": "IOH_TOPOLOGY_NOT_SUPPORTED",
        "disabled by registry key": "DISABLED_BY_REGKEY",
        "not supported": "NOT_SUPPORTED",
        "unknown": "UNKNOWN",
    }
    assert {number(f"P2P_STATUS_{its}"): each for each, its in pairs.items()} == nvlink.P2P_STATUS
    assert number("P2P_CAPS_INDEX_NVLINK") == nvlink.P2P_BY_NVLINK


@pytest.mark.parametrize(
    ("words", "theirs", "names"),
    [
        (gpu_facts.ARCHITECTURES, "DEVICE_ARCH_{}", {}),
        (gpu_facts.COMPUTE_MODES, "COMPUTEMODE_{}", {}),
        (gpu_facts.VIRTUALIZATION, "GPU_VIRTUALIZATION_MODE_{}", {}),
        (gpu_facts.ADDRESSING, "DEVICE_ADDRESSING_MODE_{}", {}),
        (gpu_power.FAN_POLICIES, "FAN_POLICY_{}", {"automatic": "TEMPERATURE_CONTINOUS_SW"}),
        (
            gpu_facts.RECOVERY,
            "GPU_RECOVERY_ACTION_{}",
            {
                "reset the GPU": "GPU_RESET",
                "reboot the node": "NODE_REBOOT",
                "drain peer-to-peer traffic": "DRAIN_P2P",
                "drain and reset the GPU": "DRAIN_AND_RESET",
                "recover the IMEX domain": "RECOVER_IMEX_DOMAIN",
                "reset the PCIe bus": "BUS_RESET",
                "reboot the system": "SYSTEM_REBOOT",
            },
        ),
    ],
    ids=["architecture", "compute mode", "virtualization", "addressing", "fan policy", "recovery"],
)
def test_words_for_answers_stand_for_the_numbers_of_nvidias_binding(words, theirs, names):
    assert words == {number(theirs.format(names.get(word, word.upper()))): word for word in words.values()}


def test_what_the_probe_asks_for_has_the_numbers_of_nvidias_binding():
    assert (number("CLOCK_SM"), number("CLOCK_MEM")) == (gpu_facts.SM, gpu_facts.MEMORY)
    kinds = (gpu_facts.CORRECTED, gpu_facts.UNCORRECTED)
    assert kinds == (number("MEMORY_ERROR_TYPE_CORRECTED"), number("MEMORY_ERROR_TYPE_UNCORRECTED"))
    assert (number("VOLATILE_ECC"), number("AGGREGATE_ECC")) == (gpu_facts.VOLATILE, gpu_facts.AGGREGATE)
    assert number("FI_DEV_MEMORY_TEMP") == gpu_facts.MEMORY_TEMPERATURE
    assert number("FI_DEV_GET_GPU_RECOVERY_ACTION") == gpu_facts.GET_RECOVERY_ACTION
    its = {"shutdown": "SHUTDOWN", "slowdown": "SLOWDOWN", "memory_max": "MEM_MAX", "gpu_max": "GPU_MAX"}
    assert tuple((name, number(f"TEMPERATURE_THRESHOLD_{each}")) for name, each in its.items()) == gpu_facts.THRESHOLDS
