/* What the parts of the stand-in libnvidia-ml.so.1 share. NVML's own names and numbers are those of its public API. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, LIB_RM_VERSION_MISMATCH = 18, IN_USE = 19,
    INSUFFICIENT_RESOURCES = 23, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999,
};

/* Recorded answers (answers.h, made by generate.py). */

struct profile { /* of MIG GPU instances; `number` is NVML's profile index, `id` what instances are created by */
    unsigned number, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mb;
    char name[96];
    unsigned places;
    struct { unsigned start, size; } placements[8];
};
struct error_text { int code; const char *text; };
struct field { int gpu; unsigned number, type; uint64_t value; };
struct shape { /* one letter an argument: d GPU, i number, o result, r result that tells its version, s n text or
                  array and its size in bytes, c a count and array */
    const char *function, *arguments;
};
struct out { int argument; size_t size, length; const char *bytes; };
struct row { const char *function; int gpu, inputs; unsigned input[3]; int code, outs; struct out out[4]; };

int replay(const char *function, const uintptr_t *arguments);
uint64_t recorded(const char *function, int gpu, unsigned input);
uint64_t recorded_at(int out, const char *function, int gpu, unsigned input);

/* Handles. A function's first act is `enter` (or `enter_call`), its last `leave`. */

typedef void *handle;
struct target { int gpu, gpu_instance, compute_instance; }; /* -1: not that deep */

bool resolve(handle which, struct target *target);
handle gpu_handle(int gpu);
handle gpu_instance_handle(int gpu, int instance);
handle compute_instance_handle(int gpu, int gpu_instance, int instance);
handle mig_handle(int gpu, int gpu_instance, int instance);
bool is_mig_handle(handle which);
int gpu_count(void);

int enter_call(const char *function, int gpu);
int enter(const char *function, handle which, struct target *target);
int enter_gpu(const char *function, handle which, int *gpu);
int enter_to_set(const char *function, handle which, int *gpu);
int leave(int code);
bool may_not_set(int gpu);

/* The control file. */

const char *control(const char *key, int gpu, const char *value);
void hang_if_told(const char *function, int gpu);
int error_if_told(const char *function, int gpu);

/* State: one file a value, below $NODETUNE_NVML_RUN (gone at reboot) and $NODETUNE_NVML_LIB (kept). */

enum store { RUNNING, KEPT };

void state_lock(void);
void state_unlock(void);
void state_path(char *path, size_t size, enum store store, int gpu, const char *name);
int64_t state_get(enum store store, int gpu, const char *name, int64_t otherwise);
int state_put(enum store store, int gpu, const char *name, int64_t value);
void state_drop(enum store store, int gpu, const char *name);
bool lock_is_free(const char *name);

void driver_open(void);
void driver_close(void);

/* Settings that others ask for. */

struct process { unsigned pid; uint64_t memory; };
int processes_on(int gpu, struct process *found, int most);
bool busy(int gpu);
bool persistence_mode(int gpu);

/* MIG. */

void drop_mig(int gpu);
int give_mig_memory(handle device, unsigned long long *sizes); /* total, free, used */
int find_mig(const char *uuid, handle *device);
int nvmlDeviceGetUUID(handle device, char *told, unsigned size);

#endif
