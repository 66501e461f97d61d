"""NVML's facts about one GPU: FACTS has each with the function that reads it from a `nvml.Device`."""

import re
import time

from nodetune.onhost.nvml import EVENT_REASONS, decoded
from . import gpu_power, nvlink, nvml, read

ON_OFF = {0: "disabled", 1: "enabled"}
ARCHITECTURES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
ADDRESSING = {0: "none", 1: "hmm", 2: "ats"}
RECOVERY = {
    0: "none",
    1: "reset the GPU",
    2: "reboot the node",
    3: "drain peer-to-peer traffic",
    4: "drain and reset the GPU",
    5: "recover the IMEX domain",
    6: "reset the PCIe bus",
    7: "reboot the system",
}
PROGRAMS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
WITHOUT_PROGRAM = {
    "load_without_program": ("nvmlDeviceGetUtilizationRates", "gpu", 95),
    "memory_without_program": ("nvmlDeviceGetMemoryInfo", "used", 1 << 30),
}
"""Fact → NVML's function, its field, and from what value there is a second look."""
BETWEEN_LOOKS = 2
"""Seconds: NVML's utilization is that of the last second, also of a program that has ended."""
THRESHOLDS = (("shutdown", 0), ("slowdown", 1), ("memory_max", 2), ("gpu_max", 3))
SM, MEMORY = 1, 2
CORRECTED, UNCORRECTED, VOLATILE, AGGREGATE = 0, 1, 0, 1
MEMORY_TEMPERATURE, GET_RECOVERY_ACTION = 82, 230


def simple(function, *arguments, **options):
    parse = options.get("parse", decoded)
    return lambda device: read.value(parse(device.call(function, *arguments)))


def pick(function, key, *arguments):
    """Return a reader of one entry of a list, or one member of a structure."""

    def read_value(device):
        answer = device.call(function, *arguments)
        return read.value(answer[key] if isinstance(key, int) else getattr(answer, key))

    return read_value


def words(names, function, *arguments, **options):
    """Return a reader that turns a number into its name, or into text if it has none."""
    at = options.get("at")

    def read_value(device):
        answer = device.call(function, *arguments)
        number = answer if at is None else answer[at]
        return read.value(names.get(number, "unknown ({})".format(number)))

    return read_value


def bdf(device):
    text = decoded(device.call("nvmlDeviceGetPciInfo").busId).lower()
    domain, _, rest = text.partition(":")
    return read.value("{:04x}:{}".format(int(domain, 16), rest))


def _pci_device_id(device):
    return read.value("{:04x}".format(device.call("nvmlDeviceGetPciInfo").pciDeviceId >> 16))


def _field(number, parse=None):
    def read_value(device):
        got = device.fields(((number, 0),))[(number, 0)]
        if got is None:
            return read.absent(nvml.NOT_SUPPORTED)
        if not isinstance(got, (int, float)):
            return read.unread(got)
        return read.value(parse(got) if parse else got)

    return read_value


def _event_reasons(device):
    """Return what limits the clocks now; drivers before R535 call these throttle reasons."""
    try:
        mask = device.call("nvmlDeviceGetCurrentClocksEventReasons")
    except device.library.NVMLError as problem:
        if problem.value not in nvml.ABSENT:
            raise
        mask = device.call("nvmlDeviceGetCurrentClocksThrottleReasons")
    return read.value([name for bit, name in EVENT_REASONS if mask & bit])


def _thresholds(device):
    """Return the absolute limits in °C that the GPU has (newer ones report margins instead)."""
    found = {}
    for name, number in THRESHOLDS:
        fact = device.fact(simple("nvmlDeviceGetTemperatureThreshold", number), (nvml.INVALID_ARGUMENT,))
        if "unread" in fact:
            return fact
        if "value" in fact:
            found[name] = fact["value"]
    return read.value(found) if found else read.absent(nvml.NOT_SUPPORTED)


def _remapped_rows(device):
    correctable, uncorrectable, pending, failure = device.call("nvmlDeviceGetRemappedRows")
    return read.value(
        {"correctable": correctable, "uncorrectable": uncorrectable, "pending": bool(pending), "failure": bool(failure)}
    )


def _histogram(device):
    """Return the number of memory banks by their number of spare rows left."""
    seen = device.call("nvmlDeviceGetRowRemapperHistogram")
    return read.value({name: getattr(seen, name) for name in ("max", "high", "partial", "low", "none")})


def _repair_pending(device):
    channel, tpc = device.call("nvmlDeviceGetRepairStatus")
    return read.value({"channel": bool(channel), "tpc": bool(tpc)})


def _vgpu_license(device):
    """Return whether a vGPU has its licence now, and the product."""
    if VIRTUALIZATION.get(device.call("nvmlDeviceGetVirtualizationMode")) != "vgpu":
        return read.absent("not a vGPU")
    told = device.call("nvmlDeviceGetGridLicensableFeatures_v4")
    if not told.isGridLicenseSupported:
        return read.absent("this vGPU needs no licence")
    features = told.gridLicensableFeatures[: told.licensableFeaturesCount]
    products = [decoded(each.productName) for each in features if each.featureEnabled] or [""]
    return read.value({"licensed": any(each.featureState for each in features), "product": products[0]})


def _sram_threshold(device):
    return read.value(
        bool(device.filled("nvmlDeviceGetSramEccErrorStatus", "c_nvmlEccSramErrorStatus_v1_t").bThresholdExceeded)
    )


def _mig_devices(device):
    """Return the MIG devices by profile, as in mig-parted's configuration: {"1g.18gb": 7}."""
    if not device.call("nvmlDeviceGetMigMode")[0]:
        return read.value({})
    found = {}
    for index in range(device.call("nvmlDeviceGetMaxMigDeviceCount")):
        try:
            instance = device.call("nvmlDeviceGetMigDeviceHandleByIndex", index)
        except device.library.NVMLError as problem:
            if problem.value in (nvml.NOT_FOUND, nvml.INVALID_ARGUMENT):
                continue
            raise
        name = decoded(device.library.nvmlDeviceGetName(instance))
        profile = name.rpartition("MIG ")[2]
        found[profile] = found.get(profile, 0) + 1
    return read.value(found)


def _processes(function):
    def read_value(device):
        return read.value([_process(each.pid, each.usedGpuMemory) for each in device.call(function)])

    return read_value


def _process(pid, used):
    """Describe a process that uses a GPU; its name and owner are None if it is gone or not visible."""
    owner = re.search(r"^Uid:\s+(\d+)", read.text_or("/proc/{}/status".format(pid)), re.MULTILINE)
    return {
        "pid": pid,
        "used_memory": used,
        "name": read.text_or("/proc/{}/comm".format(pid)) or None,
        "uid": int(owner.group(1)) if owner else None,
    }


def without_program(devices, function, field, least):
    """Return for each GPU what NVML says although no program is on it, 0 with a program: the lower of two looks."""

    def look(device):
        programs = [each for kind in PROGRAMS for each in device.again(kind)]
        return read.value(0 if programs else getattr(device.again(function), field))

    found = {device.name: device.fact(look) for device in devices}
    again = [device for device in devices if found[device.name].get("value", 0) >= least]
    if again:
        time.sleep(BETWEEN_LOOKS)
    for device in again:
        second = device.fact(look)
        if second.get("value", least) < found[device.name]["value"] or "value" not in second:
            found[device.name] = second
    return read.each(found)


FACTS = (
    ("names", simple("nvmlDeviceGetName")),
    ("bdf", bdf),
    ("pci_device_id", _pci_device_id),
    ("architecture", words(ARCHITECTURES, "nvmlDeviceGetArchitecture")),
    ("cores", simple("nvmlDeviceGetNumGpuCores")),
    ("uuid", simple("nvmlDeviceGetUUID")),
    ("serial", simple("nvmlDeviceGetSerial")),
    ("minor_number", simple("nvmlDeviceGetMinorNumber")),
    ("vbios_version", simple("nvmlDeviceGetVbiosVersion")),
    ("inforom_image_version", simple("nvmlDeviceGetInforomImageVersion")),
    ("gsp_firmware_version", simple("nvmlDeviceGetGspFirmwareVersion")),
    ("virtualization_mode", words(VIRTUALIZATION, "nvmlDeviceGetVirtualizationMode")),
    ("vgpu_license", _vgpu_license),
    ("persistence_mode", words(ON_OFF, "nvmlDeviceGetPersistenceMode")),
    ("compute_mode", words(COMPUTE_MODES, "nvmlDeviceGetComputeMode")),
    ("accounting_mode", words(ON_OFF, "nvmlDeviceGetAccountingMode")),
    ("ecc_mode", words(ON_OFF, "nvmlDeviceGetEccMode", at=0)),
    ("ecc_mode_pending", words(ON_OFF, "nvmlDeviceGetEccMode", at=1)),
    ("ecc_mode_default", words(ON_OFF, "nvmlDeviceGetDefaultEccMode", at=0)),
    ("ecc_uncorrected_volatile", simple("nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE)),
    ("ecc_uncorrected_aggregate", simple("nvmlDeviceGetTotalEccErrors", UNCORRECTED, AGGREGATE)),
    ("ecc_corrected_volatile", simple("nvmlDeviceGetTotalEccErrors", CORRECTED, VOLATILE)),
    ("ecc_corrected_aggregate", simple("nvmlDeviceGetTotalEccErrors", CORRECTED, AGGREGATE)),
    ("sram_threshold_exceeded", _sram_threshold),
    ("remapped_rows", _remapped_rows),
    ("row_remapper_histogram", _histogram),
    ("retired_pages_pending", simple("nvmlDeviceGetRetiredPagesPendingStatus", parse=bool)),
    ("repair_pending", _repair_pending),
    ("unrepairable_memory", simple("nvmlDeviceGetUnrepairableMemoryFlag_v1", parse=bool)),
    ("recovery_action", _field(GET_RECOVERY_ACTION, lambda code: RECOVERY.get(code, "unknown ({})".format(code)))),
    ("mig_mode", words(ON_OFF, "nvmlDeviceGetMigMode", at=0)),
    ("mig_mode_pending", words(ON_OFF, "nvmlDeviceGetMigMode", at=1)),
    ("max_mig_device_count", simple("nvmlDeviceGetMaxMigDeviceCount")),
    ("mig_devices", _mig_devices),
    ("performance_state", simple("nvmlDeviceGetPerformanceState")),
    ("clocks_event_reasons", _event_reasons),
    ("violations", gpu_power.violations),
    ("clock_info.sm", simple("nvmlDeviceGetClockInfo", SM)),
    ("clock_info.memory", simple("nvmlDeviceGetClockInfo", MEMORY)),
    ("max_clock_info.sm", simple("nvmlDeviceGetMaxClockInfo", SM)),
    ("max_clock_info.memory", simple("nvmlDeviceGetMaxClockInfo", MEMORY)),
    ("applications_clock.sm", simple("nvmlDeviceGetApplicationsClock", SM)),
    ("applications_clock.memory", simple("nvmlDeviceGetApplicationsClock", MEMORY)),
    ("default_applications_clock.sm", simple("nvmlDeviceGetDefaultApplicationsClock", SM)),
    ("max_customer_boost_clock.sm", simple("nvmlDeviceGetMaxCustomerBoostClock", SM)),
    ("power_management_limit", simple("nvmlDeviceGetPowerManagementLimit")),
    ("power_management_default_limit", simple("nvmlDeviceGetPowerManagementDefaultLimit")),
    ("power_management_limit_constraints", simple("nvmlDeviceGetPowerManagementLimitConstraints", parse=list)),
    ("enforced_power_limit", simple("nvmlDeviceGetEnforcedPowerLimit")),
    ("power_usage", simple("nvmlDeviceGetPowerUsage")),
    ("temperature", simple("nvmlDeviceGetTemperature", 0)),
    ("temperature_margin", simple("nvmlDeviceGetMarginTemperature")),
    ("temperature_threshold", _thresholds),
    ("memory_temperature", _field(MEMORY_TEMPERATURE)),
    ("fan_speed", gpu_power.fan_speed),
    ("fan_policy", gpu_power.fan_policy),
    ("power_profiles", gpu_power.power_profiles),
    ("curr_pcie_link_generation", simple("nvmlDeviceGetCurrPcieLinkGeneration")),
    ("max_pcie_link_generation", simple("nvmlDeviceGetMaxPcieLinkGeneration")),
    ("gpu_max_pcie_link_generation", simple("nvmlDeviceGetGpuMaxPcieLinkGeneration")),
    ("curr_pcie_link_width", simple("nvmlDeviceGetCurrPcieLinkWidth")),
    ("max_pcie_link_width", simple("nvmlDeviceGetMaxPcieLinkWidth")),
    ("pcie_replay_counter", simple("nvmlDeviceGetPcieReplayCounter")),
    ("bar1_total", pick("nvmlDeviceGetBAR1MemoryInfo", "bar1Total")),
    ("memory_total", pick("nvmlDeviceGetMemoryInfo", "total")),
    ("memory_used", pick("nvmlDeviceGetMemoryInfo", "used")),
    ("compute_running_processes", _processes("nvmlDeviceGetComputeRunningProcesses")),
    ("graphics_running_processes", _processes("nvmlDeviceGetGraphicsRunningProcesses")),
    ("mps_compute_running_processes", _processes("nvmlDeviceGetMPSComputeRunningProcesses")),
    ("addressing_mode", words(ADDRESSING, "nvmlDeviceGetAddressingMode")),
    ("numa_node_id", simple("nvmlDeviceGetNumaNodeId")),
    ("c2c_mode", lambda device: read.value(ON_OFF[device.call("nvmlDeviceGetC2cModeInfoV").isC2cEnabled])),
    ("nvlink_state", nvlink.state),
    ("nvlink_version", nvlink.version),
    ("nvlink_remote", nvlink.remote),
    ("nvlink_speed", nvlink.speed),
    ("nvlink_errors", nvlink.errors),
    ("fabric", nvlink.fabric),
)
