/* Owns the YAML form of an operator's rules: a list of {name, pattern, replace, class, longest}. Read as libyaml's
 * document and not by a schema, because a pattern is judged long after it was parsed, and the error must still name its
 * line. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "output/redact_rules.h"

#define FILE_BYTES_MAX 262144
#define NAME_MAX_BYTES 64
/* More than the built-in rules have, whose formats are known: replacing too little of a secret is worse than waiting.
 */
#define LONGEST_DEFAULT 1024

enum { KEY_NAME, KEY_PATTERN, KEY_REPLACE, KEY_CLASS, KEY_LONGEST, KEYS };
static const char *const keys[KEYS] = {"name", "pattern", "replace", "class", "longest"};
static const bool required[KEYS] = {[KEY_NAME] = true, [KEY_PATTERN] = true};

struct reading {
    struct redact_rules *rules;
    const char *path;
    yaml_document_t *document;
};

#define WRONG(reading, node, ...) wrong_at((reading)->path, (node), err, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static int wrong_at(const char *path, const yaml_node_t *node, cordon_error *err,
                                                          const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(err, CORDON_EINVAL, "redact", "%s:%zu: %s", path, node->start_mark.line + 1, text);
    return error_hint(err, "a rule has the keys name and pattern, and may have replace, class (secret or private) and "
                           "longest");
}

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static int read_key(const struct reading *reading, const yaml_node_pair_t *pair, const yaml_node_t *found[KEYS],
                    cordon_error *err)
{
    const yaml_node_t *key = yaml_document_get_node(reading->document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(reading->document, pair->value);
    if (key->type != YAML_SCALAR_NODE || value->type != YAML_SCALAR_NODE)
        return WRONG(reading, key, "expected a key with a text");
    if (strlen(text_of(value)) != value->data.scalar.length)
        return WRONG(reading, value, "the text holds a NUL");
    for (unsigned i = 0; i < KEYS; i++)
        if (strcmp(keys[i], text_of(key)) == 0) {
            if (found[i])
                return WRONG(reading, key, "'%s' is given twice", keys[i]);
            found[i] = value;
            return 0;
        }
    return WRONG(reading, key, "'%.40s' is no key of a rule", text_of(key));
}

static int check_name(const struct reading *reading, const yaml_node_t *node, cordon_error *err)
{
    const char *name = text_of(node);
    size_t length = strlen(name);
    if (!length || length > NAME_MAX_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
        return WRONG(reading, node, "'%.80s' is no name; expected 1 to %d of a-z, 0-9 and _", name, NAME_MAX_BYTES);
    static const char *const words[] = {"all", "none", "secrets"};
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], name) == 0)
            return WRONG(reading, node, "a rule cannot have the name '%s', which stands for a set of rules", name);
    for (size_t i = 0; i < reading->rules->count; i++)
        if (strcmp(reading->rules->rules[i].row.name, name) == 0)
            return WRONG(reading, node, "there is a rule '%s' already", name);
    return 0;
}

static int read_class(const struct reading *reading, const yaml_node_t *node, enum redact_class *class,
                      cordon_error *err)
{
    for (unsigned i = 0; i < REDACT_CLASSES; i++)
        if (strcmp(redact_class_names[i], text_of(node)) == 0) {
            *class = i;
            return 0;
        }
    return WRONG(reading, node, "'%.40s' is no class; expected secret or private", text_of(node));
}

static int read_longest(const struct reading *reading, const yaml_node_t *node, unsigned *longest, cordon_error *err)
{
    char *end;
    unsigned long value = strtoul(text_of(node), &end, 10);
    if (!isdigit((unsigned char)*text_of(node)) || *end || value < 1 || value > REDACT_LONGEST_MAX)
        return WRONG(reading, node, "longest is '%.40s', expected 1 to %d bytes", text_of(node), REDACT_LONGEST_MAX);
    *longest = (unsigned)value;
    return 0;
}

/* [REDACTED_NAME] */
static char *default_replacement(const char *name)
{
    char *text;
    if (asprintf(&text, "[REDACTED_%s]", name) < 0)
        return NULL;
    for (char *p = text; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return text;
}

static int add_rule(const struct reading *reading, const yaml_node_t *const found[KEYS], struct redact_row *row,
                    cordon_error *err)
{
    auto_free char *name = strdup(text_of(found[KEY_NAME]));
    auto_free char *pattern = strdup(text_of(found[KEY_PATTERN]));
    auto_free char *replace =
        found[KEY_REPLACE] ? strdup(text_of(found[KEY_REPLACE])) : default_replacement(text_of(found[KEY_NAME]));
    if (!name || !pattern || !replace)
        return error_nomem(err);
    row->name = name;
    row->pattern = pattern;
    row->replace = replace;
    cordon_error inner = {0};
    unsigned line = (unsigned)found[KEY_PATTERN]->start_mark.line + 1;
    if (redact_rules_add(reading->rules, row, reading->path, line, &inner) < 0)
        return WRONG(reading, found[KEY_PATTERN], "pattern of '%s': %s", name, inner.text);
    const struct redact_rule *rule = &reading->rules->rules[reading->rules->count - 1];
    name = pattern = replace = NULL;
    if (rule->wide && rule->shape.widest != UINT_MAX)
        return WRONG(reading, found[KEY_PATTERN], "pattern of '%s': matches %u bytes, more than its longest, %u",
                     row->name, rule->shape.widest, rule->longest);
    return 0;
}

static int read_rule(const struct reading *reading, const yaml_node_t *node, cordon_error *err)
{
    const yaml_node_t *found[KEYS] = {NULL};
    if (node->type != YAML_MAPPING_NODE)
        return WRONG(reading, node, "expected a rule: a mapping with name and pattern");
    int rc = 0;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; rc == 0 && pair < node->data.mapping.pairs.top;
         pair++)
        rc = read_key(reading, pair, found, err);
    for (unsigned i = 0; rc == 0 && i < KEYS; i++)
        if (required[i] && !found[i])
            rc = WRONG(reading, node, "the rule has no '%s'", keys[i]);
    struct redact_row row = {.class = REDACT_SECRET, .longest = LONGEST_DEFAULT, .role = REDACT_MATCH};
    if (rc == 0)
        rc = check_name(reading, found[KEY_NAME], err);
    if (rc == 0 && found[KEY_CLASS])
        rc = read_class(reading, found[KEY_CLASS], &row.class, err);
    if (rc == 0 && found[KEY_LONGEST])
        rc = read_longest(reading, found[KEY_LONGEST], &row.longest, err);
    return rc < 0 ? rc : add_rule(reading, found, &row, err);
}

static int read_list(const struct reading *reading, cordon_error *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(reading->document);
    if (!root)
        return error_set(err, CORDON_EINVAL, "redact", "%s: the file is empty", reading->path);
    if (root->type != YAML_SEQUENCE_NODE)
        return WRONG(reading, root, "expected a list of rules");
    int rc = 0;
    for (const yaml_node_item_t *item = root->data.sequence.items.start;
         rc == 0 && item < root->data.sequence.items.top; item++)
        rc = read_rule(reading, yaml_document_get_node(reading->document, *item), err);
    return rc;
}

int redact_rules_read(struct redact_rules *rules, const char *path, cordon_error *err)
{
    auto_free char *text = NULL;
    size_t length = 0;
    int rc = file_read(path, FILE_BYTES_MAX, "redact", &text, &length, err);
    if (rc < 0)
        return rc;
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return error_nomem(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    if (yaml_parser_load(&parser, &document)) {
        rc = read_list(&(struct reading){rules, path, &document}, err);
        yaml_document_delete(&document);
    } else
        rc = error_set(err, CORDON_EINVAL, "redact", "%s:%zu: %s", path, parser.problem_mark.line + 1,
                       parser.problem ? parser.problem : "not YAML");
    yaml_parser_delete(&parser);
    return rc;
}
