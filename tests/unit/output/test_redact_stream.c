/* The stream engine: any split of any text gives the same, nothing waits without reason, and no text is expensive. */
#include <malloc.h>

#include "output/usual_rules.h"

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    return *seed >> 16 & 0x7fff;
}

/* What matches are made of, so that random texts are full of them, of halves of them, and of overlaps. */
static const char *const fragments[] = {
    "sk-",
    "proj-",
    "sk-ant-",
    "AKIA",
    "AKIAIOSFODNN7EXAMPLE",
    "IOSFODNN7",
    "EXAMPLE",
    "eyJ",
    "eyJhbGciOiJI",
    ".",
    ".eyJ",
    "-----BEGIN ",
    "RSA ",
    "PRIVATE KEY-----",
    "-----END ",
    "-----",
    "-",
    "postgres",
    "redis",
    "://",
    "+a",
    "u:p@h",
    "authorization",
    ": ",
    "Bearer ",
    "abcdefgh",
    "=",
    "glpat-",
    "aaaaaaaaaaaaaaaaaaaa",
    "0123456789",
    "ghp_",
    "_",
    "10.",
    "0.0.1",
    "192.168.",
    "/etc",
    "/home/",
    "/root/x",
    "/",
    "@",
    "b.cc",
    "a",
    "S",
    " ",
    "\n",
    "\"",
    "s3cr/et",
    "s3cr",
    "/et-v",
    "alue",
    "czNjci9ldC12YWx1ZQ",
    "N0Y3I",
    "733363722f65742d76616c7565",
    "%2Fet-value",
    "eulav-te",
    "xox",
    "xoxb-1234567890",
    "hf_",
    "npm_",
    "AIza",
    "\xff",
    "\xc3\xa9",
};

static size_t random_text(unsigned *seed, char *text, size_t size)
{
    size_t length = 0, pieces = 2 + next(seed) % 30;
    for (size_t i = 0; i < pieces; i++) {
        const char *fragment = fragments[next(seed) % ARRAY_LEN(fragments)];
        if (length + strlen(fragment) > size)
            break;
        memcpy(text + length, fragment, strlen(fragment));
        length += strlen(fragment);
        if (next(seed) % 50 == 0 && length < size)
            text[length++] = '\0';
    }
    return length;
}

static void feed_randomly(struct redactor *redactor, const char *text, size_t length, unsigned *seed, struct buf *out)
{
    unsigned most = 1 + next(seed) % 40;
    for (size_t at = 0, size; at < length; at += size) {
        size = 1 + next(seed) % most;
        size = size < length - at ? size : length - at;
        redactor_feed(redactor, 1, text + at, size, collect, out);
    }
    redactor_end(redactor, 1, collect, out);
}

static void test_redact_stream__random_texts_and_splits(void **state)
{
    (void)state;
    /* What one rule holds back would hide that another does not, so they are tried apart as well. */
    struct redactor *redactors[] = {
        open_for(rules, NULL, "s3cr/et-value", SANITIZE_ALL),
        open_for(rules, NULL, "s3cr/et-value", SANITIZE_SECRETS),
        open_for(rules, NULL, NULL, SANITIZE_SECRETS),
        open_for(rules, NULL, "s3cr/et-value", SANITIZE_NONE),
    };
    unsigned seed = 42;
    size_t changed = 0;
    for (int round = 0; round < 4000; round++) {
        char text[1024];
        struct redactor *redactor = redactors[round % ARRAY_LEN(redactors)];
        size_t length = random_text(&seed, text, sizeof text);
        auto_buf struct buf whole = {0};
        redact_in_pieces(redactor, text, length, length, length, &whole);
        changed += whole.length != length || memcmp(buf_text(&whole), text, length) != 0;
        for (int split = 0; split < 4; split++) {
            auto_buf struct buf out = {0};
            feed_randomly(redactor, text, length, &seed, &out);
            assert_bytes(&out, buf_text(&whole), whole.length);
        }
    }
    assert_in_range(changed, 1000, 4000);
    for (size_t i = 0; i < ARRAY_LEN(redactors); i++)
        redactor_close(redactors[i]);
}

/* Longer than the pieces that the engine itself works in, so that its own boundaries are tested too. */
static void test_redact_stream__long_texts(void **state)
{
    (void)state;
    const char *all[] = {"all", NULL};
    struct redactor *redactor = open_for(rules, all, "s3cr/et-value", SANITIZE_NONE);
    unsigned seed = 43;
    auto_buf struct buf text = {0};
    while (text.length < 400000) {
        char part[1024];
        buf_append(&text, part, random_text(&seed, part, sizeof part));
        buf_puts(&text, "\n");
    }
    auto_buf struct buf whole = {0};
    redact_in_pieces(redactor, text.data, text.length, text.length, text.length, &whole);
    static const size_t pieces[] = {61, 1024, 16383, 16385, 65536};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        auto_buf struct buf out = {0};
        redact_in_pieces(redactor, text.data, text.length, 7, pieces[i], &out);
        assert_int_equal(out.length, whole.length);
        assert_memory_equal(out.data, whole.data, whole.length);
    }
    redactor_close(redactor);
}

static void check_held(const char *const *sanitize, const char *text, size_t expected)
{
    struct redactor *redactor = open_for(rules, sanitize, "s3cr/et-value", SANITIZE_SECRETS);
    auto_buf struct buf out = {0};
    redactor_feed(redactor, 1, text, strlen(text), collect, &out);
    if (strlen(text) - out.length != expected)
        fail_msg("\"%s\" holds back %zu bytes, expected %zu", text, strlen(text) - out.length, expected);
    redactor_close(redactor);
}

static void test_redact_stream__only_beginnings_wait(void **state)
{
    (void)state;
    const char *all[] = {"all", NULL};
    check_held(NULL, "hello\n", 0);
    check_held(NULL, "Enter your name: ", 0);
    check_held(NULL, "progress 50 %!", 0);
    check_held(NULL, "two words", 1); /* "s…" may become "sk-…", and the secret begins with it */
    check_held(NULL, "a task-", 3);
    check_held(NULL, "a sk-", 3);
    check_held(NULL, "a sk-abc", 6);
    check_held(NULL, "a sk-abc\n", 0);
    check_held(NULL, "a sk-abc ", 0);
    check_held(NULL, "a s3cr/et", 7);
    check_held(NULL, "a s3cr/eT", 0);
    check_held(NULL, "x -----BEGIN RSA", 14);
    check_held(NULL, "x -----BEGIN RSA\n", 0);
    check_held(NULL, "AuthorizatioN: beare", 20);
    check_held(all, "hello\n", 0);
    check_held(all, "hello you", 3);
    check_held(all, "at 10.0.0.1", 8);
}

static void test_redact_stream__hold_back_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *sanitize, *begin, *more;
        size_t most;
    } cases[] = {
        {"secrets", "", "A", 1024},      {"secrets", "eyJ", "a", 1024},
        {"jwt", "eyJ", "eyJ", 1024},     {"openai_api_key", "", "sk-", 256},
        {"email", "", "a", 256},         {"email", "a@", "a.", 256},
        {"private_ip", "", "172.", 256}, {"connection_string", "", "redis", 256},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *names[] = {cases[i].sanitize, NULL};
        struct redactor *redactor = open_for(rules, names, NULL, SANITIZE_NONE);
        auto_buf struct buf out = {0};
        size_t fed = strlen(cases[i].begin), most = 0;
        if (fed)
            redactor_feed(redactor, 1, cases[i].begin, fed, collect, &out);
        for (int step = 0; step < 5000; step++) {
            redactor_feed(redactor, 1, cases[i].more, strlen(cases[i].more), collect, &out);
            fed += strlen(cases[i].more);
            most = fed - out.length > most ? fed - out.length : most;
        }
        redactor_end(redactor, 1, collect, &out);
        assert_int_equal(out.length, fed);
        assert_in_range(most, 0, cases[i].most);
        redactor_close(redactor);
    }
}

static void count_only(void *sink, const void *bytes, size_t length)
{
    (void)bytes;
    *(size_t *)sink += length;
}

/* Two megabytes of nothing but beginnings, matches and overlaps. That it takes no more than a moment is what the
 * suite's time limit sees; memory is measured. */
static void test_redact_stream__no_text_is_expensive(void **state)
{
    (void)state;
    static const char *const units[] = {
        "A",
        "a",
        "AKIA",
        "sk-",
        "glpat-aaaaaaaaaaaaaaaaaaaa",
        "sk-aaaaaaaaaaaaaaaaaaaasecret",
        "a@a.aa",
        "a@",
        "10.0.0.1",
        "10.",
        "eyJaaaaaaaaaa.",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "-----END PRIVATE KEY-----",
        "/etc/",
        "redis://",
        "authorization: ",
        "xoxb-",
        "aaab",
        "-",
        "\n",
        "aaaa ",
    };
    const char *all[] = {"all", NULL};
    struct redactor *redactor = open_for(rules, all, "aaaa", SANITIZE_NONE);
    size_t length = (size_t)2 << 20, total = 0;
    auto_free char *text = malloc(length);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        size_t unit = strlen(units[i]);
        for (size_t at = 0; at < length; at++)
            text[at] = units[i][at % unit];
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        for (size_t at = 0; at < length; at += 65536)
            redactor_feed(redactor, 1, text + at, 65536, count_only, &total);
        redactor_end(redactor, 1, count_only, &total);
        size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
        assert_in_range(after > before ? after - before : 0, 0, (size_t)2 << 20);
    }
    assert_true(total > length);
    redactor_close(redactor);
}

/* Small pieces of a text that is always about to match. */
static void test_redact_stream__byte_by_byte(void **state)
{
    (void)state;
    const char *all[] = {"all", NULL};
    struct redactor *redactor = open_for(rules, all, "aaaa", SANITIZE_NONE);
    auto_buf struct buf out = {0};
    for (int i = 0; i < 100000; i++)
        redactor_feed(redactor, 2, "eyJ" + i % 3, 1, collect, &out);
    redactor_end(redactor, 2, collect, &out);
    assert_int_equal(out.length, 100000);
    redactor_close(redactor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact_stream__random_texts_and_splits),
        cmocka_unit_test(test_redact_stream__long_texts),
        cmocka_unit_test(test_redact_stream__only_beginnings_wait),
        cmocka_unit_test(test_redact_stream__hold_back_is_bounded),
        cmocka_unit_test(test_redact_stream__no_text_is_expensive),
        cmocka_unit_test(test_redact_stream__byte_by_byte),
    };
    return cmocka_run_group_tests(tests, open_rules, close_rules);
}
