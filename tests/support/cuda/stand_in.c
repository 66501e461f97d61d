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
#define READING 3000e9
#define WAITING 400e-9
#define FLOPS 600e12
#define PRODUCT_FLOPS 1e9 /* about what a plain loop of the CPU does */

typedef struct { int number; size_t used; int reaches[GPUS]; } Gpu;
typedef struct { double now, recorded_from; } Stream;
typedef struct { double at; } Event;
typedef struct { char name[16]; } Kernel;
typedef struct { uint64_t rows, columns; int type; } Layout;

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
    *answer = which == 16 ? 2 : which == 75 ? 9 : which == 38 ? 1 << 20 : device * 0;
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

/* Graphs: what is recorded is done at once; a launch takes its time again */

int cuStreamBeginCapture_v2(Stream *stream, int mode) { stream->recorded_from = stream->now; return mode == 2 ? 0 : 1; }
int cuStreamEndCapture(Stream *stream, double **graph)
{
    *graph = malloc(sizeof **graph);
    **graph = stream->now - stream->recorded_from;
    stream->now = stream->recorded_from;
    return 0;
}
int cuGraphInstantiate_v2(double **made, double *graph, void *node, char *log, size_t size)
{
    *made = graph;
    return node || log || size ? 1 : 0;
}
int cuGraphLaunch(double *graph, Stream *stream)
{
    stream->now += *graph;
    return fault("lost", current) ? 719 : 0;
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
static double read_all(const uint32_t *memory, uint64_t units, uint32_t rounds, uint32_t *sums, uint64_t threads)
{
    for (uint64_t thread = 0; thread < threads; thread++) {
        uint32_t sum = fault("wrong", current);
        for (uint64_t word = 4 * thread; word < 4 * units; word += word % 4 == 3 ? 4 * threads - 3 : 1)
            sum += memory[word];
        sums[thread] = rounds * sum;
    }
    return 16.0 * units * rounds / READING;
}
static double chase(const char *memory, uint64_t at, uint32_t steps, uint64_t *end)
{
    for (uint32_t step = 0; step < steps; step++)
        at = *(const uint64_t *)(memory + 256 * at);
    *end = at ^ (uint64_t)fault("wrong", current);
    return steps * WAITING;
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
    } else if (!strcmp(kernel->name, "stream")) {
        uint64_t all = (uint64_t)blocks * threads;
        seconds = read_all(memory, *(uint64_t *)given[1], *(uint32_t *)given[2], *(uint32_t **)given[3], all);
    } else if (!strcmp(kernel->name, "chain")) {
        uint64_t lines = *(uint64_t *)given[1];
        for (uint64_t at = 0; at < lines; at++)
            *(uint64_t *)((char *)memory + 256 * at) = (5 * at + 12345) % lines;
    } else if (!strcmp(kernel->name, "chase")) {
        seconds = chase((char *)memory, *(uint64_t *)given[1], *(uint32_t *)given[2], *(uint64_t **)given[3]);
    } else if (strcmp(kernel->name, "empty")) {
        uint64_t words = *(uint64_t *)given[1];
        uint32_t seed = *(uint32_t *)given[2];
        if (!strcmp(kernel->name, "check"))
            check(memory, words, seed, *(uint64_t **)given[3]);
        for (uint64_t at = 0; at < words && !strcmp(kernel->name, "bits"); at++)
            memory[at] = (mixed((uint32_t)at + seed) & *(uint32_t *)given[3]) | *(uint32_t *)given[4];
        for (uint64_t at = 0; at < words && strcmp(kernel->name, "check") && strcmp(kernel->name, "bits"); at++)
            memory[at] = kernel->name[0] == 'f' ? mixed((uint32_t)at + seed)
                                                : bell(2 * ((uint32_t)at + seed)) | bell(2 * ((uint32_t)at + seed) + 1) << 16;
    }
    return spend(stream, seconds);
}

/* cuBLASLt: products Aᵀ·B and A·B, of all formats but TF32 (as on a GPU that has no such tensor cores) */

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(int status) { return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS"; }
int cublasLtCreate(void **handle) { *handle = calloc(1, 8); return 0; }
enum { FP32 = 0, FP16 = 2, INT8 = 3, INT32 = 10, BF16 = 14, FP8 = 28 };

int cublasLtMatmulDescCreate(int **what, int compute, int scale)
{
    *what = calloc(2, sizeof **what);
    **what = compute;
    return scale == (compute == 72 ? INT32 : FP32) ? 0 : 15;
}
int cublasLtMatmulDescSetAttribute(int *what, int name, const void *value, size_t size)
{
    int turned = name == 3 && size == 4 && *(const int *)value == 1, fast = name == 25 && size == 1;
    if (what && turned)
        what[1] = 1;
    return what && (turned || fast) ? 0 : 15;
}
int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
    *layout = calloc(1, sizeof **layout);
    (*layout)->rows = rows, (*layout)->columns = columns, (*layout)->type = type;
    return (int64_t)rows == lead ? 0 : 15;
}
int cublasLtMatmulPreferenceCreate(void **preference) { *preference = calloc(1, 8); return 0; }
int cublasLtMatmulPreferenceSetAttribute(size_t *preference, int name, const size_t *value, size_t size)
{
    if (preference && value)
        *preference = *value;
    return preference && name == 1 && value && size == 8 ? 0 : 15;
}
/* The algorithm without a workspace takes four fifths of the time, and A·B nine tenths. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, int *what, Layout *a, Layout *b, Layout *c, Layout *d, size_t *preference,
                                   int wanted, uint64_t *found, int *number)
{
    *number = handle && what && a && b && c && d && preference && found && wanted == 1;
    if (*number)
        *found = !*preference;
    return *what == 77 ? 15 : 0;
}
static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static double value(const void *matrix, int type, uint64_t at)
{
    uint32_t bits = type == FP16 || type == BF16 ? ((const uint16_t *)matrix)[at] : ((const uint8_t *)matrix)[at];
    double scaled;
    switch (type) {
    case FP32: return ((const float *)matrix)[at];
    case BF16: return of_bits(bits << 16);
    case INT8: return ((const int8_t *)matrix)[at];
    case FP16: /* the exponent moved to that of a float; none of the inputs is so small that it has none */
        return of_bits((bits & 0x8000) << 16 | ((bits & 0x7FFF) + (112 << 10)) << 13);
    default: /* E4M3 */
        scaled = bits & 0x78 ? (8 + (bits & 7)) * (double)(1 << (bits >> 3 & 15)) : 2 * (bits & 7);
        return (bits & 0x80 ? -scaled : scaled) / 1024;
    }
}
static void store(void *matrix, int type, uint64_t at, double sum)
{
    float value = (float)sum;
    uint32_t bits, size;
    memcpy(&bits, &value, 4);
    switch (type) {
    case FP32: ((float *)matrix)[at] = value; break;
    case INT32: ((int32_t *)matrix)[at] = (int32_t)sum; break;
    case BF16: ((uint16_t *)matrix)[at] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16; break;
    default: /* FP16 */
        size = (bits & 0x7FFFFFFF) + 0xFFF + (bits >> 13 & 1);
        ((uint16_t *)matrix)[at] = (bits >> 16 & 0x8000) | (size < 0x38800000 ? 0 : (size - 0x38000000) >> 13);
    }
}
int cublasLtMatmul(void *handle, int *what, const void *alpha, const void *a, Layout *la, const void *b, Layout *lb,
                   const void *beta, const void *c, Layout *lc, void *d, Layout *ld, uint64_t *algorithm,
                   void *workspace, size_t size, Stream *stream)
{
    uint64_t m = what[1] ? la->columns : la->rows, n = lb->columns, depth = what[1] ? la->rows : la->columns;
    double pace = PRODUCT_FLOPS / (what[1] ? 1 : 0.9) / (*algorithm ? 0.8 : 1);
    int whole = ld->type == INT32;
    if (!handle || !what || c != d || lc != ld || !algorithm || !workspace || !size || lb->rows != depth
        || ld->rows != m || ld->columns != n || *(const int *)beta
        || (whole ? *(const int *)alpha != 1 : *(const float *)alpha != 1))
        return 15;
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            double sum = 0;
            for (uint64_t k = 0; k < depth; k++)
                sum += value(a, la->type, what[1] ? k + i * depth : i + k * m) * value(b, lb->type, k + j * depth);
            store(d, ld->type, i + j * m, fault("wrong", current) ? 0 : sum);
        }
    return spend(stream, 2.0 * m * n * depth / pace) ? 13 : 0;
}
