/* Owns the digits. */
#include "base/hex.h"

void hex_text(const uint8_t *bytes, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}
