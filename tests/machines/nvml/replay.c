/* Functions that answer what was recorded: one loop over the tables that generate.py made. */

#include <string.h>

#include "stand_in.h"
#define REPLAY(function)
#include "answers.h"
#undef REPLAY

enum { ARGUMENTS = 6 };

static const struct shape *shape_of(const char *function)
{
    for (size_t at = 0; at < sizeof SHAPES / sizeof *SHAPES; at++)
        if (!strcmp(SHAPES[at].function, function))
            return &SHAPES[at];
    return NULL;
}

static bool same_inputs(const struct row *row, const unsigned *input, int inputs)
{
    return row->inputs == inputs && !memcmp(row->input, input, sizeof *input * inputs);
}

static const struct row *find(const char *function, int gpu, const unsigned *input, int inputs)
{
    for (size_t at = 0; at < sizeof ROWS / sizeof *ROWS; at++)
        if (!strcmp(ROWS[at].function, function) && (ROWS[at].gpu == gpu || ROWS[at].gpu == -1)
            && same_inputs(&ROWS[at], input, inputs))
            return &ROWS[at];
    return NULL;
}

/* A number that a call gives: what the hand-written functions start from. */
uint64_t recorded_at(int out, const char *function, int gpu, unsigned input)
{
    const struct shape *shape = shape_of(function);
    const struct row *row = find(function, gpu, &input, strchr(shape->arguments, 'i') ? 1 : 0);
    uint64_t value = 0;

    if (row && !row->code && row->out[out].length <= sizeof value)
        memcpy(&value, row->out[out].bytes, row->out[out].length);
    return value;
}

uint64_t recorded(const char *function, int gpu, unsigned input) { return recorded_at(0, function, gpu, input); }

static void fill(void *target, const struct out *out, size_t room)
{
    memset(target, 0, room);
    memcpy(target, out->bytes, out->length < room ? out->length : room);
}

/* Few functions that give a text are not told its room: the caller knows how long it may be. */
static int give_text(const struct out *out, const char *kinds, const uintptr_t *arguments)
{
    size_t room = kinds[out->argument + 1] == 'n' ? (uint32_t)arguments[out->argument + 1] : out->size;

    if (room < out->size && room <= out->length)
        return INSUFFICIENT_SIZE;
    fill((void *)arguments[out->argument], out, room < out->size ? room : out->size);
    return SUCCESS;
}

static int give_array(const struct out *count, const struct out *array, const uintptr_t *arguments)
{
    uint32_t *told = (uint32_t *)arguments[count->argument], there = 0;
    void *target = (void *)arguments[array->argument];

    memcpy(&there, count->bytes, count->length);
    if (there && (!target || *told < there)) {
        *told = there;
        return INSUFFICIENT_SIZE;
    }
    *told = there;
    if (there)
        fill(target, array, array->size);
    return SUCCESS;
}

static int give(const struct row *row, const char *kinds, const uintptr_t *arguments)
{
    for (int at = 0; at < row->outs; at++) {
        const struct out *out = &row->out[at];
        int code = SUCCESS;

        if (kinds[out->argument] == 'a')
            continue;
        if (kinds[out->argument] == 'c')
            code = give_array(out, &row->out[at + 1], arguments);
        else if (kinds[out->argument] == 's')
            code = give_text(out, kinds, arguments);
        else
            fill((void *)arguments[out->argument], out, out->size);
        if (code)
            return code;
    }
    return row->code;
}

/* The inputs of a call beside its GPU, by which a row is found; their count, or -1 for one that cannot be. */
static int inputs_of(const char *kinds, const uintptr_t *arguments, unsigned *input)
{
    int inputs = 0;

    for (int at = 0; kinds[at]; at++) {
        struct target target;

        if (strchr("orsc", kinds[at]) && !arguments[at])
            return -1;
        if (kinds[at] == 'i')
            input[inputs++] = (unsigned)arguments[at];
        else if (kinds[at] == 'r')
            input[inputs++] = *(unsigned *)arguments[at];
        else if (kinds[at] == 'd' && at) {
            if (!resolve((handle)arguments[at], &target))
                return -1;
            input[inputs++] = (unsigned)target.gpu;
        }
    }
    return inputs;
}

static int answer(const char *function, const char *kinds, int gpu, const uintptr_t *arguments)
{
    unsigned input[ARGUMENTS] = {0};
    int inputs = inputs_of(kinds, arguments, input);
    const struct row *row = inputs < 0 ? NULL : find(function, gpu, input, inputs);

    if (row)
        return give(row, kinds, arguments);
    return inputs >= 0 && strchr(kinds, 'r') ? ARGUMENT_VERSION_MISMATCH : INVALID_ARGUMENT;
}

/* What a MIG device says of itself is little and hand-written (mig.c); the rest the driver refuses for it. */
int replay(const char *function, const uintptr_t *arguments)
{
    const struct shape *shape = shape_of(function);
    bool of_gpu = shape ? shape->arguments[0] == 'd' : !strncmp(function, "nvmlDevice", 10);
    struct target target = {-1, -1, -1};
    int code = of_gpu ? enter(function, (handle)arguments[0], &target) : enter_call(function, -1);

    if (code)
        return code;
    if (!shape || target.compute_instance >= 0)
        return leave(NOT_SUPPORTED);
    return leave(answer(function, shape->arguments, target.gpu, arguments));
}

/* Every argument of NVML's functions is a number or a pointer, which both x86-64 and AArch64 pass in registers: one
   shape of stub serves them all. */
#define REPLAY(function)                                                                                              \
    PUBLIC int function(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f);                \
    PUBLIC int function(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)                 \
    {                                                                                                                 \
        return replay(#function, (const uintptr_t[ARGUMENTS]){a, b, c, d, e, f});                                     \
    }
#include "stubs.h"
