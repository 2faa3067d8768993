#!/usr/bin/python3
"""golden.py [--check]: writes policy.golden, what the policy says of every call on x86-64, for people to review and for
test_policy.c and tests/live to hold the compiled filter against.

Deliberately shares nothing with tools/policygen: it reads the policy by itself, takes call numbers from the kernel's
header instead of libseccomp, and has its own values of the constants. With --check it only compares.

A row is `number name verdict [argument=value...]`, a call as a program would make it; arguments not given are zero.
"""
import os
import re
import socket
import sys
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
POLICY = os.path.join(HERE, "../../../policies/container.policy")
GOLDEN = os.path.join(HERE, "policy.golden")
HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")
LAST = 600
# Numbers of Linux 6.1: newer headers must not change the names of calls that the policy does not mention.
NAMED_SINCE_LONG = [*range(335), *range(424, 451)]
WORD, REGISTER = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF

CONSTANTS = {
    "NULL": 0, "S_IFMT": 0o170000, "S_ISUID": 0o4000, "S_ISGID": 0o2000, "O_CREAT": 0o100, "O_TMPFILE_BIT": 0o20000000, "S_IFCHR": 0o020000, "S_IFBLK": 0o060000,
    "PER_QUERY": WORD, "PER_LINUX": 0, "ADDR_NO_RANDOMIZE": 0x40000,
    "F_SETLEASE": 1024, "F_NOTIFY": 1026, "IN_ACCESS": 1, "IN_OPEN": 0x20, "IN_CLOSE_NOWRITE": 0x10, "INIT_PID": 1, "SO_ATTACH_FILTER": 26, "SO_ATTACH_BPF": 50, "SO_ATTACH_REUSEPORT_CBPF": 51, "SO_ATTACH_REUSEPORT_EBPF": 52, "SOL_SOCKET": 1, "SO_SNDBUF": 7, "SO_RCVBUF": 8, "SO_SNDBUFFORCE": 32, "SO_RCVBUFFORCE": 33, "SOCK_TYPE_MASK": 15, "SOCK_STREAM": 1, "SOCK_DGRAM": 2, "SOCK_RAW": 3, "SOCK_SEQPACKET": 5, "SOCK_DCCP": 6, "SOCK_PACKET": 10, "NETLINK_ROUTE": 0, "TCP_ULP": 31, "AF_XDP": 44, "AF_SMC": 43, "AF_NFC": 39,
    "CLONE_NEWUSER": 1 << 28, "CLONE_NEWNS": 1 << 17, "CLONE_NEWPID": 1 << 29, "CLONE_NEWNET": 1 << 30, "CLONE_NEWIPC": 1 << 27,
    "CLONE_NEWUTS": 1 << 26, "CLONE_NEWCGROUP": 1 << 25, "CLONE_PARENT": 1 << 15,
    "TCGETA": 0x5405, "TCSETA": 0x5406, "TCSETAW": 0x5407, "TCSETAF": 0x5408, "TCGETS": 0x5401, "TCSETS": 0x5402, "TCSETSW": 0x5403,
    "TCSETSF": 0x5404, "TCGETS2": 0x802C542A, "TCSETS2": 0x402C542B, "TCSETSW2": 0x402C542C, "TCSETSF2": 0x402C542D,
    "TIOCGSID": 0x5429, "TIOCGPTN": 0x80045430, "TIOCSPTLCK": 0x40045431, "TIOCGPTLCK": 0x80045439, "TIOCGPTPEER": 0x5441,
    "TIOCGPKT": 0x80045438, "TIOCGEXCL": 0x80045440, "TIOCSIG": 0x40045436, "TIOCSBRK": 0x5427, "TIOCCBRK": 0x5428, "FIOQSIZE": 0x5460,
    "FIOSETOWN": 0x8901, "SIOCSPGRP": 0x8902, "FIOGETOWN": 0x8903, "SIOCGPGRP": 0x8904, "SIOCATMARK": 0x8905, "SIOCGSTAMP_OLD": 0x8906,
    "SIOCGSTAMPNS_OLD": 0x8907, "SIOCGIFNAME": 0x8910, "SIOCGIFCONF": 0x8912, "SIOCGIFFLAGS": 0x8913, "SIOCGIFADDR": 0x8915,
    "SIOCGIFDSTADDR": 0x8917, "SIOCGIFBRDADDR": 0x8919, "SIOCGIFNETMASK": 0x891B, "SIOCGIFMETRIC": 0x891D, "SIOCGIFMTU": 0x8921,
    "SIOCGIFHWADDR": 0x8927, "SIOCGIFINDEX": 0x8933, "SIOCGIFTXQLEN": 0x8942,
    "FICLONE": 0x40049409, "FICLONERANGE": 0x4020940D, "FIGETBSZ": 2, "FS_IOC_GETFLAGS": 0x80086601, "FS_IOC_GETVERSION": 0x80087601,
    "FS_IOC_FIEMAP": 0xC020660B, "RNDGETENTCNT": 0x80045200,
    "MAP_HUGETLB": 0x40000, "MFD_HUGETLB": 4, "SHM_HUGETLB": 0o4000, "MADV_MERGEABLE": 12, "MS_SYNC": 4, "POSIX_FADV_DONTNEED": 4,
    "PR_SET_PDEATHSIG": 1, "PR_GET_PDEATHSIG": 2, "PR_GET_DUMPABLE": 3, "PR_SET_DUMPABLE": 4, "PR_GET_KEEPCAPS": 7, "PR_SET_KEEPCAPS": 8,
    "PR_SET_NAME": 15, "PR_GET_NAME": 16, "PR_GET_SECCOMP": 21, "PR_SET_SECCOMP": 22, "PR_CAPBSET_READ": 23, "PR_CAPBSET_DROP": 24,
    "PR_GET_TSC": 25, "PR_GET_SECUREBITS": 27, "PR_SET_TIMERSLACK": 29, "PR_GET_TIMERSLACK": 30, "PR_SET_MM": 35,
    "PR_SET_CHILD_SUBREAPER": 36, "PR_GET_CHILD_SUBREAPER": 37, "PR_SET_NO_NEW_PRIVS": 38, "PR_GET_NO_NEW_PRIVS": 39,
    "PR_GET_TID_ADDRESS": 40, "PR_SET_THP_DISABLE": 41, "PR_GET_THP_DISABLE": 42, "PR_CAP_AMBIENT": 47, "PR_SVE_SET_VL": 50,
    "PR_SVE_GET_VL": 51, "PR_GET_SPECULATION_CTRL": 52, "PR_SET_PTRACER": 0x59616D61,
}

# Calls that a careless filter lets through or misnames, beside one row for each form.
EXTRA = {
    "ioctl": [{1: 0x5412 | 1 << 32}, {1: 0x541C | 0xDEAD << 32}, {1: 0x5410}, {1: 0xAE80}, {1: 0x5421 | 1 << 32}],
    "clone": [{0: 17}, {0: 0x3D0F00}, {0: 0x4111}, {0: 0x10020011}, {0: 0x7C020011}, {0: 0x10000000 | 1 << 40}, {0: 1 << 40 | 17}],
    "socket": [{0: 2}, {0: 2, 1: 1}, {0: 2, 1: 0x80801}, {0: 2, 1: 5, 2: 132}, {0: 2, 1: 6, 2: 33}, {0: 2, 1: 3}, {0: 2, 1: 0x80803, 2: 255}, {0: 2, 1: 10}, {0: 2, 1: 1, 2: 132},
               {0: 2, 1: 1, 2: 262}, {0: 10, 1: 2, 2: 136}, {0: 10, 1: 3, 2: 58}, {0: 16, 1: 0x80003}, {0: 16, 1: 3, 2: 12},
               {0: 16, 1: 2, 2: 15}, {0: 17, 1: 3, 2: 0x300}, {0: 40 | 1 << 32, 1: 1}, {0: 1 | 1 << 32, 1: 1}, {0: 9, 1: 5}],
    "sendto": [{4: 1}, {4: 1 << 32}, {4: 0x7FFFFFFFF000}, {3: 1, 5: 16}],
    "setsockopt": [{1: 6, 2: 1}, {1: 1, 2: 31}, {1: 6, 2: 31}, {1: 0x11A, 2: 1}],
    "mknod": [{1: 0o010644}, {1: 0o140644}, {1: 0o100644}, {1: 0o020666}, {1: 0o060666}],
    "mknodat": [{2: 0o010644}, {2: 0o020666 | 1 << 32}],
    "prlimit64": [{0: 1}, {0: WORD}, {0: 0x100000000}],
    "personality": [{0: WORD}, {0: REGISTER}, {0: 8}, {0: 0x40008}, {0: 0x400000}],
    "prctl": [{0: 22 | 1 << 32}, {0: 9999}, {0: 67}, {0: 59}, {0: 28}],
    "mmap": [{2: 3, 3: 0x22}, {3: 0x40022}, {3: 0x78040022}, {3: 0x40022 | 1 << 32}],
    "memfd_create": [{1: 1}, {1: 7}],
    "shmget": [{1: 4096, 2: 0o1600}, {1: 4096, 2: 0o5600}],
    "msync": [{2: 1}, {2: 2}, {2: 6}],
    "socketpair": [{0: 1, 1: 1}, {0: 2, 1: 1}, {0: 30, 1: 1}],
}


def constant(text):
    name, _, number = text.partition("=")
    if number or name[0].isdigit():
        return int(number or name, 0)
    for source in (CONSTANTS, vars(socket), vars(termios)):
        if name in source:
            return int(source[name]) & WORD
    raise SystemExit(f"golden.py: no value for {name}")


class Rule:
    """One line's verdict on one call, with the form it is for: a list of (argument, [(mask, value, label)])."""

    def __init__(self, verdict, form, name):
        self.verdict, self.name, self.tests = verdict, name, []
        for argument, mark, values in re.findall(r"\[(\d)\]([=&])([^\[]+)", form):
            mask = WORD
            if mark == "&" and "=" in values:
                mask, values = values.split("=", 1)
                mask = constant(mask)
            choices = []
            for value in values.split(","):
                number = constant(value)
                own = number if mark == "&" and mask == WORD else REGISTER if value == "NULL" else mask
                choices.append((own, number, value.partition("=")[0]))
            self.tests.append((int(argument), choices))

    def fits(self, arguments):
        """The labels that fit, or None."""
        labels = []
        for argument, choices in self.tests:
            found = [label for mask, value, label in choices if arguments.get(argument, 0) & mask == value]
            if not found:
                return None
            labels.append(found[0])
        return labels


def numbers():
    path = next((path for path in HEADERS if os.path.exists(path)), None)
    if not path:
        print("golden.py: needs the system call numbers of x86-64 (linux-libc-dev)", file=sys.stderr)
        sys.exit(77)
    with open(path) as header:
        return {name: int(nr) for name, nr in re.findall(r"#define __NR_(\w+) (\d+)", header.read())}


def read_policy(known):
    calls = {}
    with open(POLICY) as lines:
        for line in lines:
            head, _, _ = line.strip().partition(' : "')
            head, _, shown = head.partition(' as "')
            words = head.split()
            if not words or words[0] not in ("allow", "answer", "refuse", "observe", "tell", "done"):
                continue
            verdict = words.pop(0)
            if verdict in ("answer", "refuse", "tell"):
                verdict += ":" + words.pop(0)
            for word in words:
                name, bracket, form = word.partition("[")
                name, _, number = name.partition("=")
                nr = int(number) if number else known.get(name)
                if nr is not None:
                    calls.setdefault(nr, (name, []))[1].append(Rule(verdict, bracket + form, shown.rstrip('"')))
    return calls


def decide(name, rules, arguments):
    for rule in rules:
        labels = rule.fits(arguments)
        if labels is not None:
            return rule.name or (f"{name}({','.join(labels)})" if labels else name), rule.verdict
    raise SystemExit(f"golden.py: no rule for {name} {arguments}")


def samples(name, rules):
    """Every value of every form and what is beside it, the call that fits no form, and the extras."""
    yield {}
    for rule in rules:
        combinations = [{}]
        for argument, choices in rule.tests:
            combinations = [{**made, argument: value} for made in combinations for _, value, _ in choices]
        yield from (made for made in combinations if made)
        for argument, choices in rule.tests[:1]:
            for _, value, _ in choices:
                yield from ({argument: (value + step) & WORD} for step in (-1, 1))
    yield from EXTRA.get(name, [])


def table():
    known = numbers()
    names = {nr: name for name, nr in known.items() if nr in NAMED_SINCE_LONG}
    calls = read_policy(known)
    for nr in range(LAST + 1):
        name, rules = calls.get(nr, (names.get(nr, "-"), [Rule("answer:ENOSYS", "", "")]))
        done = []
        for arguments in samples(name, rules):
            arguments = {key: value for key, value in arguments.items() if value}
            if arguments in done:
                continue
            done.append(arguments)
            shown, verdict = decide(name, rules, arguments)
            yield " ".join([str(nr), shown, verdict] + [f"{key}={value:#x}" for key, value in sorted(arguments.items())])


def main():
    text = "\n".join(table()) + "\n"
    if "--check" in sys.argv[1:]:
        with open(GOLDEN) as golden:
            if golden.read() != text:
                raise SystemExit("policy.golden does not say what container.policy says; run tests/unit/cell/golden.py and review the difference")
        return
    with open(GOLDEN, "w") as golden:
        golden.write(text)


if __name__ == "__main__":
    main()
