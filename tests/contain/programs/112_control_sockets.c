/* threat: 1.1-control-sockets
 * attack: connect to the sockets through which hosts are ruled
 * expect: status=ok
 * control: mountns
 * bare: bait
 */
#include "attack.h"

static void call(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int fd = socket(AF_UNIX, types[i] | SOCK_NONBLOCK, 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address)) {
            pwned("connected to %s", path);
            send(fd, "hit", 3, MSG_NOSIGNAL);
        }
        if (fd >= 0)
            close(fd);
    }
}

int main(void)
{
    const char *const sockets[] = {"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
                                   "/run/crio/crio.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify",
                                   "/run/systemd/journal/socket", "/dev/log", "/run/cordon.sock", "/run/cordon/cordon.sock",
                                   "/tmp/.X11-unix/X0", "/run/udev/control", "/run/snapd.socket", "/run/nscd/socket"};
    for (size_t i = 0; i < sizeof sockets / sizeof *sockets && !bare(); i++)
        call(sockets[i]);
    call(bait("bait.sock"));
    return held();
}
