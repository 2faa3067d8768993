# threat: 1.8-memory
# attack: search the whole memory of the process, as inherited, for the caller's secrets
# expect: status=ok
# control: environment
# bare: secret
import re

wanted = re.compile(("SECR" + "ET-[A-Z]+-[0-9a-f]{16}").encode())
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        span, modes = line.split()[:2]
        if "r" not in modes or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        try:
            memory.seek(start)
            for found in wanted.findall(memory.read(end - start)):
                print("found", found.decode())
        except (OSError, ValueError, OverflowError):
            pass
print("held")
