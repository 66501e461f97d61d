/* A libcuda.so.1, and a libcublasLt, without a GPU: device memory is the host's, kernels are known by name, and time is
 * reckoned: every stream has a clock, and work moves it on by what it would take at the rates below.
 *
 * STAND_IN_GPUS: how many there are (2). STAND_IN_FAULT: what is wrong, KIND or KIND:GPU:
 *   none (no GPU), mismatch (another driver version), no_jit, taken (exclusive mode), full (memory), hang (at opening),
 *   wrong (copies to the GPU damage one byte), slow (everything takes twice as long), far (no peer access),
 *   lost (work fails), miscount (one thread of a load kernel gives another result).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS 8
#define MEMORY ((size_t)512 << 20)
#define H2D 55e9
#define D2H 54e9
#define WITHIN 2133e9 /* bytes copied: twice that is read and written */
#define PEER 394e9
#define THROUGH_HOST 20e9
#define FLOPS 600e12
#define PRODUCT_FLOPS 1e9 /* about what a plain loop of the CPU does */

typedef struct { int number; size_t used; int reaches[GPUS]; } Gpu;
typedef struct { double now; } Stream;
typedef struct { double at; } Event;
typedef struct { char name[16]; } Kernel;
typedef struct { uint64_t rows; } Layout;

static Gpu gpus[GPUS];
static __thread Gpu *current;
static __thread Stream usual;
static struct { char *start; size_t size; Gpu *gpu; } taken[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int count(void) { const char *text = getenv("STAND_IN_GPUS"); return text ? atoi(text) : 2; }

static int fault(const char *kind, const Gpu *gpu)
{
    const char *text = getenv("STAND_IN_FAULT");
    size_t length = strlen(kind);
    if (!text || strncmp(text, kind, length) || (text[length] && text[length] != ':'))
        return 0;
    return !text[length] || (gpu && atoi(text + length + 1) == gpu->number);
}

static int spend(Stream *stream, double seconds)
{
    (stream ? stream : &usual)->now += fault("slow", current) ? 2 * seconds : seconds;
    return fault("lost", current) ? 719 : 0;
}

/* About the driver and the GPUs */

static const struct { int code; const char *name, *text; } errors[] = {
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};

static int explained(int code, const char **answer, int name)
{
    for (size_t at = 0; at < sizeof errors / sizeof *errors; at++)
        if (errors[at].code == code) {
            *answer = name ? errors[at].name : errors[at].text;
            return 0;
        }
    return 1;
}
int cuGetErrorName(int code, const char **answer) { return explained(code, answer, 1); }
int cuGetErrorString(int code, const char **answer) { return explained(code, answer, 0); }
int cuInit(unsigned flags)
{
    for (int number = 0; number < GPUS; number++)
        gpus[number].number = number;
    return fault("none", NULL) ? 100 : fault("mismatch", NULL) ? 803 : (int)flags;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *answer) { *answer = count(); return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Stand-in %d", device); return 0; }
int cuDeviceGetPCIBusId(char *bdf, int size, int device)
{
    snprintf(bdf, size, "0000:%02X:00.0", 0x18 + 0x10 * device);
    return 0;
}
int cuDeviceGetAttribute(int *answer, int which, int device)
{
    *answer = which == 16 ? 2 : which == 75 ? 9 : device * 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(Gpu **context, int device)
{
    *context = &gpus[device];
    while (fault("hang", *context))
        pause();
    return fault("taken", *context) ? 46 : 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device * 0; }
int cuCtxSetCurrent(Gpu *context) { current = context; return 0; }
int cuCtxSynchronize(void) { return fault("lost", current) ? 719 : 0; }
int cuDeviceCanAccessPeer(int *answer, int device, int other)
{
    *answer = device != other && !fault("far", NULL);
    return 0;
}
int cuCtxEnablePeerAccess(Gpu *other, unsigned flags) { current->reaches[other->number] = 1; return (int)flags; }

/* Memory */

int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    *total = MEMORY;
    *left = fault("full", current) ? 8 << 20 : MEMORY - current->used;
    return 0;
}
int cuMemAlloc_v2(char **address, size_t size)
{
    size_t left, total;
    cuMemGetInfo_v2(&left, &total);
    if (size > left || !(*address = malloc(size)))
        return 2;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < 256; at++)
        if (!taken[at].start) {
            taken[at].start = *address, taken[at].size = size, taken[at].gpu = current;
            break;
        }
    current->used += size;
    pthread_mutex_unlock(&lock);
    return 0;
}
int cuMemFree_v2(char *address)
{
    for (size_t at = 0; at < 256; at++)
        if (taken[at].start == address) {
            taken[at].gpu->used -= taken[at].size;
            taken[at].start = NULL;
            free(address);
            return 0;
        }
    return 1;
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) { return (*address = malloc(size)) ? (int)flags - 1 : 2; }
int cuMemFreeHost(void *address) { free(address); return 0; }

static int copy(char *to, const char *from, size_t size, Stream *stream, double rate)
{
    memcpy(to, from, size);
    return spend(stream, size / rate);
}
int cuMemcpyHtoDAsync_v2(char *to, const char *from, size_t size, Stream *stream)
{
    int status = copy(to, from, size, stream, H2D);
    if (fault("wrong", current))
        to[size / 2] ^= 1;
    return status;
}
int cuMemcpyDtoHAsync_v2(char *to, const char *from, size_t size, Stream *stream) { return copy(to, from, size, stream, D2H); }
int cuMemcpyHtoD_v2(char *to, const char *from, size_t size) { return copy(to, from, size, NULL, H2D); }
int cuMemcpyDtoH_v2(char *to, const char *from, size_t size) { return copy(to, from, size, NULL, D2H); }
int cuMemcpyDtoDAsync_v2(char *to, const char *from, size_t size, Stream *stream)
{
    int status = copy(to, from, size, stream, WITHIN);
    if (fault("wrong", current))
        to[size / 2] ^= 1;
    return status;
}
int cuMemcpyPeerAsync(char *to, Gpu *other, const char *from, Gpu *own, size_t size, Stream *stream)
{
    int direct = own->reaches[other->number] && other->reaches[own->number];
    int status = copy(to, from, size, stream, direct ? PEER : THROUGH_HOST);
    if (fault("wrong", other))
        to[size / 2] ^= 1;
    return status;
}
int cuMemsetD8Async(char *to, unsigned char value, size_t size, Stream *stream)
{
    memset(to, value, size);
    return spend(stream, size / WITHIN);
}

/* Streams and events: everything is done when it is queued */

int cuStreamCreate(Stream **stream, unsigned flags) { *stream = calloc(1, sizeof **stream); return (int)flags - 1; }
int cuStreamSynchronize(Stream *stream) { return spend(stream, 0); }
int cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags)
{
    stream->now = stream->now > event->at ? stream->now : event->at;
    return (int)flags;
}
int cuEventCreate(Event **event, unsigned flags) { *event = calloc(1, sizeof **event); return (int)flags; }
int cuEventRecord(Event *event, Stream *stream) { event->at = (stream ? stream : &usual)->now; return 0; }
int cuEventQuery(Event *event) { return event ? 0 : 400; }
int cuEventElapsedTime(float *milliseconds, Event *start, Event *end)
{
    *milliseconds = (float)((end->at - start->at) * 1e3);
    return 0;
}

/* Kernels */

int cuModuleLoadData(char **module, const char *text) { *module = strdup(text); return fault("no_jit", NULL) ? 221 : 0; }
int cuModuleGetFunction(Kernel **kernel, const char *module, const char *name)
{
    char entry[64];
    snprintf(entry, sizeof entry, ".visible .entry %s(", name);
    if (!strstr(module, entry))
        return 500;
    *kernel = calloc(1, sizeof **kernel);
    snprintf((*kernel)->name, sizeof (*kernel)->name, "%s", name);
    return 0;
}

static uint32_t mixed(uint32_t word)
{
    word *= 0x9E3779B1u;
    word = (word ^ word >> 15) * 0x85EBCA77u;
    return word ^ word >> 13;
}
static uint32_t bell(uint32_t number)
{
    uint32_t bits, word = mixed(number);
    float value = ((word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24) - 510.0f) / 147.8f;
    memcpy(&bits, &value, 4);
    return bits >> 16;
}
static void check(const uint32_t *memory, uint64_t words, uint32_t seed, uint64_t *wrong)
{
    for (uint64_t at = 0; at < words; at++)
        if (memory[at] != mixed((uint32_t)at + seed)) {
            wrong[0]++;
            wrong[1] = at < wrong[1] ? at : wrong[1];
        }
}
static double load(uint32_t *memory, uint64_t threads, uint32_t rounds, double flops)
{
    for (uint64_t at = 0; at < threads; at++)
        memory[at] = memory[at] * 0x9E3779B1u + mixed(rounds + at % 32) + (at == 77 && fault("miscount", current));
    return threads * (double)rounds * flops / FLOPS;
}
int cuLaunchKernel(Kernel *kernel, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, Stream *stream, void **given, void **extra)
{
    uint32_t *memory = given ? *(uint32_t **)given[0] : NULL;
    double seconds = 2e-6;
    if (y * z * ty * tz != 1 || shared || extra)
        return 1;
    if (!strcmp(kernel->name, "mma") || !strcmp(kernel->name, "fma")) {
        double flops = kernel->name[0] == 'm' ? 4096 : 256;
        seconds = load(memory, (uint64_t)blocks * threads, *(uint32_t *)given[1], flops);
    } else if (strcmp(kernel->name, "empty")) {
        uint64_t words = *(uint64_t *)given[1];
        uint32_t seed = *(uint32_t *)given[2];
        if (!strcmp(kernel->name, "check"))
            check(memory, words, seed, *(uint64_t **)given[3]);
        for (uint64_t at = 0; at < words && strcmp(kernel->name, "check"); at++)
            memory[at] = kernel->name[0] == 'f' ? mixed((uint32_t)at + seed)
                                                : bell(2 * ((uint32_t)at + seed)) | bell(2 * ((uint32_t)at + seed) + 1) << 16;
    }
    return spend(stream, seconds);
}

/* cuBLASLt: one kind of product, Aᵀ·B of square matrices */

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(int status) { return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS"; }
int cublasLtCreate(void **handle) { *handle = calloc(1, 8); return 0; }
int cublasLtMatmulDescCreate(void **what, int compute, int scale) { *what = calloc(1, 8); return compute == 68 && !scale ? 0 : 15; }
int cublasLtMatmulDescSetAttribute(void *what, int name, const int *value, size_t size)
{
    return what && name == 3 && *value == 1 && size == 4 ? 0 : 15;
}
int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
    *layout = calloc(1, sizeof **layout);
    (*layout)->rows = rows;
    return type == 14 && rows == columns && (int64_t)rows == lead ? 0 : 15;
}
int cublasLtMatmulPreferenceCreate(void **preference) { *preference = calloc(1, 8); return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *preference, int name, const size_t *value, size_t size)
{
    return preference && name == 1 && *value && size == 8 ? 0 : 15;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *what, Layout *a, Layout *b, Layout *c, Layout *d, void *preference,
                                   int wanted, void *found, int *number)
{
    *number = handle && what && a && b && c && d && preference && found && wanted == 1;
    return 0;
}
static float wide(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
int cublasLtMatmul(void *handle, void *what, const float *alpha, const uint16_t *a, Layout *la, const uint16_t *b, Layout *lb,
                   const float *beta, const uint16_t *c, Layout *lc, uint16_t *d, Layout *ld, void *algorithm,
                   void *workspace, size_t size, Stream *stream)
{
    uint64_t n = la->rows;
    if (!handle || !what || *alpha != 1 || *beta != 0 || c != d || lb != la || lc != la || ld != la || !algorithm
        || !workspace || !size)
        return 15;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++) {
            float sum = 0;
            uint32_t bits;
            for (uint64_t k = 0; k < n; k++)
                sum += wide(a[k + i * n]) * wide(b[k + j * n]);
            memcpy(&bits, &sum, 4);
            d[i + j * n] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        }
    if (fault("wrong", current))
        memset(d, 0, 2 * n * n);
    return spend(stream, 2.0 * n * n * n / PRODUCT_FLOPS) ? 13 : 0;
}
