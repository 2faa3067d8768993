/* `cordon doctor`: what this machine can enforce, and what to do about the rest. The library finds out; this file only
 * shows it. Called by main(). */
#include <cordon/cordon.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/warden.h"

struct flags {
    bool json;
    bool pools;
};

static int on_json(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct flags *)context)->json, row, value, err);
}

static int on_pools(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct flags *)context)->pools, row, value, err);
}

static const struct option_row rows[] = {
    {"json", 0, NULL, "print an object with all details", on_json, NULL},
    {"pools", 0, NULL, "make one waiting cell for every installed language and\ntell what memory they hold", on_pools,
     NULL},
};

static const struct usage usage = {
    .synopsis = "cordon doctor [--json] [--pools]",
    .about = "Makes a cell and tells which controls this machine can enforce, why not, and what to\n"
             "change. The exit code is 1 when a control that every run requires cannot be had, or\n"
             "with --pools when a language has no waiting cell that should have one.",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
};

struct state {
    const char *word;
    enum tint tint;
};

/* [required][enforced] */
static const struct state states[2][2] = {
    {{"missing", TINT_WARN}, {"enforced", TINT_GOOD}},
    {{"MISSING", TINT_BAD}, {"enforced", TINT_GOOD}},
};

/* `enforced` is a boolean, or a text that says in which form. */
static bool is_enforced(const json_t *control, const char **form)
{
    const json_t *enforced = json_object_get(control, "enforced");
    *form = json_string_value(enforced);
    return *form ? strcmp(*form, "none") != 0 : json_is_true(enforced);
}

static void print_detail(const char *label, const char *text)
{
    if (text && *text) {
        printf("      ");
        terminal_tint(stdout, TINT_DIM, label);
        printf(" %s\n", text);
    }
}

static void print_control(const json_t *control)
{
    const char *form, *name = member_text(control, "name");
    bool required = json_is_true(json_object_get(control, "required"));
    bool enforced = is_enforced(control, &form);
    const struct state *state = &states[required][enforced];
    printf("  %-16s%-10s", name ? name : "?", required ? "required" : "extra");
    terminal_tint(stdout, state->tint, state->word);
    if (enforced && form)
        printf(" (%s)", form);
    printf("\n");
    if (!enforced) {
        print_detail("cause:", member_text(control, "cause"));
        print_detail("fix:  ", member_text(control, "fix"));
    }
}

static void print_notes(const json_t *doctor)
{
    size_t index;
    const json_t *each;
    const json_t *context = json_object_get(doctor, "context"), *warnings = json_object_get(doctor, "warnings");
    bool ok = json_is_true(json_object_get(doctor, "ok"));
    if (!ok && json_array_size(context))
        printf("\n");
    if (!ok) /* where nothing is missing there is nothing to do about it */
        json_array_foreach(context, index, each)
        {
            const char *name = member_text(each, "name"), *note = member_text(each, "note");
            printf("  %-16s%s\n", name ? name : "?", note ? note : "");
        }
    if (json_array_size(warnings))
        printf("\n");
    json_array_foreach(warnings, index, each)
    {
        terminal_tint(stdout, TINT_WARN, "warning:");
        printf(" %s\n", json_string_value(each));
    }
}

static void print_doctor(const json_t *doctor, bool ok)
{
    const char *version = member_text(doctor, "version"), *kernel = member_text(doctor, "kernel");
    const char *user = member_text(doctor, "user"), *isolation = member_text(doctor, "isolation");
    size_t index;
    const json_t *each;
    printf("Cordon %s on Linux %s, %s\n\n", version ? version : cordon_version(), kernel ? kernel : "?",
           user && !strcmp(user, "root") ? "as root" : "as an ordinary user");
    json_array_foreach(json_object_get(doctor, "controls"), index, each) print_control(each);
    print_notes(doctor);
    printf("\n");
    if (member_text(doctor, "error"))
        printf("no cell could be made: %s\n", member_text(doctor, "error"));
    terminal_tint(stdout, ok ? TINT_GOOD : TINT_BAD, ok ? "ready:" : "not ready:");
    printf(" the %s level %s\n", isolation ? isolation : "default",
           ok ? "can be enforced here" : "cannot be enforced here; runs are refused until this is fixed");
}

static double mib(const json_t *object, const char *name)
{
    return (double)json_integer_value(json_object_get(object, name)) / (1 << 20);
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static bool print_pools(const json_t *pools)
{
    size_t index;
    const json_t *each;
    bool good = true;
    printf("  %-20s%-10s%6s%12s%12s%14s%12s\n", "pool", "kind", "cells", "own MiB", "shared MiB", "zygote's own",
           "shared");
    json_array_foreach(pools, index, each)
    {
        const json_t *zygote = json_object_get(each, "zygote");
        const char *name = member_text(each, "name"), *kind = member_text(each, "kind");
        bool forked = kind && !strcmp(kind, "forked");
        printf("  %-20s%-10s%6lld%12.1f%12.1f", name ? name : "?", kind ? kind : "?", number(each, "ready"),
               mib(each, "unique_bytes"), mib(each, "shared_bytes"));
        if (forked)
            printf("%14.1f%12.1f", mib(zygote, "unique_bytes"), mib(zygote, "shared_bytes"));
        printf("\n");
        print_detail("failure:", member_text(each, "failure"));
        good &= !member_text(each, "failure");
    }
    return good;
}

/* A language that is not installed has nothing to wait with. */
static bool is_installed(const json_t *language)
{
    return json_is_true(json_object_get(language, "installed"));
}

static int show_pools(cordon_engine *engine, bool json, cordon_error *err)
{
    char *text = NULL;
    int code = cordon_languages(engine, &text, err);
    auto_json json_t *languages = code < 0 ? NULL : report_parse(text);
    cordon_free(text);
    size_t index;
    const json_t *each;
    json_array_foreach(json_object_get(languages, "items"), index, each)
    {
        const char *id = member_text(each, "id");
        cordon_error refused;
        if (id && is_installed(each))
            cordon_engine_warm_language(engine, id, 1, 60000, &refused); /* the pool tells of a failure itself */
    }
    if (code == 0)
        code = cordon_pools(engine, &text, err);
    if (code < 0)
        return report_error(err, json);
    if (json)
        code = report_json_text(text);
    else {
        auto_json json_t *pools = report_parse(text);
        code = print_pools(pools) ? 0 : 1;
    }
    cordon_free(text);
    return code;
}

int cmd_doctor(int argc, char **argv)
{
    cordon_error err = {0};
    cordon_engine *engine = NULL;
    char *text = NULL;
    struct flags flags = {0};
    int first = 0;
    int code = options_parse(&usage, argc, argv, &flags, &first, &err);
    bool json = flags.json;
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0)
        code = options_no_words(argc, argv, first, &err);
    if (code < 0)
        return report_usage(&err, "doctor");
    code = warden_open_engine(&engine, &err);
    if (code == 0 && flags.pools) {
        code = show_pools(engine, json, &err);
        cordon_engine_close(engine);
        return code;
    }
    if (code == 0)
        code = cordon_doctor(engine, &text, &err);
    cordon_engine_close(engine);
    if (code < 0)
        return report_error(&err, json);
    auto_json json_t *doctor = report_parse(text);
    bool ok = json_is_true(json_object_get(doctor, "ok"));
    int failed = doctor ? 0 : EXIT_OWN_FAILURE;
    if (doctor && json)
        failed = report_json_text(text);
    else if (doctor)
        print_doctor(doctor, ok);
    cordon_free(text);
    return failed ? failed : ok ? 0 : 1;
}
