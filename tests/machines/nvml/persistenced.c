/* A stand-in nvidia-persistenced: while it runs, persistence mode is on for all GPUs, unless it is told otherwise.

   The mode goes with it however it ends, as with the real one, whose device files the kernel closes: what the library
   looks at is a lock that this process holds. */

#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum { PATH = 512 };
static const char VERSION[] = "580.159.04";

struct options { bool mode, verbose; const char *user; };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nvidia-persistenced: %s: %s\n", what, why);
    syslog(LOG_ERR, "%s: %s", what, why);
    exit(1);
}

static struct options parse(int count, char **words)
{
    enum { ON = 1000, OFF, IGNORED };
    static const struct option known[] = {
        {"persistence-mode", no_argument, NULL, ON},
        {"no-persistence-mode", no_argument, NULL, OFF},
        {"user", required_argument, NULL, 'u'},
        {"group", required_argument, NULL, IGNORED},
        {"verbose", no_argument, NULL, 'V'},
        {"version", no_argument, NULL, 'v'},
        {"nvidia-cfg-path", required_argument, NULL, IGNORED},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.mode = true};

    for (int option; (option = getopt_long(count, words, "u:g:Vv", known, NULL)) != -1;) {
        if (option == ON || option == OFF)
            options.mode = option == ON;
        else if (option == 'u')
            options.user = optarg;
        else if (option == 'V')
            options.verbose = true;
        else if (option == 'v') {
            printf("nvidia-persistenced:  version %s\n", VERSION);
            exit(0);
        } else if (option == '?')
            exit(1);
    }
    return options;
}

/* The library's folder of running state, and in a test without root's /run the daemon's own, too. */
static const char *told_folder(void) { return getenv("NODETUNE_NVML_RUN"); }

static void own_folder(char *path, size_t size)
{
    if (told_folder())
        snprintf(path, size, "%s/nvidia-persistenced", told_folder());
    else
        snprintf(path, size, "/run/nvidia-persistenced");
}

static void take_lock(void)
{
    const char *folder = told_folder() ? told_folder() : "/run/nodetune-nvml";
    char path[PATH];
    int file;

    if (!mkdir(folder, 0777))
        chmod(folder, 0777);
    snprintf(path, sizeof path, "%s/persistenced", folder);
    file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB))
        die("cannot start", "another one is running");
}

static void *function(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found)
        die("libnvidia-ml.so.1", dlerror());
    return found;
}

static void switch_mode(const struct options *options)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    const char *(*text)(int);
    unsigned count = 0;
    int code;

    if (!library)
        die("libnvidia-ml.so.1", dlerror());
    text = (const char *(*)(int))function(library, "nvmlErrorString");
    code = ((int (*)(void))function(library, "nvmlInit_v2"))();
    if (!code)
        code = ((int (*)(unsigned *))function(library, "nvmlDeviceGetCount_v2"))(&count);
    if (code)
        die("no GPUs", text(code));
    for (unsigned gpu = 0; gpu < count; gpu++) {
        void *device;

        code = ((int (*)(unsigned, void **))function(library, "nvmlDeviceGetHandleByIndex_v2"))(gpu, &device);
        if (!code)
            code = ((int (*)(void *, unsigned))function(library, "nvmlDeviceSetPersistenceMode"))(device,
                                                                                                  options->mode);
        if (code)
            syslog(LOG_ERR, "GPU %u - failed to set persistence mode: %s", gpu, text(code));
        else if (options->verbose)
            syslog(LOG_NOTICE, "GPU %u - persistence mode %s.", gpu, options->mode ? "enabled" : "disabled");
    }
    ((int (*)(void))function(library, "nvmlShutdown"))();
}

/* Gives up root for good. */
static void become(const char *name)
{
    struct passwd *user = getpwnam(name);
    char folder[PATH];

    if (!user)
        die("no such user", name);
    own_folder(folder, sizeof folder);
    if (chown(folder, user->pw_uid, user->pw_gid) || setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid))
        die("cannot become", name);
}

static void write_pid(char *path, size_t size)
{
    char folder[PATH - 32];
    FILE *file;

    own_folder(folder, sizeof folder);
    snprintf(path, size, "%s/nvidia-persistenced.pid", folder);
    file = fopen(path, "we");
    if (!file || fprintf(file, "%d\n", getpid()) < 0 || fclose(file))
        die("cannot write", path);
}

/* Whoever started this may wait for the end of its output. */
static void leave_terminal(void)
{
    int nothing = open("/dev/null", O_RDWR);

    for (int stream = 0; stream <= 2; stream++)
        dup2(nothing, stream);
    close(nothing);
}

static void serve(const struct options *options, int ready)
{
    char folder[PATH - 32], pid_file[PATH];
    sigset_t ends;
    int signal;

    own_folder(folder, sizeof folder);
    mkdir(folder, 0755);
    switch_mode(options);
    write_pid(pid_file, sizeof pid_file);
    if (options->user)
        become(options->user);
    syslog(LOG_NOTICE, "Started (%d)", getpid());
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    if (write(ready, "", 1) != 1)
        die("cannot start", "nobody waits for it");
    close(ready);
    leave_terminal();
    sigwait(&ends, &signal);
    unlink(pid_file);
    syslog(LOG_NOTICE, "Shutdown (%d)", getpid());
}

/* The parent ends when the daemon is ready: Type=forking counts on it. */
int main(int count, char **words)
{
    struct options options = parse(count, words);
    char byte;
    int ready[2];

    openlog("nvidia-persistenced", LOG_PID, LOG_DAEMON);
    if (geteuid())
        die("cannot start", "needs root");
    take_lock();
    if (pipe2(ready, O_CLOEXEC))
        die("cannot start", "no pipe");
    switch (fork()) {
    case -1:
        die("cannot start", "no process");
        break;
    case 0:
        setsid();
        close(ready[0]);
        serve(&options, ready[1]);
        return 0;
    }
    close(ready[1]);
    return read(ready[0], &byte, 1) == 1 ? 0 : 1;
}
