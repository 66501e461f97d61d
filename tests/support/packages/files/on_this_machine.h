/* What the stand-in libraries look at on the machine on which they run. VERSION is overwritten in the built file. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char VERSION[] = "580.159.04";

/* Where tests/machines/guest/fakepci has the GPUs. */
static const char *const PLACES[] = {"0000:63:00.0", "0000:64:00.0", "0000:65:00.0", "0000:66:00.0",
                                     "0000:C3:00.0", "0000:C4:00.0", "0000:C5:00.0", "0000:C6:00.0"};

static inline int module_loaded(void) { return !access("/sys/module/nvidia/version", R_OK); }

/* Other than ours: the packages were replaced, and the module still runs. */
static inline int module_differs(void)
{
    const volatile char *own = VERSION; /* read at run time: what the compiler saw is not what stands there now */
    char found[32] = "";
    int file = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, found, sizeof found - 1);

    if (file >= 0)
        close(file);
    for (ssize_t at = 0; at < (ssize_t)sizeof VERSION - 1; at++)
        if (at >= length || found[at] != own[at])
            return 1;
    return 0;
}
