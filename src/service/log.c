/* Owns the daemon's log lines. A line is at most PIPE_BUF bytes and one write, so that lines of several threads never
 * mix; a reader that does not read costs at most one short wait, then lines are dropped and counted. Called from any
 * thread. */
#include "service/log.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "output/utf8.h"

#define WAIT_MS  50
#define TEXT_MAX 256 /* of a field, in a line that is too long */

static const char *const names[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warn", [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug"};
static atomic_int lowest = LOG_LEVEL_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long dropped; /* since the last line that was written */

int log_level_from_name(const char *name, enum log_level *level)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(name, names[i])) {
            *level = (enum log_level)i;
            return 0;
        }
    return CORDON_EINVAL;
}

void log_set_level(enum log_level level)
{
    atomic_store(&lowest, (int)level);
}

/* Any bytes, as JSON wants them. */
static json_t *text_json(const char *text)
{
    size_t length;
    auto_free char *repaired = utf8_repair(text, strlen(text), &length);
    return repaired ? json_stringn(repaired, length) : NULL;
}

static json_t *time_json(void)
{
    struct timespec now;
    struct tm utc;
    char day[32], text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1000000);
    return json_string(text);
}

/* Waits only while lines have been getting through; the caller holds the lock. */
static void put(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, dropped ? 0 : WAIT_MS) == 1 && (ready.revents & POLLOUT) &&
        write(STDERR_FILENO, line, length) == (ssize_t)length)
        dropped = 0;
    else
        dropped++;
}

static json_t *cut_text(const json_t *value)
{
    size_t length = TEXT_MAX;
    const char *text = json_string_value(value);
    while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return json_stringn(text, length);
}

static void cut_texts(json_t *line)
{
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(line, next, key, value) if (json_string_length(value) > TEXT_MAX)
        json_object_set_new(line, key, cut_text(value));
    json_object_set_new(line, "cut", json_true());
}

/* As ASCII: what a caller or a program chose must not move a terminal's cursor or reverse its text. */
static char *dump(json_t *line)
{
    return json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
}

/* The line within PIPE_BUF: first without the ends of long texts, then without everything but what it is about. */
static char *fit(json_t *line, enum log_level level, const char *event)
{
    char *text = dump(line);
    if (!text || strlen(text) < PIPE_BUF)
        return text;
    free(text);
    cut_texts(line);
    text = dump(line);
    if (!text || strlen(text) < PIPE_BUF)
        return text;
    free(text);
    json_t *least = json_pack("{s:O, s:s, s:o, s:b}", "time", json_object_get(line, "time"), "level", names[level],
                              "event", text_json(event), "cut", 1);
    text = least ? dump(least) : NULL;
    json_decref(least);
    return text && strlen(text) < PIPE_BUF ? text : (free(text), NULL);
}

static void write_line(json_t *line, enum log_level level, const char *event)
{
    if (dropped)
        json_object_set_new(line, "dropped", json_integer((json_int_t)dropped));
    char *text = fit(line, level, event);
    if (!text)
        return;
    size_t length = strlen(text);
    text[length] = '\n'; /* in place of the NUL: the length is what counts from here */
    put(text, length + 1);
    free(text);
}

void log_event(enum log_level level, const char *event, json_t *fields)
{
    if ((int)level <= atomic_load(&lowest)) {
        json_t *line =
            json_pack("{s:o, s:s, s:o}", "time", time_json(), "level", names[level], "event", text_json(event));
        if (line) {
            if (fields)
                json_object_update_missing(line, fields);
            pthread_mutex_lock(&lock);
            write_line(line, level, event);
            pthread_mutex_unlock(&lock);
        }
        json_decref(line);
    }
    json_decref(fields);
}

void log_error(const char *event, const cordon_error *err)
{
    json_t *fields = json_pack("{s:o, s:i}", "error", text_json(err->text), "code", err->code);
    const struct {
        const char *name, *text;
    } rest[] = {{"step", err->step}, {"field", err->field}, {"hint", err->hint}};
    for (size_t i = 0; fields && i < ARRAY_LEN(rest); i++)
        if (*rest[i].text)
            json_object_set_new(fields, rest[i].name, text_json(rest[i].text));
    if (fields && err->sys_errno)
        json_object_set_new(fields, "errno", json_integer(err->sys_errno));
    log_event(LOG_LEVEL_ERROR, event, fields);
}
