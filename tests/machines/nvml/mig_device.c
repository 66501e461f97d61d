/* MIG devices: what applications see, one for each compute instance. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mig.h"
#include "answers.h"

PUBLIC int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned index, handle *mig)
{
    int gpu, code = enter_gpu("nvmlDeviceGetMigDeviceHandleByIndex", device, &gpu);

    if (code)
        return code;
    if (!mig)
        return leave(INVALID_ARGUMENT);
    for (int in = 0; in < INSTANCES; in++)
        for (int each = 0; each < COMPUTES; each++)
            if (instance_at(gpu, in, each).there && !index--) {
                *mig = mig_handle(gpu, in, each);
                return leave(SUCCESS);
            }
    return leave(NOT_FOUND);
}

static int enter_mig(const char *function, handle device, struct target *target, struct instance *found)
{
    int code = enter(function, device, target);

    if (code)
        return code;
    if (!is_mig_handle(device))
        return leave(INVALID_ARGUMENT);
    *found = instance_at(target->gpu, target->gpu_instance, target->compute_instance);
    return found->there ? SUCCESS : leave(NOT_FOUND);
}

PUBLIC int nvmlDeviceIsMigDeviceHandle(handle device, unsigned *is)
{
    struct target target;
    int code = enter("nvmlDeviceIsMigDeviceHandle", device, &target);

    if (code)
        return code;
    if (!is)
        return leave(INVALID_ARGUMENT);
    *is = is_mig_handle(device);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle mig, handle *device)
{
    struct target target;
    struct instance found;
    int code = enter_mig("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig, &target, &found);

    if (code)
        return code;
    if (!device)
        return leave(INVALID_ARGUMENT);
    *device = gpu_handle(target.gpu);
    return leave(SUCCESS);
}

static int give_number(const char *function, handle mig, bool of_compute_instance, unsigned *number)
{
    struct target target;
    struct instance found;
    int code = enter_mig(function, mig, &target, &found);

    if (code)
        return code;
    if (!number)
        return leave(INVALID_ARGUMENT);
    *number = (unsigned)(of_compute_instance ? target.compute_instance : target.gpu_instance);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetGpuInstanceId(handle mig, unsigned *number)
{
    return give_number("nvmlDeviceGetGpuInstanceId", mig, false, number);
}

PUBLIC int nvmlDeviceGetComputeInstanceId(handle mig, unsigned *number)
{
    return give_number("nvmlDeviceGetComputeInstanceId", mig, true, number);
}

static int give_text(const char *text, char *told, unsigned size)
{
    if (!told)
        return INVALID_ARGUMENT;
    return (size_t)snprintf(told, size, "%s", text) < size ? SUCCESS : INSUFFICIENT_SIZE;
}

/* "NVIDIA H200 MIG 1g.18gb" */
PUBLIC int nvmlDeviceGetName(handle device, char *told, unsigned size)
{
    struct target target;
    struct instance found;
    char name[96], text[192];
    int code;

    if (!is_mig_handle(device))
        return replay("nvmlDeviceGetName", (const uintptr_t[6]){(uintptr_t)device, (uintptr_t)told, size});
    code = enter_mig("nvmlDeviceGetName", device, &target, &found);
    if (code)
        return code;
    leave(SUCCESS);
    code = nvmlDeviceGetName(gpu_handle(target.gpu), text, sizeof text);
    if (code)
        return code;
    compute_name(name, sizeof name, profile_of(instance_at(target.gpu, target.gpu_instance, -1).profile),
                 found.profile);
    snprintf(text + strlen(text), sizeof text - strlen(text), " %s", name);
    return give_text(text, told, size);
}

/* A real one is drawn from the GPU's identity and the instance's place; what counts is that it stays the same. */
PUBLIC int nvmlDeviceGetUUID(handle device, char *told, unsigned size)
{
    struct target target;
    struct instance found;
    char text[64];
    int code;

    if (!is_mig_handle(device))
        return replay("nvmlDeviceGetUUID", (const uintptr_t[6]){(uintptr_t)device, (uintptr_t)told, size});
    code = enter_mig("nvmlDeviceGetUUID", device, &target, &found);
    if (code)
        return code;
    snprintf(text, sizeof text, "MIG-00000000-0000-0000-%04x-%04x%08x", target.gpu, target.gpu_instance,
             target.compute_instance);
    return leave(give_text(text, told, size));
}

int find_mig(const char *wanted, handle *device)
{
    char told[64];

    for (int gpu = 0; gpu < gpu_count(); gpu++)
        for (int in = 0; in < INSTANCES; in++)
            for (int each = 0; each < COMPUTES; each++)
                if (!nvmlDeviceGetUUID(mig_handle(gpu, in, each), told, sizeof told) && !strcasecmp(told, wanted)) {
                    *device = mig_handle(gpu, in, each);
                    return SUCCESS;
                }
    return NOT_FOUND;
}

/* Total, free and used bytes: nothing runs in an instance here. */
int give_mig_memory(handle device, unsigned long long *sizes)
{
    struct target target;
    struct instance found;
    int code = enter_mig("nvmlDeviceGetMemoryInfo", device, &target, &found);

    if (code)
        return code;
    if (!sizes)
        return leave(INVALID_ARGUMENT);
    sizes[0] = sizes[1] = profile_of(instance_at(target.gpu, target.gpu_instance, -1).profile)->memory_mb << 20;
    sizes[2] = 0;
    return leave(SUCCESS);
}

struct attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    unsigned long long memory_mb;
};

PUBLIC int nvmlDeviceGetAttributes_v2(handle device, struct attributes *attributes)
{
    const struct profile *parent;
    struct target target;
    struct instance found;
    int code;

    if (!is_mig_handle(device)) /* as recorded: a whole GPU has none */
        return replay("nvmlDeviceGetAttributes_v2", (const uintptr_t[6]){(uintptr_t)device, (uintptr_t)attributes});
    code = enter_mig("nvmlDeviceGetAttributes_v2", device, &target, &found);
    if (code)
        return code;
    if (!attributes)
        return leave(INVALID_ARGUMENT);
    parent = profile_of(instance_at(target.gpu, target.gpu_instance, -1).profile);
    *attributes = (struct attributes){compute_multiprocessors(parent, found.profile), parent->copy_engines,
                                      parent->decoders, parent->encoders, parent->jpegs, parent->ofas,
                                      parent->slices, found.at.size, parent->memory_mb};
    return leave(SUCCESS);
}
