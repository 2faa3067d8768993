/* What the tests of the C library share; see api_test.c. */
#ifndef API_H
#define API_H

#include <cordon/cordon.h>

/* As the command line of the test gave them. */
extern cordon_engine_options engine_options;
extern const char *optional_control;

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail(__LINE__, #condition, __VA_ARGS__);                                                                   \
    } while (0)

/* Prints what was not so and ends the test. */
__attribute__((format(printf, 3, 4))) void fail(int line, const char *condition, const char *format, ...);

cordon_engine *open_engine(void);
cordon_request *new_request(const char *language, const char *code);

void test_cache(void);
void test_filter(void);
void test_getters(void);
void test_null(void);
void test_offer(void);
void test_prebuild(void);
void test_quiet(void);
void test_tests_errors(void);
void test_tests_json(void);
void test_tests_setters(void);

#endif
