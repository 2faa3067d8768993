/* API keys: the text is known only to who made it, what a key may do comes back, and changes are seen. */
#include "store/keys.h"

#include <time.h>
#include <unistd.h>

#include "data_place.h"

static struct api_key make(struct place *place, const char *name, char text[KEY_TEXT_MAX])
{
    cordon_error err;
    struct api_key key = {.scopes = KEY_RUN | KEY_READ};
    snprintf(key.name, sizeof key.name, "%s", name);
    assert_ok(keys_new(place->store, &key, text, &err), &err);
    return key;
}

static void test_keys__comes_back(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char text[KEY_TEXT_MAX];
    place_begin(place, (struct store_options){0});
    assert_false(keys_exist(place->store));
    struct api_key key = {.name = "ci",
                          .scopes = KEY_RUN | KEY_SESSION,
                          .concurrent = 4,
                          .per_minute = 60,
                          .cpu_s_per_day = 3600,
                          .isolation = "container",
                          .network = "none",
                          .fresh = true};
    key.ceilings.value[LIMIT_MEMORY_BYTES] = 1 << 30;
    key.ceilings.value[LIMIT_CPUS] = 500;
    assert_ok(keys_new(place->store, &key, text, &err), &err);
    assert_true(keys_exist(place->store));
    assert_int_equal(strlen(text), 7 + 16 + 1 + 43);
    assert_int_equal(strncmp(text, "cordon_", 7), 0);
    assert_memory_equal(text + 7, key.id, 16);
    struct api_key found;
    assert_ok(keys_find(place->store, text, &found, &err), &err);
    assert_string_equal(found.name, "ci");
    assert_int_equal(found.scopes, KEY_RUN | KEY_SESSION);
    assert_int_equal(found.concurrent, 4);
    assert_int_equal(found.per_minute, 60);
    assert_int_equal(found.cpu_s_per_day, 3600);
    assert_int_equal(found.ceilings.value[LIMIT_MEMORY_BYTES], 1 << 30);
    assert_int_equal(found.ceilings.value[LIMIT_CPUS], 500);
    assert_int_equal(found.ceilings.value[LIMIT_WALL_MS], 0);
    assert_string_equal(found.isolation, "container");
    assert_true(found.fresh);
    assert_true(found.created_s <= (uint64_t)time(NULL) && found.created_s + 60 > (uint64_t)time(NULL));
}

static void test_keys__secret_is_nowhere(void **state)
{
    struct place *place = *state;
    char text[KEY_TEXT_MAX];
    place_begin(place, (struct store_options){0});
    make(place, "x", text);
    place_end(place);
    auto_free char *path = text_of("%s/cordon.db", place->path);
    static char bytes[1 << 20];
    FILE *file = fopen(path, "r");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_null(memmem(bytes, size, text + 24, 43));
    assert_non_null(memmem(bytes, size, text + 7, 16));
}

static void test_keys__refuses_others(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char text[KEY_TEXT_MAX], other[KEY_TEXT_MAX + 8];
    struct api_key found;
    place_begin(place, (struct store_options){0});
    make(place, "x", text);
    for (size_t i = 0; i < strlen(text); i++) {
        strcpy(other, text);
        other[i] = other[i] == 'a' ? 'b' : 'a';
        assert_int_equal(keys_find(place->store, other, &found, &err), CORDON_ENOTFOUND);
    }
    for (size_t length = 0; length < strlen(text); length++) {
        snprintf(other, length + 1, "%s", text);
        assert_int_equal(keys_find(place->store, other, &found, &err), CORDON_ENOTFOUND);
    }
    snprintf(other, sizeof other, "%sA", text);
    assert_int_equal(keys_find(place->store, other, &found, &err), CORDON_ENOTFOUND);
    /* One that names no key, with nothing to compare with. */
    assert_int_equal(
        keys_find(place->store, "cordon_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &found, &err),
        CORDON_ENOTFOUND);
    struct api_key nameless = {.scopes = KEY_RUN}, useless = {.name = "x"}, odd = {.name = "x", .scopes = 1 << 9};
    assert_int_equal(keys_new(place->store, &nameless, text, &err), CORDON_EINVAL);
    assert_int_equal(keys_new(place->store, &useless, text, &err), CORDON_EINVAL);
    assert_int_equal(keys_new(place->store, &odd, text, &err), CORDON_EINVAL);
}

static void test_keys__expires(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char text[KEY_TEXT_MAX];
    struct api_key found, key = {.name = "old", .scopes = KEY_RUN, .expires_s = (uint64_t)time(NULL) - 1};
    place_begin(place, (struct store_options){0});
    assert_ok(keys_new(place->store, &key, text, &err), &err);
    assert_int_equal(keys_find(place->store, text, &found, &err), CORDON_ENOTFOUND);
    key.expires_s = (uint64_t)time(NULL) + 1000;
    assert_ok(keys_new(place->store, &key, text, &err), &err);
    assert_ok(keys_find(place->store, text, &found, &err), &err);
}

static void test_keys__removed_and_listed(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char first[KEY_TEXT_MAX], second[KEY_TEXT_MAX];
    struct api_key found, *keys;
    size_t count;
    place_begin(place, (struct store_options){0});
    struct api_key one = make(place, "one", first);
    make(place, "two", second);
    assert_ok(keys_list(place->store, &keys, &count, &err), &err);
    assert_int_equal(count, 2);
    free(keys);
    assert_ok(keys_remove(place->store, one.id, &err), &err);
    assert_int_equal(keys_find(place->store, first, &found, &err), CORDON_ENOTFOUND);
    assert_ok(keys_find(place->store, second, &found, &err), &err);
    assert_int_equal(keys_remove(place->store, one.id, &err), CORDON_ENOTFOUND);
    assert_error(&err, "", "there is no key");
}

/* Another process's store, as far as SQLite is concerned. */
static void test_keys__sees_changes_of_others(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char text[KEY_TEXT_MAX];
    struct api_key found;
    place_begin(place, (struct store_options){0});
    assert_false(keys_exist(place->store));
    struct store *beside, *own = place->store;
    assert_ok(store_open(&(struct store_options){.data_dir = place->path, .read_only = true}, &beside, &err), &err);
    place->store = beside;
    struct api_key key = make(place, "beside", text);
    place->store = own;
    int code = CORDON_ENOTFOUND;
    for (int i = 0; i < 300 && code == CORDON_ENOTFOUND; i++, usleep(10000))
        code = keys_find(own, text, &found, &err);
    assert_int_equal(code, 0);
    assert_ok(keys_remove(beside, key.id, &err), &err);
    for (int i = 0; i < 300 && code == 0; i++, usleep(10000))
        code = keys_find(own, text, &found, &err);
    assert_int_equal(code, CORDON_ENOTFOUND);
    store_close(beside);
}

static void test_keys__unknown_ceiling_is_no_key(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char text[KEY_TEXT_MAX];
    struct api_key found;
    place_begin(place, (struct store_options){0});
    make(place, "x", text);
    place_end(place);
    file_change(place, "UPDATE keys SET ceilings = '{\"wishes\":3}'");
    place_begin(place, (struct store_options){0});
    assert_int_equal(keys_find(place->store, text, &found, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "is damaged");
    assert_true(keys_exist(place->store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_keys__comes_back),
        test(test_keys__secret_is_nowhere),
        test(test_keys__refuses_others),
        test(test_keys__expires),
        test(test_keys__removed_and_listed),
        test(test_keys__sees_changes_of_others),
        test(test_keys__unknown_ceiling_is_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
