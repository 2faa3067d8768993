/* Owns the built-in rules: a row a rule. Of rules that begin at the same byte the earlier row gives the name. An END
 * row has the name of its BEGIN row, before it. Patterns are what redact_shape.c understands; docs/REDACTION.md has the
 * same table for people, and a test compares the two. */
#include "base/cleanup.h"
#include "output/redact_rules.h"

#define ALNUM "A-Za-z0-9"
#define GAP   "[ \\t]{0,4}"
#define QUOTE "[\"']?"
#define LABEL "[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----"

const char *const redact_class_names[REDACT_CLASSES] = {"secret", "private"};

const struct redact_row redact_table[] = {
    {"known_secret", REDACT_SECRET, NULL, "[REDACTED_SECRET]", 0, REDACT_MATCH},
    {"private_key", REDACT_SECRET, "-----BEGIN " LABEL, "[REDACTED_PRIVATE_KEY]", 0, REDACT_BEGIN},
    {"private_key", REDACT_SECRET, "-----END " LABEL, "", 0, REDACT_END},
    {"connection_string", REDACT_SECRET,
     "(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps)(?:\\+[a-z0-9]{1,16})?://[^\\s\"]+",
     "[REDACTED_CONNECTION_STRING]", 0, REDACT_MATCH},
    {"authorization", REDACT_SECRET,
     "(?i)authorization" QUOTE GAP "[:=]" GAP QUOTE "(?:bearer|basic|token)[ \\t]{1,4}[" ALNUM "._~+/-]{8}[" ALNUM
     "._~+/=-]*",
     "[REDACTED_AUTHORIZATION]", 0, REDACT_MATCH},
    {"anthropic_api_key", REDACT_SECRET, "sk-ant-[" ALNUM "_-]{20,}", "[REDACTED_API_KEY]", 0, REDACT_MATCH},
    {"openai_api_key", REDACT_SECRET,
     "sk-(?:(?:proj|svcacct|admin|None)-[" ALNUM "_-]{20}|[" ALNUM "]{20})[" ALNUM "_-]*", "[REDACTED_API_KEY]", 0,
     REDACT_MATCH},
    {"aws_access_key", REDACT_SECRET, "(?:AKIA|ASIA)[A-Z0-9]{16}", "[REDACTED_AWS_KEY]", 0, REDACT_MATCH},
    {"aws_secret_key", REDACT_SECRET,
     "(?i)aws_?secret_?(?:access_?)?key" QUOTE GAP "[:=]" GAP QUOTE "[" ALNUM "/+]{40}", "[REDACTED_AWS_SECRET_KEY]", 0,
     REDACT_MATCH},
    {"azure_key", REDACT_SECRET, "(?:AccountKey=[" ALNUM "+/]{86}==|SharedAccessKey=[" ALNUM "+/]{43}=)",
     "[REDACTED_AZURE_KEY]", 0, REDACT_MATCH},
    {"github_token", REDACT_SECRET, "(?:gh[pousr]_[" ALNUM "]{36}|github_pat_[" ALNUM "_]{22})[" ALNUM "_]*",
     "[REDACTED_GITHUB_TOKEN]", 0, REDACT_MATCH},
    {"gitlab_token", REDACT_SECRET, "glpat-[" ALNUM "_-]{20,}", "[REDACTED_GITLAB_TOKEN]", 0, REDACT_MATCH},
    {"slack_token", REDACT_SECRET, "xox[abeoprs]-[" ALNUM "-]{10,}", "[REDACTED_SLACK_TOKEN]", 0, REDACT_MATCH},
    {"stripe_key", REDACT_SECRET, "(?:sk|rk)_(?:live|test)_[" ALNUM "]{16,}", "[REDACTED_STRIPE_KEY]", 0, REDACT_MATCH},
    {"google_api_key", REDACT_SECRET, "AIza[" ALNUM "_-]{35}", "[REDACTED_GOOGLE_API_KEY]", 0, REDACT_MATCH},
    {"npm_token", REDACT_SECRET, "npm_[" ALNUM "]{36}", "[REDACTED_NPM_TOKEN]", 0, REDACT_MATCH},
    {"huggingface_token", REDACT_SECRET, "hf_[" ALNUM "]{30,}", "[REDACTED_HUGGINGFACE_TOKEN]", 0, REDACT_MATCH},
    {"jwt", REDACT_SECRET, "eyJ[" ALNUM "_-]{10,}\\.eyJ[" ALNUM "_-]{4}[" ALNUM "_.-]*", "[REDACTED_JWT]", 1024,
     REDACT_MATCH},
    {"email", REDACT_PRIVATE, "[" ALNUM "._%+-]+@[" ALNUM ".-]+\\.[A-Za-z]{2,}", "[REDACTED_EMAIL]", 0, REDACT_MATCH},
    {"private_ip", REDACT_PRIVATE,
     "\\b(?:10\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}|172\\.(?:1[6-9]|2\\d|3[01])\\.\\d{1,3}\\.\\d{1,3}|"
     "192\\.168\\.\\d{1,3}\\.\\d{1,3})\\b",
     "[REDACTED_INTERNAL_IP]", 0, REDACT_MATCH},
    {"system_path", REDACT_PRIVATE, "/(?:etc|root|home/[" ALNUM "._-]{1,32})/[^\\s\"]+", "[REDACTED_SYSTEM_PATH]", 0,
     REDACT_MATCH},
};

const size_t redact_table_count = ARRAY_LEN(redact_table);
