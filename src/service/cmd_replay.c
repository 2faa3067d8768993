/* `cordon replay`: a recorded request again, and what differs. The request's text is the only source: code, inputs,
 * limits and environment are those of then; secret values were never stored and have to be given. Called by main(). */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/engine.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/result_json.h"
#include "output/json_text.h"
#include "service/commands.h"
#include "service/compare.h"
#include "service/sanitizer.h"
#include "service/store_flags.h"

enum { EXIT_DIFFERS = 1, EXIT_INCOMPLETE = 3 };
#define SHOWN_MAX 60

struct flags {
    struct store_flags store;
    json_t *secrets; /* name → value */
};

static int add_secret(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct flags *flags = context;
    const char *equals = strchr(value, '=');
    (void)row;
    if (!equals || equals == value)
        return error_set(err, CORDON_EINVAL, "usage", "expected NAME=VALUE");
    auto_free char *name = strndup(value, (size_t)(equals - value));
    if (!flags->secrets)
        flags->secrets = json_object();
    if (!name || json_object_set_new(flags->secrets, name, json_string(equals + 1)) < 0)
        return error_set(err, CORDON_EINVAL, "usage", "the name and the value must be UTF-8");
    return 0;
}

static const struct option_row rows[] = {
    {"env-secret", 0, "NAME=VALUE", "the value of a secret variable, which is not stored; may be repeated", add_secret,
     NULL},
    DATA_DIR_ROW,
    JSON_ROW("print an object with the differences and the new result"),
};

static const struct usage usage = {
    .synopsis = "cordon replay [OPTION...] ID",
    .about = "Runs a recorded request again, with the same code, inputs, limits and environment, and shows what\n"
             "differs. Exit code 0 when status, output, value and collected files are the same, 1 when they\n"
             "are not, 3 when nothing differs but not all of it could be compared.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .anywhere = true,
};

static bool is_withheld(const json_t *value)
{
    const json_t *inner = json_is_object(value) ? json_object_get(value, "value") : value;
    return json_is_null(inner);
}

static int put_secrets_back(json_t *request, const json_t *secrets, cordon_error *err)
{
    json_t *env = json_object_get(request, "env"), *value;
    const char *name;
    void *next;
    json_object_foreach_safe(env, next, name, value)
    {
        if (!is_withheld(value))
            continue;
        json_t *secret = json_object_get(secrets, name);
        if (!secret) {
            error_set(err, CORDON_EINVAL, "replay",
                      "the run was given the secret variable %s, whose value is not stored", name);
            return error_hint(err, "give it with --env-secret %s=VALUE", name);
        }
        json_object_set_new(env, name, json_pack("{s:O, s:b}", "value", secret, "secret", 1));
    }
    return 0;
}

/* Output is compared as it is; redaction is for who delivers it to others. */
static int make_request(struct store *store, const char *id, const struct flags *flags, cordon_request **request,
                        cordon_error *err)
{
    auto_free char *text = NULL;
    int code = store_request(store, id, NULL, &text, err);
    if (code < 0)
        return code;
    auto_json json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(object))
        return error_set(err, CORDON_ESYSTEM, "replay", "the kept request of run %s is no JSON object", id);
    code = put_secrets_back(object, flags->secrets, err);
    if (code < 0)
        return code;
    auto_free char *complete = json_text(object, NULL);
    return complete ? cordon_request_from_json(complete, strlen(complete), request, err) : error_nomem(err);
}

static int run_again(const cordon_request *request, json_t **after, cordon_error *err)
{
    cordon_engine *engine = NULL;
    cordon_result *result = NULL;
    cordon_run_options options = CORDON_RUN_OPTIONS_INIT;
    cordon_engine_options engine_options = CORDON_ENGINE_OPTIONS_INIT;
    struct sanitizer sanitizer;
    int code = sanitizer_open(&sanitizer, request, SANITIZE_NONE, err);
    options.filter = sanitizer_filter(&sanitizer);
    if (code == 0)
        code = cli_engine_open(&engine_options, &engine, err);
    if (code == 0)
        code = cordon_execute(engine, request, &options, &result, err);
    if (code == 0)
        sanitizer_tell(&sanitizer, result);
    *after = code == 0 ? result_object(result) : NULL;
    if (code == 0 && !*after)
        code = error_nomem(err);
    cordon_result_free(result);
    cordon_engine_close(engine);
    sanitizer_close(&sanitizer);
    return code;
}

static int find_before(struct store *store, const char *id, json_t **before, cordon_error *err)
{
    auto_free char *text = NULL;
    int code = store_result(store, id, NULL, &text, err);
    if (code < 0)
        return code;
    *before = json_loads(text, JSON_ALLOW_NUL, NULL);
    const char *state = *before ? member_text(*before, "state") : NULL;
    if (!state)
        return error_nomem(err);
    return strcmp(state, "done") != 0 ? error_set(err, CORDON_ESTATE, "replay", "run %s has not ended", id) : 0;
}

/* The first line in which two texts differ; 0 when they are no texts. */
static size_t first_line(const json_t *before, const json_t *after, size_t *offset)
{
    const char *a = json_string_value(before), *b = json_string_value(after);
    size_t line = 1, length = json_string_length(before), i;
    *offset = 0;
    if (!a || !b)
        return 0;
    if (json_string_length(after) < length)
        length = json_string_length(after);
    for (i = 0; i < length && a[i] == b[i]; i++)
        if (a[i] == '\n') {
            line++;
            *offset = i + 1;
        }
    return line;
}

/* As JSON, which hides control characters; a text from `offset` to its line's end. */
static char *shown(const json_t *value, size_t offset)
{
    auto_json json_t *part = NULL;
    if (json_is_string(value)) {
        const char *text = json_string_value(value) + offset;
        size_t length = strcspn(text, "\n");
        part = json_stringn(text, length < SHOWN_MAX ? length : SHOWN_MAX);
        /* Cut within a character. */
        for (size_t cut = SHOWN_MAX; !part && cut > SHOWN_MAX - 4; cut--)
            part = json_stringn(text, cut);
    } else
        part = json_incref((json_t *)value);
    char *text = part ? json_text(part, NULL) : strdup("?");
    if (text && !json_is_string(value) && strlen(text) > SHOWN_MAX)
        memcpy(text + SHOWN_MAX - 3, "...", 4);
    return text;
}

enum { COLUMN_FIELD, COLUMN_BEFORE, COLUMN_AFTER, COLUMN_COUNT };

static void fill_row(struct cell_text *row, char **made, const json_t *difference)
{
    const json_t *before = json_object_get(difference, "before"), *after = json_object_get(difference, "after");
    size_t offset, line = first_line(before, after, &offset);
    const char *field = member_text(difference, "field");
    if (line <= 1 || asprintf(&made[0], "%s, line %zu", field, line) < 0)
        made[0] = strdup(field);
    made[1] = shown(before, offset);
    made[2] = shown(after, offset);
    row[COLUMN_FIELD] =
        (struct cell_text){made[0], json_is_true(json_object_get(difference, "decides")) ? TINT_BAD : TINT_WARN};
    row[COLUMN_BEFORE] = (struct cell_text){made[1], TINT_NONE};
    row[COLUMN_AFTER] = (struct cell_text){made[2], TINT_NONE};
}

static void print_verdict(const json_t *same)
{
    enum tint tint = json_is_true(same) ? TINT_GOOD : json_is_false(same) ? TINT_BAD : TINT_WARN;
    terminal_tint(stdout, tint, json_is_true(same) ? "same" : json_is_false(same) ? "different" : "incomplete");
    printf("%s\n", json_is_true(same)    ? ": status, output, value and files are as before"
                   : json_is_false(same) ? ": status, output, value or files are not as before"
                                         : ": nothing differs, but not everything could be compared");
}

static int exit_code_of(const json_t *same)
{
    return json_is_true(same) ? 0 : json_is_false(same) ? EXIT_DIFFERS : EXIT_INCOMPLETE;
}

static int print_table(const json_t *comparison)
{
    const json_t *list = json_object_get(comparison, "differences"), *item;
    size_t count = json_array_size(list), i;
    auto_free struct cell_text *cells = calloc((count + 1) * COLUMN_COUNT, sizeof *cells);
    auto_free char **made = calloc(count * 3 + 1, sizeof *made);
    if (!cells || !made)
        return EXIT_OWN_FAILURE;
    cells[COLUMN_FIELD] = (struct cell_text){"FIELD", TINT_DIM};
    cells[COLUMN_BEFORE] = (struct cell_text){"BEFORE", TINT_DIM};
    cells[COLUMN_AFTER] = (struct cell_text){"NOW", TINT_DIM};
    json_array_foreach(list, i, item) fill_row(cells + (i + 1) * COLUMN_COUNT, made + 3 * i, item);
    print_verdict(json_object_get(comparison, "same"));
    if (count)
        terminal_table(stdout, cells, COLUMN_COUNT, count + 1);
    for (i = 0; i < 3 * count; i++)
        free(made[i]);
    json_array_foreach(json_object_get(comparison, "not_compared"), i, item)
        printf("not compared: %s: %s\n", member_text(item, "field"), member_text(item, "why"));
    return 0;
}

static int print_json(json_t *comparison, const char *id, json_t *after)
{
    json_object_set_new(comparison, "id", json_string(id));
    json_object_set(comparison, "result", after);
    auto_free char *text = json_text(comparison, NULL);
    return text ? report_json_text(text) : EXIT_OWN_FAILURE;
}

static int replay(const struct flags *flags, const char *start, cordon_error *err)
{
    auto_free char *id = NULL;
    auto_store struct store *store = NULL;
    cordon_request *request = NULL;
    auto_json json_t *before = NULL, *after = NULL;
    int code = data_dir_open(flags->store.data_dir, &store, err);
    if (code == 0)
        code = store_find(store, start, &id, err);
    if (code == 0)
        code = find_before(store, id, &before, err);
    if (code == 0)
        code = make_request(store, id, flags, &request, err);
    if (code == 0)
        code = run_again(request, &after, err);
    cordon_request_free(request);
    if (code < 0)
        return code;
    auto_json json_t *comparison = compare_results(before, after);
    if (!comparison)
        return error_nomem(err);
    int verdict = exit_code_of(json_object_get(comparison, "same"));
    code = flags->store.json ? print_json(comparison, id, after) : print_table(comparison);
    return code ? code : verdict;
}

int cmd_replay(int argc, char **argv)
{
    cordon_error err = {0};
    struct flags flags = {0};
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0 && first >= argc)
        code = error_set(&err, CORDON_EINVAL, "usage", "which run? name its ID, as `cordon history` shows it");
    if (code == 0)
        code = options_no_words(argc, argv, first + 1, &err);
    if (code < 0) {
        json_decref(flags.secrets);
        return report_usage(&err, "replay");
    }
    code = replay(&flags, argv[first], &err);
    json_decref(flags.secrets);
    return code < 0 ? report_error(&err, flags.store.json) : code;
}
