# threat: 1.1-environ
# attack: print the environment and command line of every process in /proc
# expect: status=ok
# control: pidns environment
# bare: secret
import os

pids = [os.environ["BAIT_PID"]] if "BARE" in os.environ else filter(str.isdigit, os.listdir("/proc"))
for pid in pids:
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                print(file.read(65536).replace(b"\0", b"\n").decode("latin-1"))
        except OSError:
            pass
print("held")
