"""What the whole host has used, for work that the kernel does outside a cell's group: each number only grows."""
import os
import re
from pathlib import Path

SECTOR = 512
KTHREADD = "2"
TICKS = os.sysconf("SC_CLK_TCK")


def read_text(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def disk_numbers():
    """Fields of /sys/block/*/stat of real disks; Documentation/block/stat.rst names them."""
    for device in Path("/sys/block").iterdir():
        if not device.name.startswith(("loop", "ram", "zram", "dm-", "md")):
            yield [int(field) for field in read_text(device / "stat").split()]


def flushes():
    return sum(numbers[15] for numbers in disk_numbers() if len(numbers) > 15)


def disk_bytes():
    return sum((numbers[2] + numbers[6]) * SECTOR for numbers in disk_numbers())


def kernel_threads():
    """Processor time of each kernel thread, in seconds."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        _, _, rest = read_text(f"/proc/{entry}/stat").rpartition(") ")
        fields = rest.split()
        if fields and (entry == KTHREADD or fields[1] == KTHREADD):
            found[entry] = (int(fields[11]) + int(fields[12])) / TICKS
    return found


def kernel_seconds(before, after):
    """Threads come and go: one that is new has all its time from in between."""
    return sum(max(0, seconds - before.get(pid, 0)) for pid, seconds in after.items())


def huge_pages():
    found = dict(re.findall(r"(\w+):\s+(\d+)", read_text("/proc/meminfo")))
    return int(found.get("HugePages_Total", 0)) - int(found.get("HugePages_Free", 0)) + int(found.get("HugePages_Rsvd", 0))


class Totals:
    """From its making to stop()."""

    def __init__(self):
        self.flushes, self.disk_bytes, self.threads, self.huge, self.huge_peak = flushes(), disk_bytes(), kernel_threads(), huge_pages(), 0

    def sample(self):
        self.huge_peak = max(self.huge_peak, huge_pages() - self.huge)

    def stop(self):
        self.sample()
        self.flushes = flushes() - self.flushes
        self.disk_bytes = disk_bytes() - self.disk_bytes
        self.kernel_seconds = kernel_seconds(self.threads, kernel_threads())
