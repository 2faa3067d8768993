/* Owns the reading of patterns. It understands a part of the syntax and refuses the rest, because a wrong guess about
 * where a match may begin would let the beginning of a secret out before its end is seen. What a class holds is asked
 * of hyperscan itself. Called for each rule when rules are opened. */
#include "output/redact_shape.h"

#include <ctype.h>
#include <hs/hs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

enum token_kind { TOKEN_END, TOKEN_BYTE, TOKEN_CLASS, TOKEN_NOTHING, TOKEN_OPEN, TOKEN_CLOSE, TOKEN_OR, TOKEN_REPEAT };

struct token {
    enum token_kind kind;
    const char *at;
    size_t length;
    unsigned char byte; /* TOKEN_BYTE */
    unsigned least;     /* TOKEN_REPEAT */
    bool unbounded;     /* TOKEN_REPEAT */
};

static int refuse(cordon_error *err, const char *at, size_t length, const char *why)
{
    return error_set(err, CORDON_EINVAL, "redact", "'%.*s' %s", (int)length, at, why);
}

static int read_escape(const char *at, struct token *token, cordon_error *err)
{
    static const char controls[] = "n\nr\rt\tf\f";
    char c = at[1];
    token->length = 2;
    token->kind = TOKEN_BYTE;
    for (const char *pair = controls; *pair; pair += 2)
        if (*pair == c) {
            token->byte = (unsigned char)pair[1];
            return 0;
        }
    if (c == 'x' && isxdigit((unsigned char)at[2]) && isxdigit((unsigned char)at[3])) {
        char digits[3] = {at[2], at[3], '\0'};
        token->byte = (unsigned char)strtoul(digits, NULL, 16);
        token->length = 4;
    } else if (c && strchr("dDwWsS", c))
        token->kind = TOKEN_CLASS;
    else if (c == 'b')
        token->kind = TOKEN_NOTHING;
    else if (ispunct((unsigned char)c) || c == ' ')
        token->byte = (unsigned char)c;
    else
        return refuse(err, at, c ? 2 : 1, "is not understood in a pattern");
    return 0;
}

static int read_class(const char *at, struct token *token, cordon_error *err)
{
    const char *p = at + 1;
    if (*p == '^')
        p++;
    if (*p == ']')
        p++;
    for (; *p && *p != ']'; p++)
        if (*p == '\\' && p[1])
            p++;
        else if (p[0] == '[' && strchr(":.=", p[1] ? p[1] : ' '))
            return refuse(err, p, 2, "is not understood in a class");
    if (!*p)
        return refuse(err, at, strlen(at), "has no ']'");
    token->kind = TOKEN_CLASS;
    token->length = (size_t)(p + 1 - at);
    return 0;
}

static int read_repeat(const char *at, struct token *token, cordon_error *err)
{
    token->kind = TOKEN_REPEAT;
    token->length = 1;
    token->least = *at == '+';
    token->unbounded = *at != '?';
    if (*at == '{') {
        char *end;
        token->least = (unsigned)strtoul(at + 1, &end, 10);
        token->unbounded = end[0] == ',' && end[1] == '}';
        if (end[0] == ',' && isdigit((unsigned char)end[1]))
            strtoul(end + 1, &end, 10);
        else if (end[0] == ',')
            end++;
        if (!isdigit((unsigned char)at[1]) || *end != '}')
            return refuse(err, at, 1, "is no count such as {20} or {20,}; write \\{ for the character");
        token->length = (size_t)(end + 1 - at);
    }
    char after = at[token->length];
    if (after && strchr("?+*{", after))
        return refuse(err, at, token->length + 1, "is not understood: every repeat takes as much as it can");
    return 0;
}

static int read_token(const char *at, struct token *token, cordon_error *err)
{
    *token = (struct token){.kind = TOKEN_BYTE, .at = at, .length = 1, .byte = (unsigned char)*at};
    switch (*at) {
    case '\0':
        token->kind = TOKEN_END;
        token->length = 0;
        return 0;
    case '\\':
        return read_escape(at, token, err);
    case '[':
        return read_class(at, token, err);
    case '*':
    case '+':
    case '?':
    case '{':
        return read_repeat(at, token, err);
    case '(':
        token->kind = TOKEN_OPEN;
        if (at[1] != '?')
            return 0;
        token->length = 3;
        return at[2] == ':' ? 0 : refuse(err, at, 3, "is not understood; groups are (…) and (?:…)");
    case ')':
        token->kind = TOKEN_CLOSE;
        return 0;
    case '|':
        token->kind = TOKEN_OR;
        return 0;
    case '^':
    case '$':
        token->kind = TOKEN_NOTHING;
        return 0;
    case '.':
        token->kind = TOKEN_CLASS;
        return 0;
    }
    return 0;
}

static int note_byte(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
    struct byte_set *set = context;
    (void)id, (void)from, (void)flags;
    set->has[to - 1] = true;
    return 0;
}

/* Adds the bytes that the atom matches: what the engine says it matches. */
static int add_class(const struct token *token, bool caseless, struct byte_set *set, cordon_error *err)
{
    char text[256], all[256];
    if (token->length >= sizeof text)
        return refuse(err, token->at, 16, "… is too long a class");
    snprintf(text, sizeof text, "%.*s", (int)token->length, token->at);
    for (unsigned i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    hs_database_t *database = NULL;
    hs_compile_error_t *wrong = NULL;
    hs_scratch_t *scratch = NULL;
    if (hs_compile(text, caseless ? HS_FLAG_CASELESS : 0, HS_MODE_BLOCK, NULL, &database, &wrong) != HS_SUCCESS) {
        int rc = refuse(err, text, strlen(text), wrong->message);
        hs_free_compile_error(wrong);
        return rc;
    }
    bool fine = hs_alloc_scratch(database, &scratch) == HS_SUCCESS &&
                hs_scan(database, all, sizeof all, 0, scratch, note_byte, set) == HS_SUCCESS;
    hs_free_scratch(scratch);
    hs_free_database(database);
    return fine ? 0 : error_nomem(err);
}

static int add_atom(const struct token *token, bool caseless, struct byte_set *set, cordon_error *err)
{
    if (token->kind == TOKEN_CLASS)
        return add_class(token, caseless, set, err);
    set->has[token->byte] = true;
    if (caseless) {
        set->has[tolower(token->byte)] = true;
        set->has[toupper(token->byte)] = true;
    }
    return 0;
}

/* Where the walk over a pattern has come to. */
struct walk {
    struct token last, before; /* the last token, and the one before it */
    int depth;
    bool alternatives; /* '|' outside of all groups */
};

static int walk_pattern(const char *pattern, struct shape *shape, struct walk *walk, cordon_error *err)
{
    struct token token;
    for (const char *at = pattern;; at += token.length) {
        int rc = read_token(at, &token, err);
        if (rc == 0 && (token.kind == TOKEN_BYTE || token.kind == TOKEN_CLASS))
            rc = add_atom(&token, shape->caseless, &shape->within, err);
        if (rc < 0)
            return rc;
        if (token.kind == TOKEN_END)
            return 0;
        walk->depth += (token.kind == TOKEN_OPEN) - (token.kind == TOKEN_CLOSE);
        walk->alternatives = walk->alternatives || (token.kind == TOKEN_OR && walk->depth == 0);
        walk->before = walk->last;
        walk->last = token;
    }
}

/* Cuts "X+", "X*" or "X{n,}" off the end, where X is one byte or class: those bytes need no engine and no bound. */
static int cut_tail(const char *pattern, const struct walk *walk, struct shape *shape, cordon_error *err)
{
    const struct token *repeat = &walk->last, *atom = &walk->before;
    shape->has_tail = repeat->kind == TOKEN_REPEAT && repeat->unbounded && walk->depth == 0 && !walk->alternatives &&
                      (atom->kind == TOKEN_BYTE || atom->kind == TOKEN_CLASS);
    int written;
    if (!shape->has_tail)
        written = asprintf(&shape->head, "%s%s", shape->caseless ? "(?i)" : "", pattern);
    else
        written = asprintf(&shape->head, "%s%.*s{%u}", shape->caseless ? "(?i)" : "", (int)(repeat->at - pattern),
                           pattern, repeat->least);
    if (written < 0) {
        shape->head = NULL;
        return error_nomem(err);
    }
    /* {0} is cut off together with what it repeats: not every engine likes it. */
    if (shape->has_tail && repeat->least == 0)
        shape->head[(shape->caseless ? 4 : 0) + (atom->at - pattern)] = '\0';
    return shape->has_tail ? add_atom(atom, shape->caseless, &shape->tail, err) : 0;
}

/* The bytes that stand at `*at` one after the other, up to `size`; leaves `*at` behind them. A byte that is repeated is
 * no longer one of them. */
static size_t literal_at(const char **at, char *text, size_t size)
{
    struct token token, next;
    size_t length = 0;
    while (length < size && read_token(*at, &token, NULL) == 0 && token.kind == TOKEN_BYTE) {
        if (read_token(*at + token.length, &next, NULL) != 0 || next.kind == TOKEN_REPEAT)
            break;
        text[length++] = (char)token.byte;
        *at += token.length;
    }
    return length;
}

static bool add_start(struct shape *shape, const char **at)
{
    if (shape->start_count == SHAPE_STARTS)
        return false;
    char *text = shape->starts[shape->start_count];
    memset(text, 0, SHAPE_START_SIZE);
    size_t length = literal_at(at, text, SHAPE_START_SIZE - 1);
    /* A NUL in it would end it early, which only makes it fit more. */
    shape->start_count += length > 0 && text[0];
    return length > 0 && text[0];
}

/* "abc…", or "(?:abc|def…|ghi)…" where every alternative begins with bytes. */
static void find_starts(const char *pattern, struct shape *shape)
{
    struct token token;
    const char *at = pattern;
    while (read_token(at, &token, NULL) == 0 && token.kind == TOKEN_NOTHING)
        at += token.length;
    if (token.kind != TOKEN_OPEN) {
        add_start(shape, &at);
        return;
    }
    bool fine = true;
    int depth = 1;
    for (at += token.length; fine && depth == 1;) {
        fine = add_start(shape, &at);
        /* The rest of the alternative, which may have groups of its own. */
        for (bool alternative = true; fine && alternative; at += token.length) {
            fine = read_token(at, &token, NULL) == 0 && token.kind != TOKEN_END;
            depth += (token.kind == TOKEN_OPEN) - (token.kind == TOKEN_CLOSE);
            alternative = depth > 1 || (depth == 1 && token.kind != TOKEN_OR);
        }
    }
    /* A group that may be absent says nothing about the beginning. */
    if (!fine || read_token(at, &token, NULL) != 0 || token.kind == TOKEN_REPEAT)
        shape->start_count = 0;
}

static int measure(struct shape *shape, cordon_error *err)
{
    hs_expr_info_t *info = NULL;
    hs_compile_error_t *wrong = NULL;
    if (hs_expression_info(shape->head, SHAPE_FLAGS, &info, &wrong) != HS_SUCCESS) {
        int rc = error_set(err, CORDON_EINVAL, "redact", "%s", wrong->message);
        hs_free_compile_error(wrong);
        return rc;
    }
    unsigned least = info->min_width;
    shape->widest = info->max_width;
    free(info);
    return least ? 0 : error_set(err, CORDON_EINVAL, "redact", "it would match the empty text");
}

int shape_read(const char *pattern, struct shape *shape, cordon_error *err)
{
    *shape = (struct shape){0};
    struct walk walk = {0};
    shape->caseless = strncmp(pattern, "(?i)", 4) == 0;
    if (shape->caseless)
        pattern += 4;
    int rc = walk_pattern(pattern, shape, &walk, err);
    if (rc == 0)
        rc = cut_tail(pattern, &walk, shape, err);
    if (rc == 0)
        rc = measure(shape, err);
    if (rc < 0) {
        shape_free(shape);
        return rc;
    }
    if (!walk.alternatives)
        find_starts(pattern, shape);
    return 0;
}

void shape_free(struct shape *shape)
{
    free(shape->head);
    shape->head = NULL;
}
