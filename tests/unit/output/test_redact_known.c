/* Known values: every form of them, alone and within something longer; pieces of long ones; what is refused. */
#include "output/redact_literals.h"
#include "output/usual_rules.h"
#include "output/utf8.h"

#define MARK   "[REDACTED_SECRET]"
#define SECRET "p@ss w\xc3\xb6rd/\"x\"+~*<\xc3\xa9"

static void redact_known(const char *secret, const char *text, size_t length, size_t piece, struct buf *out)
{
    const char *none[] = {"none", NULL};
    struct redactor *redactor = open_for(rules, none, secret, SANITIZE_NONE);
    redact_in_pieces(redactor, text, length, piece, piece, out);
    redactor_close(redactor);
}

/* The text between two marks is gone, and they are not. */
static void check_gone(const char *secret, const char *form)
{
    auto_free char *text;
    assert_true(asprintf(&text, "<%s> and <%s>", form, form) > 0);
    for (size_t piece = 1; piece < 100; piece = piece * 2 + 1) {
        auto_buf struct buf out = {0};
        redact_known(secret, text, strlen(text), piece, &out);
        assert_bytes(&out, "<" MARK "> and <" MARK ">", 2 * sizeof MARK + 7);
    }
}

static void test_redact_known__texts(void **state)
{
    (void)state;
    static const char *const forms[] = {
        SECRET,
        "\xa9\xc3<*~+\"x\"/dr\xb6\xc3w ss@p",
        "\xc3\xa9<*~+\"x\"/dr\xc3\xb6w ss@p",
        "p%40ss%20w%C3%B6rd/%22x%22%2B~%2A%3C%C3%A9",
        "p%40ss%20w%C3%B6rd%2F%22x%22%2B~%2A%3C%C3%A9",
        "p%40ss%20w%c3%b6rd%2f%22x%22%2b~%2a%3c%c3%a9",
        "p%40ss+w%C3%B6rd%2F%22x%22%2B~%2A%3C%C3%A9",
        "p%40ss+w%C3%B6rd%2F%22x%22%2B%7E*%3C%C3%A9",
        "p%40ss%20w%C3%B6rd%2F%22x%22%2B~*%3C%C3%A9",
        "p@ss%20w%C3%B6rd/%22x%22+~*%3C%C3%A9",
        "%70%40%73%73%20%77%C3%B6%72%64%2F%22%78%22%2B%7E%2A%3C%C3%A9",
        "p@ss w\xc3\xb6rd/\\\"x\\\"+~*<\xc3\xa9",
        "p@ss w\\u00f6rd/\\\"x\\\"+~*<\\u00e9",
        "p@ss w\\u00F6rd\\/\\\"x\\\"+~*<\\u00E9",
        "p@ss w\xc3\xb6rd/\\\"x\\\"+~*\\u003c\xc3\xa9",
        "704073732077c3b672642f2278222b7e2a3cc3a9",
        "704073732077C3B672642F2278222B7E2A3CC3A9",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        check_gone(SECRET, forms[i]);
    check_gone("tab\tand\nline", "tab\\tand\\nline");
    check_gone("bell\aback\\", "bell\\u0007back\\\\");
    check_gone("smile \xf0\x9f\x98\x80!", "smile \\ud83d\\ude00!");
}

/* Between any bytes, in both alphabets, padded or not: what is left is at most the two characters on either side that
 * the neighbours' bits are in, and what stands for the neighbours. */
static void check_base64(const char *secret, size_t before, size_t after, bool url, bool padded)
{
    char plain[256];
    size_t length = strlen(secret), encoded;
    memset(plain, 0xfe, sizeof plain);
    memcpy(plain + before, secret, length);
    auto_free char *text = base64_encode(plain, before + length + after, &encoded);
    for (char *p = text; url && *p; p++)
        *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
    while (!padded && text[encoded - 1] == '=')
        text[--encoded] = '\0';
    auto_buf struct buf out = {0};
    redact_known(secret, text, encoded, 5, &out);
    char *mark = strstr(buf_text(&out), MARK);
    assert_non_null(mark);
    assert_null(strstr(mark + 1, MARK));
    assert_int_equal(mark - out.data, (before * 8 + 5) / 6);
    assert_true(after || mark[sizeof MARK - 1] == '\0');
    assert_true(strlen(mark + sizeof MARK - 1) <= (after * 8 + 7) / 6 + 3);
}

static void test_redact_known__base64_anywhere(void **state)
{
    (void)state;
    static const char *const secrets[] = {"hunter2!", "four", "fives", "\xff\xfe\xfb\xef\xbe?>~", SECRET};
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        for (size_t before = 0; before < 7; before++)
            for (size_t after = 0; after < 4; after++)
                for (int style = 0; style < 4; style++)
                    check_base64(secrets[i], before, after, style & 1, style & 2);
}

/* Longer than a piece, so that it is put together of several: still one replacement. */
static void test_redact_known__long_values(void **state)
{
    (void)state;
    static char secret[5001], text[20000];
    unsigned seed = 7;
    for (size_t i = 0; i < sizeof secret - 1; i++) {
        seed = seed * 1103515245 + 12345;
        secret[i] = (char)('!' + (seed >> 16) % 90);
    }
    int length = snprintf(text, sizeof text, "<%s>", secret);
    auto_buf struct buf out = {0}, reversed = {0}, hex = {0};
    redact_known(secret, text, (size_t)length, 777, &out);
    assert_bytes(&out, "<" MARK ">", sizeof MARK + 1);
    for (int i = 0; i < length / 2; i++) {
        char c = text[i];
        text[i] = text[length - 1 - i];
        text[length - 1 - i] = c;
    }
    redact_known(secret, text, (size_t)length, 4096, &reversed);
    assert_bytes(&reversed, ">" MARK "<", sizeof MARK + 1);
    for (size_t i = 0; i < sizeof secret - 1; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)secret[i]);
    redact_known(secret, text, strlen(text), 4096, &hex);
    assert_bytes(&hex, MARK, sizeof MARK - 1);
}

static void test_redact_known__values_that_overlap(void **state)
{
    (void)state;
    auto_buf struct buf out = {0}, run = {0};
    redact_known("abcabc", "xabcabcabcabcay abcab", 21, 2, &out);
    assert_bytes(&out, "x" MARK "ay abcab", sizeof MARK + 8);
    redact_known("aaaa", "aaaaaaaaaaaab aaa", 17, 3, &run);
    assert_bytes(&run, MARK "b aaa", sizeof MARK + 4);
}

static void test_redact_known__operators_values(void **state)
{
    (void)state;
    cordon_error err = {0};
    struct redact_rules *own = NULL;
    const struct redact_secret values[] = {{"operator-secret", 15}, {"nul\0within", 10}, {"abc", 3}};
    struct redact_options options = {.secrets = values, .secret_count = 3};
    assert_int_equal(redact_rules_open(&options, &own, &err), CORDON_EINVAL);
    assert_error(&err, "", "known value 3 has 3 bytes");
    assert_null(own);

    options.secret_count = 2;
    assert_ok(redact_rules_open(&options, &own, &err), &err);
    const char *none[] = {"none", NULL};
    struct redactor *redactor = open_for(own, none, "request-secret", SANITIZE_NONE);
    auto_buf struct buf out = {0};
    static const char text[] = "operator-secret nul\0within request-secret bmVxdWVzdA";
    redact_in_pieces(redactor, text, sizeof text - 1, 3, 3, &out);
    static const char expected[] = MARK " " MARK " " MARK " bmVxdWVzdA";
    assert_bytes(&out, expected, sizeof expected - 1);
    redactor_close(redactor);
    redact_rules_close(own);
}

static void test_redact_known__too_much_is_refused(void **state)
{
    (void)state;
    cordon_error err = {0};
    auto_free char *value = malloc(5001);
    memset(value, 'v', 5000);
    value[5000] = '\0';
    cordon_request *request = cordon_request_new();
    assert_ok(cordon_request_add_env(request, "ONE", value, true, &err), &err);
    assert_ok(cordon_request_add_env(request, "TWO", value, true, &err), &err);
    struct redactor *redactor = NULL;
    assert_int_equal(redactor_open(rules, request, SANITIZE_SECRETS, &redactor, &err), CORDON_EINVAL);
    assert_error(&err, "/env/TWO", "8192 bytes");
    assert_null(redactor);
    cordon_request_free(request);
}

static void note_last(void *context, uint64_t from, uint64_t to)
{
    uint64_t *last = context;
    last[0] = from;
    last[1] = to;
    last[2]++;
}

static void test_redact_known__automaton_reports_the_longest(void **state)
{
    (void)state;
    struct literals *literals = literals_new();
    static const char *const words[] = {"abcd", "bcde", "xabcdef", "cdef", "abc"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        assert_true(literals_add(literals, words[i], strlen(words[i])));
    assert_true(literals_finish(literals));
    assert_int_equal(literals_longest(literals), 7);
    uint64_t last[3] = {0};
    uint32_t at = literals_scan(literals, 0, "abcxabcde", 9, 100, note_last, last);
    assert_int_equal(literals_depth(literals, at), 6);
    assert_int_equal(last[0], 105);
    assert_int_equal(last[1], 109);
    assert_int_equal(last[2], 2);
    at = literals_scan(literals, at, "f", 1, 109, note_last, last);
    assert_int_equal(last[0], 103);
    assert_int_equal(last[1], 110);
    at = literals_scan(literals, at, "zab", 3, 110, note_last, last);
    assert_int_equal(literals_depth(literals, at), 2);
    assert_int_equal(last[2], 3);
    literals_free(literals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact_known__texts),
        cmocka_unit_test(test_redact_known__base64_anywhere),
        cmocka_unit_test(test_redact_known__long_values),
        cmocka_unit_test(test_redact_known__values_that_overlap),
        cmocka_unit_test(test_redact_known__operators_values),
        cmocka_unit_test(test_redact_known__too_much_is_refused),
        cmocka_unit_test(test_redact_known__automaton_reports_the_longest),
    };
    return cmocka_run_group_tests(tests, open_rules, close_rules);
}
