# threat: 1.8-interpreter zygote-leftovers
# attack: change the interpreter for the next run, and look for handlers, threads and descriptors that a parent left
# expect: status=ok
# stages: plant find
# bare: no a plain interpreter is fresh as well
import atexit
import builtins
import os
import sys
import threading

if sys.argv[1] == "plant":
    builtins.print_left = os.environ["MARK"]
    sys.modules["left"] = os
    os.environ["LEFT"] = os.environ["MARK"]
    sys.path.insert(0, "/tmp")
    atexit.register(lambda: None)
    os.umask(0)
else:
    if hasattr(builtins, "print_left") or "left" in sys.modules or "LEFT" in os.environ or "/tmp" in sys.path:
        print("PWNED: the interpreter remembers the earlier run")
    if atexit._ncallbacks():
        print("PWNED: somebody else's exit handlers are registered")
    if threading.active_count() != 1 or len(os.listdir("/proc/self/task")) != 1:
        print("PWNED: somebody else's threads are here")
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if int(fd) > 2 and not target.startswith("/proc/") and not target.startswith("/work"):
            print("PWNED: descriptor", fd, "was inherited:", target)
    if os.umask(0o22) == 0:
        print("PWNED: the earlier run's umask is in force")
print("held")
