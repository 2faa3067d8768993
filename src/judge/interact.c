/* A program and an interactor in a cell each, joined by pipes both ways: what one prints the other reads. Owns the
 * relay between them. What waits to be written is bounded by the output limit of whoever wrote it, and nothing here
 * blocks on one side while the other has something to say. Called by case.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/result.h"
#include "judge/case.h"

/* An interactor that waits for a program which is over time must not be over time itself. */
#define PATIENCE_MS 5000
/* So long a program has to leave by itself after the interactor has. */
#define LEAVE_US 300000

struct side {
    cordon_request *request;
    cordon_run *run;
    struct runs_one one;
    int in[2]; /* what this side reads: the relay writes in[1] */
    struct buf out;
    size_t sent; /* of `out`, to the other side */
    bool ended;
    cordon_result *result;
};

static void on_output(void *context, int stream, const void *bytes, size_t length)
{
    struct side *side = context;
    if (stream == STDOUT_FILENO)
        buf_append(&side->out, bytes, length);
}

static int side_start(struct side *side, struct bench *bench, struct program *program,
                      const struct program_input *input, size_t index, cordon_error *err)
{
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    if (pipe2(side->in, O_CLOEXEC) < 0)
        return error_sys(err, errno, "pipe", "cannot make a pipe");
    fcntl(side->in[1], F_SETFL, O_NONBLOCK);
    options.on_output = on_output;
    options.context = side;
    options.stdin_fd = side->in[0];
    int code = program_request(program, input, &side->request, err);
    if (code == 0)
        code = program_start(program, bench->engine, side->request, &options, &side->run, err);
    if (code < 0)
        return code;
    side->one = (struct runs_one){.run = side->run, .index = index};
    runs_add(&bench->runs, &side->one);
    return 0;
}

static void side_close(struct side *side, struct bench *bench)
{
    if (side->run) {
        runs_remove(&bench->runs, &side->one);
        runs_charge(&bench->runs, side->run);
    }
    cordon_run_free(side->run);
    cordon_request_free(side->request);
    cordon_result_free(side->result);
    cleanup_close(&side->in[0]);
    cleanup_close(&side->in[1]);
    buf_free(&side->out);
}

/* Writes what `from` printed; when it has ended and all is written, the other reads the end of its input. */
static void pass_on(struct side *from, struct side *to)
{
    if (to->ended)
        from->sent = from->out.length = 0;
    while (to->in[1] >= 0 && from->sent < from->out.length) {
        ssize_t n = write(to->in[1], from->out.data + from->sent, from->out.length - from->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        from->sent += (size_t)n;
    }
    if (from->sent == from->out.length)
        from->sent = from->out.length = 0;
    if (from->ended && !from->out.length && to->in[1] >= 0)
        close(take_fd(&to->in[1]));
}

static int advance(struct side *side, cordon_error *err)
{
    if (side->ended)
        return 0;
    int code = cordon_run_dispatch(side->run, err);
    if (code <= 0)
        return side->out.failed ? error_nomem(err) : code;
    side->ended = true;
    return cordon_run_wait(side->run, &side->result, err);
}

static void wait_for_either(struct side *sides, int timeout_ms)
{
    struct pollfd ready[4];
    nfds_t count = 0;
    for (int i = 0; i < 2; i++) {
        if (!sides[i].ended)
            ready[count++] = (struct pollfd){.fd = cordon_run_fd(sides[i].run), .events = POLLIN};
        if (sides[i].out.length && sides[!i].in[1] >= 0)
            ready[count++] = (struct pollfd){.fd = sides[!i].in[1], .events = POLLOUT};
    }
    poll(ready, count, timeout_ms);
}

enum { PROGRAM, INTERACTOR };

/* Until both have ended; *first tells who did so before the other. */
static int converse(struct side *sides, int *first, cordon_error *err)
{
    uint64_t deadline = 0;
    *first = -1;
    for (;;) {
        for (int i = 0; i < 2; i++) {
            int code = advance(&sides[i], err);
            if (code < 0)
                return code;
            if (sides[i].ended && *first < 0)
                *first = i;
        }
        pass_on(&sides[PROGRAM], &sides[INTERACTOR]);
        pass_on(&sides[INTERACTOR], &sides[PROGRAM]);
        if (sides[PROGRAM].ended && sides[INTERACTOR].ended)
            return 0;
        int timeout_ms = -1;
        if (*first == INTERACTOR && cordon_result_status(sides[INTERACTOR].result) != CORDON_STATUS_OK) {
            uint64_t now = clock_us();
            deadline = deadline ? deadline : now + LEAVE_US;
            timeout_ms = now < deadline ? (int)((deadline - now) / 1000 + 1) : -1;
            if (now >= deadline)
                cordon_run_cancel(sides[PROGRAM].run);
        }
        wait_for_either(sides, timeout_ms);
    }
}

/* Whoever ended first has spoken first: a program that failed is not excused by an interactor that then found no more
 * input, and one that lost its partner is not blamed for it. */
static void judge_both(struct side *sides, int first, struct verdict *verdict)
{
    verdict->result = take_ptr(&sides[PROGRAM].result);
    bool did_well = cordon_result_status(verdict->result) == CORDON_STATUS_OK;
    if (!did_well && (first == PROGRAM || cordon_result_status(sides[INTERACTOR].result) == CORDON_STATUS_OK))
        return;
    struct slice said;
    said.data = cordon_result_stderr(sides[INTERACTOR].result, &said.length);
    verdict_by_helper(verdict, "interactor", sides[INTERACTOR].result, said);
}

int interact_run(struct bench *bench, size_t index, struct program *helper, struct verdict *verdict, cordon_error *err)
{
    struct side sides[2] = {{.in = {-1, -1}}, {.in = {-1, -1}}};
    struct program_input input = case_input(bench, index), own = {0};
    int first = -1;
    input.output_bytes = own.output_bytes = TRAFFIC_BYTES;
    input.stop_at_output = own.stop_at_output = true;
    int code = side_start(&sides[PROGRAM], bench, &bench->program, &input, index, err);
    if (code == 0) {
        struct limits limits = sides[PROGRAM].request->limits;
        limits_complete(&limits, sides[PROGRAM].request->profile, NULL);
        int64_t wall = limits.value[LIMIT_WALL_MS];
        own.wall_ms = wall < INT32_MAX - PATIENCE_MS ? (unsigned)wall + PATIENCE_MS : 0;
        code = side_start(&sides[INTERACTOR], bench, helper, &own, index, err);
    }
    if (code == 0)
        code = converse(sides, &first, err);
    if (code == 0)
        judge_both(sides, first, verdict);
    side_close(&sides[PROGRAM], bench);
    side_close(&sides[INTERACTOR], bench);
    return code;
}
