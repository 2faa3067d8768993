/* Owns the forms in which a known value is looked for: as it is, reversed, base64, hexadecimal, URL-encoded and
 * JSON-escaped, quoted as languages and shells show texts, and all that without white space at its ends. A form that
 * equals another costs nothing, the automaton has it already. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "output/redact_literals.h"
#include "output/utf8.h"

/* A longer value is looked for in pieces of this size, which overlap, so that what a form makes of the bytes at a seam
 * is within one of them. This bounds what a stream may have to hold back. */
#define PIECE   1024
#define OVERLAP 8

static void wipe(struct buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->length);
    buf_free(buf);
}

#define auto_wipe __attribute__((cleanup(wipe)))

static bool add(struct literals *literals, const struct buf *form)
{
    return !form->failed && literals_add(literals, form->data, form->length);
}

static void put(struct buf *form, char c)
{
    buf_append(form, &c, 1);
}

static void put_hex(struct buf *form, unsigned char c, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    put(form, digits[c >> 4]);
    put(form, digits[c & 15]);
}

static bool add_hex(struct literals *literals, const char *value, size_t length, bool upper)
{
    auto_wipe struct buf form = {0};
    for (size_t i = 0; i < length; i++)
        put_hex(&form, (unsigned char)value[i], upper);
    return add(literals, &form);
}

/* Bytes reversed, and characters reversed, which differ where one has several bytes. */
static bool add_reversed(struct literals *literals, const char *value, size_t length)
{
    auto_wipe struct buf bytes = {0}, characters = {0};
    for (size_t i = length; i-- > 0;)
        put(&bytes, value[i]);
    for (size_t end = length, i = length; i-- > 0;)
        if (((unsigned char)value[i] & 0xc0) != 0x80) {
            buf_append(&characters, value + i, end - i);
            end = i;
        }
    return add(literals, &bytes) && (!utf8_valid(value, length) || add(literals, &characters));
}

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The value within something longer that is encoded, `before` (0..2) bytes into a group. Characters that also hold bits
 * of what is around it are unknown, so they are no part of it; but if the value is the end, they are known. */
static bool add_base64(struct literals *literals, const char *value, size_t length, unsigned before,
                       const char *alphabet)
{
    auto_wipe struct buf form = {0};
    size_t bits = (before + length) * 8, first = (before * 8 + 5) / 6;
    for (size_t at = first * 6; at < bits; at += 6) {
        unsigned window = 0;
        for (size_t byte = at / 8; byte < at / 8 + 2; byte++) {
            size_t i = byte - before;
            window = window << 8 | (i < length ? (unsigned char)value[i] : 0);
        }
        if (at + 6 > bits && !add(literals, &form))
            return false;
        put(&form, alphabet[window >> (10 - at % 8) & 63]);
    }
    if (!add(literals, &form))
        return false;
    for (size_t total = first + form.length; total % 4; total++)
        put(&form, '=');
    return add(literals, &form);
}

static const struct url_style {
    const char *kept; /* beside letters and digits; NULL: nothing at all */
    bool plus;        /* a space becomes '+' */
} url_styles[] = {
    {"-._~", false},                 /* RFC 3986 */
    {"-._~/", false},                /* Python's quote() */
    {"-._~!'()*", false},            /* encodeURIComponent() */
    {"-._~!'()*;/?:@&=+$,#", false}, /* encodeURI() */
    {"-._~", true},
    {"-._*", true}, /* forms: quote_plus(), URLSearchParams */
    {NULL, false},
};

static bool keeps(const struct url_style *style, char c)
{
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return style->kept && c && (plain || strchr(style->kept, c));
}

static bool add_url(struct literals *literals, const char *value, size_t length, const struct url_style *style,
                    bool upper)
{
    auto_wipe struct buf form = {0};
    for (size_t i = 0; i < length; i++)
        if (keeps(style, value[i]))
            put(&form, value[i]);
        else if (style->plus && value[i] == ' ')
            put(&form, '+');
        else {
            put(&form, '%');
            put_hex(&form, (unsigned char)value[i], upper);
        }
    return add(literals, &form);
}

enum { JSON_SLASH = 1, JSON_ASCII = 2, JSON_HTML = 4, JSON_UPPER = 8, JSON_STYLES = 16 };

static void put_unit(struct buf *form, unsigned unit, unsigned style)
{
    buf_puts(form, "\\u");
    put_hex(form, (unsigned char)(unit >> 8), style & JSON_UPPER);
    put_hex(form, (unsigned char)unit, style & JSON_UPPER);
}

/* One character of several bytes as UTF-16 escapes; how many bytes it has. The text is valid UTF-8. */
static size_t put_wide(struct buf *form, const char *at, unsigned style)
{
    unsigned char lead = (unsigned char)*at;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t c = lead & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    if (c >= 0x10000)
        put_unit(form, 0xd800 + ((c - 0x10000) >> 10), style);
    put_unit(form, c >= 0x10000 ? 0xdc00 + ((c - 0x10000) & 0x3ff) : c, style);
    return length;
}

static void put_json(struct buf *form, char c, unsigned style)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *pair = named; *pair; pair += 2)
        if (*pair == c) {
            put(form, '\\');
            put(form, pair[1]);
            return;
        }
    if (c == '/' && style & JSON_SLASH)
        buf_puts(form, "\\/");
    else if ((unsigned char)c < 0x20 || (style & JSON_ASCII && c == 0x7f) ||
             (style & JSON_HTML && c && strchr("<>&'", c)))
        put_unit(form, (unsigned char)c, style);
    else
        put(form, c);
}

static bool add_json(struct literals *literals, const char *value, size_t length, unsigned style)
{
    auto_wipe struct buf form = {0};
    bool wide = style & JSON_ASCII && utf8_valid(value, length);
    for (size_t i = 0; i < length;)
        if (wide && (unsigned char)value[i] >= 0x80)
            i += put_wide(&form, value + i, style);
        else
            put_json(&form, value[i++], style);
    return add(literals, &form);
}

/* How languages show a text in quotes. */
enum wide { WIDE_KEPT, WIDE_BYTES, WIDE_POINTS }; /* what is not ASCII: as it is, byte for byte, as characters */

static const struct quote_style {
    char quote; /* escaped; 0: none, the quote around it is one that it does not hold */
    enum wide wide;
    enum { HEX_LOWER, HEX_UPPER, OCTAL } number; /* of a byte that is not shown */
} quote_styles[] = {
    /* In this order: Python's repr() of a text, Node's inspect(), ascii(), repr() of bytes and C, Bash's $'...'. */
    {'\'', WIDE_KEPT, HEX_LOWER},   {'"', WIDE_KEPT, HEX_LOWER},   {0, WIDE_KEPT, HEX_LOWER},
    {'\'', WIDE_KEPT, HEX_UPPER},   {'"', WIDE_KEPT, HEX_UPPER},   {0, WIDE_KEPT, HEX_UPPER},
    {'\'', WIDE_POINTS, HEX_LOWER}, {'"', WIDE_POINTS, HEX_LOWER}, {0, WIDE_POINTS, HEX_LOWER},
    {'\'', WIDE_BYTES, HEX_LOWER},  {'"', WIDE_BYTES, HEX_LOWER},  {0, WIDE_BYTES, HEX_LOWER},
    {'\'', WIDE_BYTES, OCTAL},      {'\'', WIDE_KEPT, OCTAL},
};

/* One character of several bytes by its number; how many bytes it has. The text is valid UTF-8. */
static size_t put_point(struct buf *form, const char *at)
{
    unsigned char lead = (unsigned char)*at;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t c = lead & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    buf_printf(form, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    return length;
}

static void put_number(struct buf *form, unsigned char c, int number)
{
    if (number == OCTAL) {
        buf_printf(form, "\\%03o", c);
        return;
    }
    buf_puts(form, "\\x");
    put_hex(form, c, number == HEX_UPPER);
}

static void put_quoted(struct buf *form, unsigned char c, const struct quote_style *style)
{
    static const char named[] = "\nn\rr\tt\\\\";
    const char *pair = named;
    while (*pair && *pair != (char)c)
        pair += 2;
    if (*pair)
        buf_printf(form, "\\%c", pair[1]);
    else if (style->quote && c == (unsigned char)style->quote)
        buf_printf(form, "\\%c", c);
    else if (c < 0x20 || c == 0x7f || (style->wide == WIDE_BYTES && c >= 0x80))
        put_number(form, c, style->number);
    else
        put(form, (char)c);
}

static bool add_quoted(struct literals *literals, const char *value, size_t length, const struct quote_style *style)
{
    auto_wipe struct buf form = {0};
    bool points = style->wide == WIDE_POINTS && utf8_valid(value, length);
    for (size_t i = 0; i < length;)
        if (points && (unsigned char)value[i] >= 0x80)
            i += put_point(&form, value + i);
        else
            put_quoted(&form, (unsigned char)value[i++], style);
    return add(literals, &form);
}

/* Within single quotes a shell's texts are as they are, but for a single quote itself. */
static bool add_shell(struct literals *literals, const char *value, size_t length, const char *quote)
{
    auto_wipe struct buf form = {0};
    for (size_t i = 0; i < length; i++)
        if (value[i] == '\'')
            buf_puts(&form, quote);
        else
            put(&form, value[i]);
    return add(literals, &form);
}

/* With a backslash before each of these. */
static bool add_backslashed(struct literals *literals, const char *value, size_t length, const char *escaped)
{
    auto_wipe struct buf form = {0};
    for (size_t i = 0; i < length; i++) {
        if (value[i] && strchr(escaped, value[i]))
            put(&form, '\\');
        put(&form, value[i]);
    }
    return add(literals, &form);
}

#define SHELL_SPECIAL " \t!\"#$&'()*;<>?[\\]^`{|}"

static bool add_shown(struct literals *literals, const char *value, size_t length)
{
    static const char *const single[] = {"'\"'\"'", "'\\''"};
    /* printf %q of several shells, and what stands within a shell's double quotes. */
    static const char *const escaped[] = {SHELL_SPECIAL,      SHELL_SPECIAL "~",       SHELL_SPECIAL ",",
                                          SHELL_SPECIAL "~,", SHELL_SPECIAL "~,=:@%+", "\"\\$`",
                                          "\"\\$`!"};
    bool fine = true;
    for (size_t i = 0; fine && i < ARRAY_LEN(quote_styles); i++)
        fine = add_quoted(literals, value, length, &quote_styles[i]);
    for (size_t i = 0; fine && i < ARRAY_LEN(single); i++)
        fine = add_shell(literals, value, length, single[i]);
    for (size_t i = 0; fine && i < ARRAY_LEN(escaped); i++)
        fine = add_backslashed(literals, value, length, escaped[i]);
    return fine;
}

static bool add_piece(struct literals *literals, const char *value, size_t length)
{
    bool fine = literals_add(literals, value, length) && add_reversed(literals, value, length) &&
                add_hex(literals, value, length, false) && add_hex(literals, value, length, true);
    for (unsigned before = 0; fine && before < 3; before++)
        fine = add_base64(literals, value, length, before, standard) &&
               add_base64(literals, value, length, before, url_safe);
    for (size_t i = 0; fine && i < ARRAY_LEN(url_styles); i++)
        fine = add_url(literals, value, length, &url_styles[i], false) &&
               add_url(literals, value, length, &url_styles[i], true);
    for (unsigned style = 0; fine && style < JSON_STYLES; style++)
        fine = add_json(literals, value, length, style);
    return fine && add_shown(literals, value, length);
}

static bool add_whole(struct literals *literals, const char *value, size_t length)
{
    for (; length > PIECE; value += PIECE - OVERLAP, length -= PIECE - OVERLAP)
        if (!add_piece(literals, value, PIECE))
            return false;
    return add_piece(literals, value, length);
}

/* A value from a file often ends with a newline that its user strips. */
bool forms_add(struct literals *literals, const char *value, size_t length)
{
    static const char white[] = " \t\r\n\v\f";
    const char *inner = value;
    size_t left = length;
    for (; left && *inner && strchr(white, *inner); inner++)
        left--;
    while (left && inner[left - 1] && strchr(white, inner[left - 1]))
        left--;
    return add_whole(literals, value, length) && (left == length || add_whole(literals, inner, left));
}
