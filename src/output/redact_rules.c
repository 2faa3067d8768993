/* Owns compiled rules: built-in and operator's, a database for each class, and the operator's known values. Nothing in
 * it changes after opening, so that any number of redactors use it at once. */
#include "output/redact_rules.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

int redact_rules_add(struct redact_rules *rules, const struct redact_row *row, const char *file, unsigned line,
                     cordon_error *err)
{
    if (rules->count == REDACT_RULES_MAX)
        return error_set(err, CORDON_EINVAL, "redact", "more than %d rules", REDACT_RULES_MAX);
    struct redact_rule *rule = &rules->rules[rules->count];
    *rule = (struct redact_rule){.row = *row, .file = file, .line = line};
    int rc = row->pattern ? shape_read(row->pattern, &rule->shape, err) : 0;
    if (rc < 0)
        return rc;
    unsigned longest = row->longest ? row->longest : REDACT_LONGEST;
    rule->wide = rule->shape.widest > longest;
    rule->longest = rule->wide ? longest : rule->shape.widest;
    rules->count++;
    return 0;
}

static int compile_failed(const struct redact_rules *rules, const unsigned *ids, const hs_compile_error_t *wrong,
                          cordon_error *err)
{
    const struct redact_rule *rule = wrong->expression >= 0 ? &rules->rules[ids[wrong->expression]] : NULL;
    if (!rule)
        return error_set(err, CORDON_ESYSTEM, "redact", "cannot compile the rules: %s", wrong->message);
    if (!rule->file)
        return error_set(err, CORDON_ESYSTEM, "redact", "rule '%s': %s", rule->row.name, wrong->message);
    return error_set(err, CORDON_EINVAL, "redact", "%s:%u: pattern of '%s': %s", rule->file, rule->line, rule->row.name,
                     wrong->message);
}

static int compile_class(struct redact_rules *rules, enum redact_class class, cordon_error *err)
{
    const char *heads[REDACT_RULES_MAX];
    unsigned flags[REDACT_RULES_MAX], ids[REDACT_RULES_MAX], count = 0;
    for (unsigned i = 0; i < rules->count; i++)
        if (rules->rules[i].row.pattern && rules->rules[i].row.class == class) {
            heads[count] = rules->rules[i].shape.head;
            flags[count] = SHAPE_FLAGS;
            ids[count++] = i;
        }
    hs_compile_error_t *wrong = NULL;
    if (count && hs_compile_multi(heads, flags, ids, count, HS_MODE_STREAM | HS_MODE_SOM_HORIZON_LARGE, NULL,
                                  &rules->databases[class], &wrong) != HS_SUCCESS) {
        int rc = compile_failed(rules, ids, wrong, err);
        hs_free_compile_error(wrong);
        return rc;
    }
    if (count && hs_alloc_scratch(rules->databases[class], &rules->scratch) != HS_SUCCESS)
        return error_nomem(err);
    return 0;
}

static int add_values(struct redact_rules *rules, const struct redact_options *options, cordon_error *err)
{
    if (!options->secret_count)
        return 0;
    size_t total = 0;
    rules->literals = literals_new();
    if (!rules->literals)
        return error_nomem(err);
    for (size_t i = 0; i < options->secret_count; i++) {
        const struct redact_secret *secret = &options->secrets[i];
        total += secret->length;
        if (secret->length < LITERAL_MIN)
            return error_set(err, CORDON_EINVAL, "redact",
                             "known value %zu has %zu bytes, expected at least %d: shorter ones are in ordinary text",
                             i + 1, secret->length, LITERAL_MIN);
        if (total > REDACT_SECRETS_MAX)
            return error_set(err, CORDON_EINVAL, "redact", "the known values have more than %d bytes together",
                             REDACT_SECRETS_MAX);
        if (!forms_add(rules->literals, secret->value, secret->length))
            return error_nomem(err);
    }
    return literals_finish(rules->literals) ? 0 : error_nomem(err);
}

static int fill(struct redact_rules *rules, const struct redact_options *options, cordon_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < redact_table_count; i++)
        rc = redact_rules_add(rules, &redact_table[i], NULL, 0, err);
    rules->own_count = rules->count;
    for (size_t i = 0; rc == 0 && options->files && options->files[i]; i++)
        rc = redact_rules_read(rules, options->files[i], err);
    for (unsigned class = 0; rc == 0 && class < REDACT_CLASSES; class ++)
        rc = compile_class(rules, class, err);
    return rc < 0 ? rc : add_values(rules, options, err);
}

int redact_rules_open(const struct redact_options *options, struct redact_rules **rules, cordon_error *err)
{
    if (hs_valid_platform() != HS_SUCCESS)
        return error_set(err, CORDON_ESYSTEM, "redact", "this processor has no SSSE3, which redaction needs");
    struct redact_rules *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_nomem(err);
    opened->references = 1;
    int rc = fill(opened, options ? options : &(struct redact_options){0}, err);
    if (rc < 0) {
        redact_rules_close(opened);
        return rc;
    }
    *rules = opened;
    return 0;
}

struct redact_rules *redact_rules_ref(struct redact_rules *rules)
{
    if (rules)
        atomic_fetch_add(&rules->references, 1);
    return rules;
}

void redact_rules_close(struct redact_rules *rules)
{
    if (!rules || atomic_fetch_sub(&rules->references, 1) > 1)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        shape_free(&rules->rules[i].shape);
        if (i < rules->own_count)
            continue;
        free((char *)rules->rules[i].row.name);
        free((char *)rules->rules[i].row.pattern);
        free((char *)rules->rules[i].row.replace);
    }
    for (unsigned class = 0; class < REDACT_CLASSES; class ++)
        hs_free_database(rules->databases[class]);
    hs_free_scratch(rules->scratch);
    literals_free(rules->literals);
    free(rules);
}

char *redact_rules_json(const struct redact_rules *rules)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rules->count; i++) {
        const struct redact_row *row = &rules->rules[i].row;
        if (row->role == REDACT_END)
            continue;
        json_t *rule = json_pack("{ss, ss, ss?, ss}", "name", row->name, "class", redact_class_names[row->class],
                                 "pattern", row->pattern, "replace", row->replace);
        if (!rule || json_array_append_new(list, rule) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}
