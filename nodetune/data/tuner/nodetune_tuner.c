/* A tuner plugin for NCCL that changes what its file names, and nothing else.
 *
 * Where no row matches, neither the cost table nor the number of channels is touched, so NCCL decides as without a plugin.
 * A row rules out the other algorithms; which protocol runs stays NCCL's choice (its guide discourages NCCL_PROTO: LL128 on
 * a platform that does not support it can corrupt data). Where NCCL cannot run the algorithm, the row does nothing.
 *
 * Build:  gcc -O2 -Wall -Wextra -shared -fPIC -o libnodetune-tuner.so nodetune_tuner.c
 * Use:    NCCL_TUNER_PLUGIN=/path/libnodetune-tuner.so, rows in /etc/nodetune/nccl_tuner.csv or NODETUNE_TUNER_FILE (absolute)
 * Rows:   collective,min_bytes,max_bytes,algorithm,channels,nodes,ranks      -1: any (channels: NCCL's choice); # a comment
 *
 * The file must be the same on all nodes of a job: ranks that choose differently wait for each other for ever. The number of
 * rows and a checksum of the file are logged (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING). One bad row and no row counts.
 *
 * The interface is that of NCCL 2.30.7, src/include/plugin/tuner/tuner_v3.h to tuner_v6.h. Version 3 is the first that has a
 * cost table: version 2 cannot name an algorithm without a protocol. Newer releases load the newest version that is exported.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS = 0, INTERNAL_ERROR = 3, LOG_WARN = 2, LOG_INFO = 3, TUNING = 0x40, MAX_ROWS = 256, MAX_BYTES = 65536 };
enum { MAX_CHANNELS = 64, COLUMNS = 7, MAX_WORD = 32 };
static const float IGNORED = -1.0f;

typedef void (*Logger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);
typedef struct { int collective, algorithm, channels; unsigned long long low, high; } Row;
typedef struct { int count; Row rows[MAX_ROWS]; } Rows;

static const char *const COLLECTIVES[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
static const char *const ALGORITHMS[] = {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", NULL};
enum { TREE = 0, RING = 1 };

#define SAY(level, ...) do { if (log) log(level, TUNING, __FILE__, __LINE__, "nodetune tuner: " __VA_ARGS__); } while (0)

static int named(const char *word, const char *const *names) {
  for (int n = 0; names[n]; n++) if (!strcmp(word, names[n])) return n;
  return -1;
}

/* A whole number of 0 or more, or -1 where `any` allows it. */
static int number(const char *word, int any, long long *value) {
  char *end;
  if (any && !strcmp(word, "-1")) { *value = -1; return 1; }
  if (*word < '0' || *word > '9') return 0;
  errno = 0;
  *value = strtoll(word, &end, 10);
  return !errno && !*end;
}

/* Split a line at its commas; return the number of columns. Blanks around a word do not count. */
static int split(char *line, char *columns[COLUMNS]) {
  int count = 0;
  for (char *word = line, *next; word; word = next) {
    next = strchr(word, ',');
    if (next) *next++ = 0;
    word += strspn(word, " \t");
    for (size_t length = strlen(word); length && strchr(" \t\r", word[length - 1]); ) word[--length] = 0;
    if (count < COLUMNS) columns[count] = word;
    count++;
  }
  return count;
}

/* Read a row for communicators of so many ranks and nodes. Return what is wrong with it, or NULL; *fits: whether it is for them. */
static const char *parsed(char *line, size_t ranks, size_t nodes, Row *row, int *fits) {
  char *word[COLUMNS];
  long long low, high, channels, on_nodes, of_ranks;
  if (split(line, word) != COLUMNS) return "not seven columns";
  row->collective = named(word[0], COLLECTIVES);
  row->algorithm = named(word[3], ALGORITHMS);
  if (row->collective < 0) return "unknown collective";
  if (row->algorithm < 0) return "unknown algorithm";
  if (!number(word[1], 0, &low) || !number(word[2], 1, &high) || (high >= 0 && low > high)) return "sizes are no range of bytes";
  if (!number(word[4], 1, &channels) || !channels || channels > MAX_CHANNELS) return "channels are 1 to 64, or -1";
  if (channels > 0 && row->algorithm != RING && row->algorithm != TREE) return "channels can be given for ring and tree only";
  if (!number(word[5], 1, &on_nodes) || !on_nodes || !number(word[6], 1, &of_ranks) || !of_ranks) return "nodes and ranks are 1 or more, or -1";
  row->low = (unsigned long long)low;
  row->high = high < 0 ? UINT64_MAX : (unsigned long long)high;
  row->channels = (int)channels;
  *fits = (on_nodes < 0 || (size_t)on_nodes == nodes) && (of_ranks < 0 || (size_t)of_ranks == ranks);
  return NULL;
}

/* Read the whole file, or return NULL and say why. The caller frees it. */
static char *content(const char *path, Logger log) {
  struct stat found;
  char *text = NULL;
  int file = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (path[0] != '/') {
    SAY(LOG_WARN, "%s: not an absolute path: NCCL's own choice stands", path);
  } else if (file < 0) {
    SAY(errno == ENOENT ? LOG_INFO : LOG_WARN, "%s: %s: NCCL's own choice stands", path, strerror(errno));
  } else if (fstat(file, &found) || !S_ISREG(found.st_mode) || found.st_size > MAX_BYTES) {
    SAY(LOG_WARN, "%s: no file of at most %d bytes: NCCL's own choice stands", path, MAX_BYTES);
  } else if ((text = calloc(1, (size_t)found.st_size + 1)) && read(file, text, (size_t)found.st_size) != found.st_size) {
    SAY(LOG_WARN, "%s: could not be read whole: NCCL's own choice stands", path);
    free(text);
    text = NULL;
  } else if (text && strlen(text) != (size_t)found.st_size) {
    SAY(LOG_WARN, "%s: has a zero byte: no row of this file counts, NCCL's own choice stands", path);
    free(text);
    text = NULL;
  }
  if (file >= 0) close(file);
  return text;
}

static void filled(Rows *own, size_t ranks, size_t nodes, Logger log) {
  const char *path = getenv("NODETUNE_TUNER_FILE"), *wrong;
  if (!path || !*path) path = "/etc/nodetune/nccl_tuner.csv";
  char *text = content(path, log), *rest = text, *line;
  uint32_t sum = 2166136261u; /* FNV-1a */
  for (const char *at = text; at && *at; at++) sum = (sum ^ (unsigned char)*at) * 16777619u;
  for (int number = 1, fits; (line = strsep(&rest, "\n")); number++) {
    line += strspn(line, " \t\r");
    if (!*line || *line == '#') continue;
    Row row;
    wrong = own->count == MAX_ROWS ? "more than 256 rows" : parsed(line, ranks, nodes, &row, &fits);
    if (wrong) {
      SAY(LOG_WARN, "%s line %d: %s: no row of this file counts, NCCL's own choice stands", path, number, wrong);
      own->count = 0;
      break;
    }
    if (fits) own->rows[own->count++] = row;
  }
  if (text) SAY(LOG_INFO, "%d rows of %s (checksum %08x) are for %zu ranks on %zu nodes", own->count, path, (unsigned)sum, ranks, nodes);
  free(text);
}

static int init(size_t ranks, size_t nodes, Logger log, void **context) {
  Rows *own = calloc(1, sizeof(Rows));
  *context = own;
  if (own) filled(own, ranks, nodes, log);
  else SAY(LOG_WARN, "no memory: NCCL's own choice stands");
  return SUCCESS;
}

static int destroy(void *context) {
  free(context);
  return SUCCESS;
}

/* Rule out the other algorithms, if there is a protocol with which this one can run. */
static int chosen(int algorithm, float *costs, int algorithms, int protocols) {
  int usable = 0;
  if (algorithm >= algorithms) return 0;
  for (int p = 0; p < protocols; p++) usable |= costs[algorithm * protocols + p] >= 0.0f;
  for (int n = 0; usable && n < algorithms * protocols; n++) if (n / protocols != algorithm) costs[n] = IGNORED;
  return usable;
}

/* *channels comes as 0, which leaves them to NCCL, and stays 0 but for a row that gives their number. */
static int collective(const Rows *own, int which, size_t bytes, float *costs, int algorithms, int protocols, int *channels) {
  for (int n = 0; own && n < own->count; n++) {
    const Row *row = &own->rows[n];
    if (row->collective != which || bytes < row->low || bytes > row->high) continue;
    if (chosen(row->algorithm, costs, algorithms, protocols) && row->channels > 0) *channels = row->channels;
    break; /* the first row counts */
  }
  return SUCCESS;
}

static int info_v3(void *context, int which, size_t bytes, int pipe_ops, float **costs, int algorithms, int protocols, int *channels) {
  (void)pipe_ops;
  return collective(context, which, bytes, (float *)costs, algorithms, protocols, channels);
}

static int info_v4(void *context, int which, size_t bytes, int pipe_ops, float **costs, int algorithms, int protocols, int registered, int *channels) {
  (void)pipe_ops, (void)registered;
  return collective(context, which, bytes, (float *)costs, algorithms, protocols, channels);
}

static int init_v5(void **context, uint64_t id, size_t ranks, size_t nodes, Logger log, void *domain, void *constants) {
  (void)id, (void)domain, (void)constants; /* NCCL's own constants stand */
  return init(ranks, nodes, log, context);
}

#define EXPORTED __attribute__((visibility("default")))
EXPORTED const struct { const char *name; int (*init)(size_t, size_t, Logger, void **); int (*info)(void *, int, size_t, int, float **, int, int, int *); int (*destroy)(void *); }
  ncclTunerPlugin_v3 = {"nodetune", init, info_v3, destroy};
EXPORTED const struct { const char *name; int (*init)(size_t, size_t, Logger, void **); int (*info)(void *, int, size_t, int, float **, int, int, int, int *); int (*destroy)(void *); }
  ncclTunerPlugin_v4 = {"nodetune", init, info_v4, destroy};
EXPORTED const struct { const char *name; int (*init)(void **, uint64_t, size_t, size_t, Logger, void *, void *); int (*info)(void *, int, size_t, int, float **, int, int, int, int *); int (*finalize)(void *); }
  ncclTunerPlugin_v5 = {"nodetune", init_v5, info_v4, destroy};
EXPORTED const struct { const char *name; int (*init)(void **, uint64_t, size_t, size_t, Logger, void *, void *); int (*info)(void *, int, size_t, int, float **, int, int, int, int *); int (*finalize)(void *); void *chunk_size; }
  ncclTunerPlugin_v6 = {"nodetune", init_v5, info_v4, destroy, NULL};
