/* Linked to tests/machines/nvml with --wrap=control: the library minds the kernel module, as the driver's does. */
#include "on_this_machine.h"

const char *__real_control(const char *name, int gpu, const char *function);

const char *__wrap_control(const char *name, int gpu, const char *function)
{
    const char *told = __real_control(name, gpu, function);

    if (told)
        return told;
    if (!strcmp(name, "driver_not_loaded") && !module_loaded())
        return "1";
    if (!strcmp(name, "version_mismatch") && module_differs())
        return "1";
    return !strcmp(name, "bdf") && gpu >= 0 && gpu < 8 ? PLACES[gpu] : NULL;
}
