"""Sets every kind of GPU setting wrong, each on another GPU. Lost at the next boot, but for ECC."""

import sys

sys.path.insert(0, sys.argv[1])
import pynvml as nvml

nvml.nvmlInit()
gpus = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(8)]
nvml.nvmlDeviceSetComputeMode(gpus[1], nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
nvml.nvmlDeviceSetGpuLockedClocks(gpus[2], 345, 1200)
memory = max(nvml.nvmlDeviceGetSupportedMemoryClocks(gpus[3]))
graphics = min(clock for clock in nvml.nvmlDeviceGetSupportedGraphicsClocks(gpus[3], memory) if clock > 1000)
nvml.nvmlDeviceSetApplicationsClocks(gpus[3], memory, graphics)
nvml.nvmlDeviceSetAccountingMode(gpus[4], 0)
nvml.nvmlDeviceSetEccMode(gpus[5], 0)
slow = min(nvml.nvmlDeviceGetSupportedMemoryClocks(gpus[6]))
nvml.nvmlDeviceSetMemoryLockedClocks(gpus[6], slow, slow)
nvml.nvmlDeviceSetMigMode(gpus[7], 1)
profile = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpus[7], nvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE)
instance = nvml.nvmlDeviceCreateGpuInstance(gpus[7], profile.id)
compute = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 0, 0)
nvml.nvmlGpuInstanceCreateComputeInstance(instance, compute.id)
