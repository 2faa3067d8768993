# threat: 1.8-processes
# attack: leave a process for the next run to find
# expect: status=ok
# stages: plant find
# control: pidns
# bare: pwned
import glob
import os
import subprocess
import sys

if sys.argv[1] == "plant":
    subprocess.Popen([os.environ["MARK"], "15"], executable="/bin/sleep", start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
else:
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if file.read().startswith(os.environ["MARK"].encode()):
                    print("PWNED: the earlier run's process is here:", path)
        except OSError:
            pass
print("held")
