/* What a GPU shows beside its settings: processes, memory, fields, its place on the PCI bus, its other names. */

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stand_in.h"
#include "answers.h"

enum { MAX_PROCESSES = 256, LINKS = 18, NVLINK_SPEED = 164, NVLINK_FIRST = 161 };

/* Compute processes: gpuN/processes/PID, holding the bytes of GPU memory, for as long as that process lives. */

static bool lives(unsigned pid)
{
    char path[64], state = 'Z';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'R'; /* a name with a bracket in it: it lives at any rate */
    fclose(file);
    return state != 'Z';
}

int processes_on(int gpu, struct process *found, int most)
{
    char folder[512], name[320];
    struct dirent *entry;
    int count = 0;
    DIR *listed;

    state_path(folder, sizeof folder, RUNNING, gpu, "processes");
    listed = opendir(folder);
    while (listed && (entry = readdir(listed))) {
        if (!isdigit((unsigned char)*entry->d_name) || !lives((unsigned)atoi(entry->d_name)))
            continue;
        snprintf(name, sizeof name, "processes/%s", entry->d_name);
        if (count < most)
            found[count] = (struct process){(unsigned)atoi(entry->d_name),
                                            (uint64_t)state_get(RUNNING, gpu, name, 0)};
        count++;
    }
    if (listed)
        closedir(listed);
    return count;
}

bool busy(int gpu) { return control("busy", gpu, NULL) || processes_on(gpu, NULL, 0); }

struct process_info { unsigned pid; uint64_t memory; unsigned gpu_instance, compute_instance; };

static int give_processes(const char *function, handle device, unsigned *count, struct process_info *into)
{
    struct process found[MAX_PROCESSES];
    struct target target;
    int code = enter(function, device, &target), there;
    unsigned room;

    if (code)
        return code;
    if (!count)
        return leave(INVALID_ARGUMENT);
    there = target.gpu_instance >= 0 ? 0 : processes_on(target.gpu, found, MAX_PROCESSES);
    there = there < MAX_PROCESSES ? there : MAX_PROCESSES;
    room = *count;
    *count = (unsigned)there;
    if (there && (!into || room < (unsigned)there))
        return leave(INSUFFICIENT_SIZE);
    for (int at = 0; at < there; at++)
        into[at] = (struct process_info){found[at].pid, found[at].memory, 0xffffffff, 0xffffffff};
    return leave(SUCCESS);
}

PUBLIC int nvmlDeviceGetComputeRunningProcesses_v3(handle device, unsigned *count, struct process_info *into)
{
    return give_processes("nvmlDeviceGetComputeRunningProcesses_v3", device, count, into);
}

PUBLIC int nvmlDeviceGetComputeRunningProcesses_v2(handle device, unsigned *count, struct process_info *into)
{
    return give_processes("nvmlDeviceGetComputeRunningProcesses_v2", device, count, into);
}

/* Memory: what was recorded, and what the processes hold. */

struct memory { unsigned long long total, free, used; };

PUBLIC int nvmlDeviceGetMemoryInfo(handle device, struct memory *memory)
{
    uintptr_t arguments[6] = {(uintptr_t)device, (uintptr_t)memory};
    struct process found[MAX_PROCESSES];
    struct target target;
    int code, there;

    if (is_mig_handle(device))
        return give_mig_memory(device, memory ? &memory->total : NULL);
    code = replay("nvmlDeviceGetMemoryInfo", arguments);
    if (code || !resolve(device, &target))
        return code;
    there = processes_on(target.gpu, found, MAX_PROCESSES);
    for (int at = 0; at < there && at < MAX_PROCESSES; at++) {
        memory->used += found[at].memory;
        memory->free -= found[at].memory;
    }
    return SUCCESS;
}

/* Fields: the value of each of them, or why not. */

struct field_value {
    unsigned number, scope;
    long long timestamp, latency;
    unsigned type;
    int code;
    union { double real; unsigned small; unsigned long long large; } value;
};

static void give_field(int gpu, struct field_value *asked)
{
    asked->code = NOT_SUPPORTED;
    for (size_t at = 0; at < sizeof FIELDS / sizeof *FIELDS; at++) {
        if (FIELDS[at].gpu != gpu || FIELDS[at].number != asked->number)
            continue;
        asked->type = FIELDS[at].type;
        asked->value.large = FIELDS[at].value;
        asked->code = SUCCESS;
    }
    if (asked->number >= NVLINK_FIRST && asked->number <= NVLINK_SPEED && asked->scope >= LINKS)
        asked->code = INVALID_ARGUMENT;
}

PUBLIC int nvmlDeviceGetFieldValues(handle device, int count, struct field_value *values)
{
    int gpu, code = enter_gpu("nvmlDeviceGetFieldValues", device, &gpu);

    if (code)
        return code;
    if (count < 0 || !values)
        return leave(INVALID_ARGUMENT);
    for (int at = 0; at < count; at++)
        give_field(gpu, &values[at]);
    return leave(SUCCESS);
}

/* PCI: a machine may have its GPUs elsewhere than the recorded one: bdf@GPU=0000:21:00.0 in the control file. */

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem; char id[32]; };

static void move(int gpu, struct pci *pci)
{
    const char *told = control("bdf", gpu, NULL);
    unsigned domain, bus, device, function;

    if (!told || sscanf(told, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return;
    pci->domain = domain;
    pci->bus = bus;
    pci->device = device;
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.%X", domain & 0xffff, bus & 0xff, device & 0xff,
             function & 0xf);
    snprintf(pci->id, sizeof pci->id, "%08X:%02X:%02X.%X", domain, bus & 0xff, device & 0xff, function & 0xf);
}

PUBLIC int nvmlDeviceGetPciInfo_v3(handle device, struct pci *pci)
{
    uintptr_t arguments[6] = {(uintptr_t)device, (uintptr_t)pci};
    struct target target;
    int code = replay("nvmlDeviceGetPciInfo_v3", arguments);

    if (!code && resolve(device, &target))
        move(target.gpu, pci);
    return code;
}

PUBLIC int nvmlDeviceGetPciInfo_v2(handle device, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

/* A GPU by one of its other names. */

static int find_gpu(const char *function, const char *wanted, handle *device, int (*name)(handle, char *, unsigned))
{
    char told[96];
    int code = enter_call(function, -1);

    if (code)
        return code;
    leave(SUCCESS);
    if (!wanted || !device)
        return INVALID_ARGUMENT;
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        if (name(gpu_handle(gpu), told, sizeof told) || strcasecmp(told, wanted))
            continue;
        *device = gpu_handle(gpu);
        return SUCCESS;
    }
    return NOT_FOUND;
}

static int name_by(const char *function, handle device, char *told, unsigned size)
{
    return replay(function, (const uintptr_t[6]){(uintptr_t)device, (uintptr_t)told, size});
}

static int serial(handle device, char *told, unsigned size)
{
    return name_by("nvmlDeviceGetSerial", device, told, size);
}

static int bus_id(handle device, char *told, unsigned size)
{
    struct pci pci;
    int code = nvmlDeviceGetPciInfo_v3(device, &pci);

    if (!code)
        snprintf(told, size, "%s", pci.id);
    return code;
}

PUBLIC int nvmlDeviceGetHandleBySerial(const char *wanted, handle *device)
{
    return find_gpu("nvmlDeviceGetHandleBySerial", wanted, device, serial);
}

/* With a domain of eight digits, of four, or without one. */
PUBLIC int nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, handle *device)
{
    unsigned domain = 0, bus, slot, function;
    char whole[32];

    if (!wanted)
        return INVALID_ARGUMENT;
    if (sscanf(wanted, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
        domain = 0;
        if (sscanf(wanted, "%x:%x.%x", &bus, &slot, &function) != 3)
            return INVALID_ARGUMENT;
    }
    snprintf(whole, sizeof whole, "%08X:%02X:%02X.%X", domain, bus & 0xff, slot & 0xff, function & 0xf);
    return find_gpu("nvmlDeviceGetHandleByPciBusId_v2", whole, device, bus_id);
}

PUBLIC int nvmlDeviceGetHandleByPciBusId(const char *wanted, handle *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(wanted, device);
}

PUBLIC int nvmlDeviceGetHandleByUUID(const char *wanted, handle *device)
{
    int code = find_gpu("nvmlDeviceGetHandleByUUID", wanted, device, nvmlDeviceGetUUID);

    return code == NOT_FOUND ? find_mig(wanted, device) : code;
}
