/* Clocks, in MHz: what they may be, what holds them, and where they stand. */

#include <stdio.h>
#include <string.h>

#include "stand_in.h"
#include "answers.h"

enum { GRAPHICS, SM, MEMORY, CLOCK_TYPES = 4 };                 /* nvmlClockType_t */
enum { CURRENT, APPLICATION_TARGET };                           /* nvmlClockId_t */
enum { IDLE = 0x1, APPLICATIONS_CLOCKS_SETTING = 0x2 };         /* clocks event reasons */
static const unsigned TDP = 0xffffff01, UNLIMITED = 0xffffff02; /* nvmlClockLimitId_t */

static bool memory_clock_exists(unsigned clock)
{
    for (size_t at = 0; at < sizeof MEMORY_CLOCKS / sizeof *MEMORY_CLOCKS; at++)
        if (MEMORY_CLOCKS[at] == clock)
            return true;
    return false;
}

static bool graphics_clock_exists(unsigned clock)
{
    return clock >= GRAPHICS_CLOCK_LOWEST && clock <= GRAPHICS_CLOCK_HIGHEST
           && (clock - GRAPHICS_CLOCK_LOWEST) % GRAPHICS_CLOCK_STEP == 0;
}

PUBLIC int nvmlDeviceGetSupportedGraphicsClocks(handle device, unsigned memory, unsigned *count, unsigned *clocks)
{
    unsigned there = (GRAPHICS_CLOCK_HIGHEST - GRAPHICS_CLOCK_LOWEST) / GRAPHICS_CLOCK_STEP + 1, room;
    int gpu, code = enter_gpu("nvmlDeviceGetSupportedGraphicsClocks", device, &gpu);

    if (code)
        return code;
    if (!count || !memory_clock_exists(memory))
        return leave(count ? NOT_FOUND : INVALID_ARGUMENT);
    room = *count;
    *count = there;
    if (!clocks || room < there)
        return leave(INSUFFICIENT_SIZE);
    for (unsigned at = 0; at < there; at++)
        clocks[at] = GRAPHICS_CLOCK_HIGHEST - at * GRAPHICS_CLOCK_STEP;
    return leave(SUCCESS);
}

static unsigned within(unsigned clock, int64_t least, int64_t most)
{
    return clock < least ? (unsigned)least : clock > most ? (unsigned)most : clock;
}

/* A GPU without work idles at its lowest clock, one with work runs at the highest that it may. */
static unsigned current_clock(int gpu, unsigned type)
{
    unsigned idle = (unsigned)recorded("nvmlDeviceGetClockInfo", gpu, type);
    unsigned most = (unsigned)recorded("nvmlDeviceGetMaxClockInfo", gpu, type);
    const char *kind = type == MEMORY ? "memory" : "sm";
    char least_name[32], most_name[32], target_name[32];

    if (type > MEMORY)
        return idle;
    snprintf(least_name, sizeof least_name, "%s_clock_min", kind);
    snprintf(most_name, sizeof most_name, "%s_clock_max", kind);
    snprintf(target_name, sizeof target_name, "applications_clock_%s", kind);
    if (state_get(RUNNING, gpu, most_name, -1) < 0) /* clocks that are locked overrule those for applications */
        most = (unsigned)state_get(RUNNING, gpu, target_name, most);
    return within(processes_on(gpu, NULL, 0) ? most : idle, state_get(RUNNING, gpu, least_name, 0),
                  state_get(RUNNING, gpu, most_name, most));
}

static int give_clock(const char *function, handle device, unsigned type, unsigned id, unsigned *clock)
{
    uintptr_t asked[6] = {(uintptr_t)device, type, (uintptr_t)clock};
    int gpu, code;

    if (id > APPLICATION_TARGET || (id == APPLICATION_TARGET && type > MEMORY) || type >= CLOCK_TYPES) {
        bool of_id = !strcmp(function, "nvmlDeviceGetClock");
        uintptr_t with_id[6] = {(uintptr_t)device, type, id, (uintptr_t)clock};

        return replay(function, of_id ? with_id : asked);
    }
    code = enter_gpu(function, device, &gpu);
    if (code)
        return code;
    if (!clock)
        return leave(INVALID_ARGUMENT);
    *clock = id == CURRENT
                 ? current_clock(gpu, type)
                 : (unsigned)state_get(RUNNING, gpu,
                                       type == MEMORY ? "applications_clock_memory" : "applications_clock_sm",
                                       (int64_t)recorded("nvmlDeviceGetApplicationsClock", gpu, type));
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetClockInfo(handle device, unsigned type, unsigned *clock)
{
    return give_clock("nvmlDeviceGetClockInfo", device, type, CURRENT, clock);
}

PUBLIC int nvmlDeviceGetApplicationsClock(handle device, unsigned type, unsigned *clock)
{
    return give_clock("nvmlDeviceGetApplicationsClock", device, type, APPLICATION_TARGET, clock);
}

PUBLIC int nvmlDeviceGetClock(handle device, unsigned type, unsigned id, unsigned *clock)
{
    return give_clock("nvmlDeviceGetClock", device, type, id, clock);
}

static int lock_clocks(const char *function, handle device, const char *kind, unsigned least, unsigned most)
{
    char least_name[32], most_name[32];
    int gpu, code = enter_to_set(function, device, &gpu);

    if (code)
        return code;
    if (least > most)
        return leave(INVALID_ARGUMENT);
    snprintf(least_name, sizeof least_name, "%s_clock_min", kind);
    snprintf(most_name, sizeof most_name, "%s_clock_max", kind);
    code = state_put(RUNNING, gpu, least_name, least);
    return leave(code ? code : state_put(RUNNING, gpu, most_name, most));
}

static int unlock_clocks(const char *function, handle device, const char *least, const char *most)
{
    int gpu, code = enter_to_set(function, device, &gpu);

    if (code)
        return code;
    state_drop(RUNNING, gpu, least);
    state_drop(RUNNING, gpu, most);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceResetGpuLockedClocks(handle device)
{
    return unlock_clocks("nvmlDeviceResetGpuLockedClocks", device, "sm_clock_min", "sm_clock_max");
}

/* Two clocks, or two of the symbolic limits; a clock beside a symbol is refused. */
PUBLIC int nvmlDeviceSetGpuLockedClocks(handle device, unsigned least, unsigned most)
{
    bool symbols = least >= TDP && most >= TDP;

    if (symbols && least == UNLIMITED && most == UNLIMITED)
        return nvmlDeviceResetGpuLockedClocks(device);
    if (symbols) {
        least = least == TDP ? GRAPHICS_CLOCK_HIGHEST : GRAPHICS_CLOCK_LOWEST;
        most = GRAPHICS_CLOCK_HIGHEST;
    }
    if (most < GRAPHICS_CLOCK_LOWEST || least > GRAPHICS_CLOCK_HIGHEST || (most >= TDP && !symbols))
        most = 0, least = 1;
    return lock_clocks("nvmlDeviceSetGpuLockedClocks", device, "sm", least, most);
}

PUBLIC int nvmlDeviceSetMemoryLockedClocks(handle device, unsigned least, unsigned most)
{
    const size_t last = sizeof MEMORY_CLOCKS / sizeof *MEMORY_CLOCKS - 1;

    if (most < MEMORY_CLOCKS[last] || least > MEMORY_CLOCKS[0])
        most = 0, least = 1;
    return lock_clocks("nvmlDeviceSetMemoryLockedClocks", device, "memory", least, most);
}

PUBLIC int nvmlDeviceResetMemoryLockedClocks(handle device)
{
    return unlock_clocks("nvmlDeviceResetMemoryLockedClocks", device, "memory_clock_min", "memory_clock_max");
}

PUBLIC int nvmlDeviceSetApplicationsClocks(handle device, unsigned memory, unsigned graphics)
{
    int gpu, code = enter_to_set("nvmlDeviceSetApplicationsClocks", device, &gpu);

    if (code)
        return code;
    if (!memory_clock_exists(memory) || !graphics_clock_exists(graphics))
        return leave(INVALID_ARGUMENT);
    code = state_put(RUNNING, gpu, "applications_clock_memory", memory);
    return leave(code ? code : state_put(RUNNING, gpu, "applications_clock_sm", graphics));
}

PUBLIC int nvmlDeviceResetApplicationsClocks(handle device)
{
    return unlock_clocks("nvmlDeviceResetApplicationsClocks", device, "applications_clock_sm",
                         "applications_clock_memory");
}

static int give_reasons(const char *function, handle device, unsigned long long *reasons)
{
    int gpu, code = enter_gpu(function, device, &gpu);

    if (code)
        return code;
    if (!reasons)
        return leave(INVALID_ARGUMENT);
    if (!processes_on(gpu, NULL, 0))
        *reasons = IDLE;
    else
        *reasons = current_clock(gpu, SM) < recorded("nvmlDeviceGetMaxClockInfo", gpu, SM)
                       ? APPLICATIONS_CLOCKS_SETTING : 0;
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetCurrentClocksEventReasons(handle device, unsigned long long *reasons)
{
    return give_reasons("nvmlDeviceGetCurrentClocksEventReasons", device, reasons);
}

PUBLIC int nvmlDeviceGetCurrentClocksThrottleReasons(handle device, unsigned long long *reasons)
{
    return give_reasons("nvmlDeviceGetCurrentClocksThrottleReasons", device, reasons);
}
