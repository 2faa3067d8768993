#!/usr/bin/python3
"""What syscall_table must print inside a cell, from tests/unit/cell/policy.golden.

expected.py calls                  the CALL arguments for a run outside: only what a cell allows, so that it is harmless
expected.py forms                  the CALL arguments for the refused and answered forms
expected.py check INSIDE OUTSIDE   compares two outputs; a line for each difference

Whether an allowed call exists is for the kernel to say, so a run outside tells what to expect of it.
"""
import errno
import os
import sys

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/cell/policy.golden")
# The kernel's own answer to a caller without capabilities, whatever it said outside.
MAY_BE_EPERM = {"setgroups", "setpriority", "ioprio_set", "mlock", "mlock2", "mlockall", "sched_setscheduler", "shmctl", "msgctl", "semctl"}
# uretprobe and uprobe of x86-64: kernels from 6.14 on let them past every filter. Outside a trampoline that the kernel
# itself has placed they do nothing but fail.
PAST_EVERY_FILTER = {335: ("38", "signal 4"), 336: ("38", "6")}


class Row:
    def __init__(self, line):
        nr, self.name, verdict, *arguments = line.split()
        self.nr = int(nr)
        self.verdict, _, answer = verdict.partition(":")
        self.errno = 0 if self.verdict == "done" else None if not answer or self.verdict == "tell" else 0 if answer == "OK" else getattr(errno, answer)
        self.call = nr + (":" + ",".join(arguments) if arguments else "")

    def reaches_kernel(self):
        return self.verdict in ("allow", "observe", "tell")


def rows():
    with open(GOLDEN) as golden:
        return [Row(line) for line in golden]


def read_output(path):
    with open(path) as lines:
        return dict(line.rstrip("\n").split(" ", 1) for line in lines)


def difference(row, inside, outside):
    """Why `inside` is not what the policy says, or None."""
    if inside in PAST_EVERY_FILTER.get(row.nr, ()):
        return None
    if not row.reaches_kernel():
        return None if inside == str(row.errno) else f"expected errno {row.errno}"
    if inside == str(errno.ENOSYS) and outside != inside:
        return "allowed, but does not exist inside"
    if inside == str(errno.EPERM) and outside != inside and row.name.partition("(")[0] not in MAY_BE_EPERM:
        return "allowed, but refused inside"
    if inside == "signal 31":
        return "allowed, but killed for it"
    return None


def check(inside, outside):
    """A line for each call of the golden table that is in `inside` and has the wrong outcome there."""
    found = []
    asked = [row for row in rows() if row.call in inside]
    missing = {row.call for row in rows() if ":" not in row.call} - set(inside)
    found += [f"{call}: not tried" for call in sorted(missing, key=int)]
    for row in asked:
        why = difference(row, inside[row.call], outside.get(row.call))
        if why:
            found.append(f"{row.call} {row.name}: {inside[row.call]}; {why}")
    return found


def main():
    if sys.argv[1:] == ["calls"]:
        print(*(row.call for row in rows() if row.reaches_kernel() and ":" not in row.call))
    elif sys.argv[1:] == ["forms"]:
        print(*(row.call for row in rows() if not row.reaches_kernel() and ":" in row.call))
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        found = check(read_output(sys.argv[2]), read_output(sys.argv[3]))
        print(*found, sep="\n", end="\n" if found else "")
        sys.exit(bool(found))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
