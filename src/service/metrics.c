/* Owns the counting. What a label may be is decided here, so that nothing a program or a caller says can make the
 * number of series grow without bound. Called by the workers and the HTTP threads; metrics_text.c writes it out. */
#include "service/metrics.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "service/metrics_table.h"

const char *const metrics_statuses[STATUS_COUNT] = {"other",      "ok",           "nonzero_exit",  "signaled",
                                                    "wall_limit", "cpu_limit",    "memory_limit",  "process_limit",
                                                    "disk_limit", "output_limit", "denied",        "compile_error",
                                                    "rejected",   "cancelled",    "internal_error"};
const char *const metrics_methods[METHOD_COUNT] = {"other", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
const char *const metrics_kinds[KIND_COUNT] = {"other", "syscall", "network", "module"};
const uint64_t metrics_bounds_us[BUCKETS] = {100,     250,     500,     1000,     2500,     5000,
                                             10000,   25000,   50000,   100000,   250000,   500000,
                                             1000000, 2500000, 5000000, 10000000, 30000000, 60000000};

static struct counts counts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In a fixed list whose first word is "other". */
static unsigned index_of(const char *const *list, size_t count, const char *word)
{
    for (unsigned i = 1; word && i < count; i++)
        if (!strcmp(list[i], word))
            return i;
    return 0;
}

/* In a list that grows to its bound. */
static unsigned intern(struct names *names, const char *word)
{
    if (!word || !*word || strlen(word) >= NAME_LENGTH)
        return 0;
    for (unsigned i = 1; i <= names->count; i++)
        if (!strcmp(names->name[i], word))
            return i;
    if (names->count == NAMES_MAX)
        return 0;
    snprintf(names->name[++names->count], NAME_LENGTH, "%s", word);
    return names->count;
}

/* "connect(93.184.216.34:80)" is connect: what stands in brackets is the program's choice. */
static unsigned intern_call(struct names *names, const char *what)
{
    char name[NAME_LENGTH];
    size_t length = what ? strcspn(what, "(") : 0;
    if (!length || length >= sizeof name)
        return 0;
    memcpy(name, what, length);
    name[length] = '\0';
    for (const char *c = name; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_' && *c != '.')
            return 0;
    return intern(names, name);
}

static void observe(struct histogram *histogram, uint64_t us)
{
    size_t i = 0;
    while (i < BUCKETS && us > metrics_bounds_us[i])
        i++;
    histogram->bucket[i]++;
    histogram->sum_us += us;
}

static void count_denials(const struct account *account)
{
    for (size_t i = 0; i < account->denial_count; i++) {
        const struct account_denial *row = &account->denials[i];
        counts.denials[index_of(metrics_kinds, KIND_COUNT, row->kind)][intern_call(&counts.denied, row->what)] +=
            row->count;
    }
}

/* A run that never started has no times of its own. */
static void count_phases(const struct account *account)
{
    const uint64_t phases[PHASE_COUNT] = {account->queue_us, account->start_us, account->run_us, account->finish_us};
    for (int i = 0; i < PHASE_COUNT && account->programs; i++)
        observe(&counts.phases[i], phases[i]);
}

void metrics_run(const struct metrics_run *run)
{
    const struct account *account = run->account;
    pthread_mutex_lock(&lock);
    unsigned language = intern(&counts.languages, run->language);
    counts.runs[language][index_of(metrics_statuses, STATUS_COUNT, run->status)]++;
    counts.cpu_us[language] += account->cpu_us;
    for (int i = 0; i < 2; i++)
        counts.output_bytes[i] += account->output_bytes[i];
    count_denials(account);
    count_phases(account);
    for (size_t i = 0; i < run->redaction_count; i++)
        counts.redactions[intern(&counts.rules, run->redactions[i].rule)] += run->redactions[i].count;
    pthread_mutex_unlock(&lock);
}

/* The row of this answer; what finds no place any more is counted in the first row, which is everything else. */
static struct http_count *http_row(unsigned method, unsigned route, int status)
{
    if (!counts.http_used)
        counts.http[counts.http_used++] = (struct http_count){0};
    for (unsigned i = 0; i < counts.http_used; i++) {
        struct http_count *row = &counts.http[i];
        if (row->method == method && row->route == route && row->status == status)
            return row;
    }
    if (counts.http_used == HTTP_MAX)
        return &counts.http[0];
    counts.http[counts.http_used] = (struct http_count){method, route, status, 0};
    return &counts.http[counts.http_used++];
}

void metrics_http(const char *method, const char *route, int status, uint64_t us)
{
    pthread_mutex_lock(&lock);
    unsigned at = intern(&counts.routes, route);
    http_row(index_of(metrics_methods, METHOD_COUNT, method), at, status >= 100 && status < 600 ? status : 0)->count++;
    observe(&counts.http_time[at], us);
    pthread_mutex_unlock(&lock);
}

void metrics_unrecorded(void)
{
    pthread_mutex_lock(&lock);
    counts.unrecorded++;
    pthread_mutex_unlock(&lock);
}

void metrics_refused(const char *why)
{
    pthread_mutex_lock(&lock);
    counts.refused[intern(&counts.reasons, why)]++;
    pthread_mutex_unlock(&lock);
}

void metrics_text(const struct metrics_now *now, struct buf *out)
{
    pthread_mutex_lock(&lock);
    metrics_write(&counts, now, out);
    pthread_mutex_unlock(&lock);
}
