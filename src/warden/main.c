/* The warden's own executable: started by the library with one socket and an empty environment. An ordinary user's
 * warden first becomes root of a user namespace of its own and executes itself again, so that its memory belongs to
 * that namespace and its children may be looked into. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warden/warden.h"

#define ROOTLESS_FLAG "--rootless"

/* Only returns when the process is not to be executed again. */
static void become_root_of_own_namespace(const char *self, bool late_group)
{
    char uid[16], gid[16], error[16] = "0";
    snprintf(uid, sizeof uid, "%u", geteuid());
    snprintf(gid, sizeof gid, "%u", getegid());
    char *args[] = {(char *)self, (char *)ROOTLESS_FLAG, uid, gid, error, late_group ? (char *)WARDEN_LATE_GROUP : NULL,
                    NULL};
    if (identity_enter_own_userns(geteuid(), getegid()) < 0)
        snprintf(error, sizeof error, "%d", errno);
    char *no_environment[] = {NULL};
    execve("/proc/self/exe", args, no_environment);
}

int main(int argc, char **argv)
{
    static struct warden warden = WARDEN_EMPTY;
    struct stat st;
    if (fstat(WARDEN_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        static const char text[] = "cordon-warden: started by libcordon, not by hand (see cordon(1))\n";
        (void)!write(2, text, sizeof text - 1);
        return 2;
    }
    warden.uid = geteuid();
    warden.gid = getegid();
    warden.late_group = argc >= 2 && !strcmp(argv[argc - 1], WARDEN_LATE_GROUP);
    if (argc >= 5 && !strcmp(argv[1], ROOTLESS_FLAG)) {
        warden.rootless = true;
        warden.uid = (uid_t)strtoul(argv[2], NULL, 10);
        warden.gid = (gid_t)strtoul(argv[3], NULL, 10);
        int error = (int)strtol(argv[4], NULL, 10);
        if (error) {
            warden.broken = (struct event_failed){
                .type = EVENT_FAILED, .control = CONTROL_USERNS, .step = STEP_CLONE, .error = error};
            snprintf(warden.broken.text, sizeof warden.broken.text, "create a user namespace");
        }
    } else if (!identity_may_administer())
        become_root_of_own_namespace(argv[0], warden.late_group);
    else
        warden.rootless = !identity_has_ids();
    /* A cell's init keeps the warden's command line, and programs can read that: it must tell nothing. */
    for (int i = 1; i < argc; i++)
        memset(argv[i], 0, strlen(argv[i]));
    return warden_serve(&warden);
}
