/* The files of a result: what `collect` asks for of what the program left in its work directory. */
#ifndef ENGINE_RESULT_FILES_H
#define ENGINE_RESULT_FILES_H

#include <cordon/run.h>
#include <jansson.h>

#include "engine/result.h"

/* Fills the result's files and names what is left out. Called when every process of the cell was killed, while `step`
 * still has what was given to the program. */
void result_collect(cordon_result *result, int work_fd, const cordon_request *request, const struct prepared_step *step,
                    const cordon_filter *filter);
void result_files_free(cordon_result *result);

json_t *result_files_json(const cordon_result *result);
json_t *result_files_skipped_json(const cordon_result *result);

#endif
