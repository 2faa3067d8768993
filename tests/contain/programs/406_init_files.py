# threat: 1.4-init-files
# attack: read init's environment and memory map, reopen its descriptors, walk its root
# expect: status=ok
# control: init_hidden environment
# bare: unsafe attacks process 1
import os

for name in ("environ", "maps", "auxv", "stack", "syscall", "io", "mountinfo", "wchan", "timers", "personality"):
    try:
        with open("/proc/1/" + name, "rb") as file:
            data = file.read(65536)
        print(data.replace(b"\0", b"\n").decode("latin-1"))
        if name in ("environ", "maps", "auxv", "stack", "syscall", "io") and data.strip(b"\0\n 0"):
            print("PWNED: /proc/1/" + name + " can be read")
    except OSError:
        pass
try:
    for fd in os.listdir("/proc/1/fd"):
        print("PWNED: /proc/1/fd shows", fd, os.readlink("/proc/1/fd/" + fd))
        for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            try:
                os.open("/proc/1/fd/" + fd, mode | os.O_NONBLOCK)
                print("PWNED: reopened descriptor", fd, "of init")
            except OSError:
                pass
except OSError:
    pass
for link in ("root", "cwd", "exe", "ns/user", "ns/net"):
    try:
        print("PWNED: /proc/1/" + link, "shows", os.readlink("/proc/1/" + link))
    except OSError:
        pass
try:
    with open("/proc/1/oom_score_adj", "w") as file:
        file.write("1000")
    print("PWNED: made init the first victim of the OOM killer")
except OSError:
    pass
print("held")
