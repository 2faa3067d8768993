/* Bytes as lower-case hex. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* `text` has room for twice as many characters and the end. */
void hex_text(const uint8_t *bytes, size_t count, char *text);

#endif
