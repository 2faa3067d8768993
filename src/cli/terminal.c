/* Owns colours, tables and Cordon's own lines. The output of programs passes through terminal_write() untouched;
 * nothing here looks at it. Called by the commands. */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/plain.h"

static const char *const tints[TINT_COUNT] = {
    [TINT_NONE] = "",         [TINT_BOLD] = "\033[1m",  [TINT_DIM] = "\033[2m",
    [TINT_GOOD] = "\033[32m", [TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m",
};

bool terminal_colours(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color && *no_color)
        return false;
    return term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(stream));
}

void terminal_tint(FILE *stream, enum tint tint, const char *text)
{
    if (tint == TINT_NONE || !terminal_colours(stream))
        fputs(text, stream);
    else
        fprintf(stream, "%s%s\033[0m", tints[tint], text);
}

/* Characters, not bytes: names of languages need not be ASCII. */
static size_t text_width(const char *given)
{
    auto_free char *text = plain_copy(given);
    size_t width = 0;
    for (const char *at = text; at && *at; at++)
        width += ((unsigned char)*at & 0xc0) != 0x80;
    return width;
}

static size_t column_width(const struct cell_text *cells, size_t columns, size_t rows, size_t column)
{
    size_t widest = 0;
    for (size_t row = 0; row < rows; row++) {
        const char *text = cells[row * columns + column].text;
        size_t width = text ? text_width(text) : 0;
        if (width > widest)
            widest = width;
    }
    return widest;
}

void terminal_table(FILE *stream, const struct cell_text *cells, size_t columns, size_t rows)
{
    for (size_t row = 0; row < rows; row++) {
        const struct cell_text *line = cells + row * columns;
        size_t last = columns;
        while (last > 1 && (!line[last - 1].text || !*line[last - 1].text))
            last--;
        for (size_t column = 0; column < last; column++) {
            auto_free char *text = plain_copy(line[column].text ? line[column].text : "");
            if (!text)
                continue;
            terminal_tint(stream, line[column].tint, text);
            if (column + 1 < last)
                fprintf(stream, "%*s", (int)(column_width(cells, columns, rows, column) - text_width(text) + 2), "");
        }
        fputc('\n', stream);
    }
}

void terminal_put(FILE *stream, const char *text, size_t length)
{
    auto_buf struct buf plain = {0};
    plain_put(&plain, text, length, "\n\t");
    fputs(buf_text(&plain), stream);
}

void terminal_say(const char *format, ...)
{
    auto_free char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text)
        return;
    auto_buf struct buf line = {0};
    buf_puts(&line, "cordon: ");
    plain_put(&line, text, strlen(text), "");
    buf_puts(&line, "\n");
    terminal_write(STDERR_FILENO, buf_text(&line), line.length, NULL);
}

int terminal_write(int fd, const void *bytes, size_t length, const volatile sig_atomic_t *give_up)
{
    const char *at = bytes;
    while (length) {
        ssize_t n = write(fd, at, length);
        if (n >= 0) {
            at += n;
            length -= (size_t)n;
            continue;
        }
        if (errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
        } else if (errno != EINTR)
            return -errno;
        if (give_up && *give_up)
            return -EINTR;
    }
    return 0;
}
