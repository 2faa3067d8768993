/* libFuzzer target: any bytes as the daemon's configuration. What is refused must say why in one line with its place,
 * and what is accepted must keep to the bounds of the table. */
#include "fuzz.h"

#include <string.h>

#include "service/config_settings.h"

static void check_error(const cordon_error *err)
{
    if (!err->code || !err->text[0] || strchr(err->text, '\n'))
        __builtin_trap();
    if (err->code == CORDON_EINVAL && strncmp(err->text, "fuzz.yaml:", 10) != 0)
        __builtin_trap();
}

static void check_bounds(const struct config *config)
{
    const struct setting *rows;
    size_t count = settings_all(&rows);
    for (size_t i = 0; i < count; i++) {
        const void *member = (const char *)config + rows[i].offset;
        uint64_t value = rows[i].kind == SETTING_COUNT ? *(const unsigned *)member : 0;
        if (rows[i].kind == SETTING_COUNT64 || rows[i].kind == SETTING_BYTES || rows[i].kind == SETTING_MS ||
            rows[i].kind == SETTING_S)
            value = *(const uint64_t *)member;
        /* Zero also stands where nothing was given. */
        if (value && (value < rows[i].least || value > rows[i].most))
            __builtin_trap();
    }
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (config->ceilings.value[i] < 0)
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct config config = {0};
    cordon_error err = {0};
    if (config_read_yaml(&config, "fuzz.yaml", (const char *)bytes, length, NULL, &err) != 0)
        check_error(&err);
    else {
        check_bounds(&config);
        if (config.listen)
            config_check(&config, NULL, &err);
    }
    config_free(&config);
    return 0;
}
