/* threat: 1.1-secrets
 * attack: open planted secrets and the places where hosts keep theirs
 * expect: status=ok
 * control: mountns
 * bare: secret
 */
#include "attack.h"

static const char *const places[] = {
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root/.ssh/id_rsa", "/root/.ssh/authorized_keys",
    "/root/.aws/credentials", "/root/.config/gcloud/credentials.db", "/root/.kube/config", "/root/.bash_history",
    "/root/.netrc", "/var/lib/cloud/instance/user-data.txt", "/etc/ssh/ssh_host_ed25519_key",
    "/var/run/secrets/kubernetes.io/serviceaccount/token", "/etc/ssl/private/ssl-cert-snakeoil.key",
};
static const char *const directories[] = {"/root", "/home", "/var/tmp", "/var/lib", "/srv", "/mnt", "/media", "/boot"};

int main(void)
{
    spill(bait("world.txt"));
    spill(bait("private.txt"));
    if (bare())
        return held();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (spill(places[i]))
            pwned("read %s", places[i]);
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        DIR *directory = opendir(directories[i]);
        for (struct dirent *entry; directory && (entry = readdir(directory));)
            if (entry->d_name[0] != '.')
                pwned("saw %s/%s", directories[i], entry->d_name);
        if (directory)
            closedir(directory);
    }
    return held();
}
