/* What the parts of `cordon bench` share: what is run (workload), by whom (contestant), and what came of it (row).
 *
 * A contestant is Cordon with or without waiting cells, or another runner that is started as a process. A lane is one
 * caller of a contestant: it makes one run after the other and belongs to one thread. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <cordon/cordon.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_WORKERS_MAX     8
#define BENCH_CONTESTANTS_MAX 12
#define BENCH_REASON_SIZE     240
#define BENCH_COMPILE_MAX     8
#define BENCH_ARGUMENTS_MAX   96

/* Set when somebody pressed Ctrl-C: everything ends as soon as it can. */
extern atomic_int bench_interrupted;

struct workload {
    const char *name;
    const char *language;
    const char *code;
    const char *output;      /* what a right run prints */
    const char *file;        /* the program's name where others run it */
    const char *interpreter; /* by which others run it; NULL: it is executable */
    const char *compiler;    /* by which `file` is made of `source` for others; NULL: `file` is the code */
    const char *compile[BENCH_COMPILE_MAX]; /* the compiler's arguments */
    const char *source;
    const char *module; /* of Python, without which there is nothing to run */
    unsigned share;     /* per cent of the runs asked for */
};

/* Another runner. In its words, which blanks keep apart, {command} stands for the program's own, {environment} for its
 * variables as --env options, {code} for the directory the program is in, {root} for a root file system, {bundle} for
 * an OCI bundle, {id} for a name that is new for each run. */
struct peer_row {
    const char *name;
    const char *program; /* its executable; NULL: there is none, and no isolation */
    const char *words;   /* after its executable */
    const char *note;
    unsigned share;       /* per cent of the runs asked for */
    bool outside;         /* the program is told the host's paths */
    bool filtered;        /* takes the cell's own system call filter as a descriptor */
    bool own_environment; /* needs the caller's variables for itself */
    bool superuser;
};

struct contestant {
    const char *name;
    unsigned share; /* per cent of the runs asked for */
    bool warm;      /* waiting cells are filled before measuring */
    bool no_cgroup; /* there is none to be had here */
    cordon_engine *engine;
    const struct peer_row *peer; /* NULL: Cordon */
    const char *program;         /* the peer's executable */
};

/* Where the programs for the others lie; made for one invocation and removed afterwards. */
struct scratch {
    char path[128];
    char interpreter[128]; /* of the present workload, as found; "" where it needs none */
};

/* One run. */
struct sample {
    uint64_t wall_us;
    uint64_t timing_us; /* Cordon's own account of it, when asked for; else 0 */
    bool warm;          /* a waiting cell took it, when asked for */
    bool ok;
    char why[BENCH_REASON_SIZE]; /* when not */
};

struct lane {
    const struct contestant *contestant;
    const struct workload *workload;
    const struct scratch *scratch;
    cordon_request *request;
    bool account; /* timing_us and warm are wanted */
};

/* How it is measured. */
struct settings {
    unsigned runs;
    unsigned gap_ms;
    double seconds;
    unsigned budget_s; /* for all workloads together; 0: as long as it takes */
    unsigned workers[BENCH_WORKERS_MAX];
    size_t worker_count;
};

struct percentiles {
    size_t runs; /* 0: not measured */
    double p50_ms, p90_ms, p99_ms;
};

struct row {
    const char *name;
    const char *workload;
    struct percentiles packed, gapped; /* back to back, and with gaps */
    double rate[BENCH_WORKERS_MAX];    /* by settings.workers; 0: not measured */
    double unaccounted_us;             /* median of wall time less Cordon's own account; valid when `accounted` */
    double warm_share;                 /* of the runs, those that a waiting cell took; valid when `accounted` */
    bool accounted;
    size_t errors;
    char why[BENCH_REASON_SIZE]; /* the first error */
};

#define BENCH_WORKLOADS_MAX 16

/* What was asked for. */
struct bench_flags {
    struct settings settings;
    const struct workload *workloads[BENCH_WORKLOADS_MAX];
    size_t workload_count;
    bool own, peers; /* who takes part */
    bool full;       /* without a budget, unless one was asked for */
    bool json;
    const char *output;
};

/* flags.c: 0, OPTIONS_HELP, or a negative code. */
int bench_flags_parse(struct bench_flags *flags, int argc, char **argv, cordon_error *err);

/* Tables. */
extern const struct workload bench_workloads[];
extern const size_t bench_workload_count;
extern const struct peer_row bench_peers[];
extern const size_t bench_peer_count;
/* The environment every program gets, "NAME=value", NULL at the end. */
extern const char *const bench_environment[];

/* workload.c */
const struct workload *workload_find(const char *name);
int scratch_make(struct scratch *scratch, cordon_error *err);
void scratch_remove(struct scratch *scratch);
/* Everything the others need to run it. False, with the reason, where the language is not here. */
bool scratch_add(struct scratch *scratch, const struct workload *workload, char why[BENCH_REASON_SIZE]);
/* The executable as it is found on `path`. */
bool find_executable(const char *name, const char *path, char *found, size_t size);

/* process.c: a process from start to reaped, its output compared with `output` (NULL: any), or kept in `said`. */
struct process {
    const char *const *argv;
    const char *const *environment;
    const char *directory;   /* NULL: as it is */
    const char *filter_path; /* opened as descriptor BENCH_FILTER_FD; NULL: none */
    const char *output;
    char *said; /* what it printed on both streams, NUL-terminated, cut at said_size - 1; may be NULL */
    size_t said_size;
};
#define BENCH_FILTER_FD   9
#define BENCH_FILTER_TEXT "9"
void process_run(const struct process *process, struct sample *sample);

/* peers.c */
/* Its executable, to be freed; NULL where it is not installed, or not for this user. */
char *peer_program(const struct peer_row *peer);
/* First line of what it says about itself; false where it says nothing. */
bool peer_version(const struct peer_row *peer, const char *program, char *version, size_t size);
/* Files that peers need in the scratch directory. */
int peers_prepare(const struct scratch *scratch, const struct workload *workload);
void peer_run(const struct lane *lane, struct sample *sample);

/* own.c: Cordon as a contestant. */
int own_open(struct contestant *contestant, const struct scratch *scratch, cordon_error *err);
int own_lane(struct lane *lane, cordon_error *err);
/* Whether it runs this workload rightly, and from a waiting cell where it is to; what is compiled is compiled after it.
 * Finds out whether there are control groups to be had. */
bool own_works(struct contestant *contestant, const struct workload *workload, const struct scratch *scratch,
               char why[BENCH_REASON_SIZE]);
/* Fills the pool with at least `cells`; nothing to do without `warm`. */
int own_fill(const struct lane *lane, unsigned cells, cordon_error *err);
void own_run(struct lane *lane, struct sample *sample);

/* measure.c */
int lane_open(struct lane *lane, const struct contestant *contestant, const struct workload *workload,
              const struct scratch *scratch, cordon_error *err);
void lane_run(struct lane *lane, struct sample *sample);
void lane_close(struct lane *lane);
/* One workload with all its contestants. */
struct measurement {
    const struct settings *settings;
    const struct workload *workload;
    const struct scratch *scratch;
    const struct contestant *contestants;
    struct row *rows; /* one for each contestant */
    size_t count;
    uint64_t end_us; /* when the figures of this workload must be there; UINT64_MAX: whenever they are */
    /* Told what comes next. */
    void (*progress)(const struct workload *workload, const char *what, const char *who);
};
/* These fill the rows. What goes wrong with a contestant is in its row; an error means that nothing can go on. */
int measure_latency(const struct measurement *all, cordon_error *err);
int measure_rates(const struct measurement *all, cordon_error *err);

/* machine.c: facts for the record. `programs` are the peers' executables, by index of bench_peers; NULL: not there. */
json_t *machine_facts(cordon_engine *engine, char *const *programs);
/* How much of all processors is in use now, looked at for half a second. */
double machine_busy_percent(void);

/* show.c */
void show_table(const struct row *rows, size_t count, const struct settings *settings);
json_t *show_rows(const struct row *rows, size_t count, const struct settings *settings);

#endif
