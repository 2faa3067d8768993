/* threat: 1.1-kuid-zero
 * attack: open root-owned kernel settings for writing, which a host uid of 0 may do without any capability
 * expect: status=ok
 * control: own_uid proc_masks
 * bare: pwned as root
 */
#include "attack.h"

int main(void)
{
    const char *const files[] = {
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
        "/proc/sys/kernel/sysrq", "/proc/sys/kernel/panic", "/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/drop_caches", "/proc/sys/fs/protected_symlinks", "/proc/sys/fs/suid_dumpable", "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ping_group_range", "/proc/irq/default_smp_affinity",
        "/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/module/kernel/parameters/panic"};
    for (size_t i = 0; i < (bare() ? 1 : sizeof files / sizeof *files); i++)
        if (open(files[i], O_WRONLY) >= 0)
            pwned("%s opened for writing", files[i]);
    return held();
}
