/* threat: 1.6-bpf
 * attack: create BPF maps and load a program
 * expect: status=ok; denials~bpf
 * control: seccomp
 * bare: pwned as root
 */
#include "attack.h"

#include <linux/bpf.h>

int main(void)
{
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
    if (syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map) >= 0)
        pwned("made a BPF map");
    struct bpf_insn body[] = {{.code = 0xb7}, {.code = 0x95}};
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insns = (uintptr_t)body, .insn_cnt = 2, .license = (uintptr_t) "MIT"};
    if (syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load) >= 0)
        pwned("loaded a BPF program");
    reached("bpf", syscall(SYS_bpf, 9999, &map, sizeof map));
    return held();
}
