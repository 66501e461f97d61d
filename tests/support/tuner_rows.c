/* Reads the plugin's file once for each path on stdin, asks for each collective and the sizes in argv, and prints the answers.
 * A line a path: for each question `-` if all is NCCL's choice, else ALGORITHM:CHANNELS. Tables have the exact size that NCCL says. */
#include "nodetune_tuner.c"
#include <stdarg.h>

static char said[1 << 17];

static void logged(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(said, sizeof said, format, rest);
  va_end(rest);
  (void)level, (void)flags, (void)file, (void)line;
}

static void ask(void *context, int which, size_t bytes, int algorithms) {
  int channels = 0, kept = 0, only = -1, protocols = 3;
  float *costs = malloc(sizeof(float) * (size_t)(algorithms * protocols));
  for (int n = 0; n < algorithms * protocols; n++) costs[n] = 10.0f + (float)n;
  if (ncclTunerPlugin_v5.info(context, which, bytes, 1, (float **)costs, algorithms, protocols, 0, &channels)) abort();
  for (int n = 0; n < algorithms * protocols; n++) {
    if (costs[n] == 10.0f + (float)n) kept++, only = n / protocols;
    else if (costs[n] != -1.0f) abort();
  }
  if (kept == algorithms * protocols && !channels) printf("- ");
  else if (kept == protocols) printf("%d:%d ", only, channels);
  else abort();
  free(costs);
}

int main(int count, char **sizes) {
  char path[4096];
  while (fgets(path, sizeof path, stdin)) {
    void *context = NULL;
    path[strcspn(path, "\n")] = 0;
    setenv("NODETUNE_TUNER_FILE", path, 1);
    if (ncclTunerPlugin_v5.init(&context, 7, 8, 1, logged, NULL, NULL)) abort();
    for (int which = 0; which < 5; which++)
      for (int n = 1; n < count; n++) ask(context, which, strtoull(sizes[n], NULL, 10), 7), ask(context, which, strtoull(sizes[n], NULL, 10), 2);
    puts("");
    if (ncclTunerPlugin_v5.finalize(context)) abort();
  }
  return 0;
}
