/* What can be set on a whole GPU, and what is read back of it. */

#include "stand_in.h"

enum { BY_CLIENT = 1, BY_DAEMON = 2 };         /* who switched persistence mode on */
enum { COMPUTE_MODES = 4 };

/* One value of a GPU: what was set, else what was recorded. */
static int give_setting(const char *function, handle device, const char *name, unsigned *value)
{
    int gpu, code = enter_gpu(function, device, &gpu);

    if (code)
        return code;
    if (!value)
        return leave(INVALID_ARGUMENT);
    *value = (unsigned)state_get(RUNNING, gpu, name, (int64_t)recorded(function, gpu, 0));
    return leave(SUCCESS);
}

static int set(const char *function, handle device, const char *name, unsigned value, unsigned values)
{
    int gpu, code = enter_to_set(function, device, &gpu);

    if (code)
        return code;
    return leave(value < values ? state_put(RUNNING, gpu, name, value) : INVALID_ARGUMENT);
}

/* Persistence mode. The daemon's part is in its lock: when it dies, however it dies, the mode goes with it. */

bool persistence_mode(int gpu)
{
    int64_t by = state_get(RUNNING, gpu, "persistence_mode", 0);

    return by == BY_CLIENT || (by == BY_DAEMON && !lock_is_free("persistenced"));
}

PUBLIC int nvmlDeviceGetPersistenceMode(handle device, unsigned *mode)
{
    int gpu, code = enter_gpu("nvmlDeviceGetPersistenceMode", device, &gpu);

    if (code)
        return code;
    if (!mode)
        return leave(INVALID_ARGUMENT);
    *mode = persistence_mode(gpu);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceSetPersistenceMode(handle device, unsigned mode)
{
    int gpu, code = enter_to_set("nvmlDeviceSetPersistenceMode", device, &gpu);

    if (code)
        return code;
    if (mode > 1)
        return leave(INVALID_ARGUMENT);
    if (mode)
        mode = lock_is_free("persistenced") ? BY_CLIENT : BY_DAEMON;
    return leave(state_put(RUNNING, gpu, "persistence_mode", mode));
}

/* Accounting and compute mode. */

PUBLIC int nvmlDeviceGetAccountingMode(handle device, unsigned *mode)
{
    return give_setting("nvmlDeviceGetAccountingMode", device, "accounting_mode", mode);
}

PUBLIC int nvmlDeviceSetAccountingMode(handle device, unsigned mode)
{
    return set("nvmlDeviceSetAccountingMode", device, "accounting_mode", mode, 2);
}

PUBLIC int nvmlDeviceGetComputeMode(handle device, unsigned *mode)
{
    return give_setting("nvmlDeviceGetComputeMode", device, "compute_mode", mode);
}

/* Exclusive thread (1) went with CUDA 8. */
PUBLIC int nvmlDeviceSetComputeMode(handle device, unsigned mode)
{
    return set("nvmlDeviceSetComputeMode", device, "compute_mode", mode == 1 ? COMPUTE_MODES : mode, COMPUTE_MODES);
}

/* ECC: pending is kept in the GPU, current is what pending was at the last reset. */

PUBLIC int nvmlDeviceGetEccMode(handle device, unsigned *current, unsigned *pending)
{
    int gpu, code = enter_gpu("nvmlDeviceGetEccMode", device, &gpu);
    int64_t on;

    if (code)
        return code;
    if (!current || !pending)
        return leave(INVALID_ARGUMENT);
    on = (int64_t)recorded("nvmlDeviceGetEccMode", gpu, 0);
    *current = (unsigned)state_get(RUNNING, gpu, "ecc_mode_current", on);
    *pending = (unsigned)state_get(KEPT, gpu, "ecc_mode_pending", on);
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceSetEccMode(handle device, unsigned mode)
{
    int gpu, code = enter_to_set("nvmlDeviceSetEccMode", device, &gpu);

    if (code)
        return code;
    if (mode > 1)
        return leave(INVALID_ARGUMENT);
    if (control("busy", gpu, NULL))
        return leave(IN_USE);
    return leave(state_put(KEPT, gpu, "ecc_mode_pending", mode));
}

/* Power, in milliwatts. */

PUBLIC int nvmlDeviceGetPowerManagementLimit(handle device, unsigned *limit)
{
    return give_setting("nvmlDeviceGetPowerManagementLimit", device, "power_limit", limit);
}

PUBLIC int nvmlDeviceGetEnforcedPowerLimit(handle device, unsigned *limit)
{
    return give_setting("nvmlDeviceGetEnforcedPowerLimit", device, "power_limit", limit);
}

static int set_power_limit(const char *function, handle device, unsigned limit)
{
    int gpu, code = enter_to_set(function, device, &gpu);
    static const char constraints[] = "nvmlDeviceGetPowerManagementLimitConstraints";

    if (code)
        return code;
    if (limit < recorded_at(0, constraints, gpu, 0) || limit > recorded_at(1, constraints, gpu, 0))
        return leave(INVALID_ARGUMENT);
    return leave(state_put(RUNNING, gpu, "power_limit", limit));
}

PUBLIC int nvmlDeviceSetPowerManagementLimit(handle device, unsigned limit)
{
    return set_power_limit("nvmlDeviceSetPowerManagementLimit", device, limit);
}

struct power_value { unsigned version, scope, milliwatts; };

PUBLIC int nvmlDeviceSetPowerManagementLimit_v2(handle device, const struct power_value *value)
{
    if (!value)
        return INVALID_ARGUMENT;
    if (value->version != 0x0200000c)
        return ARGUMENT_VERSION_MISMATCH;
    if (value->scope) /* the whole module, and memory: of Grace Hopper and later */
        return NOT_SUPPORTED;
    return set_power_limit("nvmlDeviceSetPowerManagementLimit_v2", device, value->milliwatts);
}
