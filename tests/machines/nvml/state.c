/* What is set, kept in files: one file a value, so that tests can read and plant them with a shell. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stand_in.h"

enum { PATH = 512 };

static __thread int held = -1;
static int client = -1;

/* Lost when the driver lets go of a GPU: at the last client's end with persistence mode off, at a reset, at reboot. */
static const char *const LOST_AT_UNLOAD[] = {
    "accounting_mode", "compute_mode", "power_limit", "sm_clock_min", "sm_clock_max", "memory_clock_min",
    "memory_clock_max", "applications_clock_sm", "applications_clock_memory",
};

static const char *folder(enum store store)
{
    const char *told = getenv(store == KEPT ? "NODETUNE_NVML_LIB" : "NODETUNE_NVML_RUN");

    return told ? told : store == KEPT ? "/var/lib/nodetune-nvml" : "/run/nodetune-nvml";
}

void state_path(char *path, size_t size, enum store store, int gpu, const char *name)
{
    if (gpu < 0)
        snprintf(path, size, "%s/%s", folder(store), name);
    else
        snprintf(path, size, "%s/gpu%d/%s", folder(store), gpu, name);
}

/* Any user may be the first client, and the real driver keeps its state in the kernel: so all may write here. */
static void make_folder(const char *path)
{
    if (!mkdir(path, 0777))
        chmod(path, 0777);
}

static int open_lock(const char *name)
{
    char path[PATH];
    int file;

    make_folder(folder(RUNNING));
    state_path(path, sizeof path, RUNNING, -1, name);
    file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    return file;
}

void state_lock(void)
{
    held = open_lock("lock");
    while (held >= 0 && flock(held, LOCK_EX) && errno == EINTR)
        ;
}

void state_unlock(void)
{
    if (held >= 0)
        close(held);
    held = -1;
}

bool lock_is_free(const char *name)
{
    int file = open_lock(name);
    bool free = file < 0 || !flock(file, LOCK_EX | LOCK_NB);

    if (file >= 0)
        close(file);
    return free;
}

int64_t state_get(enum store store, int gpu, const char *name, int64_t otherwise)
{
    char path[PATH];
    int64_t value;
    FILE *file;

    state_path(path, sizeof path, store, gpu, name);
    file = fopen(path, "re");
    if (!file)
        return otherwise;
    if (fscanf(file, "%" SCNd64, &value) == 1)
        otherwise = value;
    fclose(file);
    return otherwise;
}

/* Returns an NVML code: a disk that is full or read-only must not look like a setting that took. */
int state_put(enum store store, int gpu, const char *name, int64_t value)
{
    char path[PATH], fresh[PATH + 8], parent[PATH];
    bool written;
    FILE *file;

    make_folder(folder(store));
    if (gpu >= 0) {
        state_path(parent, sizeof parent, store, gpu, "");
        make_folder(parent);
    }
    state_path(path, sizeof path, store, gpu, name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    file = fopen(fresh, "we");
    if (!file)
        return UNKNOWN;
    fchmod(fileno(file), 0666);
    written = fprintf(file, "%" PRId64 "\n", value) > 0;
    return !fclose(file) && written && !rename(fresh, path) ? SUCCESS : UNKNOWN;
}

void state_drop(enum store store, int gpu, const char *name)
{
    char path[PATH];

    state_path(path, sizeof path, store, gpu, name);
    unlink(path);
}

static void unload(int gpu)
{
    for (size_t at = 0; at < sizeof LOST_AT_UNLOAD / sizeof *LOST_AT_UNLOAD; at++)
        state_drop(RUNNING, gpu, LOST_AT_UNLOAD[at]);
}

static void load(int gpu)
{
    int64_t pending = state_get(KEPT, gpu, "ecc_mode_pending", -1);

    if (pending >= 0)
        state_put(RUNNING, gpu, "ecc_mode_current", pending);
}

static void reset(int gpu)
{
    unload(gpu);
    drop_mig(gpu);
    load(gpu);
    state_drop(RUNNING, gpu, "reset");
}

static bool stays_loaded(int gpu)
{
    return persistence_mode(gpu) || processes_on(gpu, NULL, 0) || control("keep_without_clients", gpu, "1");
}

/* Every client holds a shared lock for as long as it lives. One that can have it alone is the first: the driver let go
   of the GPUs when the last one before it ended, and that is made up for now, before anybody can look. */
static void catch_up(void)
{
    bool first = client >= 0 && !flock(client, LOCK_EX | LOCK_NB);
    bool booted = !state_get(RUNNING, -1, "loaded", 0);

    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        if (first && !stays_loaded(gpu))
            unload(gpu);
        if (booted)
            load(gpu);
        if (state_get(RUNNING, gpu, "reset", 0))
            reset(gpu);
    }
    if (booted)
        state_put(RUNNING, -1, "loaded", 1);
}

void driver_open(void)
{
    state_lock();
    client = open_lock("clients");
    catch_up();
    if (client >= 0)
        flock(client, LOCK_SH);
    state_unlock();
}

void driver_close(void)
{
    if (client >= 0)
        close(client);
    client = -1;
}
