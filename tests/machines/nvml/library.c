/* Init, shutdown, handles, and what every call goes through. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mig.h"
#define REPLAY(function)
#include "answers.h"

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int users;

/* A handle is the address of a byte: which byte says what it stands for. */
static char gpus[GPUS], gpu_instances[GPUS][INSTANCES], compute_instances[GPUS][INSTANCES][COMPUTES];
static char migs[GPUS][INSTANCES][COMPUTES];

handle gpu_handle(int gpu) { return &gpus[gpu]; }
handle gpu_instance_handle(int gpu, int instance) { return &gpu_instances[gpu][instance]; }
handle compute_instance_handle(int gpu, int in, int instance) { return &compute_instances[gpu][in][instance]; }
handle mig_handle(int gpu, int in, int instance) { return &migs[gpu][in][instance]; }

static ptrdiff_t place_in(const void *start, size_t size, handle which)
{
    uintptr_t offset = (uintptr_t)which - (uintptr_t)start;

    return offset < size ? (ptrdiff_t)offset : -1;
}

bool is_mig_handle(handle which) { return place_in(migs, sizeof migs, which) >= 0; }

bool resolve(handle which, struct target *target)
{
    ptrdiff_t gpu = place_in(gpus, sizeof gpus, which);
    ptrdiff_t instance = place_in(gpu_instances, sizeof gpu_instances, which);
    ptrdiff_t compute = place_in(compute_instances, sizeof compute_instances, which);

    if (compute < 0)
        compute = place_in(migs, sizeof migs, which);
    *target = (struct target){(int)gpu, -1, -1};
    if (instance >= 0)
        *target = (struct target){(int)(instance / INSTANCES), (int)(instance % INSTANCES), -1};
    if (compute >= 0)
        *target = (struct target){(int)(compute / COMPUTES / INSTANCES), (int)(compute / COMPUTES % INSTANCES),
                                  (int)(compute % COMPUTES)};
    return target->gpu >= 0 && target->gpu < gpu_count();
}

int gpu_count(void)
{
    const char *told = control("count", -1, NULL);
    int count = told ? atoi(told) : GPUS;

    return count < 0 || count > GPUS ? GPUS : count;
}

/* What may happen to any call, then the lock that `leave` gives back. */
int enter_call(const char *function, int gpu)
{
    int told = error_if_told(function, gpu);

    if (told)
        return told;
    if (!users && strcmp(function, "nvmlSystemGetNVMLVersion")) /* the library knows its own version */
        return UNINITIALIZED;
    if (gpu >= 0 && control("lost", gpu, NULL))
        return GPU_IS_LOST;
    if (control("not_supported", gpu, function))
        return NOT_SUPPORTED;
    state_lock();
    return SUCCESS;
}

int enter(const char *function, handle which, struct target *target)
{
    if (!users)
        return UNINITIALIZED;
    if (!resolve(which, target))
        return INVALID_ARGUMENT;
    return enter_call(function, target->gpu);
}

/* For what only whole GPUs have. */
int enter_gpu(const char *function, handle which, int *gpu)
{
    struct target target = {-1, -1, -1};
    int code = enter(function, which, &target);

    *gpu = target.gpu;
    return !code && target.gpu_instance >= 0 ? leave(NOT_SUPPORTED) : code;
}

int enter_to_set(const char *function, handle which, int *gpu)
{
    int code = enter_gpu(function, which, gpu);

    return !code && may_not_set(*gpu) ? leave(NO_PERMISSION) : code;
}

bool may_not_set(int gpu) { return geteuid() || control("no_permission", gpu, NULL); }

int leave(int code)
{
    state_unlock();
    return code;
}

static int start(void)
{
    int told = error_if_told("nvmlInit", -1);

    if (told)
        return told;
    if (control("driver_not_loaded", -1, NULL))
        return DRIVER_NOT_LOADED;
    if (control("version_mismatch", -1, NULL))
        return LIB_RM_VERSION_MISMATCH;
    driver_open();
    return SUCCESS;
}

PUBLIC int nvmlInitWithFlags(unsigned flags)
{
    int code;

    (void)flags;
    pthread_mutex_lock(&counting);
    code = users ? SUCCESS : start();
    users += code ? 0 : 1;
    pthread_mutex_unlock(&counting);
    return code;
}

PUBLIC int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
PUBLIC int nvmlInit(void) { return nvmlInitWithFlags(0); }

PUBLIC int nvmlShutdown(void)
{
    int code = SUCCESS;

    hang_if_told("nvmlShutdown", -1);
    pthread_mutex_lock(&counting);
    if (!users)
        code = UNINITIALIZED;
    else if (!--users)
        driver_close();
    pthread_mutex_unlock(&counting);
    return code;
}

PUBLIC const char *nvmlErrorString(int code)
{
    for (size_t at = 0; at < sizeof ERROR_TEXTS / sizeof *ERROR_TEXTS; at++)
        if (ERROR_TEXTS[at].code == code)
            return ERROR_TEXTS[at].text;
    return "Unknown Error";
}

PUBLIC int nvmlDeviceGetCount_v2(unsigned *count)
{
    int code = enter_call("nvmlDeviceGetCount_v2", -1);

    if (!code && !count)
        return leave(INVALID_ARGUMENT);
    if (code)
        return code;
    *count = (unsigned)gpu_count();
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

PUBLIC int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *device)
{
    int code = enter_call("nvmlDeviceGetHandleByIndex_v2", index < GPUS ? (int)index : -1);

    if (code)
        return code;
    if (!device || index >= (unsigned)gpu_count())
        return leave(INVALID_ARGUMENT);
    *device = gpu_handle((int)index);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetHandleByIndex(unsigned index, handle *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}
