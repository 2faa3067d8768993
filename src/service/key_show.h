/* API keys as people and programs see them. */
#ifndef SERVICE_KEY_SHOW_H
#define SERVICE_KEY_SHOW_H

#include "store/keys.h"

/* 0 when there is no such scope. */
uint32_t key_scope_bit(const char *word, size_t length);
/* Both print to standard output and return an exit code. */
int key_show_json(const struct api_key *keys, size_t count);
int key_show_table(const struct api_key *keys, size_t count);

#endif
