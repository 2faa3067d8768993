# threat: 1.4-see
# attack: list the processes of the host, their arguments and open files
# expect: status=ok
# control: pidns
# bare: secret
import os

pids = [os.environ["BAIT_PID"]] if "BARE" in os.environ else filter(str.isdigit, os.listdir("/proc"))
for pid in pids:
    for name in ("cmdline", "comm", "status"):
        try:
            with open(f"/proc/{pid}/{name}", errors="replace") as file:
                print(pid, file.read(4096).replace("\0", " ").split("\n")[0])
        except OSError:
            pass
    if int(pid) > 1000:
        print("PWNED: a process numbered", pid, "is visible")
if os.path.exists("/proc/" + os.environ["BAIT_PID"]):
    print("PWNED: the host's process", os.environ["BAIT_PID"], "is visible")
print("held")
