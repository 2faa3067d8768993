/* Load for the daemon: clients that keep their connections and ask for mixed runs, each of whose results is checked;
 * and beforehand, one at a time and in turn with it, the same runs on an engine in this process. What HTTP adds is the
 * median of the differences between neighbours: over all kinds the difference of the two medians would compare a run of
 * one kind with a run of another.
 *
 * http_load --port PORT [--clients 16] [--seconds 10] [--rounds 100] [--json]
 *
 * Exits 1 when a result was wrong. */
#include <arpa/inet.h>
#include <cordon/cordon.h>
#include <getopt.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 256
#define ANSWER_MAX  (1 << 20)
#define PAUSE_US    5000 /* the next waiting cell is made meanwhile, and not beside what is measured */
#define KINDS       (sizeof kinds / sizeof *kinds)

static const struct kind {
    const char *name, *language, *code, *input, *status, *output;
} kinds[] = {
    {"python", "python", "print(sum(range(1000)))", NULL, "ok", "499500\n"},
    {"bash", "bash", "echo $((6*7))", NULL, "ok", "42\n"},
    {"node", "javascript", "console.log([3,1,2].sort().join())", NULL, "ok", "1,2,3\n"},
    {"failing", "python", "print('so far')\nraise SystemExit(3)", NULL, "nonzero_exit", "so far\n"},
    {"stdin", "python", "print(sum(int(x) for x in open(0)))", "1\n2\n3\n", "ok", "6\n"},
    {"c", "c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }", NULL, "ok", "compiled\n"},
};

/* Latencies in microseconds. */
struct series {
    double *values;
    size_t count, capacity;
};

struct client {
    pthread_t thread;
    unsigned number;
    int fd;
    char *buffer;
    struct series took[KINDS];
    unsigned long wrong, refused;
};

static unsigned port, client_count = 16, seconds = 10, rounds = 100;
static bool as_json;
static atomic_bool stop;
static char *bodies[KINDS];

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void give_up(const char *what)
{
    fprintf(stderr, "http_load: %s\n", what);
    exit(1);
}

static void series_add(struct series *series, double value)
{
    if (series->count == series->capacity) {
        series->capacity = series->capacity ? 2 * series->capacity : 1024;
        series->values = reallocarray(series->values, series->capacity, sizeof *series->values);
        if (!series->values)
            give_up("out of memory");
    }
    series->values[series->count++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* In milliseconds. */
static double percentile(struct series *series, double share)
{
    if (!series->count)
        return 0;
    qsort(series->values, series->count, sizeof *series->values, by_value);
    size_t at = (size_t)((double)series->count * share);
    return series->values[at < series->count ? at : series->count - 1] / 1000;
}

/* HTTP */

static int connect_to(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        give_up("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static const char *header(const char *head, const char *name)
{
    for (const char *line = head; (line = strchr(line, '\n'));) {
        line++;
        if (strncasecmp(line, name, strlen(name)) == 0)
            return line + strlen(name);
    }
    return NULL;
}

/* The body of the next answer, and its status; NULL when the connection ended. */
static const char *read_answer(struct client *client, int *status)
{
    size_t have = 0, whole = 0;
    while (have < ANSWER_MAX) {
        ssize_t got = recv(client->fd, client->buffer + have, ANSWER_MAX - have, 0);
        if (got <= 0)
            return NULL;
        have += (size_t)got;
        client->buffer[have] = '\0';
        char *end = strstr(client->buffer, "\r\n\r\n");
        const char *length = end && !whole ? header(client->buffer, "content-length:") : NULL;
        if (length)
            whole = (size_t)(end + 4 - client->buffer) + strtoul(length, NULL, 10);
        if (whole && have >= whole) {
            *status = atoi(client->buffer + 9);
            return end + 4;
        }
    }
    return NULL;
}

static bool is_right(const struct kind *kind, const char *text)
{
    json_t *result = json_loads(text, 0, NULL);
    const char *status = json_string_value(json_object_get(result, "status"));
    const char *output = json_string_value(json_object_get(result, "stdout"));
    bool right = status && output && !strcmp(status, kind->status) && !strcmp(output, kind->output);
    if (!right)
        fprintf(stderr, "http_load: wrong result of %s: %.400s\n", kind->name, text);
    json_decref(result);
    return right;
}

/* One run over HTTP; its time, or less than 0 when it was refused or wrong. */
static double ask(struct client *client, size_t kind)
{
    char head[160];
    int status;
    int length = snprintf(head, sizeof head,
                          "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          strlen(bodies[kind]));
    double begin = now_us();
    if (!send_all(client->fd, head, (size_t)length) || !send_all(client->fd, bodies[kind], strlen(bodies[kind])))
        give_up("the daemon closed the connection");
    const char *body = read_answer(client, &status);
    double took = now_us() - begin;
    if (!body)
        give_up("the daemon closed the connection");
    if (status == 429)
        client->refused++;
    else if (status != 200 || !is_right(&kinds[kind], body))
        client->wrong++;
    else
        return took;
    return -1;
}

static void *be_client(void *context)
{
    struct client *client = context;
    for (size_t i = client->number; !stop; i++) {
        double took = ask(client, i % KINDS);
        if (took >= 0)
            series_add(&client->took[i % KINDS], took);
    }
    return NULL;
}

static void client_open(struct client *client, unsigned number)
{
    *client = (struct client){.number = number, .fd = connect_to(), .buffer = malloc(ANSWER_MAX + 1)};
    if (!client->buffer)
        give_up("out of memory");
}

/* The engine by itself */

static cordon_engine *open_engine(void)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    cordon_engine *engine;
    cordon_error err;
    options.warm = 1;
    if (cordon_engine_open(&options, &engine, &err) < 0)
        give_up(err.text);
    return engine;
}

static double run_here(cordon_engine *engine, size_t kind)
{
    cordon_request *request;
    cordon_result *result;
    cordon_error err;
    double begin = now_us();
    if (cordon_request_from_json(bodies[kind], strlen(bodies[kind]), &request, &err) < 0 ||
        cordon_execute(engine, request, NULL, &result, &err) < 0)
        give_up(err.text);
    const char *text = cordon_result_json(result);
    double took = now_us() - begin;
    if (!text || !is_right(&kinds[kind], text))
        exit(1);
    cordon_result_free(result);
    cordon_request_free(request);
    return took;
}

/* In turn, so that both meet the same machine. The first of each make the waiting cells and compile. */
static void compare(struct client *client, struct series *engine_took, struct series *http_took, struct series *added)
{
    cordon_engine *engine = open_engine();
    for (size_t kind = 0; kind < KINDS; kind++)
        for (unsigned round = 0; round < rounds + 10; round++) {
            usleep(PAUSE_US);
            double here = run_here(engine, kind);
            usleep(PAUSE_US);
            double there = ask(client, kind);
            if (round < 10 || there < 0)
                continue;
            series_add(&engine_took[kind], here);
            series_add(&http_took[kind], there);
            series_add(&added[kind], there - here);
        }
    cordon_engine_close(engine);
}

/* Output */

static void append(struct series *all, const struct series *more)
{
    for (size_t i = 0; i < more->count; i++)
        series_add(all, more->values[i]);
}

static json_t *percentiles(struct series *series)
{
    return json_pack("{s:I, s:f, s:f}", "runs", (json_int_t)series->count, "p50_ms", percentile(series, 0.5), "p99_ms",
                     percentile(series, 0.99));
}

static void print_row(const char *name, struct series *engine, struct series *alone, struct series *added,
                      struct series *load)
{
    printf("%-10s %9.3f %9.3f %+9.3f   %8zu %9.3f %9.3f\n", name, percentile(engine, 0.5), percentile(alone, 0.5),
           percentile(added, 0.5), load->count, percentile(load, 0.5), percentile(load, 0.99));
}

static void make_bodies(void)
{
    for (size_t i = 0; i < KINDS; i++) {
        json_t *request = json_pack("{s:s, s:s, s:s*}", "language", kinds[i].language, "code", kinds[i].code, "stdin",
                                    kinds[i].input);
        bodies[i] = json_dumps(request, JSON_COMPACT);
        json_decref(request);
    }
}

static void read_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"port", 1, NULL, 'p'},   {"clients", 1, NULL, 'c'}, {"seconds", 1, NULL, 's'},
        {"rounds", 1, NULL, 'r'}, {"json", 0, NULL, 'j'},    {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'p':
            port = (unsigned)atoi(optarg);
            break;
        case 'c':
            client_count = (unsigned)atoi(optarg);
            break;
        case 's':
            seconds = (unsigned)atoi(optarg);
            break;
        case 'r':
            rounds = (unsigned)atoi(optarg);
            break;
        case 'j':
            as_json = true;
            break;
        default:
            exit(2);
        }
    if (!port || !client_count || client_count > CLIENTS_MAX)
        give_up("expected --port PORT, and --clients from 1 to 256");
}

int main(int argc, char **argv)
{
    static struct client clients[CLIENTS_MAX], single;
    static struct series engine[KINDS], alone[KINDS], added[KINDS], load[KINDS];
    struct series all_engine = {0}, all_alone = {0}, all_added = {0}, all_load = {0};
    unsigned long wrong = 0, refused = 0;
    read_options(argc, argv);
    make_bodies();
    client_open(&single, 0);
    compare(&single, engine, alone, added);
    wrong = single.wrong;
    double begin = now_us();
    for (unsigned i = 0; i < client_count; i++) {
        client_open(&clients[i], i);
        if (pthread_create(&clients[i].thread, NULL, be_client, &clients[i]) != 0)
            give_up("no thread");
    }
    sleep(seconds);
    stop = true;
    for (unsigned i = 0; i < client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        wrong += clients[i].wrong;
        refused += clients[i].refused;
        for (size_t kind = 0; kind < KINDS; kind++)
            append(&load[kind], &clients[i].took[kind]);
    }
    double elapsed = (now_us() - begin) / 1e6;
    json_t *rows = json_object();
    if (!as_json)
        printf("one at a time, p50 in ms                %u clients for %u s, in ms\n%-10s %9s %9s %9s   %8s %9s %9s\n",
               client_count, seconds, "", "engine", "HTTP", "added", "runs", "p50", "p99");
    for (size_t kind = 0; kind < KINDS; kind++) {
        append(&all_engine, &engine[kind]);
        append(&all_alone, &alone[kind]);
        append(&all_added, &added[kind]);
        append(&all_load, &load[kind]);
        if (!as_json)
            print_row(kinds[kind].name, &engine[kind], &alone[kind], &added[kind], &load[kind]);
        json_object_set_new(rows, kinds[kind].name,
                            json_pack("{s:o, s:o, s:o, s:o}", "engine", percentiles(&engine[kind]), "http",
                                      percentiles(&alone[kind]), "added", percentiles(&added[kind]), "load",
                                      percentiles(&load[kind])));
    }
    double rate = (double)all_load.count / elapsed;
    if (as_json) {
        json_t *whole =
            json_pack("{s:i, s:f, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "clients", (int)client_count, "seconds",
                      elapsed, "runs_per_s", rate, "wrong", (json_int_t)wrong, "refused", (json_int_t)refused, "kinds",
                      rows, "engine", percentiles(&all_engine), "http", percentiles(&all_alone), "added",
                      percentiles(&all_added), "load", percentiles(&all_load));
        json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    } else {
        print_row("all", &all_engine, &all_alone, &all_added, &all_load);
        printf("%.1f runs/s, %lu wrong, %lu refused\n", rate, wrong, refused);
    }
    return wrong ? 1 : 0;
}
