/* Misbehaviour on request: lines `key=value`, or `key@GPU=value` for one GPU, in the control file. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stand_in.h"

enum { LINE = 256 };

static FILE *open_control(int place)
{
    const char *told = getenv("NODETUNE_NVML_CONTROL");
    char path[512];

    if (told)
        return place ? NULL : fopen(told, "re");
    state_path(path, sizeof path, place ? KEPT : RUNNING, -1, "control");
    return fopen(path, "re");
}

/* The value of a line if it is about this key and this GPU. */
static char *value_in(char *line, const char *key, int gpu)
{
    char *value = strchr(line, '='), *of = strchr(line, '@');

    if (!value || *line == '#')
        return NULL;
    *value++ = 0;
    value[strcspn(value, "\r\n")] = 0;
    if (of && of < value) {
        *of++ = 0;
        if (gpu < 0 || atoi(of) != gpu)
            return NULL;
    }
    return strcmp(line, key) ? NULL : value;
}

/* Whether `told` names this function, with or without the version at its end. */
static bool names(const char *told, const char *function)
{
    size_t length = strcspn(told, ":");

    return !strncmp(told, function, length) && (!function[length] || !strncmp(function + length, "_v", 2));
}

/* The value of the first line of this key that is `value` or names the function `value`; any, for a null `value`. */
const char *control(const char *key, int gpu, const char *value)
{
    static __thread char line[LINE];

    for (int place = 0; place < 2; place++) {
        FILE *file = open_control(place);
        char *found = NULL;

        while (file && !found && fgets(line, sizeof line, file)) {
            found = value_in(line, key, gpu);
            if (found && value && !names(found, value))
                found = NULL;
        }
        if (file)
            fclose(file);
        if (found)
            return found;
    }
    return NULL;
}

static void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left))
        ;
}

/* As a process inside the driver: deaf to signals. SIGKILL still ends it, which a real one may not let happen. */
void hang_if_told(const char *function, int gpu)
{
    const char *told = control("hang", gpu, function);
    const char *seconds = told ? strchr(told, ':') : NULL;
    sigset_t all, before;

    if (!told)
        return;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    do
        sleep_for(seconds && strcmp(seconds, ":forever") ? atof(seconds + 1) : 3600);
    while (!seconds || !strcmp(seconds, ":forever"));
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* The error that this call is to end with, after its hang; 0 for none. */
int error_if_told(const char *function, int gpu)
{
    const char *told, *code;

    hang_if_told(function, gpu);
    told = control("error", gpu, function);
    code = told ? strchr(told, ':') : NULL;
    return code ? atoi(code + 1) : 0;
}
