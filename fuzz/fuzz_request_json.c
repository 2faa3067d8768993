/* libFuzzer target: any bytes as a request's JSON. Whatever is accepted must also survive the checks that follow. */
#include "fuzz.h"

#include "plan/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    cordon_request *request;
    cordon_error err = {0};
    if (cordon_request_from_json((const char *)bytes, length, &request, &err) != 0) {
        /* An error that says nothing is a defect of its own. */
        if (!err.code || !err.text[0])
            __builtin_trap();
        return 0;
    }
    struct limits limits = request->limits;
    if (request_check(request, &err) == 0 && limits_complete(&limits, request->profile, &err) == 0)
        for (int i = 0; i < LIMIT_COUNT; i++)
            if (limits.value[i] <= 0)
                __builtin_trap();
    cordon_request_free(request);
    return 0;
}
