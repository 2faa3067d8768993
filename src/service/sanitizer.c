/* Owns the compiled rules of the process. */
#include "service/sanitizer.h"

#include <pthread.h>

#include "base/error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct redact_rules *rules; /* until the process ends */

static int find_rules(cordon_error *err)
{
    pthread_mutex_lock(&lock);
    int code = rules ? 0 : redact_rules_open(NULL, &rules, err);
    pthread_mutex_unlock(&lock);
    return code;
}

int sanitizer_open(struct sanitizer *sanitizer, const cordon_request *request, enum sanitize fallback,
                   cordon_error *err)
{
    *sanitizer = (struct sanitizer){0};
    int code = find_rules(err);
    if (code == 0)
        code = redactor_open(rules, request, fallback, &sanitizer->redactor, err);
    if (code == 0 && sanitizer->redactor)
        sanitizer->filter = redactor_filter(sanitizer->redactor);
    return code;
}

const cordon_filter *sanitizer_filter(const struct sanitizer *sanitizer)
{
    return sanitizer->redactor ? &sanitizer->filter : NULL;
}

void sanitizer_tell(const struct sanitizer *sanitizer, cordon_result *result)
{
    const struct redaction *rows = NULL;
    size_t count = sanitizer->redactor ? redactor_counts(sanitizer->redactor, &rows) : 0;
    for (size_t i = 0; i < count; i++)
        cordon_result_add_redaction(result, rows[i].rule, rows[i].where, rows[i].count);
}

void sanitizer_close(struct sanitizer *sanitizer)
{
    redactor_close(sanitizer->redactor);
    sanitizer->redactor = NULL;
}

int sanitizer_clean(const cordon_request *request, json_t **value, cordon_error *err)
{
    struct redactor *known = NULL;
    int code = find_rules(err);
    if (code == 0)
        code = redactor_open_known(rules, request, &known, err);
    if (code == 0 && known && redactor_json(known, value) < 0)
        code = error_nomem(err);
    redactor_close(known);
    return code;
}
