/* MIG: compute instances, and the devices that they make up with their GPU instances. */

#include <stdio.h>
#include <string.h>

#include "mig.h"

enum { SLICE_MULTIPROCESSORS = 16, NAME = 96 };
static const unsigned SLICES[] = {1, 2, 3, 4, 7}; /* by profile, whose number is its id, too */
enum { COMPUTE_PROFILES = sizeof SLICES / sizeof *SLICES };

struct compute_info {
    unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
};
struct compute_info_v2 {
    unsigned version, id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    char name[NAME];
};

/* How often compute instances of a profile fit into an empty GPU instance; 0: not at all. */
static unsigned most_of(const struct profile *parent, unsigned id)
{
    return id < COMPUTE_PROFILES ? parent->slices / SLICES[id] : 0;
}

/* One that fills its GPU instance has all of it; a smaller one has 16 multiprocessors a slice. */
unsigned compute_multiprocessors(const struct profile *parent, unsigned id)
{
    return SLICES[id] == parent->slices ? parent->multiprocessors : SLICES[id] * SLICE_MULTIPROCESSORS;
}

void compute_name(char *name, size_t size, const struct profile *parent, unsigned id)
{
    if (SLICES[id] == parent->slices)
        snprintf(name, size, "%s", parent->name);
    else
        snprintf(name, size, "MIG %uc.%.64s", SLICES[id], parent->name + strlen("MIG "));
}

PUBLIC int nvmlGpuInstanceGetComputeInstanceProfileInfo(handle instance, unsigned id, unsigned engine,
                                                       struct compute_info *info)
{
    struct target target;
    struct instance found;
    const struct profile *parent;
    int code = enter_instance("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, &target, &found);

    if (code)
        return code;
    parent = profile_of(found.profile);
    if (!info || engine)
        return leave(INVALID_ARGUMENT);
    if (!most_of(parent, id))
        return leave(NOT_SUPPORTED);
    *info = (struct compute_info){id, SLICES[id], most_of(parent, id), compute_multiprocessors(parent, id),
                                  parent->copy_engines, parent->decoders, parent->encoders, parent->jpegs,
                                  parent->ofas};
    return leave(SUCCESS);
}

PUBLIC int nvmlGpuInstanceGetComputeInstanceProfileInfoV(handle instance, unsigned id, unsigned engine,
                                                        struct compute_info_v2 *info)
{
    struct compute_info first;
    struct target target;
    int code;

    if (info && info->version != 0x02000088)
        return ARGUMENT_VERSION_MISMATCH;
    code = nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, id, engine, info ? &first : NULL);
    if (code)
        return code;
    *info = (struct compute_info_v2){0, first.id, first.slices, first.instances, first.multiprocessors,
                                     first.copy_engines, first.decoders, first.encoders, first.jpegs, first.ofas, ""};
    resolve(instance, &target);
    compute_name(info->name, sizeof info->name,
                 profile_of(instance_at(target.gpu, target.gpu_instance, -1).profile), id);
    return SUCCESS;
}

static bool free_at(const struct target *in, struct placement wanted)
{
    for (int each = 0; each < COMPUTES; each++) {
        struct instance there = instance_at(in->gpu, in->gpu_instance, each);

        if (there.there && overlap(there.at, wanted))
            return false;
    }
    return true;
}

/* The places for a profile, side by side from the first slice on. */
static unsigned places(const struct profile *parent, unsigned id, struct placement *into)
{
    for (unsigned at = 0; into && at < most_of(parent, id); at++)
        into[at] = (struct placement){at * SLICES[id], SLICES[id]};
    return most_of(parent, id);
}

static unsigned room_in(const struct target *in, const struct profile *parent, unsigned id, struct placement *first)
{
    struct placement all[COMPUTES];
    unsigned room = 0;

    for (unsigned at = places(parent, id, all); at-- > 0;)
        if (free_at(in, all[at])) {
            *first = all[at];
            room++;
        }
    return room;
}

PUBLIC int nvmlGpuInstanceGetComputeInstancePossiblePlacements(handle instance, unsigned id,
                                                              struct placement *placements, unsigned *count)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceGetComputeInstancePossiblePlacements", instance, &target, &found);

    if (code)
        return code;
    if (!count || !most_of(profile_of(found.profile), id))
        return leave(count ? NOT_SUPPORTED : INVALID_ARGUMENT);
    if (placements && *count < most_of(profile_of(found.profile), id))
        return leave(INSUFFICIENT_SIZE);
    *count = places(profile_of(found.profile), id, placements);
    return leave(SUCCESS);
}

PUBLIC int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(handle instance, unsigned id, unsigned *count)
{
    struct placement first;
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", instance, &target, &found);

    if (code)
        return code;
    if (!count || !most_of(profile_of(found.profile), id))
        return leave(count ? NOT_SUPPORTED : INVALID_ARGUMENT);
    *count = room_in(&target, profile_of(found.profile), id, &first);
    return leave(SUCCESS);
}

static int create(const char *function, handle instance, unsigned id, const struct placement *wanted, handle *made)
{
    struct placement place = {0, 0};
    struct target target;
    struct instance found;
    int number = 0, code = enter_instance(function, instance, &target, &found);

    if (code)
        return code;
    if (may_not_set(target.gpu))
        return leave(NO_PERMISSION);
    if (!made || !most_of(profile_of(found.profile), id))
        return leave(made ? NOT_SUPPORTED : INVALID_ARGUMENT);
    if (wanted && (wanted->size != SLICES[id] || wanted->start + wanted->size > profile_of(found.profile)->slices))
        return leave(INVALID_ARGUMENT);
    if (wanted ? !free_at(&target, *wanted) : !room_in(&target, profile_of(found.profile), id, &place))
        return leave(INSUFFICIENT_RESOURCES);
    while (instance_at(target.gpu, target.gpu_instance, number).there)
        number++;
    *made = compute_instance_handle(target.gpu, target.gpu_instance, number);
    return leave(keep_instance(target.gpu, target.gpu_instance, number, id, wanted ? *wanted : place));
}

PUBLIC int nvmlGpuInstanceCreateComputeInstance(handle instance, unsigned id, handle *made)
{
    return create("nvmlGpuInstanceCreateComputeInstance", instance, id, NULL, made);
}

PUBLIC int nvmlGpuInstanceCreateComputeInstanceWithPlacement(handle instance, unsigned id,
                                                            const struct placement *place, handle *made)
{
    return place ? create("nvmlGpuInstanceCreateComputeInstanceWithPlacement", instance, id, place, made)
                 : INVALID_ARGUMENT;
}

PUBLIC int nvmlComputeInstanceDestroy(handle instance)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlComputeInstanceDestroy", instance, &target, &found);

    if (code)
        return code;
    if (target.compute_instance < 0)
        return leave(INVALID_ARGUMENT);
    if (may_not_set(target.gpu))
        return leave(NO_PERMISSION);
    if (busy(target.gpu))
        return leave(IN_USE);
    drop_instance(target.gpu, target.gpu_instance, target.compute_instance);
    return leave(SUCCESS);
}

PUBLIC int nvmlGpuInstanceGetComputeInstances(handle instance, unsigned id, handle *instances, unsigned *count)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceGetComputeInstances", instance, &target, &found);

    if (code)
        return code;
    if (!count || !instances)
        return leave(INVALID_ARGUMENT);
    *count = 0;
    for (int each = 0; each < COMPUTES; each++) {
        struct instance there = instance_at(target.gpu, target.gpu_instance, each);

        if (there.there && there.profile == id)
            instances[(*count)++] = compute_instance_handle(target.gpu, target.gpu_instance, each);
    }
    return leave(SUCCESS);
}

PUBLIC int nvmlGpuInstanceGetComputeInstanceById(handle instance, unsigned number, handle *made)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceGetComputeInstanceById", instance, &target, &found);

    if (code)
        return code;
    if (!made)
        return leave(INVALID_ARGUMENT);
    if (number >= COMPUTES || !instance_at(target.gpu, target.gpu_instance, (int)number).there)
        return leave(NOT_FOUND);
    *made = compute_instance_handle(target.gpu, target.gpu_instance, (int)number);
    return leave(SUCCESS);
}

struct compute_instance_info { handle device, gpu_instance; unsigned number, profile; struct placement at; };

PUBLIC int nvmlComputeInstanceGetInfo_v2(handle instance, struct compute_instance_info *info)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlComputeInstanceGetInfo_v2", instance, &target, &found);

    if (code)
        return code;
    if (!info || target.compute_instance < 0)
        return leave(INVALID_ARGUMENT);
    *info = (struct compute_instance_info){gpu_handle(target.gpu),
                                           gpu_instance_handle(target.gpu, target.gpu_instance),
                                           (unsigned)target.compute_instance, found.profile, found.at};
    return leave(SUCCESS);
}

PUBLIC int nvmlComputeInstanceGetInfo(handle instance, struct compute_instance_info *info)
{
    return nvmlComputeInstanceGetInfo_v2(instance, info);
}
