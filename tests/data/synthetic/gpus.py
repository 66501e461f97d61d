"""NVML's answers on other GPUs: the recording of a real H200 node with what differs put over it."""

# ruff: noqa: PLR0913, PLR0917  (a device has many attributes, and a description reads best in one line)

from tests.support import fake_pynvml

NOT_SUPPORTED = 3
NO_NVLINK = {"nvmlDeviceGetNvLinkState": NOT_SUPPORTED, "fabric": NOT_SUPPORTED}
CORES = {"2335": 16896, "26b9": 18176, "2684": 16384, "2941": 18944}
"""CUDA cores, by PCI device ID."""
ONE_SWITCH, HOST_BRIDGE, ACROSS_NODES = 10, 30, 50


def replay(bdfs, device, driver, answers=None, errors=None, p2p=0, nodes=None):
    """`bdfs` in NVML's order; `device`: PCI device ID; `p2p`: NVML's status of reads, writes and NVLink of every pair."""
    cores = {"nvmlDeviceGetNumGpuCores": CORES[device]}
    made = fake_pynvml.Replay(count=len(bdfs), answers={**common(driver), **cores, **(answers or {})}, errors=errors)
    made.system = {**made.system, "nvmlSystemGetDriverVersion": driver, "nvmlSystemGetNVMLVersion": "13." + driver}
    for index, bdf in enumerate(bdfs):
        identity = {"busId": f"0000{bdf.upper()}", "pciDeviceId": int(device + "10de", 16)}
        made.answers[f"nvmlDeviceGetPciInfo GPU{index}"] = identity
        made.devices[index]["p2p"] = {str(other): dict.fromkeys("0123", p2p) for other in range(len(bdfs))}
        made.devices[index]["topology"] = {str(other): ACROSS_NODES for other in range(len(bdfs))}
    return made


def common(driver):
    """Bare metal, where the recorded node is a virtual machine."""
    return {"nvmlDeviceGetVirtualizationMode": 0, "nvmlDeviceGetGspFirmwareVersion": driver}


def model(name, memory_mib, architecture, watts, sm, memory_clock, vbios="00.00.00.00.00", generation=4, bar1_mib=None):
    """What tells one model from another. `watts`: least and default limit; `sm`: the highest clock in MHz."""
    total = memory_mib << 20
    power = {"nvmlDeviceGetPowerManagementLimitConstraints": [watts[0] * 1000, watts[-1] * 1000]}
    for function in ("PowerManagementLimit", "PowerManagementDefaultLimit", "EnforcedPowerLimit"):
        power["nvmlDeviceGet" + function] = watts[1] * 1000
    clocks = {}
    for kind in ("MaxClockInfo", "ApplicationsClock", "DefaultApplicationsClock", "MaxCustomerBoostClock"):
        clocks.update({f"nvmlDeviceGet{kind}(1)": sm, f"nvmlDeviceGet{kind}(2)": memory_clock})
    links = ("MaxPcieLinkGeneration", "GpuMaxPcieLinkGeneration", "CurrPcieLinkGeneration")
    return {
        "nvmlDeviceGetName": name,
        "nvmlDeviceGetArchitecture": architecture,
        "nvmlDeviceGetVbiosVersion": vbios,
        "nvmlDeviceGetMemoryInfo": {"total": total, "free": total - (500 << 20), "used": 500 << 20},
        "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": (bar1_mib or 65536) << 20, "bar1Free": 0, "bar1Used": 0},
        "nvmlDeviceGetClockInfo(2)": memory_clock,
        "nvmlDeviceGetPowerUsage": watts[0] * 400,
        **power,
        **clocks,
        **{"nvmlDeviceGet" + link: generation for link in links},
    }


def proc(host, bdfs, name):
    """What the driver shows of its GPUs in /proc, and their device files."""
    for index, bdf in enumerate(bdfs):
        told = f"Model: \t\t {name}\nDevice Minor: \t {index}\nGPU Excluded:\t No"
        host.put(f"/proc/driver/nvidia/gpus/{bdf}", information=told)
        host.put("/dev", **{f"nvidia{index}": ""})


GEFORCE = {
    **NO_NVLINK,
    "sram": NOT_SUPPORTED,
    "field 82": NOT_SUPPORTED,
    **{
        "nvmlDeviceGet" + function: NOT_SUPPORTED
        for function in (
            "Serial", "MigMode", "MaxMigDeviceCount", "ApplicationsClock", "DefaultApplicationsClock", "RemappedRows",
            "RowRemapperHistogram", "RepairStatus", "UnrepairableMemoryFlag_v1", "TotalEccErrors", "C2cModeInfoV", "MaxCustomerBoostClock",
        )
    },
}  # fmt: skip
"""What NVML does not tell of a GeForce card."""
