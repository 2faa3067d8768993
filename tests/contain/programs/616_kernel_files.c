/* threat: 1.6-kernel-files
 * attack: read the kernel's memory image, symbols, log, timers, keys and firmware tables
 * expect: status=ok
 * control: proc_masks
 * bare: pwned
 */
#include "attack.h"

int main(void)
{
    const char *const files[] = {"/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/timer_list", "/proc/sched_debug",
                                 "/proc/keys", "/proc/key-users", "/proc/slabinfo", "/proc/pagetypeinfo", "/proc/latency_stats", "/proc/acpi", "/proc/scsi/scsi",
                                 "/proc/modules", "/proc/cmdline", "/proc/sysrq-trigger", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/mtrr",
                                 "/sys/kernel/vmcoreinfo", "/sys/kernel/notes", "/sys/firmware/dmi/tables/DMI", "/sys/kernel/debug/sched/debug",
                                 "/sys/kernel/tracing/available_events", "/sys/fs/bpf", "/boot/config"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (bare() && strcmp(files[i], "/proc/kallsyms") != 0)
            continue;
        char byte;
        int fd = open(files[i], O_RDONLY | O_NONBLOCK);
        if (fd >= 0 && read(fd, &byte, 1) == 1)
            pwned("%s can be read", files[i]);
        close(fd);
    }
    return held();
}
