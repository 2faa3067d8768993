/* libFuzzer target: any bytes as a sealed plan. What is accepted is read in full, so that a sanitizer sees every
 * pointer that plan_map() vouched for. */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "plan/plan.h"
#include "plan/plan_layout.h"

static volatile size_t sink;

static void read_list(char **list)
{
    for (; *list; list++)
        sink += strlen(*list);
}

static void read_plan(const struct plan *plan)
{
    read_list(plan->argv);
    read_list(plan->envp);
    read_list(plan->candidates);
    read_list(plan->etc);
    for (size_t i = 0; i < plan->file_count; i++) {
        sink += strlen(plan->files[i].path);
        for (size_t j = 0; j < plan->files[i].length; j++)
            sink += (unsigned char)plan->files[i].content[j];
    }
    for (size_t i = 0; i < plan->mount_count; i++)
        sink += strlen(plan->mounts[i].destination);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    auto_close int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct plan plan;
    if (fd < 0 || fd_write_all(fd, bytes, length) != 0 || fcntl(fd, F_ADD_SEALS, PLAN_SEALS) != 0)
        return 0;
    if (plan_map(fd, &plan) == 0) {
        read_plan(&plan);
        plan_unmap(&plan);
    }
    return 0;
}
