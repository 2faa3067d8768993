/* One engine for many runs, for the tests: requests come in as lines of JSON, results go out as lines of JSON.
 *
 * engine_lines [OPTION...] <REQUESTS
 *   --threads N          so many runs at once (1); results then come in the order in which runs end
 *   --prewarm N          N waiting cells for each thread's first request in a language, before it runs
 *   --cold               an engine without waiting cells
 *   --cancel-percent P   so many of the runs are cancelled, at a moment between at once and 65 ms after the start
 *   --repeat N           the whole input N times
 *   --brief              of a result only its status
 *   --seed N             of the chances above
 *   --languages DIR --warden PATH
 *
 * A line out is {"line": N, "cancelled": bool, "result": {…}}, or "status" instead of the result, or "error". The line
 * `pools` is answered with {"line": N, "pools": […]}. At the end standard error gets the pools and the counts. Exits 0
 * whatever became of the runs, 1 when there is no engine. */
#include <cordon/cordon.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX   256
#define LANGUAGES_MAX 64
#define WARM_MS       60000
#define STATUSES      (CORDON_STATUS_INTERNAL_ERROR + 1)

static cordon_engine *engine;
static unsigned threads = 1, prewarm, cancel_percent, repeat = 1, seed = 1;
static int brief;

/* The input. Kept only when it is to be read again. */
static struct {
    pthread_mutex_t lock;
    char **lines;
    size_t count, next;
    unsigned round;
    long number;
} input = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long runs, errors, cancels, unwarmed, statuses[STATUSES];

static void *grown(void *memory, size_t size)
{
    memory = realloc(memory, size);
    if (!memory)
        abort();
    return memory;
}

static char *read_line(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = getline(&line, &capacity, stdin);
    if (length < 0) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* The next line, to be freed, and its number; NULL at the end. */
static char *next_line(long *number)
{
    char *line = NULL;
    pthread_mutex_lock(&input.lock);
    if (input.round == 0 && (line = read_line()) && repeat > 1) {
        input.lines = grown(input.lines, (input.count + 1) * sizeof *input.lines);
        input.lines[input.count++] = strdup(line);
    }
    if (!line && input.count) {
        if (input.round == 0 || input.next == input.count) {
            input.round++;
            input.next = 0;
        }
        if (input.round < repeat)
            line = strdup(input.lines[input.next++]);
    }
    *number = input.number++;
    pthread_mutex_unlock(&input.lock);
    return line;
}

static void print(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    pthread_mutex_lock(&output_lock);
    if (text && puts(text) >= 0)
        fflush(stdout);
    pthread_mutex_unlock(&output_lock);
    free(text);
    json_decref(object);
}

static json_t *pools_json(void)
{
    char *text = NULL;
    cordon_error err = {0};
    if (cordon_pools(engine, &text, &err) < 0)
        return json_pack("{s:s, s:s}", "step", err.step, "text", err.text);
    json_t *pools = json_loads(text, 0, NULL);
    cordon_free(text);
    return pools;
}

/* What one thread has; each warms for itself, so that they meet in the same pools. */
struct worker {
    pthread_t thread;
    unsigned chance;
    char *warmed[LANGUAGES_MAX];
};

static void warm_first(struct worker *worker, const char *json, const cordon_request *request)
{
    json_t *object = json_loads(json, 0, NULL);
    const char *language = json_string_value(json_object_get(object, "language"));
    size_t known = 0;
    while (language && known < LANGUAGES_MAX && worker->warmed[known] && strcmp(worker->warmed[known], language) != 0)
        known++;
    if (language && known < LANGUAGES_MAX && !worker->warmed[known]) {
        cordon_error err = {0};
        worker->warmed[known] = strdup(language);
        if (cordon_engine_warm(engine, request, prewarm, WARM_MS, &err) < 0) {
            fprintf(stderr, "engine_lines: warm %s: %s\n", language, err.text);
            unwarmed++;
        }
    }
    json_decref(object);
}

static long now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000L + time.tv_nsec / 1000;
}

/* Lets the run go on until a moment of chance, short ones as likely as long ones, and cancels it. */
static void cancel_by_chance(cordon_run *run, unsigned *chance)
{
    long until = now_us() + (1L << rand_r(chance) % 17) - 1;
    for (long left; (left = until - now_us()) > 0;) {
        struct pollfd ready = {.fd = cordon_run_fd(run), .events = POLLIN};
        struct timespec time = {left / 1000000, left % 1000000 * 1000};
        if (ppoll(&ready, 1, &time, NULL) > 0 && cordon_run_dispatch(run, NULL) != 0)
            break;
    }
    cordon_run_cancel(run);
}

static int execute(const cordon_request *request, bool cancel, unsigned *chance, cordon_result **result,
                   cordon_error *err)
{
    cordon_run *run = NULL;
    int code = cordon_run_start(engine, request, NULL, &run, err);
    if (code < 0)
        return code;
    if (cancel)
        cancel_by_chance(run, chance);
    code = cordon_run_wait(run, result, err);
    cordon_run_free(run);
    return code;
}

static void print_result(cordon_result *result, long number, bool cancel)
{
    const char *text = cordon_result_json(result);
    pthread_mutex_lock(&output_lock);
    printf("{\"line\":%ld,\"cancelled\":%s,", number, cancel ? "true" : "false");
    if (brief)
        printf("\"status\":\"%s\"}\n", cordon_status_name(cordon_result_status(result)));
    else
        printf("\"result\":%s}\n", text ? text : "null");
    fflush(stdout);
    pthread_mutex_unlock(&output_lock);
}

static void serve(struct worker *worker, const char *line, long number)
{
    cordon_request *request = NULL;
    cordon_result *result = NULL;
    cordon_error err = {0};
    bool cancel = (unsigned)rand_r(&worker->chance) % 100 < cancel_percent;
    int code = cordon_request_from_json(line, strlen(line), &request, &err);
    if (code == 0 && prewarm)
        warm_first(worker, line, request);
    if (code == 0)
        code = execute(request, cancel, &worker->chance, &result, &err);
    runs++;
    cancels += cancel;
    if (code < 0) {
        errors++;
        print(json_pack("{s:I, s:b, s:{s:i, s:s, s:s, s:i}}", "line", (json_int_t)number, "cancelled", cancel, "error",
                        "code", err.code, "step", err.step, "text", err.text, "errno", err.sys_errno));
    } else {
        statuses[cordon_result_status(result)]++;
        print_result(result, number, cancel);
    }
    cordon_result_free(result);
    cordon_request_free(request);
}

static void *work(void *context)
{
    struct worker *worker = context;
    long number;
    for (char *line; (line = next_line(&number)); free(line)) {
        if (!strcmp(line, "pools"))
            print(json_pack("{s:I, s:o}", "line", (json_int_t)number, "pools", pools_json()));
        else if (*line)
            serve(worker, line, number);
    }
    for (size_t i = 0; i < LANGUAGES_MAX; i++)
        free(worker->warmed[i]);
    return NULL;
}

static void report(void)
{
    json_t *by_status = json_object();
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i])
            json_object_set_new(by_status, cordon_status_name((cordon_status)i), json_integer(statuses[i]));
    json_t *object = json_pack("{s:o, s:I, s:I, s:I, s:I, s:o}", "pools", pools_json(), "runs", (json_int_t)runs,
                               "errors", (json_int_t)errors, "cancels", (json_int_t)cancels, "unwarmed",
                               (json_int_t)unwarmed, "statuses", by_status);
    char *text = json_dumps(object, JSON_COMPACT);
    fprintf(stderr, "%s\n", text ? text : "out of memory");
    free(text);
    json_decref(object);
}

static void parse(int argc, char **argv, cordon_engine_options *options)
{
    static const struct option known[] = {{"threads", 1, NULL, 't'},
                                          {"prewarm", 1, NULL, 'p'},
                                          {"cold", 0, NULL, 'c'},
                                          {"cancel-percent", 1, NULL, 'k'},
                                          {"repeat", 1, NULL, 'r'},
                                          {"brief", 0, NULL, 'b'},
                                          {"seed", 1, NULL, 's'},
                                          {"languages", 1, NULL, 'l'},
                                          {"warden", 1, NULL, 'w'},
                                          {"warm-bytes", 1, NULL, 'm'},
                                          {0}};
    struct {
        int letter;
        unsigned *value;
    } numbers[] = {{'t', &threads}, {'p', &prewarm}, {'k', &cancel_percent}, {'r', &repeat}, {'s', &seed}};
    for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (numbers[i].letter == letter)
                *numbers[i].value = (unsigned)strtoul(optarg, NULL, 10);
        if (letter == '?')
            exit(2);
        if (letter == 'b')
            brief = 1;
        if (letter == 'c')
            options->warm = 0;
        if (letter == 'l')
            options->languages_dir = optarg;
        if (letter == 'w')
            options->warden_path = optarg;
        if (letter == 'm')
            options->warm_bytes = strtoul(optarg, NULL, 10);
    }
    if (optind < argc || threads < 1 || threads > THREADS_MAX || repeat < 1) {
        fprintf(stderr, "engine_lines: bad arguments\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    cordon_error err = {0};
    static struct worker workers[THREADS_MAX];
    unsigned started = 0;
    options.warm = 1;
    parse(argc, argv, &options);
    if (cordon_engine_open(&options, &engine, &err) < 0) {
        fprintf(stderr, "engine_lines: %s: %s\n", err.step, err.text);
        return 1;
    }
    for (; started < threads; started++) {
        workers[started].chance = seed * 1000003U + started;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    report();
    cordon_engine_close(engine);
    for (size_t i = 0; i < input.count; i++)
        free(input.lines[i]);
    free(input.lines);
    return 0;
}
