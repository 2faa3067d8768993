/* threat: 1.9-binary
 * attack: break the result's JSON with every byte value, torn UTF-8, surrogates and NULs
 * expect: status=ok
 */
#include "attack.h"

int main(void)
{
    for (int fd = 1; fd < 3; fd++) {
        for (int i = 0; i < 256; i++) {
            char bytes[] = {(char)i, (char)(255 - i), '"', '\\', (char)i};
            if (write(fd, bytes, sizeof bytes) < 0)
                return 1;
        }
        const char odd[] = "\xed\xa0\x80\xed\xbf\xbf\xc0\x80\xf8\x88\x80\x80\x80\xf4\x90\x80\x80\xef\xbf\xbe\xe2\x80\xa8\xe2\x82\n\0\x1b[2J\x1b]0;x\a";
        if (write(fd, odd, sizeof odd) < 0)
            return 1;
    }
    say("\nheld\n");
    return write(1, "\xf0\x9f", 2) == 2 ? 0 : 1;
}
