"""The host's side of the judgement: planted secrets, bait that records a hit, and what may not change or stay behind.

Nothing here asks the hostile program. The test process makes itself a subreaper, so that whatever a run leaves alive
becomes its descendant, also when cordon and its warden are gone."""
import ctypes
import hashlib
import os
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
SYS_CAPSET, CLONE_NEWUSER = 126, 0x10000000
SYS_ADD_KEY, SYS_KEYCTL, SYS_LANDLOCK_CREATE_RULESET = 248, 250, 444
MARK = re.compile(r"mark[0-9a-f]{16}")
CELL_IDS = 65536
WATCHED_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", f"/run/user/{os.getuid()}")


def read_text(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def process_table():
    """pid -> (parent, state) of every process."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            line = read_text(f"/proc/{name}/stat")
            if line:
                fields = line[line.rindex(")") + 2:].split()
                table[int(name)] = (int(fields[1]), fields[0])
    return table


def descendants(root, table=None):
    table = table or process_table()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, queue = [], [root]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def cordon_cgroups():
    found = set()
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        found.update(os.path.join(top, name) for name in names if name.startswith("cordon-"))
        if top.count("/") > 8:
            names.clear()
    return found


def abandoned(path, first_pid):
    """True for an empty group whose warden, numbered in its name, was started after first_pid and is gone."""
    number = re.match(r"cordon-(\d+)", os.path.basename(path))
    if number:
        warden, last = int(number[1]), int(read_text("/proc/loadavg").split()[4])
        mine = first_pid <= warden <= last if first_pid <= last else warden >= first_pid or warden <= last
        if not mine or read_text(f"/proc/{warden}/comm").startswith("cordon"):
            return False
    return empty_cgroup(path)


def empty_cgroup(path):
    for top, _, _ in os.walk(path):
        if read_text(os.path.join(top, "cgroup.procs")).strip():
            return False
    return os.path.isdir(path)


def sysv_objects(mark_key=None):
    """Objects that belong to a cell's uid or carry the key of this run."""
    found = set()
    for kind in ("shm", "sem", "msg"):
        head, *lines = read_text(f"/proc/sysvipc/{kind}").splitlines()
        for line in lines:
            fields = dict(zip(head.split(), line.split()))
            if int(fields["uid"]) >= CELL_IDS or fields["key"] == mark_key:
                found.add((kind, line.split()[1]))
    return found


def remove_sysv(kind, identifier):
    arguments = (int(identifier), 0, 0) if kind == "sem" else (int(identifier), 0, None)
    LIBC[f"{kind}ctl"](*arguments)


def key_of(mark):
    return str(int(hashlib.sha256(mark.encode()).hexdigest()[:7], 16) + 1)


def listing(directory):
    """Entries that a cell or one of these programs could have left. Others work in these directories at the same time, so
    a name or an owner must point to a run; the cordon under test has its own TMPDIR, which is held to be empty."""
    found = set()
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return found
    for entry in entries:
        try:
            owner = entry.stat(follow_symlinks=False).st_uid
        except OSError:
            continue
        if owner >= CELL_IDS or MARK.search(entry.name) or entry.name.startswith(("cordon-cell", "cordon-run", "cordon-work")):
            found.add(entry.path)
    return found


def mounts():
    """Mounts in places where a cell's would be if they leaked; the rest of the machine may mount what it likes."""
    points = (line.split()[4] for line in read_text("/proc/self/mountinfo").splitlines())
    return {point for point in points if "cordon" in point or point.startswith(("/tmp", "/var/tmp", "/dev", "/proc", "/run/cordon", "/work/"))}


def memory_free():
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in read_text("/proc/meminfo").splitlines()}
    return values["MemAvailable"] + values["SwapFree"]


def open_to_peers(pid):
    """Can a process with the user namespace and ids of this one, but no capability, look into it? Asked by becoming one,
    which takes root."""
    if os.getuid() != 0:
        return False
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        status = dict(line.split(":\t", 1) for line in read_text(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        users = [line.split() for line in read_text(f"/proc/{pid}/uid_map").splitlines()]
        inside = next(int(first) for first, outer, _ in users if outer == status["Uid"].split()[1])
        if LIBC.setns(namespace, CLONE_NEWUSER):
            os._exit(2)
        os.setgroups([])
        os.setresgid(inside, inside, inside)
        os.setresuid(inside, inside, inside)
        LIBC.syscall(SYS_CAPSET, (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        os.readlink(f"/proc/{pid}/cwd")
        os._exit(0)
    except BaseException:
        os._exit(1)


def landlock_abi():
    return LIBC.syscall(SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1)


def session_keyrings():
    return {line.split()[0] for line in read_text("/proc/keys").splitlines() if " _ses" in line}


def thread_count():
    return int(read_text("/proc/loadavg").split()[3].split("/")[1])


class Host:
    def __init__(self):
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.directory = Path(tempfile.mkdtemp(prefix="cordon-secret-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.secrets = {name: f"SECRET-{name}-{secrets.token_hex(8)}" for name in ("WORLD", "PRIVATE", "ENV", "ARGV", "KEY", "FD")}
        self.plant("world.txt", self.secrets["WORLD"], 0o644)
        self.plant("private.txt", self.secrets["PRIVATE"], 0o600)
        self.plant("inherited.txt", self.secrets["FD"], 0o600)
        (self.directory / "shared").mkdir(mode=0o755)
        self.plant("shared/keep.txt", "keep me\n", 0o644)
        self.bait_name = f"bait-{secrets.token_hex(8)}"
        self.key_name = f"contain-{secrets.token_hex(8)}"
        self.open_bait()
        self.open_leaks()
        self.victim = None
        self.start_victim()
        self.plant_key()
        self.before = self.snapshot()

    def plant(self, name, text, mode):
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)

    def plant_key(self):
        """A key in a session keyring of our own, which children inherit."""
        LIBC.syscall(SYS_KEYCTL, 1, None)
        value = self.secrets["KEY"].encode()
        LIBC.syscall(SYS_ADD_KEY, b"user", self.key_name.encode(), value, ctypes.c_size_t(len(value)), -3)

    def open_bait(self):
        self.listeners = {}

        def listener(name, family, kind, address):
            bait = socket.socket(family, kind)
            bait.bind(address)
            bait.setblocking(False)
            if kind == socket.SOCK_STREAM:
                bait.listen(64)
            self.listeners[name] = bait
            return bait

        self.tcp4 = listener("tcp4", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)).getsockname()[1]
        try:
            self.tcp6 = listener("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)).getsockname()[1]
        except OSError:
            self.tcp6 = 1
        self.udp = listener("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)).getsockname()[1]
        listener("abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.bait_name)
        listener("path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.directory / "bait.sock"))
        (self.directory / "bait.sock").chmod(0o777)

    def take_hits(self):
        """Who came since the last call; the kernel completes a connection without our accept."""
        hits = []
        while True:
            ready = select.select(list(self.listeners.values()), [], [], 0)[0]
            if not ready:
                return hits
            for name, bait in self.listeners.items():
                if bait not in ready:
                    continue
                hits.append(name)
                if bait.type == socket.SOCK_DGRAM:
                    bait.recv(65536)
                else:
                    bait.accept()[0].close()

    def open_leaks(self):
        """Descriptors that a careless caller leaves open over the exec of cordon."""
        self.leaks = [os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY), os.open(self.directory / "inherited.txt", os.O_RDWR)]
        for fd in self.leaks:
            os.set_inheritable(fd, True)

    def start_victim(self):
        self.victim = subprocess.Popen([self.secrets["ARGV"], "3600"], executable="/bin/sleep", start_new_session=True,
                                       preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"CONTAIN_SECRET": self.secrets["ENV"]})

    def victim_trouble(self):
        if self.victim.poll() is not None:
            return f"the bait process was killed ({self.victim.returncode})"
        status = read_text(f"/proc/{self.victim.pid}/status")
        if "\nState:\tT" in status or "\nState:\tt" in status or "\nTracerPid:\t0\n" not in status:
            return "the bait process was stopped or traced"
        return None

    def environment(self, mark):
        """What a program is told: where the bait is, never what the secrets are."""
        port = socket.socket()
        for number in range(20000 + secrets.randbelow(8000), 32000):
            try:
                port.bind(("127.0.0.1", number))
                break
            except OSError:
                continue
        port.close()
        return {"BAIT_DIR": str(self.directory), "BAIT_PID": str(self.victim.pid), "BAIT_TCP4": str(self.tcp4), "BAIT_TCP6": str(self.tcp6),
                "BAIT_UDP": str(self.udp), "BAIT_UNIX": self.bait_name, "BAIT_KEY": self.key_name, "BAIT_HOST": os.uname().nodename, "MARK": mark,
                "MARK_KEY": key_of(mark), "LISTEN_PORT": str(number),
                "LISTEN_UNIX": f"listen-{mark}"}

    def secrets_in(self, data):
        return sorted(name for name, value in self.secrets.items() if value.encode() in data)

    def snapshot(self, mark_key=None):
        files = {}
        for path in sorted(self.directory.rglob("*")):
            info = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
            files[str(path)] = (info.st_mode, info.st_uid, info.st_nlink if stat.S_ISREG(info.st_mode) else 0, content)
        entries = set()
        for directory in WATCHED_DIRECTORIES:
            entries |= listing(directory)
        return {"files": files, "entries": entries, "cgroups": cordon_cgroups(), "sysv": sysv_objects(mark_key),
                "mounts": mounts(),
                "settings": {path: read_text(path) for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                                                                "/proc/sys/kernel/domainname", "/proc/sys/kernel/modprobe")}}

    def strangers(self):
        """Living processes that a run left to us; zombies among them are reaped and counted in `self.reaped`."""
        self.reaped = 0
        table = process_table()
        mine = [pid for pid in descendants(os.getpid(), table) if pid != self.victim.pid]
        alive = []
        for pid in mine:
            parent, state = table[pid]
            if state != "Z":
                alive.append(pid)
            elif parent == os.getpid():
                try:
                    self.reaped += os.waitpid(pid, os.WNOHANG)[0] != 0
                except ChildProcessError:
                    pass
        return alive

    def wait_alone(self, seconds):
        """Waits until no process of a run is left; returns (those still alive, how long it took)."""
        start = time.monotonic()
        while True:
            # A process that forks and leaves at once hides from a scan, but leaves its dead to us.
            left = self.strangers()
            lively = left or self.reaped
            passed = time.monotonic() - start
            if not lively or passed > seconds:
                return left or ["a relay"] * bool(lively), passed
            time.sleep(0.003)

    def kill_strangers(self):
        for _ in range(50):
            left = self.strangers()
            if not left and not self.reaped:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.01)

    def changes(self, mark, first_pid=1, patience=3.0):
        """What is different on the host since the last look. New entries get a moment to go away by themselves."""
        deadline = time.monotonic() + patience
        while True:
            now = self.snapshot(key_of(mark))
            new = {kind: now[kind] - self.before[kind] for kind in ("entries", "cgroups", "sysv", "mounts")}
            # A group with processes in it belongs to somebody else's run: ours were seen to be gone.
            waiting = new["entries"] or new["sysv"] or new["mounts"] or any(abandoned(path, first_pid) for path in new["cgroups"])
            if not waiting or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        found = []
        found += [f"left behind: {path}" for path in sorted(new["entries"])]
        found += [f"cgroup left behind: {path}" for path in sorted(new["cgroups"]) if abandoned(path, first_pid)]
        found += [f"SysV object left behind: {item}" for item in sorted(new["sysv"])]
        found += [f"mount left behind: {item}" for item in sorted(new["mounts"])]
        for path, value in now["settings"].items():
            if value != self.before["settings"][path]:
                found.append(f"{path} was changed to {value!r}")
        for path in sorted(set(now["files"]) | set(self.before["files"])):
            if now["files"].get(path) != self.before["files"].get(path):
                found.append(f"planted file changed: {path}")
        queue = LIBC.mq_open(f"/{mark}".encode(), 0)
        if queue >= 0:
            os.close(queue)
            found.append("POSIX message queue left behind")
        return found

    def restore(self, mark):
        """Puts the host back after an attack that got through."""
        self.kill_strangers()
        for name in (f"/{mark}", *(f"/{mark}-{number}" for number in range(300))):
            LIBC.mq_unlink(name.encode())
        for kind, identifier in sysv_objects(key_of(mark)):
            remove_sysv(kind, identifier)
        # Only what carries this run's mark is ours to remove: others work in these directories too.
        for directory in WATCHED_DIRECTORIES:
            for path in Path(directory).glob(f"*{mark}*"):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        for path, (mode, _, _, content) in self.before["files"].items():
            if stat.S_ISREG(mode):
                Path(path).write_bytes(content)
                os.chmod(path, stat.S_IMODE(mode))
        if self.victim_trouble():
            self.victim.kill()
            self.victim.wait()
            self.start_victim()
        self.take_hits()
        self.before = self.snapshot()

    def close(self):
        self.kill_strangers()
        self.victim.kill()
        self.victim.wait()
        for bait in self.listeners.values():
            bait.close()
        for fd in self.leaks:
            os.close(fd)
        shutil.rmtree(self.directory, ignore_errors=True)
