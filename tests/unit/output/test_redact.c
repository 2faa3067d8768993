/* Redaction: what each rule replaces, in one piece, at every split and byte by byte; what it must leave alone; choice,
 * counts and errors. */
#include "output/usual_rules.h"

#define A20  "AbCdEfGhIjKlMnOpQrSt"
#define A36  A20 "UvWxYz0123456789"
#define A40  A20 A20
#define A43  A40 "abc"
#define A86  A43 A43
#define BODY "\nMIIEowIBAAKCAQEA7bq\n/+AAAA==\n"

static const struct sample {
    const char *rule;
    const char *text;
    const char *expected;
} samples[] = {
    {"openai_api_key", "key: sk-" A20 "xyz_-9!", "key: [REDACTED_API_KEY]!"},
    {"openai_api_key", "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz1234567890abcdef\n", "[REDACTED_API_KEY]\n"},
    {"anthropic_api_key", "sk-ant-api03-" A20 "-x y", "[REDACTED_API_KEY] y"},
    {"aws_access_key", "(AKIAIOSFODNN7EXAMPLE)", "([REDACTED_AWS_KEY])"},
    {"aws_access_key", "ASIAIOSFODNN7EXAMPLEzz", "[REDACTED_AWS_KEY]zz"},
    {"aws_secret_key", "AWS_SECRET_ACCESS_KEY=\"" A40 "\"", "[REDACTED_AWS_SECRET_KEY]\""},
    {"aws_secret_key", "{'awsSecretKey': '" A40 "'}", "{'[REDACTED_AWS_SECRET_KEY]'}"},
    {"azure_key", "AccountName=x;AccountKey=" A86 "==;E", "AccountName=x;[REDACTED_AZURE_KEY];E"},
    {"azure_key", "SharedAccessKey=" A43 "=\n", "[REDACTED_AZURE_KEY]\n"},
    {"github_token", "ghp_" A36 " gho_" A36 "zz.", "[REDACTED_GITHUB_TOKEN] [REDACTED_GITHUB_TOKEN]."},
    {"github_token", "github_pat_" A20 "22_" A40 "-", "[REDACTED_GITHUB_TOKEN]-"},
    {"gitlab_token", "glpat-" A20 "_-z/", "[REDACTED_GITLAB_TOKEN]/"},
    {"slack_token", "xoxb-123456789012-abc xoxp-1-", "[REDACTED_SLACK_TOKEN] xoxp-1-"},
    {"stripe_key", "sk_live_" A20 "; rk_test_" A20, "[REDACTED_STRIPE_KEY]; [REDACTED_STRIPE_KEY]"},
    {"google_api_key",
     "AIza" A20 "_-"
     "0123456789abc"
     "Z",
     "[REDACTED_GOOGLE_API_KEY]Z"},
    {"npm_token", "//registry/:_authToken=npm_" A36, "//registry/:_authToken=[REDACTED_NPM_TOKEN]"},
    {"huggingface_token", "hf_" A36 "\t", "[REDACTED_HUGGINGFACE_TOKEN]\t"},
    {"jwt", "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P&x", "t=[REDACTED_JWT]&x"},
    {"authorization", "> authorization: Bearer abc.def-GHI==\r\n", "> [REDACTED_AUTHORIZATION]\r\n"},
    {"authorization", "{\"Authorization\": \"Basic dXNlcjpwYXNz\"}", "{\"[REDACTED_AUTHORIZATION]\"}"},
    {"connection_string", "Connected to: postgres://admin:secret@10.0.1.5:5432/production\n",
     "Connected to: [REDACTED_CONNECTION_STRING]\n"},
    {"connection_string", "{\"u\":\"mongodb+srv://a:b@c/d\",\"v\":1}",
     "{\"u\":\"[REDACTED_CONNECTION_STRING]\",\"v\":1}"},
    {"private_key", "a\n-----BEGIN RSA PRIVATE KEY-----" BODY "-----END RSA PRIVATE KEY-----\nb",
     "a\n[REDACTED_PRIVATE_KEY]\nb"},
    {"private_key", "-----BEGIN PRIVATE KEY-----" BODY "-----END OTHER-----" BODY, "[REDACTED_PRIVATE_KEY]"},
    {"private_key", "-----BEGIN PGP PRIVATE KEY BLOCK-----" BODY "-----END PGP PRIVATE KEY BLOCK----- -----END",
     "[REDACTED_PRIVATE_KEY] -----END"},
    {"private_key", "-----BEGIN EC PRIVATE KEY-----sk-" A20 "-----END EC PRIVATE KEY-----x", "[REDACTED_PRIVATE_KEY]x"},
    {"email", "Email sent to admin@company.com\n", "Email sent to [REDACTED_EMAIL]\n"},
    {"email", "<a.b+c@d-e.co.uk>, x@y, @z.com", "<[REDACTED_EMAIL]>, x@y, @z.com"},
    {"private_ip", "Server IP: 192.168.1.100, 10.0.0.1:80 172.31.255.9\n",
     "Server IP: [REDACTED_INTERNAL_IP], [REDACTED_INTERNAL_IP]:80 [REDACTED_INTERNAL_IP]\n"},
    {"private_ip", "110.0.0.1 10.0.0.1x 172.32.0.1 8.8.8.8 10.1.2.3",
     "110.0.0.1 10.0.0.1x 172.32.0.1 8.8.8.8 [REDACTED_INTERNAL_IP]"},
    {"system_path", "Config loaded from /etc/myapp/config.yaml /home/bob/x /rooted/x /root/\n",
     "Config loaded from [REDACTED_SYSTEM_PATH] [REDACTED_SYSTEM_PATH] /rooted/x /root/\n"},
};

/* In one piece, split in two at every place, and in pieces of each small size. */
static void test_redact__samples_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const char *names[] = {samples[i].rule, NULL}, *all[] = {"all", NULL};
        size_t length = strlen(samples[i].text);
        for (int everything = 0; everything < 2; everything++) {
            struct redactor *redactor = open_for(rules, everything ? all : names, NULL, SANITIZE_NONE);
            auto_buf struct buf whole = {0};
            redact_in_pieces(redactor, samples[i].text, length, length, length, &whole);
            if (!everything)
                assert_bytes(&whole, samples[i].expected, strlen(samples[i].expected));
            for (size_t split = 0; split <= length; split++) {
                auto_buf struct buf out = {0};
                redact_in_pieces(redactor, samples[i].text, length, split, length, &out);
                assert_bytes(&out, buf_text(&whole), whole.length);
            }
            for (size_t piece = 1; piece < 8; piece++) {
                auto_buf struct buf out = {0};
                redact_in_pieces(redactor, samples[i].text, length, piece, piece, &out);
                assert_bytes(&out, buf_text(&whole), whole.length);
            }
            redactor_close(redactor);
        }
    }
}

static void test_redact__every_rule_has_a_sample(void **state)
{
    (void)state;
    auto_free char *json = redact_rules_json(rules);
    assert_non_null(json);
    size_t named = 0;
    for (const char *at = json; (at = strstr(at, "{\"name\":\"")); named++) {
        at += 9;
        bool found = strncmp(at, "known_secret", 12) == 0;
        for (size_t i = 0; i < ARRAY_LEN(samples); i++)
            found = found ||
                    (strncmp(at, samples[i].rule, strlen(samples[i].rule)) == 0 && at[strlen(samples[i].rule)] == '"');
        if (!found)
            fail_msg("no sample for %.40s", at);
    }
    assert_true(named >= 20);
}

static void check(const char *const *sanitize, const char *text, const char *expected)
{
    struct redactor *redactor = open_for(rules, sanitize, NULL, SANITIZE_SECRETS);
    auto_buf struct buf out = {0};
    redact_in_pieces(redactor, text, strlen(text), strlen(text), 1, &out);
    assert_bytes(&out, expected, strlen(expected));
    redactor_close(redactor);
}

static void test_redact__the_seed_example(void **state)
{
    (void)state;
    const char *all[] = {"all", NULL};
    check(all,
          "Connected to: postgres://admin:secretpassword@10.0.1.5:5432/production\nServer IP: 192.168.1.100\n"
          "Config loaded from /etc/myapp/config.yaml\nEmail sent to admin@company.com\n"
          "Using API key: sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz1234567890abcdef\n  - Users: 1,523\n",
          "Connected to: [REDACTED_CONNECTION_STRING]\nServer IP: [REDACTED_INTERNAL_IP]\n"
          "Config loaded from [REDACTED_SYSTEM_PATH]\nEmail sent to [REDACTED_EMAIL]\n"
          "Using API key: [REDACTED_API_KEY]\n  - Users: 1,523\n");
}

static void test_redact__near_misses_stay(void **state)
{
    (void)state;
    static const char text[] = "sk-short AKIA sk-ant-x ghp_" A20 " -----BEGIN PUBLIC KEY-----\n eyJ.eyJ eyJhbGciOiJI\n"
                               "risk-management-framework-for-2024 postgres: redis:// authorization: none "
                               "admin@company.com 10.0.0.1 /etc/passwd";
    check(NULL, text, text);
}

static void test_redact__overlaps_are_one_region(void **state)
{
    (void)state;
    /* A key within a connection string, a path that goes on after an address, and neighbours that only touch. */
    check(NULL, "redis://:sk-" A20 "@h x", "[REDACTED_CONNECTION_STRING] x");
    const char *both[] = {"email", "system_path", NULL};
    check(both, "a@b.cc/etc/x", "[REDACTED_EMAIL][REDACTED_SYSTEM_PATH]");
    check(both, "/etc/a@b.cc/x /etc/x", "[REDACTED_SYSTEM_PATH] [REDACTED_SYSTEM_PATH]");
    check(NULL, "AKIAIOSFODNN7EXAMPLEAKIAIOSFODNN7EXAMPLE", "[REDACTED_AWS_KEY][REDACTED_AWS_KEY]");
    /* The second begins within the first, so that all of it is hidden. */
    check(NULL, "AKIAIOSFODNN7AKIA123IOSFODNN7EXAMPLE!", "[REDACTED_AWS_KEY]PLE!");
}

static void test_redact__replacements_are_not_scanned(void **state)
{
    (void)state;
    check(NULL, "AKAKIAIOSFODNN7EXAMPLEIAIOSFODNN7EXAMPLE", "AK[REDACTED_AWS_KEY]IAIOSFODNN7EXAMPLE");
}

static void test_redact__keys_of_any_length(void **state)
{
    (void)state;
    size_t length = 300000;
    auto_free char *text = malloc(length + 1);
    memset(text, 'x', length);
    memcpy(text, "a sk-", 5);
    memcpy(text + length - 2, " b", 3);
    check(NULL, text, "a [REDACTED_API_KEY] b");
}

static void test_redact__block_without_end_is_bounded(void **state)
{
    (void)state;
    static const char begin[] = "<-----BEGIN PRIVATE KEY-----";
    size_t head = sizeof begin - 1, length = head + 16384 + 5;
    auto_free char *text = malloc(length + 1);
    memset(text, '.', length + 1);
    memcpy(text, begin, head);
    memcpy(text + length - 5, "after", 6);
    check(NULL, text, "<[REDACTED_PRIVATE_KEY]after");
    /* A second BEGIN counts anew, and the END that comes then ends both. */
    memcpy(text + 1000, begin + 1, head - 1);
    check(NULL, text, "<[REDACTED_PRIVATE_KEY]");
    memcpy(text + 17000 - 2000, "-----END PRIVATE KEY-----!", 26);
    text[15100] = '\0';
    auto_buf struct buf expected = {0};
    buf_puts(&expected, "<[REDACTED_PRIVATE_KEY]!");
    for (int i = 15026; i < 15100; i++)
        buf_puts(&expected, ".");
    check(NULL, text, buf_text(&expected));
}

static void test_redact__any_bytes_pass(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7 + i / 256);
    const char *all[] = {"all", NULL};
    struct redactor *redactor = open_for(rules, all, "s3cret-value", SANITIZE_NONE);
    for (size_t piece = 1; piece < sizeof text; piece = piece * 3 + 1) {
        auto_buf struct buf out = {0};
        redact_in_pieces(redactor, text, sizeof text, piece, piece, &out);
        assert_int_equal(out.length, sizeof text);
        assert_memory_equal(out.data, text, sizeof text);
    }
    const struct redaction *rows;
    assert_int_equal(redactor_counts(redactor, &rows), 0);
    redactor_close(redactor);
}

static void test_redact__counts(void **state)
{
    (void)state;
    struct redactor *redactor = open_for(rules, NULL, "hunter22", SANITIZE_SECRETS);
    auto_buf struct buf out = {0};
    cordon_filter filter = redactor_filter(redactor);
    static const char text[] = "AKIAIOSFODNN7EXAMPLE hunter22 AKIAIOSFODNN7EXAMPLE";
    filter.output(filter.context, 1, text, sizeof text - 1, collect, &out);
    filter.output(filter.context, 2, text, 20, collect, &out);
    filter.output(filter.context, 1, NULL, 0, collect, &out);
    filter.output(filter.context, 2, NULL, 0, collect, &out);
    filter.output(filter.context, 2, "hunter", 6, collect, &out);
    filter.output(filter.context, 2, NULL, 0, collect, &out);
    filter.text(filter.context, "value", "hunter22", 8, collect, &out);
    filter.text(filter.context, "file", "hunter22", 8, collect, &out);
    static const struct redaction expected[] = {
        {"known_secret", "stdout", 1},   {"known_secret", "value", 1},    {"known_secret", "file", 1},
        {"aws_access_key", "stdout", 2}, {"aws_access_key", "stderr", 1},
    };
    const struct redaction *rows;
    assert_int_equal(redactor_counts(redactor, &rows), ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_string_equal(rows[i].rule, expected[i].rule);
        assert_string_equal(rows[i].where, expected[i].where);
        assert_int_equal(rows[i].count, expected[i].count);
    }
    redactor_close(redactor);
}

static void test_redact__a_value_stays_json(void **state)
{
    (void)state;
    static const struct sample values[] = {
        {"value", "{\"key\": \"AKIAIOSFODNN7EXAMPLE\"}", "{\"key\": \"[REDACTED_AWS_KEY]\"}"},
        {"value", "{\"Authorization\": \"Basic dXNlcjpwYXNz\"}", "\"{\\\"[REDACTED_AUTHORIZATION]\\\"}\""},
        {"value", "[\"-----BEGIN PRIVATE KEY-----\\n\", 2]", "\"[\\\"[REDACTED_PRIVATE_KEY]\""},
        {"value", "hunter22", "[REDACTED_SECRET]"},
        {"value", "12345678", "\"[REDACTED_SECRET]\""},
        {"file", "12345678", "[REDACTED_SECRET]"},
        {"value", "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        const char *secret = values[i].text[0] == '1' ? "12345678" : "hunter22";
        struct redactor *redactor = open_for(rules, NULL, secret, SANITIZE_SECRETS);
        auto_buf struct buf out = {0};
        redactor_text(redactor, values[i].rule, values[i].text, strlen(values[i].text), collect, &out);
        assert_bytes(&out, values[i].expected, strlen(values[i].expected));
        redactor_close(redactor);
    }
}

static void test_redact__choice(void **state)
{
    (void)state;
    const char *none[] = {"none", NULL}, *named[] = {"email", "private_ip", NULL}, *wrong[] = {"email", "emial", NULL};
    assert_null(open_for(rules, none, NULL, SANITIZE_ALL));
    assert_null(open_for(rules, NULL, NULL, SANITIZE_NONE));
    /* Marked as secret although nothing else is to be redacted. */
    assert_null(open_for(rules, none, "", SANITIZE_ALL));
    struct redactor *marked = open_for(rules, none, "abcd", SANITIZE_ALL);
    assert_non_null(marked);
    redactor_close(marked);
    check(named, "a@b.cc AKIAIOSFODNN7EXAMPLE 10.0.0.1",
          "[REDACTED_EMAIL] AKIAIOSFODNN7EXAMPLE [REDACTED_INTERNAL_IP]");

    cordon_error err = {0};
    cordon_request *request = cordon_request_new();
    for (size_t i = 0; wrong[i]; i++)
        assert_ok(cordon_request_add_sanitize(request, wrong[i], &err), &err);
    struct redactor *redactor = NULL;
    assert_int_equal(redactor_open(rules, request, SANITIZE_NONE, &redactor, &err), CORDON_EINVAL);
    assert_error(&err, "/sanitize/1", "emial");
    assert_true(strstr(err.text, "'email'") || strstr(err.hint, "email"));
    assert_null(redactor);
    cordon_request_free(request);
}

static void test_redact__rules_may_be_closed_first(void **state)
{
    (void)state;
    cordon_error err = {0};
    struct redact_rules *own = NULL;
    struct buf out = {0};
    assert_ok(redact_rules_open(NULL, &own, &err), &err);
    struct redactor *redactor = open_for(own, NULL, NULL, SANITIZE_ALL);
    redact_rules_close(own);
    redactor_feed(redactor, 1, "a@b.cc", 6, collect, &out);
    redactor_end(redactor, 1, collect, &out);
    assert_string_equal(buf_text(&out), "[REDACTED_EMAIL]");
    redactor_close(redactor);
    buf_free(&out);
}

static void test_redact__short_secrets_are_refused(void **state)
{
    (void)state;
    cordon_error err = {0};
    cordon_request *request = cordon_request_new();
    struct redactor *redactor = NULL;
    assert_ok(cordon_request_add_env(request, "PIN", "123", true, &err), &err);
    assert_int_equal(redactor_open(rules, request, SANITIZE_NONE, &redactor, &err), CORDON_EINVAL);
    assert_error(&err, "/env/PIN", "3 bytes");
    assert_null(redactor);
    cordon_request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact__samples_at_every_split),
        cmocka_unit_test(test_redact__every_rule_has_a_sample),
        cmocka_unit_test(test_redact__the_seed_example),
        cmocka_unit_test(test_redact__near_misses_stay),
        cmocka_unit_test(test_redact__overlaps_are_one_region),
        cmocka_unit_test(test_redact__replacements_are_not_scanned),
        cmocka_unit_test(test_redact__keys_of_any_length),
        cmocka_unit_test(test_redact__block_without_end_is_bounded),
        cmocka_unit_test(test_redact__any_bytes_pass),
        cmocka_unit_test(test_redact__counts),
        cmocka_unit_test(test_redact__a_value_stays_json),
        cmocka_unit_test(test_redact__choice),
        cmocka_unit_test(test_redact__rules_may_be_closed_first),
        cmocka_unit_test(test_redact__short_secrets_are_refused),
    };
    return cmocka_run_group_tests(tests, open_rules, close_rules);
}
