"""The programs of test_warm.py: what they plant and how they look for it. Marks look like MARK and 60 hexadecimal digits, and a
program that looks for them never holds one itself."""
import shutil

import pytest

CELL_PATH = "/usr/local/bin:/usr/bin:/bin"
TOOLS = {"python": "python3", "javascript": "node", "r": "Rscript", "lua": "lua5.4", "typescript": "tsc"}

SET_UP = {"python", "javascript", "ruby", "bash", "go", "c"}  # what `make` installs; others are tried where they are


class NotSetUp(pytest.skip.Exception):
    """A skip for want of a language that nobody promised."""


def installed(language):
    return shutil.which(TOOLS.get(language, language), path=CELL_PATH)


# What an interpreter seeds from nothing but the microsecond and its process id, when a program first asks: every program is
# process 2, so two that ask in the same microsecond have the same numbers. A state shared by cells would repeat in most of them.
CLOCK_SEEDED = {"lcg"}

# Each line: where the number comes from, the number.
RANDOM = {
    "python": """
import os, random, secrets, ssl, tempfile, uuid
print("random", random.random())
print("bits", random.getrandbits(64))
print("own", random.Random().random())
print("system", random.SystemRandom().random())
print("secrets", secrets.token_hex(8))
print("urandom", os.urandom(8).hex())
print("ssl", ssl.RAND_bytes(8).hex())
print("uuid1", uuid.uuid1())
print("uuid4", uuid.uuid4())
print("mktemp", tempfile.mktemp())
print("mkdtemp", tempfile.mkdtemp())
try:
    import numpy.random
    print("numpy", numpy.random.random())
    print("default_rng", numpy.random.default_rng().random())
except ImportError:
    print("numpy", secrets.token_hex(8))
    print("default_rng", secrets.token_hex(8))
""",
    "javascript": """
const crypto = require('crypto'), fs = require('fs');
console.log('math', Math.random());
console.log('uuid', crypto.randomUUID());
console.log('bytes', crypto.randomBytes(8).toString('hex'));
console.log('values', Buffer.from(crypto.webcrypto.getRandomValues(new Uint8Array(8))).toString('hex'));
console.log('int', crypto.randomInt(2 ** 47));
console.log('mkdtemp', fs.mkdtempSync('/tmp/d'));
""",
    "ruby": """
require 'securerandom'
require 'tmpdir'
puts "rand #{rand}"
puts "random #{Random.rand}"
puts "seed #{Random.new_seed}"
puts "default #{Random.seed}"
puts "secure #{SecureRandom.hex(8)}"
puts "uuid #{SecureRandom.uuid}"
puts "shuffle #{(1..60).to_a.shuffle.join}"
""",
    "perl": 'print "rand ", rand(), "\\n"; print "pair ", rand() . rand(), "\\n"; ',
    "php": '<?php echo "mt ", mt_rand(), mt_rand(), "\\nrand ", rand(), rand(), "\\nint ", random_int(0, PHP_INT_MAX), '
           '"\\nbytes ", bin2hex(random_bytes(8)), "\\nlcg ", lcg_value(), lcg_value(), "\\n";',
    "lua": 'print("one " .. math.random(0)) print("two " .. math.random(1 << 60))',
    "bash": "echo random $RANDOM-$RANDOM-$RANDOM-$RANDOM-$RANDOM\necho srandom $SRANDOM-$SRANDOM\necho mktemp $(mktemp -u)",
    "r": 'cat("runif", runif(2), "\\n"); cat("sample", paste(sample(1:60), collapse = ""), "\\n")',
}

PLANT = {
    "python": """
import ctypes, os, sys
mark = "@MARK@"
kept = sys.stdin.read(), os.environ["LEFT"], sys.argv[1:], [mark + str(n) for n in range(1000)]
for place in ("/work", "/tmp", "/dev/shm"):
    for number in range(20):
        with open(f"{place}/{mark}-{number}", "w") as file:
            file.write(mark)
os.environ["LATER"] = mark
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for key in range(1, 5):
    memory = libc.shmget(key, 65536, 0o1666)
    ctypes.memmove(libc.shmat(memory, None, 0), mark.encode(), 64)
    libc.msgget(key, 0o1666), libc.semget(key, 1, 0o1666)
libc.prctl(15, mark[:15].encode(), 0, 0, 0)
print("planted")
""",
    "javascript": """
const fs = require('fs'), mark = '@MARK@';
global.kept = [fs.readFileSync(0, 'utf8'), process.env.LEFT, process.argv, Array.from({length: 1000}, (_, n) => mark + n)];
for (const place of ['/work', '/tmp', '/dev/shm']) fs.writeFileSync(`${place}/${mark}`, mark);
process.title = mark;
console.log('planted');
""",
    "ruby": """
mark = '@MARK@'
$kept = [STDIN.read, ENV['LEFT'], ARGV.dup, (1..1000).map { |n| mark + n.to_s }]
['/work', '/tmp', '/dev/shm'].each { |place| File.write("#{place}/#{mark}", mark) }
$0 = mark
puts 'planted'
""",
}

# Every readable byte of the own memory. What was read must not be found again in the memory that follows.
MEMORY = {
    "python": r"""
import re, sys
pattern = re.compile(rb"MAR[K][0-9a-f]{60}")
def look():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            span, modes = line.split()[:2]
            if "r" not in modes or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            while start < end:
                try:
                    memory.seek(start)
                    for found in pattern.findall(memory.read(min(end - start, 1 << 24))):
                        print(line, found.decode())
                except (OSError, ValueError, OverflowError):
                    break
                start += (1 << 24) - 64
look()
print("looked")
""",
    "javascript": r"""
const fs = require('fs'), memory = fs.openSync('/proc/self/mem'), chunk = Buffer.alloc(1 << 22);
for (const line of fs.readFileSync('/proc/self/maps', 'utf8').split('\n')) {
  const [span, modes] = line.split(' ');
  if (!modes || !modes.includes('r') || line.includes('[v')) continue;
  const [start, end] = span.split('-').map((part) => BigInt('0x' + part));
  for (let at = start; at < end; at += (1n << 22n) - 64n) {
    let length;
    try { length = fs.readSync(memory, chunk, 0, Number(end - at < 1n << 22n ? end - at : 1n << 22n), at); } catch { break; }
    const found = /MAR[K][0-9a-f]{60}/.exec(chunk.latin1Slice(0, length));
    if (found) console.log(line, found[0]);
  }
}
console.log('looked');
""",
    "ruby": r"""
memory = File.open('/proc/self/mem', 'rb')
File.readlines('/proc/self/maps').each do |line|
  span, modes = line.split
  next if !modes.include?('r') || line.include?('[v')
  start, finish = span.split('-').map { |part| part.to_i(16) }
  while start < finish
    begin
      text = memory.pread([finish - start, 1 << 24].min, start)
    rescue SystemCallError, RangeError, EOFError
      break
    end
    found = /MAR[K][0-9a-f]{60}/n.match(text)
    puts line, found[0] if found
    start += (1 << 24) - 64
  end
end
puts 'looked'
""",
}

# Everything else that can be read: files, processes, shared memory; and what may not be there at all.
LOOK = MEMORY["python"] + r"""
import os
def show(path):
    try:
        with open(path, "rb") as file:
            content = file.read(1 << 20)
    except OSError:
        return
    for found in pattern.findall(path.encode() + b" " + content):
        print(path, found.decode())
for top in ("/work", "/tmp", "/dev", "/run", "/var", "/etc", "/home", "/root", "/mnt", "/srv"):
    for folder, _, names in os.walk(top):
        for name in names:
            if not folder.startswith("/dev/pts") and os.path.isfile(os.path.join(folder, name)):
                show(os.path.join(folder, name))
pids = [name for name in os.listdir("/proc") if name.isdigit()]
assert len(pids) == 2 and set(pids) == {"1", str(os.getpid())}, pids
for pid in (*pids, "self/task/" + str(os.getpid())):
    for name in os.listdir(f"/proc/{pid}"):
        if name not in ("mem", "pagemap", "clear_refs", "kmsg"):
            show(f"/proc/{pid}/{name}")
for name in os.listdir("/proc/self/net"):
    show(f"/proc/self/net/{name}")
for kind in ("shm", "msg", "sem"):
    with open(f"/proc/sysvipc/{kind}") as table:
        assert len(table.readlines()) == 1, kind
for place in ("/tmp", "/dev/shm"):
    assert not os.listdir(place), (place, os.listdir(place))
assert os.listdir("/work") == ["main.py"], os.listdir("/work")
"""

# A number that no two networks ever share; the inode of a namespace is given again.
COOKIE = """
import socket, struct
with socket.socket() as probe:
    print(struct.unpack("Q", probe.getsockopt(socket.SOL_SOCKET, 71, 8))[0])
"""

BACKGROUND = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
"""

PLANT_NETWORK = {
    "a port in TIME_WAIT": """
server, caller = socket.create_server(("127.0.0.1", 4444)), socket.create_connection(("127.0.0.1", 4444))
peer = server.accept()[0]
peer.shutdown(socket.SHUT_RDWR)
peer.close()
caller.close()
print("planted")
""",
    "a listener in a daemon": """
server = socket.create_server(("127.0.0.1", 4444))
six = socket.create_server(("::1", 4444), family=socket.AF_INET6)
waiting = socket.create_connection(("127.0.0.1", 4444))
""" + BACKGROUND + 'print("planted")',
    "datagrams": """
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 4444))
caller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
caller.sendto(b"x" * 1000, ("127.0.0.1", 4444))
print("planted")
""",
    "unread data": """
server, caller = socket.create_server(("127.0.0.1", 4444)), socket.create_connection(("127.0.0.1", 4444))
caller.sendall(b"x" * 10000)
print("planted")
""",
}

IPC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(os.readlink("/proc/self/ns/ipc"))
def tables():
    return [open(f"/proc/sysvipc/{kind}").read().splitlines()[1:] for kind in ("shm", "sem", "msg")]
"""

# Each makes an object by a key of its own, as the last thing or from a child that outlives the program.
PLANT_IPC = {
    "shared memory": IPC + 'print("planted" if libc.shmget(4444, 4096, 0o1666) >= 0 else "failed")',
    "a semaphore": IPC + 'print("planted" if libc.semget(4444, 1, 0o1666) >= 0 else "failed")',
    "a message queue": IPC + 'print("planted" if libc.msgget(4444, 0o1666) >= 0 else "failed")',
    "shared memory of a daemon": IPC + """
import time
print("planted", flush=True)
if os.fork() == 0:
    os.setsid()
    libc.shmget(4444, 4096, 0o1666)
    time.sleep(60)
time.sleep(0.05)
""",
}

IPC_LEFT = IPC + """
found = [libc.shmget(4444, 4096, 0), libc.semget(4444, 1, 0), libc.msgget(4444, 0)]
print("clean" if found == [-1, -1, -1] and not any(tables()) else f"found {found} {tables()}")
"""
IPC_UNUSED = IPC + 'print("clean" if not any(tables()) else tables())'

# An abstract listener that nothing but messages on their way to themselves holds.
PLANT_HIDDEN = """
import array, socket
def hide(name):
    hidden, (left, right) = socket.socket(socket.AF_UNIX), socket.socketpair(socket.AF_UNIX)
    hidden.bind("\\0" + name)
    hidden.listen()
    for near in (left, right):
        near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [hidden.fileno(), left.fileno(), right.fileno()]))])
for number in range(50):
    hide(f"hidden-{number}")
print("planted")
"""

USED_BEFORE = """
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET6, socket.SOCK_STREAM)):
    with socket.socket(family, kind) as server:
        server.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 4444))
for number in range(50):
    with socket.socket(socket.AF_UNIX) as caller:
        assert caller.connect_ex(f"\\0hidden-{number}") != 0, "the hidden listener answers"
for name in ("tcp", "tcp6", "udp", "udp6", "raw", "unix", "packet", "netlink"):
    try:
        with open(f"/proc/self/net/{name}") as table:
            lines = table.readlines()
    except FileNotFoundError:
        continue
    assert len(lines) <= 1 or name == "netlink", lines
print("clean")
"""

# What leaves nothing but counters.
REFUSED = """
import socket
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(family, kind) as caller:
            try:
                caller.connect((address, 9))
                caller.send(b"x")
            except OSError:
                pass
        with socket.socket(family, kind) as server:
            server.bind(("", 4444))
"""

# Without what the kernel counts for the whole machine.
NETWORK_FILES = r"""
import os, re
for name in sorted(os.listdir("/proc/self/net")):
    if os.path.isfile(f"/proc/self/net/{name}") and name not in ("protocols", "ptype", "netlink", "softnet_stat"):
        try:
            with open(f"/proc/self/net/{name}") as file:
                print(name, re.sub(r"(alloc|mem) \d+", "", file.read()))
        except OSError:
            pass
"""

IDENTITY = """
import os, time
begin = time.monotonic()
with open("/proc/self/uid_map") as file:
    outer = "/".join(line.split()[1] for line in file)
time.sleep(0.05)
print(begin, time.monotonic(), os.readlink("/proc/self/ns/user"), outer)
"""

# What each open descriptor is, but for the one that lists them.
DESCRIPTORS = {
    "python": """
import os, re
for fd in os.listdir("/proc/self/fd"):
    try:
        print(re.sub(r":.*", "", os.readlink("/proc/self/fd/" + fd)))
    except FileNotFoundError:
        pass
""",
    "javascript": """
const fs = require('fs');
for (const fd of fs.readdirSync('/proc/self/fd'))
  try { console.log(fs.readlinkSync('/proc/self/fd/' + fd).replace(/:(?!\\[event).*/, '')); } catch { }
""",
    "ruby": """
Dir.children('/proc/self/fd').each { |fd| puts File.readlink("/proc/self/fd/#{fd}").sub(/:(?!\\[event).*/, '') rescue nil }
""",
    "perl": """
opendir(my $list, "/proc/self/fd"); my @names = readdir($list); closedir($list);
for (@names) { my $kind = readlink("/proc/self/fd/$_") or next; $kind =~ s/:.*//; print "$kind\\n"; }
""",
    "php": '<?php foreach (scandir("/proc/self/fd") as $fd) if (($kind = @readlink("/proc/self/fd/$fd")) !== false) echo preg_replace("/:.*/", "", $kind), "\\n";',
    "bash": 'for fd in /proc/$$/fd/*; do kind=$(readlink $fd) && echo "${kind%%:*}"; done',
}

ATTACK_BESIDE = r"""
import ctypes, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, action):
    try:
        if action():
            print("PWNED", name)
    except OSError:
        pass
others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
if others != [1] or os.getppid() != 0:
    print("PWNED sees", others, os.getppid())
for pid in (*others, os.getppid()):
    for name in ("mem", "environ", "maps", "auxv", "syscall", "stack", "pagemap"):
        attempt(f"reads {name} of {pid}", lambda: open(f"/proc/{pid}/{name}", "rb").read(1) is not None)
    attempt(f"opens descriptors of {pid}", lambda: [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")])
    attempt(f"enters the root of {pid}", lambda: os.listdir(f"/proc/{pid}/root") is not None)
    for name in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        def enter():
            with open(f"/proc/{pid}/ns/{name}") as namespace:
                return libc.setns(namespace.fileno(), 0) == 0
        attempt(f"enters {name} of {pid}", enter)
    for request in (16, 0x4206):
        attempt(f"traces {pid}", lambda: libc.ptrace(request, pid, None, None) == 0)
    attempt(f"opens {pid}", lambda: pid and libc.syscall(438, libc.syscall(434, pid, 0), 0, 0) >= 0)
    buffer = ctypes.create_string_buffer(8)
    attempt(f"reads memory of {pid}", lambda: pid and libc.syscall(310, pid, (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8), 1,
                                                                   (ctypes.c_void_p * 2)(0x400000, 8), 1, 0) > 0)
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
    attempt("signals init", lambda: os.kill(1, number))
    attempt("signals all", lambda: os.kill(-1, number) if number != signal.SIGSTOP else False)
for fd in range(3, 1100):
    attempt(f"writes to {fd}", lambda: os.write(fd, b"r") >= 0)
    attempt(f"sends to {fd}", lambda: socket.socket(fileno=fd).send(b"r") >= 0)
print("held", flush=True)
os._exit(7)
"""

# What the kernel shows of the environment it was started with.
STARTED_WITH = {
    "python": "print(*sorted(filter(None, open('/proc/self/environ').read().split(chr(0)))), sep='\\n')",
    "javascript": "console.log(require('fs').readFileSync('/proc/self/environ', 'utf8').split('\\0').filter(Boolean).sort().join('\\n'))",
    "ruby": "puts File.read('/proc/self/environ').split(0.chr).reject(&:empty?).sort",
    "bash": "tr '\\0' '\\n' < /proc/$$/environ | grep . | sort",
}

# The library that forks an interpreter lies before the C library in it: its fork() and getppid() must be the system's again, its mappings too, and
# nothing of it may go on to another process. Prints "forked" from a child, "mapped", and the variables of a process it starts.
PRELOADED = {
    "python": """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
for name in (None, b"/nowhere.so"):
    libc.unsetenv(b"LD_PRELOAD") if name is None else libc.setenv(b"LD_PRELOAD", name, 1)
    assert libc.getppid() == os.getppid() == int(open("/proc/self/stat").read().split()[3])
    pid = libc.fork()
    if pid == 0:
        os.write(1, b"forked\\n" if libc.getppid() == 2 else b"strange\\n")
        os._exit(9)
    assert pid > 2 and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, pid
libc.unsetenv(b"LD_PRELOAD")
libc.mmap.restype = ctypes.c_void_p
libc.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
held = set()
for _ in range(50):
    at = libc.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_long(0))
    assert not any(ctypes.string_at(at, 1 << 20)) and at not in held
    ctypes.memset(at, 255, 1 << 20)
    held.add(at)
maps = open("/proc/self/maps").read()
for at in held:
    assert libc.munmap(at, 1 << 20) == 0
assert open("/proc/self/maps").read() != maps
print("mapped", flush=True)
print([name for name in os.environ if name.startswith("LD_")])
subprocess.run("env | grep -c ^LD_; true", shell=True)
""",
    "ruby": """
pid = fork { $stdout.write("forked\\n"); $stdout.flush; exit! 9 }
Process.wait(pid)
raise pid.to_s unless pid > 2 && $?.exitstatus == 9
puts 'forked'
require 'fiddle'
map = Fiddle::Function.new(Fiddle::Handle::DEFAULT['mmap'], [1, 5, 4, 4, 4, 5], 5)
unmap = Fiddle::Function.new(Fiddle::Handle::DEFAULT['munmap'], [5, 5], 4)
[-> {}, -> { system('true') }, -> { Process.wait(fork { exit!(unmap.call(map.call(nil, 1 << 20, 3, 0x22, -1, 0), 1 << 20)) }) }].each do |before|
  before.()
  at = map.call(nil, 1 << 20, 3, 0x22, -1, 0)
  listed = -> { File.read('/proc/self/maps').scan(/^(\\h+)-(\\h+)/).any? { |from, to| (from.hex...to.hex).cover?(at) } }
  raise 'not mapped' unless listed.() && unmap.call(at, 1 << 20) == 0 && !listed.()
end
puts 'mapped'
p ENV.keys.grep(/^LD_/)
$stdout.flush
system('env | grep -c ^LD_; true')
""",
}
