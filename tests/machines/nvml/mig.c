/* MIG: what is kept, the mode, and the profiles of GPU instances. */

#include <stdio.h>
#include <string.h>

#include "mig.h"
#include "answers.h"

enum { MAX_DEVICES = 7 };

/* An instance is a file that says profile, start and size in one number. */

static void file_name(char *name, size_t size, int gpu_instance, int compute_instance)
{
    if (compute_instance < 0)
        snprintf(name, size, "gi%d", gpu_instance);
    else
        snprintf(name, size, "gi%d-ci%d", gpu_instance, compute_instance);
}

struct instance instance_at(int gpu, int gpu_instance, int compute_instance)
{
    char name[32];
    int64_t found;

    file_name(name, sizeof name, gpu_instance, compute_instance);
    found = state_get(RUNNING, gpu, name, -1);
    if (found < 0)
        return (struct instance){.there = false};
    return (struct instance){true, (unsigned)(found / 10000),
                             {(unsigned)(found / 100 % 100), (unsigned)(found % 100)}};
}

int keep_instance(int gpu, int gpu_instance, int compute_instance, unsigned profile, struct placement at)
{
    char name[32];

    file_name(name, sizeof name, gpu_instance, compute_instance);
    return state_put(RUNNING, gpu, name, (int64_t)profile * 10000 + at.start * 100 + at.size);
}

void drop_instance(int gpu, int gpu_instance, int compute_instance)
{
    char name[32];

    file_name(name, sizeof name, gpu_instance, compute_instance);
    state_drop(RUNNING, gpu, name);
}

static bool has_instances(int gpu)
{
    for (int instance = 0; instance < INSTANCES; instance++)
        if (instance_at(gpu, instance, -1).there)
            return true;
    return false;
}

void drop_mig(int gpu)
{
    state_drop(RUNNING, gpu, "mig_mode_current");
    state_drop(RUNNING, gpu, "mig_mode_pending");
    for (int in = 0; in < INSTANCES; in++) {
        drop_instance(gpu, in, -1);
        for (int instance = 0; instance < COMPUTES; instance++)
            drop_instance(gpu, in, instance);
    }
}

/* The mode. */

bool mig_on(int gpu) { return state_get(RUNNING, gpu, "mig_mode_current", 0); }

PUBLIC int nvmlDeviceGetMigMode(handle device, unsigned *current, unsigned *pending)
{
    int gpu, code = enter_gpu("nvmlDeviceGetMigMode", device, &gpu);

    if (code)
        return code;
    if (!current || !pending)
        return leave(INVALID_ARGUMENT);
    *current = mig_on(gpu);
    *pending = (unsigned)state_get(RUNNING, gpu, "mig_mode_pending", *current);
    return leave(SUCCESS);
}

/* From Hopper on the mode takes effect at once where the GPU is idle. Where it is not, the call succeeds, the mode is
   pending, and `status` says why. */
PUBLIC int nvmlDeviceSetMigMode(handle device, unsigned mode, int *status)
{
    int gpu, code = enter_to_set("nvmlDeviceSetMigMode", device, &gpu);

    if (code)
        return code;
    if (mode > 1 || !status)
        return leave(INVALID_ARGUMENT);
    *status = busy(gpu) || (!mode && has_instances(gpu)) ? IN_USE : SUCCESS;
    code = state_put(RUNNING, gpu, "mig_mode_pending", mode);
    if (!code && !*status)
        code = state_put(RUNNING, gpu, "mig_mode_current", mode);
    return leave(code);
}

PUBLIC int nvmlDeviceGetMaxMigDeviceCount(handle device, unsigned *count)
{
    int gpu, code = enter_gpu("nvmlDeviceGetMaxMigDeviceCount", device, &gpu);

    if (code)
        return code;
    if (!count)
        return leave(INVALID_ARGUMENT);
    *count = mig_on(gpu) ? MAX_DEVICES : 0;
    return leave(SUCCESS);
}

/* Profiles of GPU instances. */

const struct profile *profile_of(unsigned id)
{
    for (size_t at = 0; at < sizeof PROFILES / sizeof *PROFILES; at++)
        if (PROFILES[at].id == id)
            return &PROFILES[at];
    return NULL;
}

static const struct profile *profile_numbered(unsigned number)
{
    for (size_t at = 0; at < sizeof PROFILES / sizeof *PROFILES; at++)
        if (PROFILES[at].number == number)
            return &PROFILES[at];
    return NULL;
}

struct profile_info {
    unsigned id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mb;
};
struct profile_info_v2 {
    unsigned version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mb;
    char name[96];
};

PUBLIC int nvmlDeviceGetGpuInstanceProfileInfo(handle device, unsigned number, struct profile_info *info)
{
    int gpu, code = enter_gpu("nvmlDeviceGetGpuInstanceProfileInfo", device, &gpu);
    const struct profile *found = profile_numbered(number);

    if (code)
        return code;
    if (!info || !found)
        return leave(info ? NOT_SUPPORTED : INVALID_ARGUMENT);
    *info = (struct profile_info){found->id, found->p2p, found->slices, found->instances, found->multiprocessors,
                                  found->copy_engines, found->decoders, found->encoders, found->jpegs, found->ofas,
                                  found->memory_mb};
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetGpuInstanceProfileInfoV(handle device, unsigned number, struct profile_info_v2 *info)
{
    struct profile_info first;
    int code;

    if (info && info->version != 0x02000098)
        return ARGUMENT_VERSION_MISMATCH;
    code = nvmlDeviceGetGpuInstanceProfileInfo(device, number, info ? &first : NULL);
    if (code)
        return code;
    /* the real driver clears the version, too */
    *info = (struct profile_info_v2){0, first.id, first.p2p, first.slices, first.instances, first.multiprocessors,
                                     first.copy_engines, first.decoders, first.encoders, first.jpegs, first.ofas,
                                     first.memory_mb, ""};
    memcpy(info->name, profile_numbered(number)->name, sizeof info->name);
    return SUCCESS;
}

PUBLIC int nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle device, unsigned id, struct placement *placements,
                                                        unsigned *count)
{
    int gpu, code = enter_gpu("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device, &gpu);
    const struct profile *profile = profile_of(id);

    if (code)
        return code;
    if (!count || !profile)
        return leave(count ? NOT_SUPPORTED : INVALID_ARGUMENT);
    if (placements && *count < profile->places)
        return leave(INSUFFICIENT_SIZE);
    *count = profile->places;
    for (unsigned at = 0; placements && at < profile->places; at++)
        placements[at] = (struct placement){profile->placements[at].start, profile->placements[at].size};
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetGpuInstancePossiblePlacements(handle device, unsigned id, struct placement *placements,
                                                     unsigned *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}
