/* What the parts of MIG share. */
#ifndef MIG_H
#define MIG_H

#include "stand_in.h"

/* More than the highest number of a GPU instance, and of a compute instance in one. */
enum { INSTANCES = 16, COMPUTES = 8 };

struct placement { unsigned start, size; };
struct instance { bool there; unsigned profile; struct placement at; };

struct instance instance_at(int gpu, int gpu_instance, int compute_instance);
int keep_instance(int gpu, int gpu_instance, int compute_instance, unsigned profile, struct placement at);
void drop_instance(int gpu, int gpu_instance, int compute_instance);
bool mig_on(int gpu);
bool overlap(struct placement one, struct placement other);
const struct profile *profile_of(unsigned id);
int enter_instance(const char *function, handle which, struct target *target, struct instance *found);
unsigned compute_multiprocessors(const struct profile *parent, unsigned id);
void compute_name(char *name, size_t size, const struct profile *parent, unsigned id);

#endif
