# threat: 1.8-inotify
# attack: watch which programs the host and other runs open, through the inodes of the shared system files
# expect: status=ok; denials~inotify_add_watch
# control: seccomp
# bare: no a plain process may watch whatever it may read
import ctypes
import errno
import fcntl
import os

library = ctypes.CDLL(None, use_errno=True)
watcher = library.inotify_init()
for mask in (0x20, 0x01, 0x10, 0xFFF):
    if library.inotify_add_watch(watcher, b"/usr/bin", mask) >= 0 or ctypes.get_errno() != errno.EPERM:
        print("PWNED: /usr/bin can be watched with mask", hex(mask))
if library.inotify_add_watch(watcher, b"/work", 0x2) < 0:
    print("changes in /work cannot be watched")
directory = os.open("/usr/bin", os.O_RDONLY)
try:
    fcntl.fcntl(directory, fcntl.F_NOTIFY, fcntl.DN_ACCESS)
    print("PWNED: /usr/bin can be watched through fcntl")
except OSError:
    pass
print("held")
