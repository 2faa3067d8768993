/* Reading rows of a result before the result is whole. */
#ifndef ENGINE_RESULT_READ_H
#define ENGINE_RESULT_READ_H

#include <cordon/result.h>
#include <jansson.h>

/* One object of the `cases` of a result. The texts are those of the row. */
void result_test_read(const json_t *row, cordon_test *test);

#endif
