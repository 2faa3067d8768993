/* What the figures were measured on: reads /proc, asks the engine for its languages and the peers for their versions.
 * Called by cmd_bench(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/cleanup.h"
#include "cli/bench/bench.h"
#include "cli/report.h"

#define BUSY_MS 500

static json_t *cpu_model(void)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    auto_free char *line = NULL;
    size_t capacity = 0;
    json_t *model = NULL;
    while (file && !model && getline(&line, &capacity, file) > 0) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " ");
        value[strcspn(value, "\n")] = '\0';
        model = json_string(value);
    }
    if (file)
        fclose(file);
    return model ? model : json_null();
}

static const char *cgroup_version(void)
{
    struct statfs where;
    if (statfs("/sys/fs/cgroup", &where) < 0)
        return "none";
    return where.f_type == CGROUP2_SUPER_MAGIC ? "v2" : access("/sys/fs/cgroup/memory", F_OK) == 0 ? "v1" : "none";
}

static json_t *language_versions(cordon_engine *engine)
{
    char *text = NULL;
    json_t *versions = json_object();
    if (!engine || cordon_languages(engine, &text, NULL) < 0)
        return versions;
    auto_json json_t *languages = json_loads(text, JSON_ALLOW_NUL, NULL);
    cordon_free(text);
    for (size_t i = 0; i < bench_workload_count; i++) {
        size_t index;
        json_t *each;
        json_array_foreach(json_object_get(languages, "items"), index, each)
        {
            const char *id = member_text(each, "id");
            if (id && !strcmp(id, bench_workloads[i].language))
                json_object_set(versions, id, json_object_get(each, "version"));
        }
    }
    return versions;
}

/* All jiffies and the idle ones. */
static bool processor_times(unsigned long long *all, unsigned long long *idle)
{
    unsigned long long times[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return false;
    int got = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1], &times[2], &times[3],
                     &times[4], &times[5], &times[6], &times[7]);
    fclose(file);
    *all = 0;
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        *all += times[i];
    *idle = times[3] + times[4];
    return got == (int)ARRAY_LEN(times);
}

double machine_busy_percent(void)
{
    unsigned long long all, idle, all_after, idle_after;
    if (!processor_times(&all, &idle))
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
    if (!processor_times(&all_after, &idle_after) || all_after <= all)
        return 0;
    return 100.0 * (1.0 - (double)(idle_after - idle) / (double)(all_after - all));
}

static json_t *peer_versions(char *const *programs)
{
    json_t *versions = json_object();
    for (size_t i = 0; i < bench_peer_count; i++) {
        char version[128];
        if (programs[i] && peer_version(&bench_peers[i], programs[i], version, sizeof version))
            json_object_set_new(versions, bench_peers[i].name, json_string(version));
    }
    return versions;
}

json_t *machine_facts(cordon_engine *engine, char *const *programs)
{
    struct utsname name = {0};
    struct sysinfo memory = {0};
    double load[3] = {0};
    char date[32] = "";
    time_t now = time(NULL);
    struct tm day;
    uname(&name);
    sysinfo(&memory);
    if (getloadavg(load, 3) == 3)
        for (size_t i = 0; i < ARRAY_LEN(load); i++)
            load[i] = round(load[i] * 100) / 100;
    if (gmtime_r(&now, &day))
        strftime(date, sizeof date, "%Y-%m-%d", &day);
    return json_pack("{s:o, s:I, s:s, s:s, s:I, s:s, s:s, s:s, s:[f, f, f], s:o, s:o}", "cpu", cpu_model(), "cores",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "kernel", name.release, "architecture", name.machine,
                     "memory_bytes", (json_int_t)memory.totalram * memory.mem_unit, "cgroup", cgroup_version(), "user",
                     geteuid() == 0 ? "root" : "ordinary", "date", date, "load", load[0], load[1], load[2], "peers",
                     peer_versions(programs), "languages", language_versions(engine));
}
