/* Pure functions on URLs, called by the server for every request and fuzzed by themselves. */
#include "http/url.h"

#include <string.h>

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* -1 when this is no escape to be resolved. */
static int escape_of(const char *text)
{
    int high = *text == '%' ? digit_of(text[1]) : -1, low = high < 0 ? -1 : digit_of(text[2]);
    int value = 16 * high + low;
    return low < 0 || value < 0x20 || value == '/' || value == 0x7f ? -1 : value;
}

size_t url_unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        int value = escape_of(from);
        *to++ = value < 0 ? *from : (char)value;
        from += value < 0 ? 1 : 3;
    }
    *to = '\0';
    return (size_t)(to - text);
}
