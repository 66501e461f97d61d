"""The work of one GPU between looks: GPM's counters, clocks, power, and the time for which something held it back.

GPM (GPU Performance Monitoring, Hopper and later) counts in the GPU itself: a look reads a sample, and NVML computes
the averages between two of them. It needs no DCGM, starts no profiler and stops no job.
"""

import time

from nodetune.onhost.nvml import ABSENT, decoded, explain, held_back_fields
from . import nvlink, nvml, read, watch_host

MB = 1 << 20, 1e6
PERCENT = 1, 1
METRICS = {
    "graphics": ("NVML_GPM_METRIC_GRAPHICS_UTIL", PERCENT),
    "sm": ("NVML_GPM_METRIC_SM_UTIL", PERCENT),
    "occupancy": ("NVML_GPM_METRIC_SM_OCCUPANCY", PERCENT),
    "integer": ("NVML_GPM_METRIC_INTEGER_UTIL", PERCENT),
    "tensor": ("NVML_GPM_METRIC_ANY_TENSOR_UTIL", PERCENT),
    "fp64": ("NVML_GPM_METRIC_FP64_UTIL", PERCENT),
    "fp32": ("NVML_GPM_METRIC_FP32_UTIL", PERCENT),
    "fp16": ("NVML_GPM_METRIC_FP16_UTIL", PERCENT),
    "dram": ("NVML_GPM_METRIC_DRAM_BW_UTIL", PERCENT),
    "pcie_tx": ("NVML_GPM_METRIC_PCIE_TX_PER_SEC", MB),
    "pcie_rx": ("NVML_GPM_METRIC_PCIE_RX_PER_SEC", MB),
    "nvlink_tx": ("NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC", MB),
    "nvlink_rx": ("NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC", MB),
    "c2c_tx": ("NVML_GPM_METRIC_C2C_DATA_TX_PER_SEC", MB),
    "c2c_rx": ("NVML_GPM_METRIC_C2C_DATA_RX_PER_SEC", MB),
}
"""Metrics in % of time or of the maximum, and rates, which NVML has in MiB/s, in MB/s."""

LOOKS = {
    "util": lambda device: device.library.nvmlDeviceGetUtilizationRates(device.handle).gpu,
    "decoder": lambda device: device.library.nvmlDeviceGetDecoderUtilization(device.handle)[0],
    "sm_mhz": lambda device: device.library.nvmlDeviceGetClockInfo(device.handle, 1),
    "watts": lambda device: device.library.nvmlDeviceGetPowerUsage(device.handle) / 1e3,
    "memory_gib": lambda device: device.library.nvmlDeviceGetMemoryInfo(device.handle).used / float(1 << 30),
}
"""Read at each look; the fact has the averages."""

ONCE = {
    "max_sm_mhz": lambda device: device.call("nvmlDeviceGetMaxClockInfo", 1),
    "limit_watts": lambda device: device.call("nvmlDeviceGetEnforcedPowerLimit") / 1e3,
    "default_watts": lambda device: device.call("nvmlDeviceGetPowerManagementDefaultLimit") / 1e3,
    "celsius": lambda device: device.call("nvmlDeviceGetTemperature", 0),
    "nvlink_limit": lambda device: sum(int(speed) * links for speed, links in nvlink.speed(device)["value"].items()),
    "mig": lambda device: bool(device.call("nvmlDeviceGetMigMode")[0]),
}
"""Read at the end."""

USERS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses")
GIGATRANSFERS = {1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}
NEEDS_HOPPER = "this GPU has no GPM counters: Hopper and later have them, a vGPU and MIG have not"
OLD_DRIVER = "this driver has no GPM counters: 525 and later have them"


class Gpu:
    """One GPU during the window."""

    def __init__(self, device):
        self.device, self.name = device, device.name
        self._gpm = Gpm(device)
        self._looks = {name: [] for name in LOOKS}
        self._pcie = 0.0
        self._held = self._held_now()
        self._last = self._held
        self.lost = ""

    def users(self):
        """Return the numbers of the processes that compute here."""
        found = set()
        for function in USERS:
            try:
                found.update(each.pid for each in getattr(self.device.library, function)(self.device.handle))
            except self.device.library.NVMLError:
                continue
        return sorted(found)

    def look(self):
        """Take a sample. After an error of the whole GPU, take none."""
        if self.lost:
            return
        self.device.step("a sample of " + self.name)
        self._gpm.look()
        for name, ask in LOOKS.items():
            self._note(name, ask)
        self._pcie = max(self._pcie, self._pcie_limit())
        self._last = self._held_now()

    def _note(self, name, ask):
        try:
            self._looks[name].append(ask(self.device))
        except self.device.library.NVMLError as problem:
            if problem.value not in ABSENT and name == "util":
                self.lost = explain(problem)

    def _held_now(self):
        """Return {cause: nanoseconds since some moment}; without those that the driver does not count."""
        library = self.device.library
        try:
            fields = held_back_fields(library)
            values = library.nvmlDeviceGetFieldValues(self.device.handle, [(number, 0) for number in fields.values()])
        except library.NVMLError:
            return {}
        return {
            name: getattr(each.value, nvml.MEMBERS[each.valueType])
            for name, each in zip(fields, values)
            if each.nvmlReturn == 0
        }

    def _pcie_limit(self):
        """Return the rate of the PCIe link as it is now, in MB/s: links of idle GPUs are slower."""
        library = self.device.library
        try:
            generation = library.nvmlDeviceGetCurrPcieLinkGeneration(self.device.handle)
            width = library.nvmlDeviceGetCurrPcieLinkWidth(self.device.handle)
        except library.NVMLError:
            return 0.0
        coded = 0.8 if generation < 3 else 128 / 130.0
        return GIGATRANSFERS.get(generation, 0) * width * coded / 8 * 1e3

    def fact(self, seconds):
        """Return the averages, or why there are none."""
        if self.lost:
            return read.unread("NVML: {} during the window".format(self.lost))
        found = {"name": decoded(self.device.library.nvmlDeviceGetName(self.device.handle))}
        found["pids"] = self.users()
        found["gpm"] = self._gpm.averages()
        if self._gpm.problem:
            found["no_gpm"] = self._gpm.problem
        for name, seen in self._looks.items():
            if seen:
                found[name] = round(sum(seen) / len(seen), 1)
        if self._pcie:
            found["pcie_limit"] = round(self._pcie)
        found["held"] = {
            name: round(min(1.0, (watch_host.rise(self._held[name], last) or 0) / (seconds * 1e9)), 3)
            for name, last in sorted(self._last.items())
            if name in self._held
        }
        for name, ask in ONCE.items():
            told = self.device.fact(lambda device, ask=ask: read.value(ask(device)))
            if "value" in told:
                found[name] = told["value"]
        return read.value(found)


class Gpm:
    """The averages of GPM's metrics over all steps between two samples; `problem` says why there are none."""

    def __init__(self, device):
        self._library, self._handle = device.library, device.handle
        self._last, self._sums = None, {name: [0.0, 0.0] for name in METRICS}
        self.problem = ""
        try:
            if not self._library.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
                self.problem = NEEDS_HOPPER
        except self._library.NVMLError as problem:
            self._give_up(problem)

    def look(self):
        """Take a sample, and add the averages since the last one."""
        if self.problem:
            return
        try:
            sample = self._library.nvmlGpmSampleAlloc()
            now = time.monotonic()
            self._library.nvmlGpmSampleGet(self._handle, sample)
            if self._last is not None:
                self._add(self._last[1], sample, now - self._last[0])
                self._library.nvmlGpmSampleFree(self._last[1])
            self._last = now, sample
        except self._library.NVMLError as problem:
            self._give_up(problem)

    def _give_up(self, problem):
        self.problem = OLD_DRIVER if problem.value == 13 else NEEDS_HOPPER if problem.value == 3 else explain(problem)

    def _add(self, before, after, seconds):
        asked = self._library.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = self._library.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        asked.sample1, asked.sample2 = before, after
        for at, (metric, _) in enumerate(METRICS.values()):
            asked.metrics[at].metricId = getattr(self._library, metric)
        self._library.nvmlGpmMetricsGet(asked)
        for at, (name, (_, (times, per))) in enumerate(METRICS.items()):
            if asked.metrics[at].nvmlReturn == 0:
                self._sums[name][0] += asked.metrics[at].value * times / per * seconds
                self._sums[name][1] += seconds

    def averages(self):
        """Return the averages by metric, without those that this GPU does not count; None if there are none at all."""
        found = {name: round(total / seconds, 2) for name, (total, seconds) in self._sums.items() if seconds}
        return found or None
