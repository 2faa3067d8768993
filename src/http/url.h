/* What stands in a URL. */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include <stddef.h>

/* Resolves %XX in place; the new length. Those that would end, spoil or part a path stay as they are: such a path is
 * nobody's. */
size_t url_unescape(char *text);

#endif
