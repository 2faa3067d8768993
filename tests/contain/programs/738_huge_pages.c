/* threat: 1.7-huge-pages
 * attack: take memory from the host's pool of huge pages by mmap, memfd_create and shmget, which no memory limit counts
 * expect: status=ok; denials~mmap(MAP_HUGETLB); huge-pages<1
 * control: seccomp
 * bare: pwned
 */
#include "attack.h"

#include <linux/memfd.h>
#include <sys/shm.h>

#define HUGE_1G (30U << 26)

static void map(unsigned size_flag)
{
    char *memory = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)size_flag, -1, 0);
    if (reached("mmap(MAP_HUGETLB)", memory == MAP_FAILED ? -1 : 0) && memory != MAP_FAILED)
        *memory = 1;
}

int main(void)
{
    map(0);
    map(HUGE_1G);
    reached("memfd_create(MFD_HUGETLB)", syscall(SYS_memfd_create, "huge", MFD_HUGETLB));
    int id = shmget(IPC_PRIVATE, 2 * MIB, IPC_CREAT | SHM_HUGETLB | 0600);
    reached("shmget(SHM_HUGETLB)", id);
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    return held();
}
