/* Owns what an address to listen on may look like and whom it lets in. Names other than localhost are refused: what
 * they resolve to may change, and with it who can reach the daemon. Called by the settings and by config_check(). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "service/config_settings.h"

#define EXPECTED "expected ADDRESS:PORT such as 127.0.0.1:7700 or [::1]:7700, or unix:/PATH"

static enum address_kind bad(const char **why, const char *text)
{
    *why = text;
    return ADDRESS_BAD;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits >= 1 && digits <= 5 && !text[digits] && strtoul(text, NULL, 10) <= 65535;
}

static enum address_kind unix_kind(const char *path, const char **why)
{
    if (!*path)
        return bad(why, "has no path; expected unix:/PATH");
    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return bad(why, "has a path of more than 107 bytes, which no Unix socket can have");
    return ADDRESS_UNIX;
}

static bool is_loopback6(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

enum address_kind address_kind(const char *listen, const char **why)
{
    if (!strncmp(listen, "unix:", 5))
        return unix_kind(listen + 5, why);
    const char *colon = strrchr(listen, ':');
    if (!colon || !is_port(colon + 1))
        return bad(why, "has no port; " EXPECTED);
    char host[64];
    size_t length = (size_t)(colon - listen);
    bool six = length > 2 && listen[0] == '[' && colon[-1] == ']';
    if (six)
        listen++, length -= 2;
    if (length >= sizeof host)
        return bad(why, "is no address; " EXPECTED);
    memcpy(host, listen, length);
    host[length] = '\0';

    struct in_addr four;
    struct in6_addr long_form;
    if (six && inet_pton(AF_INET6, host, &long_form) == 1)
        return is_loopback6(&long_form) ? ADDRESS_LOOPBACK : ADDRESS_OTHER;
    if (!six && inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127 ? ADDRESS_LOOPBACK : ADDRESS_OTHER;
    if (!six && !strcmp(host, "localhost"))
        return ADDRESS_LOOPBACK;
    return bad(why, "is no address; " EXPECTED);
}
