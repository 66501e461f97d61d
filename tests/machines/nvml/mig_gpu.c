/* MIG: GPU instances. */

#include "mig.h"

bool overlap(struct placement one, struct placement other)
{
    return one.start < other.start + other.size && other.start < one.start + one.size;
}

static bool slices_free(int gpu, struct placement wanted)
{
    for (int in = 0; in < INSTANCES; in++) {
        struct instance there = instance_at(gpu, in, -1);

        if (there.there && overlap(there.at, wanted))
            return false;
    }
    return true;
}

static unsigned of_profile(int gpu, unsigned id)
{
    unsigned count = 0;

    for (int in = 0; in < INSTANCES; in++) {
        struct instance there = instance_at(gpu, in, -1);

        count += there.there && there.profile == id;
    }
    return count;
}

/* The order in which the driver fills places, least first: as in the examples of NVIDIA's MIG user guide. */
static unsigned rank(struct placement place)
{
    return (place.start >= 6 ? 0 : place.start >= 4 ? 8 : 16) + place.start;
}

/* How many more of a profile fit; where the next one goes stands in `next`. */
static unsigned room_for(int gpu, const struct profile *profile, struct placement *next)
{
    unsigned room = 0, left = profile->instances - of_profile(gpu, profile->id);

    for (unsigned at = 0; at < profile->places; at++) {
        struct placement place = {profile->placements[at].start, profile->placements[at].size};

        if (!slices_free(gpu, place))
            continue;
        if (!room++ || rank(place) < rank(*next))
            *next = place;
    }
    return room < left ? room : left;
}

PUBLIC int nvmlDeviceGetGpuInstanceRemainingCapacity(handle device, unsigned id, unsigned *count)
{
    int gpu, code = enter_gpu("nvmlDeviceGetGpuInstanceRemainingCapacity", device, &gpu);
    const struct profile *profile = profile_of(id);
    struct placement next;

    if (code)
        return code;
    if (!count || !profile)
        return leave(count ? NOT_SUPPORTED : INVALID_ARGUMENT);
    *count = room_for(gpu, profile, &next);
    return leave(SUCCESS);
}

/* As the driver numbers them: by where they lie in the tree of halves of the GPU. */
static int number_at(struct placement at)
{
    return (int)(at.size == 8 ? 0 : at.size == 4 ? 1 + at.start / 4 : at.size == 2 ? 3 + at.start / 2 : 7 + at.start);
}

static bool is_place_of(const struct profile *profile, struct placement wanted)
{
    for (unsigned at = 0; at < profile->places; at++)
        if (profile->placements[at].start == wanted.start && profile->placements[at].size == wanted.size)
            return true;
    return false;
}

static int create(const char *function, handle device, unsigned id, const struct placement *wanted, handle *instance)
{
    const struct profile *profile = profile_of(id);
    int gpu, code = enter_to_set(function, device, &gpu);
    struct placement place;

    if (code)
        return code;
    if (!instance || (profile && wanted && !is_place_of(profile, *wanted)))
        return leave(INVALID_ARGUMENT);
    if (!profile || !mig_on(gpu))
        return leave(NOT_SUPPORTED);
    if (!room_for(gpu, profile, &place) || (wanted && !slices_free(gpu, *wanted)))
        return leave(INSUFFICIENT_RESOURCES);
    place = wanted ? *wanted : place;
    *instance = gpu_instance_handle(gpu, number_at(place));
    return leave(keep_instance(gpu, number_at(place), -1, id, place));
}

PUBLIC int nvmlDeviceCreateGpuInstance(handle device, unsigned id, handle *instance)
{
    return create("nvmlDeviceCreateGpuInstance", device, id, NULL, instance);
}

PUBLIC int nvmlDeviceCreateGpuInstanceWithPlacement(handle device, unsigned id, const struct placement *place,
                                                   handle *instance)
{
    return place ? create("nvmlDeviceCreateGpuInstanceWithPlacement", device, id, place, instance) : INVALID_ARGUMENT;
}

/* Enters a call on an instance that is (still) there. */
int enter_instance(const char *function, handle which, struct target *target, struct instance *found)
{
    int code = enter(function, which, target);

    if (code)
        return code;
    if (target->gpu_instance < 0 || is_mig_handle(which))
        return leave(INVALID_ARGUMENT);
    *found = instance_at(target->gpu, target->gpu_instance, target->compute_instance);
    return found->there ? SUCCESS : leave(INVALID_ARGUMENT);
}

PUBLIC int nvmlGpuInstanceDestroy(handle instance)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceDestroy", instance, &target, &found);

    if (code)
        return code;
    if (may_not_set(target.gpu))
        return leave(NO_PERMISSION);
    for (int each = 0; each < COMPUTES; each++)
        if (instance_at(target.gpu, target.gpu_instance, each).there)
            return leave(IN_USE);
    drop_instance(target.gpu, target.gpu_instance, -1);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetGpuInstances(handle device, unsigned id, handle *instances, unsigned *count)
{
    int gpu, code = enter_gpu("nvmlDeviceGetGpuInstances", device, &gpu);

    if (code)
        return code;
    if (!count || !instances)
        return leave(INVALID_ARGUMENT);
    *count = 0;
    for (int in = 0; in < INSTANCES; in++) {
        struct instance there = instance_at(gpu, in, -1);

        if (there.there && there.profile == id)
            instances[(*count)++] = gpu_instance_handle(gpu, in);
    }
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetGpuInstanceById(handle device, unsigned number, handle *instance)
{
    int gpu, code = enter_gpu("nvmlDeviceGetGpuInstanceById", device, &gpu);

    if (code)
        return code;
    if (!instance)
        return leave(INVALID_ARGUMENT);
    if (number >= INSTANCES || !instance_at(gpu, (int)number, -1).there)
        return leave(NOT_FOUND);
    *instance = gpu_instance_handle(gpu, (int)number);
    return leave(SUCCESS);
}

struct gpu_instance_info { handle device; unsigned number, profile; struct placement at; };

PUBLIC int nvmlGpuInstanceGetInfo(handle instance, struct gpu_instance_info *info)
{
    struct target target;
    struct instance found;
    int code = enter_instance("nvmlGpuInstanceGetInfo", instance, &target, &found);

    if (code)
        return code;
    if (!info)
        return leave(INVALID_ARGUMENT);
    *info = (struct gpu_instance_info){gpu_handle(target.gpu), (unsigned)target.gpu_instance, found.profile, found.at};
    return leave(SUCCESS);
}
