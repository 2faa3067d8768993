/* threat: 1.5-outside 1.6-listener
 * attack: stand still while the host looks at the process: ids, capabilities, filter, namespaces, mounts, descriptors
 * expect: status=ok
 * control: no_new_privs capabilities userns pidns mountns netns ipcns utsns cgroupns own_uid readonly seccomp close_fds environment keyring init_hidden
 * probe: inspect
 * bare: no a plain process has nothing to inspect
 */
#include "attack.h"

int main(void)
{
    nap_ms(700);
    return held();
}
