"""Power and cooling of one GPU: its fans, its workload power profiles, and what held its clocks back."""

from nodetune.onhost.nvml import held_back_fields
from . import nvml, read

FAN_POLICIES = {0: "automatic", 1: "manual"}
PROFILES = (
    ("max-p", "max-q", "compute", "memory-bound", "network", "balanced", "llm-inference", "llm-training")
    + ("rbm", "dcpcie", "hmma-sparse", "hmma-dense", "sync-balanced", "hpc", "mig", "max-q-1", "network-bound")
    + ("high-throughput-inference", "medium-throughput-inference", "low-latency-inference")
    + ("training", "inference", "max-q-2", "max-q-3", "low-priority-background")
)
"""NVML's types of workload power profiles by number (nvml.h of CUDA 13.3; the same in nvidia-ml-py 13.615.71)."""
BITS = 32
NO_FAN = "no fan of its own"


def fan_speed(device):
    """Return the intended speed of each fan in percent."""
    return _of_fans(device, lambda fan: device.call("nvmlDeviceGetFanSpeed_v2", fan))


def fan_policy(device):
    """Return who controls each fan."""

    def policy(fan):
        number = device.call("nvmlDeviceGetFanControlPolicy_v2", fan)
        return FAN_POLICIES.get(number, "unknown ({})".format(number))

    return _of_fans(device, policy)


def _of_fans(device, ask):
    count = device.call("nvmlDeviceGetNumFans")
    return read.value([ask(fan) for fan in range(count)]) if count else read.absent(NO_FAN)


def power_profiles(device):
    """Return the workload power profiles in force: what the GPU made of those that were requested."""
    info = device.filled(
        "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", "c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t"
    )
    words = enumerate(info.enforcedProfilesMask.mask)
    numbers = [at * BITS + bit for at, word in words for bit in range(BITS) if word >> bit & 1]
    return read.value([PROFILES[each] if each < len(PROFILES) else "profile-{}".format(each) for each in numbers])


def violations(device):
    """Return the seconds since the driver was loaded for which each cause held the clocks back."""
    fields = held_back_fields(device.library)
    got = device.fields(tuple((number, 0) for number in sorted(fields.values())))
    found = {name: got[(number, 0)] for name, number in fields.items()}
    counted = {name: int(each // 10**9) for name, each in found.items() if isinstance(each, (int, float))}
    return read.value(counted) if counted else read.absent(nvml.NOT_SUPPORTED)
