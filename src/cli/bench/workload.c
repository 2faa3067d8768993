/* Owns the programs that are run, and the directory in which the other runners find them. Measures nothing. Called by
 * cmd_bench(). */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/bench/bench.h"

#define CELL_PATH "/usr/local/bin:/usr/bin:/bin"

/* As in a cell, where the search path is CELL_PATH. */
const char *const bench_environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "HOME=/work",
    "LANG=C.UTF-8",
    "TZ=UTC",
    "TMPDIR=/tmp",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    NULL,
};

static const char python_work[] =
    "import json, random, re, statistics\n"
    "\n"
    "numbers = random.Random(7)\n"
    "rows = [{'id': i, 'name': f'item-{i}', 'score': numbers.randint(1, 100)} for i in range(2000)]\n"
    "text = json.dumps(rows)\n"
    "names = re.findall(r'\"name\": \"item-(\\d+)\"', text)\n"
    "scores = [row['score'] for row in json.loads(text)]\n"
    "print(len(names), sum(scores), statistics.median(scores), round(statistics.pstdev(scores), 3))\n";

static const char pandas_describe[] =
    "import pandas\n"
    "\n"
    "frame = pandas.DataFrame({'a': range(1000), 'b': [n * n for n in range(1000)]})\n"
    "print(int(frame.describe().loc['mean', 'a'] * 10))\n";

static const char go_hello[] = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n";

const struct workload bench_workloads[] = {
    {.name = "true",
     .language = "c",
     .code = "int main(void)\n{\n    return 0;\n}\n",
     .output = "",
     .source = "main.c",
     .file = "main",
     .compiler = "gcc",
     .compile = {"-std=gnu17", "-O2", "-o", "main", "main.c"},
     .share = 100},
    {.name = "bash",
     .language = "bash",
     .code = "echo hello\n",
     .output = "hello\n",
     .file = "main.sh",
     .interpreter = "bash",
     .share = 100},
    {.name = "python",
     .language = "python",
     .code = "print('hello')\n",
     .output = "hello\n",
     .file = "main.py",
     .interpreter = "python3",
     .share = 100},
    {.name = "python-work",
     .language = "python",
     .code = python_work,
     .output = "2000 97395 48.0 28.988\n",
     .file = "main.py",
     .interpreter = "python3",
     .share = 100},
    {.name = "pandas",
     .language = "python",
     .code = pandas_describe,
     .output = "4995\n",
     .file = "main.py",
     .interpreter = "python3",
     .module = "pandas",
     .share = 20},
    {.name = "node",
     .language = "javascript",
     .code = "console.log('hello')\n",
     .output = "hello\n",
     .file = "main.js",
     .interpreter = "node",
     .share = 50},
    {.name = "ruby",
     .language = "ruby",
     .code = "puts 'hello'\n",
     .output = "hello\n",
     .file = "main.rb",
     .interpreter = "ruby",
     .share = 50},
    {.name = "go",
     .language = "go",
     .code = go_hello,
     .output = "hello\n",
     .source = "main.go",
     .file = "main",
     .compiler = "go",
     .compile = {"build", "-o", "main", "main.go"},
     .share = 100},
};
const size_t bench_workload_count = ARRAY_LEN(bench_workloads);

const struct workload *workload_find(const char *name)
{
    for (size_t i = 0; i < bench_workload_count; i++)
        if (!strcmp(bench_workloads[i].name, name))
            return &bench_workloads[i];
    return NULL;
}

bool find_executable(const char *name, const char *path, char *found, size_t size)
{
    while (path && *path) {
        size_t length = strcspn(path, ":");
        int needed = snprintf(found, size, "%.*s/%s", (int)length, path, name);
        if (length && needed > 0 && (size_t)needed < size && access(found, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

void scratch_remove(struct scratch *scratch)
{
    if (*scratch->path)
        nftw(scratch->path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    *scratch->path = '\0';
}

/* Other runners give programs another user's id, which has to get in. */
static int make_directory(const struct scratch *scratch, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch->path, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return -1;
    return chmod(path, 0755);
}

int scratch_make(struct scratch *scratch, cordon_error *err)
{
    static const char *const names[] = {"code", "work", "bundle", "root", "compiled"};
    const char *where = getenv("TMPDIR");
    if (!where || !*where)
        where = "/tmp";
    int needed = snprintf(scratch->path, sizeof scratch->path, "%s/cordon-bench-XXXXXX", where);
    bool fits = needed > 0 && (size_t)needed < sizeof scratch->path;
    if (!fits || !mkdtemp(scratch->path)) {
        *scratch->path = '\0';
        return error_sys(err, fits ? errno : ENAMETOOLONG, "bench", "cannot make a directory in %s", where);
    }
    int failed = chmod(scratch->path, 0755);
    for (size_t i = 0; i < ARRAY_LEN(names) && !failed; i++)
        failed = make_directory(scratch, names[i]);
    return failed ? error_sys(err, errno, "bench", "cannot fill %s", scratch->path) : 0;
}

static int write_code(const char *directory, const struct workload *workload)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, workload->source ? workload->source : workload->file);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -1 : fd_write_all(fd, workload->code, strlen(workload->code));
}

static bool compile(const char *directory, const struct workload *workload, char why[BENCH_REASON_SIZE])
{
    char compiler[128];
    const char *argv[BENCH_COMPILE_MAX + 2] = {compiler};
    memcpy(argv + 1, workload->compile, sizeof workload->compile);
    if (!find_executable(workload->compiler, CELL_PATH, compiler, sizeof compiler)) {
        snprintf(why, BENCH_REASON_SIZE, "%s is not installed", workload->compiler);
        return false;
    }
    struct process process = {.argv = argv, .environment = (const char *const *)environ, .directory = directory};
    struct sample sample;
    process_run(&process, &sample);
    if (!sample.ok)
        snprintf(why, BENCH_REASON_SIZE, "compiling it for the others: %.200s", sample.why);
    return sample.ok;
}

static bool has_module(const char *python, const char *module, char why[BENCH_REASON_SIZE])
{
    char text[64];
    snprintf(text, sizeof text, "import %s", module);
    struct process process = {.argv = (const char *const[]){python, "-c", text, NULL},
                              .environment = bench_environment};
    struct sample sample;
    process_run(&process, &sample);
    if (!sample.ok)
        snprintf(why, BENCH_REASON_SIZE, "the Python module %s is not installed", module);
    return sample.ok;
}

bool scratch_add(struct scratch *scratch, const struct workload *workload, char why[BENCH_REASON_SIZE])
{
    char name[64], directory[200];
    snprintf(name, sizeof name, "code/%s", workload->name);
    snprintf(directory, sizeof directory, "%s/%s", scratch->path, name);
    *scratch->interpreter = '\0';
    if (make_directory(scratch, name) < 0 || write_code(directory, workload) < 0) {
        snprintf(why, BENCH_REASON_SIZE, "%s: %s", directory, strerror(errno));
        return false;
    }
    if (workload->compiler)
        return compile(directory, workload, why);
    if (!find_executable(workload->interpreter, CELL_PATH, scratch->interpreter, sizeof scratch->interpreter)) {
        snprintf(why, BENCH_REASON_SIZE, "%s is not installed", workload->interpreter);
        return false;
    }
    return !workload->module || has_module(scratch->interpreter, workload->module, why);
}
