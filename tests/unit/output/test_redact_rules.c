/* An operator's rules: what is read and found, errors with their lines, and what is told of a pattern's shape. */
#include <hs/hs.h>
#include <limits.h>
#include <unistd.h>

#include "output/redact_rules.h"
#include "output/redact_text.h"

static char path[] = "/tmp/cordon-redact-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int open_file(const char *text, struct redact_rules **rules, cordon_error *err)
{
    write_file(text);
    const char *files[] = {path, NULL};
    *err = (cordon_error){0};
    return redact_rules_open(&(struct redact_options){.files = files}, rules, err);
}

static void test_redact_rules__operators_rules(void **state)
{
    (void)state;
    struct redact_rules *rules = NULL;
    cordon_error err;
    assert_ok(open_file("- name: corp_token\n"
                        "  pattern: 'corp-[a-z0-9]{8,}'\n"
                        "  replace: <token>\n"
                        "- {name: staff, pattern: '(?i)\\bemp(?:loyee)?#\\d{4}\\b', class: private}\n"
                        "- {name: braced, pattern: 'KEY\\{[^}]*\\}', longest: 600, replace: ''}\n",
                        &rules, &err),
              &err);
    static const char text[] = "corp-0123456789abc EMP#1234 emp#12345 KEY{a\nb}.";
    const char *all[] = {"all", NULL}, *named[] = {"staff", NULL};
    const struct {
        const char *const *sanitize;
        const char *expected;
    } cases[] = {
        {NULL, "<token> EMP#1234 emp#12345 ."},
        {all, "<token> [REDACTED_STAFF] emp#12345 ."},
        {named, "corp-0123456789abc [REDACTED_STAFF] emp#12345 KEY{a\nb}."},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t piece = 1; piece < 12; piece++) {
            struct redactor *redactor = open_for(rules, cases[i].sanitize, NULL, SANITIZE_SECRETS);
            auto_buf struct buf out = {0};
            redact_in_pieces(redactor, text, sizeof text - 1, piece, piece, &out);
            assert_bytes(&out, cases[i].expected, strlen(cases[i].expected));
            redactor_close(redactor);
        }
    auto_free char *json = redact_rules_json(rules);
    assert_non_null(strstr(json, "{\"name\":\"staff\",\"class\":\"private\""));
    redact_rules_close(rules);
}

/* Of a match longer than the rule's `longest` the last bytes are replaced, wherever the text is split. */
static void test_redact_rules__longest(void **state)
{
    (void)state;
    struct redact_rules *rules = NULL;
    cordon_error err;
    assert_ok(open_file("- {name: x, pattern: '<[^>]*>', longest: 10, replace: X}\n", &rules, &err), &err);
    for (size_t piece = 1; piece < 40; piece++) {
        struct redactor *redactor = open_for(rules, NULL, NULL, SANITIZE_SECRETS);
        auto_buf struct buf out = {0};
        redact_in_pieces(redactor, "a <12345678> <123456789> <12345678901234567890>", 47, piece, piece, &out);
        assert_bytes(&out, "a X <X <12345678901X", 20);
        redactor_close(redactor);
    }
    redact_rules_close(rules);
}

static void test_redact_rules__errors_have_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line, *part;
    } cases[] = {
        {"", "", "empty"},
        {"name: x\n", ":1:", "expected a list of rules"},
        {"- x\n", ":1:", "expected a rule"},
        {"- name: a\n  pattern: 'x['\n  bad", ":4:", "could not find"},
        {"\n- {name: a, pattern: aaaa, color: red}\n", ":2:", "'color' is no key"},
        {"- {name: a, name: b}\n", ":1:", "given twice"},
        {"- {name: a, pattern: [b]}\n", ":1:", "expected a key with a text"},
        {"- {name: a}\n", ":1:", "no 'pattern'"},
        {"- {pattern: aaaa}\n", ":1:", "no 'name'"},
        {"- {name: A-b, pattern: aaaa}\n", ":1:", "'A-b' is no name"},
        {"- {name: all, pattern: aaaa}\n", ":1:", "stands for a set"},
        {"- {name: email, pattern: aaaa}\n", ":1:", "there is a rule 'email' already"},
        {"- name: a\n  pattern: aaaa\n  class: public\n", ":3:", "'public' is no class"},
        {"- name: a\n  pattern: aaaa\n  longest: many\n", ":3:", "longest is 'many'"},
        {"- {name: a, pattern: aaaa}\n- name: b\n  pattern: 'x[a-'\n", ":3:", "has no ']'"},
        {"- name: b\n  pattern: 'x(a'\n", ":2:", "pattern of 'b'"},
        {"- name: b\n  pattern: 'x)a'\n", ":2:", "pattern of 'b'"},
        {"- name: b\n  pattern: 'x[z-a]'\n", ":2:", "pattern of 'b'"},
        {"- name: b\n  pattern: 'a*'\n", ":2:", "empty"},
        {"- name: b\n  pattern: 'a(?=b)'\n", ":2:", "'(?=' is not understood"},
        {"- name: b\n  pattern: 'a+?b'\n", ":2:", "'+?' is not understood"},
        {"- name: b\n  pattern: '(a)\\1'\n", ":2:", "'\\1' is not understood"},
        {"- name: b\n  pattern: 'a{x}'\n", ":2:", "write \\{"},
        {"- name: b\n  pattern: '[[:alpha:]]x'\n", ":2:", "not understood in a class"},
        {"- name: b\n  pattern: 'xa{2000}'\n", ":2:", "matches 2001 bytes, more than its longest, 1024"},
        {"- name: b\n  pattern: '[ab]{1,900}[bc]{1,100}d'\n", ":2:", "pattern of 'b': Pattern is too large"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct redact_rules *rules = NULL;
        cordon_error err;
        if (open_file(cases[i].text, &rules, &err) != CORDON_EINVAL)
            fail_msg("accepted: %s", cases[i].text);
        assert_null(rules);
        char place[64];
        snprintf(place, sizeof place, "%s%s", path, cases[i].line);
        assert_error(&err, "", place);
        assert_error(&err, "", cases[i].part);
    }
    struct redact_rules *rules = NULL;
    cordon_error err = {0};
    const char *files[] = {"/nonexistent/rules.yaml", NULL};
    assert_int_equal(redact_rules_open(&(struct redact_options){.files = files}, &rules, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "/nonexistent/rules.yaml");
}

static void test_redact_rules__too_many(void **state)
{
    (void)state;
    auto_buf struct buf text = {0};
    for (int i = 0; i < 130; i++)
        buf_printf(&text, "- {name: r%d, pattern: abcd%d}\n", i, i);
    struct redact_rules *rules = NULL;
    cordon_error err;
    assert_int_equal(open_file(buf_text(&text), &rules, &err), CORDON_EINVAL);
    assert_error(&err, "", "more than 128 rules");
}

static void test_redact_rules__shapes(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *head, *tail, *starts;
        unsigned widest;
    } cases[] = {
        {"sk-[a-c]{20,}", "sk-[a-c]{20}", "abc", "sk-", 23},
        {"ab+", "ab{1}", "b", "a", 2},
        {"ab[xy]*", "ab", "xy", "ab", 2},
        {"ab|cd+", "ab|cd+", "", "", UINT_MAX},
        {"(?:ab|c\\.d)[xy]", "(?:ab|c\\.d)[xy]", "", "ab c.d", 4},
        {"(?:ab|c[de](?:f|g))x", "(?:ab|c[de](?:f|g))x", "", "ab c", 4},
        {"(?:ab|[cd])x", "(?:ab|[cd])x", "", "", 3},
        {"(?:ab|cd)?xy", "(?:ab|cd)?xy", "", "", 4},
        {"(ab)+x", "(ab)+x", "", "", UINT_MAX},
        {"abc?d", "abc?d", "", "ab", 4},
        {"\\bab\\x41", "\\bab\\x41", "", "abA", 3},
        {"(?i)aB[x]+", "(?i)aB[x]{1}", "xX", "aB", 3},
        {"[ab]x", "[ab]x", "", "", 2},
        {"a(b|c*)", "a(b|c*)", "", "a", UINT_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct shape shape;
        cordon_error err;
        assert_ok(shape_read(cases[i].pattern, &shape, &err), &err);
        assert_string_equal(shape.head, cases[i].head);
        assert_int_equal(shape.widest, cases[i].widest);
        assert_int_equal(shape.has_tail, cases[i].tail[0] != '\0');
        for (unsigned byte = 0; byte < 256; byte++)
            assert_int_equal(shape.tail.has[byte], byte && strchr(cases[i].tail, (int)byte));
        auto_buf struct buf starts = {0};
        for (size_t start = 0; start < shape.start_count; start++)
            buf_printf(&starts, "%s%s", start ? " " : "", shape.starts[start]);
        assert_string_equal(buf_text(&starts), cases[i].starts);
        shape_free(&shape);
    }
}

/* Patterns of every form that is understood, with the letters to make texts of. Whatever is told of their shapes must
 * never let out what a match would have replaced. */
static void test_redact_rules__every_shape_at_every_split(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *letters;
    } cases[] = {
        {"abc[bc]+", "abc"},     {"ab?c{2,3}d", "abcd"},   {"(?:ab|ba)+c", "abc"},     {"(?:ab|b)?ca", "abc"},
        {"a(?:b|ca*)b", "abc"},  {"\\bab+\\b", "ab "},     {"^a.b", "ab\n"},           {"a[^b]*b", "abc\n"},
        {"ab$", "ab\n"},         {"(?i)aBc+", "aAbBcC"},   {"(a|bc)(b|ca)*d", "abcd"}, {"a.{3}b", "ab\n"},
        {"\\d+x", "12x"},        {"[ab]{2}c*", "abc"},     {"aa|bb+", "abc"},          {"(?:aab|aba)[a]{2,}", "ab"},
        {"a{2,4}b{2,}", "ab"},   {"\\x61\\.b\\s", "a.b "}, {"[]a]b[^]b]", "]ab"},      {"((a|b)c?)+d", "abcd"},
        {"(?:axb|x)y*", "abxy"}, {"a\\ba|a b", "ab "},     {"a(b)?$", "ab\n"},         {"(?:a+b)+c[abc]*", "abc "},
    };
    auto_buf struct buf file = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        buf_printf(&file, "- {name: r%zu, pattern: '%s', longest: %zu, replace: '#'}\n", i, cases[i].pattern,
                   8 + i % 3);
    struct redact_rules *rules = NULL;
    cordon_error err;
    assert_ok(open_file(buf_text(&file), &rules, &err), &err);
    unsigned seed = 5;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[16], text[48];
        snprintf(name, sizeof name, "r%zu", i);
        const char *names[] = {name, NULL};
        struct redactor *redactor = open_for(rules, names, NULL, SANITIZE_NONE);
        size_t changed = 0;
        for (int round = 0; round < 200; round++) {
            for (size_t at = 0; at < sizeof text; at++) {
                seed = seed * 1103515245 + 12345;
                text[at] = cases[i].letters[(seed >> 16) % strlen(cases[i].letters)];
            }
            auto_buf struct buf whole = {0};
            redact_in_pieces(redactor, text, sizeof text, sizeof text, sizeof text, &whole);
            changed += memchr(buf_text(&whole), '#', whole.length) != NULL;
            for (size_t piece = 1; piece < 12; piece++) {
                auto_buf struct buf out = {0};
                redact_in_pieces(redactor, text, sizeof text, piece * 3 % 7, piece, &out);
                assert_bytes(&out, buf_text(&whole), whole.length);
            }
        }
        if (!changed)
            fail_msg("%s was never found", cases[i].pattern);
        redactor_close(redactor);
    }
    redact_rules_close(rules);
}

static void test_redact_rules__the_document_has_them(void **state)
{
    (void)state;
    static char document[32768];
    FILE *file = fopen(SOURCE_ROOT "/docs/REDACTION.md", "r");
    assert_non_null(file);
    document[fread(document, 1, sizeof document - 1, file)] = '\0';
    fclose(file);
    size_t rows = 0;
    for (size_t i = 0; i < redact_table_count; i++) {
        const struct redact_row *row = &redact_table[i];
        char begin[100], end[100];
        if (row->role == REDACT_END)
            continue;
        snprintf(begin, sizeof begin, "\n| `%s` | %s | ", row->name, redact_class_names[row->class]);
        snprintf(end, sizeof end, "| `%s` |\n", row->replace);
        const char *found = strstr(document, begin);
        if (!found || strstr(found, end) != strchr(found + 1, '\n') + 1 - strlen(end))
            fail_msg("no row, or another one, for %s", row->name);
        rows++;
    }
    assert_true(rows >= 20);
}

static void test_redact_rules__the_example(void **state)
{
    (void)state;
    struct redact_rules *rules = NULL;
    cordon_error err;
    const char *files[] = {SOURCE_ROOT "/docs/examples/redaction.yaml", NULL}, *all[] = {"all", NULL};
    assert_ok(redact_rules_open(&(struct redact_options){.files = files}, &rules, &err), &err);
    struct redactor *redactor = open_for(rules, all, NULL, SANITIZE_NONE);
    auto_buf struct buf out = {0};
    static const char text[] = "corp-0123456789abcdefg, Employee #1234, VAULT{a b}";
    redact_in_pieces(redactor, text, sizeof text - 1, 1, 1, &out);
    static const char expected[] = "[REDACTED_CORP_TOKEN], [REDACTED_EMPLOYEE_NUMBER], [REDACTED_VAULT_ENTRY]";
    assert_bytes(&out, expected, sizeof expected - 1);
    redactor_close(redactor);
    redact_rules_close(rules);
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact_rules__operators_rules),
        cmocka_unit_test(test_redact_rules__longest),
        cmocka_unit_test(test_redact_rules__errors_have_lines),
        cmocka_unit_test(test_redact_rules__too_many),
        cmocka_unit_test(test_redact_rules__shapes),
        cmocka_unit_test(test_redact_rules__the_document_has_them),
        cmocka_unit_test(test_redact_rules__the_example),
        cmocka_unit_test(test_redact_rules__every_shape_at_every_split),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
