/* tests/support/cuda as it is on a machine of tests/machines: eight GPUs where fakepci has them, little memory, and it minds the
 * kernel module and Fabric Manager. Built with SLOW, everything takes twice as long: the driver that is no good. */
#include <stdlib.h>

#include "on_this_machine.h"

#ifdef SLOW
#define USUAL_FAULT "slow"
#else
#define USUAL_FAULT NULL
#endif

static const char *setting(const char *name)
{
    const char *told = getenv(name);

    return told ? told : !strcmp(name, "STAND_IN_GPUS") ? "8" : USUAL_FAULT;
}

#define getenv setting
#define cuInit played_cuInit
#define cuDeviceGetPCIBusId played_cuDeviceGetPCIBusId
#define cuMemGetInfo_v2 played_cuMemGetInfo
#include "../../cuda/stand_in.c"
#undef cuInit
#undef cuDeviceGetPCIBusId
#undef cuMemGetInfo_v2

enum { NO_DEVICE = 100, SYSTEM_NOT_READY = 802, SYSTEM_DRIVER_MISMATCH = 803 };

/* Not ready: the fabric of a board with NVSwitches has not been set up. */
int cuInit(unsigned flags)
{
    int code = played_cuInit(flags);

    if (code)
        return code;
    if (!module_loaded())
        return NO_DEVICE;
    if (module_differs())
        return SYSTEM_DRIVER_MISMATCH;
    if (!access("/sys/module/fakenvswitch", F_OK) && access("/run/nvidia-fabricmanager/nv-fabricmanager.pid", F_OK))
        return SYSTEM_NOT_READY;
    return 0;
}

int cuDeviceGetPCIBusId(char *bdf, int size, int device)
{
    snprintf(bdf, size, "%s", PLACES[device % 8]);
    return 0;
}

/* The machine has a GiB for everything: no more than measurements need, which take half of it for two buffers of 16 MiB. */
int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    size_t most = (size_t)72 << 20;

    played_cuMemGetInfo(left, total);
    *total = most;
    *left = current->used < most ? most - current->used : 0;
    return 0;
}
