/* threat: 1.6-sweep 1.7-fanotify
 * attack: call the dangerous system calls one after the other with arguments that can do no harm and count those that answer
 * expect: status=ok|denied
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#define BAD ((long)-4096)

static const struct {
    const char *name;
    long number;
    long arguments[5];
} calls[] = {
    {"init_module", SYS_init_module, {BAD, 1, BAD}},
    {"finit_module", SYS_finit_module, {-1, BAD, 0}},
    {"delete_module", SYS_delete_module, {BAD, 0}},
    {"kexec_load", SYS_kexec_load, {0, 99, BAD, -1}},
    {"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, 0, 0xffff}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"swapon", SYS_swapon, {BAD, -1}},
    {"swapoff", SYS_swapoff, {BAD}},
    {"iopl", SYS_iopl, {99}},
    {"ioperm", SYS_ioperm, {-1, 1, 1}},
    {"syslog", SYS_syslog, {3, 0, 0}},
    {"acct", SYS_acct, {BAD}},
    {"settimeofday", SYS_settimeofday, {BAD, 0}},
    {"clock_settime", SYS_clock_settime, {0, BAD}},
    {"sethostname", SYS_sethostname, {BAD, 3}},
    {"setdomainname", SYS_setdomainname, {BAD, 3}},
    {"quotactl", SYS_quotactl, {-1, BAD, 0, 0}},
    {"mount", SYS_mount, {BAD, BAD, BAD, 0, 0}},
    {"umount2", SYS_umount2, {BAD, 0}},
    {"pivot_root", SYS_pivot_root, {BAD, BAD}},
    {"chroot", SYS_chroot, {BAD}},
    {"setns", SYS_setns, {-1, 0}},
    {"unshare", SYS_unshare, {0x10000000}},
    {"ptrace", SYS_ptrace, {0x4206, 0, 0, 0}},
    {"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0}},
    {"process_vm_writev", SYS_process_vm_writev, {1, 0, 0, 0, 0}},
    {"kcmp", SYS_kcmp, {1, 1, 99, 0, 0}},
    {"pidfd_getfd", SYS_pidfd_getfd, {-1, 0, 0}},
    {"bpf", SYS_bpf, {9999, 0, 0}},
    {"perf_event_open", SYS_perf_event_open, {BAD, 0, -1, -1, 0}},
    {"userfaultfd", SYS_userfaultfd, {0xffff}},
    {"io_uring_setup", SYS_io_uring_setup, {0, BAD}},
    {"io_setup", SYS_io_setup, {-1, BAD}},
    {"keyctl", SYS_keyctl, {9999, 0, 0}},
    {"add_key", SYS_add_key, {BAD, BAD, 0, 0, 0}},
    {"request_key", SYS_request_key, {BAD, BAD, 0, 0}},
    {"modify_ldt", SYS_modify_ldt, {0, BAD, 0}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, BAD, 0}},
    {"fanotify_init", SYS_fanotify_init, {0xffff0, 0}},
    {"fsopen", 430, {BAD, 0}},
    {"fspick", 433, {-1, BAD, 0}},
    {"open_tree", 428, {-1, BAD, 1}},
    {"move_mount", 429, {-1, BAD, -1, BAD, 0}},
    {"mount_setattr", 442, {-1, BAD, 0, BAD, 32}},
    {"lookup_dcookie", SYS_lookup_dcookie, {0, BAD, 0}},
    {"move_pages", SYS_move_pages, {1, 0, 0, 0, 0}},
};

int main(void)
{
    int answered = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const long *a = calls[i].arguments;
        pid_t child = fork();
        if (!child) {
            errno = 0;
            long answer = syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4]);
            _exit(answer == -1 ? errno : 0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        int error = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
        if (error != EPERM && error != EACCES && error != ENOSYS) {
            pwned("%s answered: %s", calls[i].name, error ? strerror(error) : "success");
            answered++;
        }
    }
    say("%d of %zu answered\n", answered, sizeof calls / sizeof *calls);
    return held();
}
