/* Owns the YAML form of the settings. It reads the document's nodes, which carry their lines, rather than a schema: a
 * value that only its unit makes wrong is then told with its line too. Called by config_load() and the fuzz target. */
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "plan/word.h"
#include "service/config_settings.h"

struct reading {
    struct config *config;
    yaml_document_t *document;
    const char *name;
    struct config_problems *problems;
    cordon_error *err;
};

/* Puts "FILE:LINE: " before the error that was just set, if `code` tells of one. */
static int at_line(const struct reading *reading, size_t line, int code)
{
    if (!code || !reading->err)
        return code;
    char text[sizeof reading->err->text];
    memcpy(text, reading->err->text, sizeof text);
    snprintf(reading->err->text, sizeof reading->err->text, "%.150s:%zu: %.200s", reading->name, line + 1, text);
    return code;
}

static int wrong(const struct reading *reading, const yaml_node_t *node, const char *what, const char *expected)
{
    static const char *const shapes[] = {[YAML_NO_NODE] = "nothing",
                                         [YAML_SCALAR_NODE] = "a text",
                                         [YAML_SEQUENCE_NODE] = "a list",
                                         [YAML_MAPPING_NODE] = "a mapping"};
    return at_line(
        reading, node->start_mark.line,
        error_set(reading->err, CORDON_EINVAL, "config", "%s is %s; expected %s", what, shapes[node->type], expected));
}

/* The node's text, or NULL with an error set when it is none that a C string can hold. */
static const char *node_text(const struct reading *reading, const yaml_node_t *node, const char *what,
                             const char *expected)
{
    if (node->type != YAML_SCALAR_NODE) {
        wrong(reading, node, what, expected);
        return NULL;
    }
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) == node->data.scalar.length)
        return text;
    at_line(reading, node->start_mark.line,
            error_set(reading->err, CORDON_EINVAL, "config", "%s holds a NUL character", what));
    return NULL;
}

static int read_list(const struct reading *reading, const struct setting *row, const yaml_node_t *node)
{
    const char *items[SETTING_ITEMS_MAX + 1];
    size_t count = 0;
    for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
        const yaml_node_t *value = yaml_document_get_node(reading->document, *item);
        if (count == ARRAY_LEN(items))
            break;
        if (!(items[count++] = node_text(reading, value, row->name, "a list of texts")))
            return CORDON_EINVAL;
        /* One at a time first, so that the line is the item's. */
        int failed = setting_set_items(reading->config, row, &items[count - 1], 1, reading->err);
        if (failed)
            return at_line(reading, value->start_mark.line, failed);
    }
    return at_line(reading, node->start_mark.line, setting_set_items(reading->config, row, items, count, reading->err));
}

static int read_limits(const struct reading *reading, const struct setting *row, const yaml_node_t *node)
{
    char texts[LIMIT_COUNT + 1][96];
    const char *items[LIMIT_COUNT + 1];
    size_t count = 0;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && count <= LIMIT_COUNT; pair++, count++) {
        const yaml_node_t *key = yaml_document_get_node(reading->document, pair->key);
        const char *name = node_text(reading, key, row->name, setting_expected(row));
        const char *value =
            name ? node_text(reading, yaml_document_get_node(reading->document, pair->value), name, "a value") : NULL;
        if (!value)
            return CORDON_EINVAL;
        snprintf(texts[count], sizeof texts[count], "%.40s=%.50s", name, value);
        items[count] = texts[count];
        int failed = setting_set_items(reading->config, row, &items[count], 1, reading->err);
        if (failed)
            return at_line(reading, key->start_mark.line, failed);
    }
    return at_line(reading, node->start_mark.line, setting_set_items(reading->config, row, items, count, reading->err));
}

static int read_setting(const struct reading *reading, const struct setting *row, const yaml_node_t *node)
{
    if (row->kind == SETTING_LIST && node->type == YAML_SEQUENCE_NODE)
        return read_list(reading, row, node);
    if (row->kind == SETTING_LIMITS && node->type == YAML_MAPPING_NODE)
        return read_limits(reading, row, node);
    if (row->kind == SETTING_LIST || row->kind == SETTING_LIMITS)
        return wrong(reading, node, row->name, setting_expected(row));
    const char *text = node_text(reading, node, row->name, setting_expected(row));
    if (!text)
        return CORDON_EINVAL;
    return at_line(reading, node->start_mark.line, setting_set_text(reading->config, row, text, reading->err));
}

static int read_pair(const struct reading *reading, const yaml_node_pair_t *pair, uint64_t *seen)
{
    const struct setting *rows;
    settings_all(&rows);
    const yaml_node_t *key = yaml_document_get_node(reading->document, pair->key);
    const char *name = node_text(reading, key, "a setting's name", "a text");
    if (!name)
        return CORDON_EINVAL;
    const struct setting *row = settings_find(name);
    if (!row)
        return at_line(reading, key->start_mark.line, settings_unknown(name, reading->err));
    uint64_t bit = UINT64_C(1) << (row - rows);
    if (*seen & bit)
        return at_line(reading, key->start_mark.line,
                       error_set(reading->err, CORDON_EINVAL, "config", "%s is given twice", name));
    *seen |= bit;
    return read_setting(reading, row, yaml_document_get_node(reading->document, pair->value));
}

static int read_document(const struct reading *reading)
{
    /* A file in which everything is commented out has no node at all, and is as good as no file. */
    const yaml_node_t *root = yaml_document_get_root_node(reading->document);
    if (!root || (root->type == YAML_SCALAR_NODE && !root->data.scalar.length))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return wrong(reading, root, "the file", "settings with their values, such as listen: 127.0.0.1:7700");
    uint64_t seen = 0;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++) {
        int failed = config_note(reading->problems, reading->err, read_pair(reading, pair, &seen));
        if (failed)
            return failed;
    }
    return 0;
}

static int load_document(yaml_parser_t *parser, yaml_document_t *document, const struct reading *reading)
{
    if (yaml_parser_load(parser, document))
        return 0;
    if (parser->error == YAML_MEMORY_ERROR)
        return error_nomem(reading->err);
    size_t line = parser->problem_mark.line ? parser->problem_mark.line : parser->context_mark.line;
    return at_line(reading, line,
                   error_set(reading->err, CORDON_EINVAL, "config", "the file is not YAML: %s%s%s",
                             parser->problem ? parser->problem : "unreadable", parser->context ? " " : "",
                             parser->context ? parser->context : ""));
}

/* A second document would be passed over, and with it settings that somebody believes in. */
static int check_end(yaml_parser_t *parser, const struct reading *reading)
{
    yaml_document_t more;
    int failed = load_document(parser, &more, reading);
    if (failed)
        return failed;
    const yaml_node_t *root = yaml_document_get_root_node(&more);
    if (root)
        failed =
            at_line(reading, root->start_mark.line,
                    error_set(reading->err, CORDON_EINVAL, "config", "a second document begins here; expected one"));
    yaml_document_delete(&more);
    return failed;
}

int config_read_yaml(struct config *config, const char *name, const char *text, size_t length,
                     struct config_problems *problems, cordon_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return error_nomem(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    struct reading reading = {config, &document, name, problems, err};
    int failed = load_document(&parser, &document, &reading);
    if (!failed) {
        failed = read_document(&reading);
        bool empty = !yaml_document_get_root_node(&document);
        yaml_document_delete(&document);
        if (!failed && !empty)
            failed = check_end(&parser, &reading);
    }
    yaml_parser_delete(&parser);
    return config_note(problems, err, failed);
}
