"""The used functions of the CUDA driver API with their argument types, and hints for errors (see cuda.h)."""

import ctypes

INT, UINT, U32, U64, SIZE = ctypes.c_int, ctypes.c_uint, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
POINTER, HANDLE, TEXT = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p
OUT = ctypes.c_void_p
"""Where the driver writes a result: ctypes.byref(…)."""

PROTOTYPES = {
    "cuGetErrorName": (INT, OUT),
    "cuGetErrorString": (INT, OUT),
    "cuInit": (UINT,),
    "cuDriverGetVersion": (OUT,),
    "cuDeviceGetCount": (OUT,),
    "cuDeviceGet": (OUT, INT),
    "cuDeviceGetName": (TEXT, INT, INT),
    "cuDeviceGetPCIBusId": (TEXT, INT, INT),
    "cuDeviceGetAttribute": (OUT, INT, INT),
    "cuDeviceCanAccessPeer": (OUT, INT, INT),
    "cuDevicePrimaryCtxRetain": (OUT, INT),
    "cuDevicePrimaryCtxRelease_v2": (INT,),
    "cuCtxSetCurrent": (HANDLE,),
    "cuCtxEnablePeerAccess": (HANDLE, UINT),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (OUT, OUT),
    "cuMemAlloc_v2": (OUT, SIZE),
    "cuMemFree_v2": (POINTER,),
    "cuMemHostAlloc": (OUT, SIZE, UINT),
    "cuMemFreeHost": (HANDLE,),
    "cuMemcpyHtoD_v2": (POINTER, HANDLE, SIZE),
    "cuMemcpyDtoH_v2": (HANDLE, POINTER, SIZE),
    "cuMemcpyHtoDAsync_v2": (POINTER, HANDLE, SIZE, HANDLE),
    "cuMemcpyDtoHAsync_v2": (HANDLE, POINTER, SIZE, HANDLE),
    "cuMemcpyDtoDAsync_v2": (POINTER, POINTER, SIZE, HANDLE),
    "cuMemcpyPeerAsync": (POINTER, HANDLE, POINTER, HANDLE, SIZE, HANDLE),
    "cuMemsetD8Async": (POINTER, ctypes.c_ubyte, SIZE, HANDLE),
    "cuStreamCreate": (OUT, UINT),
    "cuStreamSynchronize": (HANDLE,),
    "cuStreamWaitEvent": (HANDLE, HANDLE, UINT),
    "cuEventCreate": (OUT, UINT),
    "cuEventRecord": (HANDLE, HANDLE),
    "cuEventQuery": (HANDLE,),
    "cuEventElapsedTime": (OUT, HANDLE, HANDLE),
    "cuStreamBeginCapture_v2": (HANDLE, INT),
    "cuStreamEndCapture": (HANDLE, OUT),
    "cuGraphInstantiate_v2": (OUT, HANDLE, OUT, TEXT, SIZE),
    "cuGraphLaunch": (HANDLE, HANDLE),
    "cuModuleLoadData": (OUT, TEXT),
    "cuModuleGetFunction": (OUT, HANDLE, TEXT),
    "cuLaunchKernel": (HANDLE, UINT, UINT, UINT, UINT, UINT, UINT, UINT, HANDLE, OUT, OUT),
}

UNAVAILABLE, NO_JIT = 46, 221

ADVICE = {
    UNAVAILABLE: "its compute mode is exclusive and another process has it, or prohibited (nvidia-smi -q -d COMPUTE)",
    101: "CUDA_VISIBLE_DEVICES names a device that does not exist",
    214: "an uncorrectable ECC error: see nvidia-smi -q -d ECC and dmesg",
    220: "an uncorrectable NVLink error: see nvidia-smi nvlink -e and dmesg",
    NO_JIT: "install the driver's libnvidia-ptxjitcompiler.so.1 (packages libnvidia-compute-…, nvidia-driver-cuda-libs)",
    222: "the driver is too old for these measurements: R450 at least",
    304: "the operating system refused: do the files /dev/nvidia* and /dev/nvidia-uvm exist and may this user open them",
    802: "the fabric is not ready: is nvidia-fabricmanager running, and has it finished (nvidia-smi -q | grep -A2 Fabric)",
    803: "libcuda and the kernel module are of different versions: reboot, or reload the module after the driver's update",
    804: "libcuda is from a compatibility package that does not support this GPU: remove it from the library path",
    805: "the MPS daemon does not answer: stop it, or unset CUDA_MPS_PIPE_DIRECTORY",
    999: "see dmesg; is the module nvidia_uvm loaded (modprobe nvidia_uvm)",
}
