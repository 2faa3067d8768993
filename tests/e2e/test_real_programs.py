"""Ordinary programs run unchanged: the libraries, runtimes and small tools that people expect to work."""
import base64
import hashlib
import os
import re
import struct
import textwrap

import pytest

from helpers import MIB, need, need_module, ok, result, skip, tool


def python(code, *flags, **how):
    return ok("python", textwrap.dedent(code), *flags, **how)


def javascript(code, *flags):
    need("javascript")
    return ok("javascript", textwrap.dedent(code), *flags)


def need_tool(name, package):
    if not tool(name):
        skip(f"{name} is not installed (package {package})")


# Python


def test_numpy_pandas_matplotlib():
    need_module("numpy", "pandas", "matplotlib")
    code = """
        import numpy, pandas, matplotlib.pyplot as plot
        frame = pandas.DataFrame({"x": numpy.arange(100), "y": numpy.arange(100) ** 2})
        print(frame.y.sum(), round(float(numpy.linalg.norm(numpy.ones((100, 100)) @ numpy.ones(100))), 3))
        frame.plot(x="x", y="y")
        plot.title("squares")
        plot.savefig("plot.png")
    """
    found = result("python", textwrap.dedent(code), "--collect", "*.png")
    assert found["status"] == "ok", found
    assert found["stdout"] == "328350 1000.0\n"
    assert found["stderr"] == ""
    (picture,) = found["files"]
    data = base64.b64decode(picture["content_base64"])
    assert data.startswith(b"\x89PNG") and len(data) == picture["size"]
    assert hashlib.sha256(data).hexdigest() == picture["sha256"]
    assert struct.unpack(">II", data[16:24]) == (640, 480)


def test_multiprocessing():
    assert python("""
        import multiprocessing
        def square(n): return n * n
        if __name__ == "__main__":
            with multiprocessing.Pool(4) as pool:
                print(sum(pool.map(square, range(100))))
            queue = multiprocessing.Queue(); lock = multiprocessing.Lock(); value = multiprocessing.Value("i", 0)
            def work():
                with lock: value.value += 1
                queue.put(1)
            parts = [multiprocessing.Process(target=work) for _ in range(3)]
            [p.start() for p in parts]; print(sum(queue.get() for _ in parts)); [p.join() for p in parts]; print(value.value)
    """) == "328350\n3\n3\n"


def test_process_pool_executor():
    assert python("""
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        if __name__ == "__main__":
            for kind in ProcessPoolExecutor, ThreadPoolExecutor:
                with kind(2) as pool: print(list(pool.map(abs, [-1, -2])))
    """) == "[1, 2]\n[1, 2]\n"


def test_shared_memory():
    assert python("""
        from multiprocessing import shared_memory
        memory = shared_memory.SharedMemory(create=True, size=1000)
        memory.buf[:3] = b"abc"
        other = shared_memory.SharedMemory(memory.name)
        print(bytes(other.buf[:3])); other.close(); memory.close(); memory.unlink()
    """) == "b'abc'\n"


def test_asyncio_on_loopback():
    assert python("""
        import asyncio
        async def serve(reader, writer):
            writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
        async def main():
            for host in "127.0.0.1", "::1":
                server = await asyncio.start_server(serve, host, 0)
                port = server.sockets[0].getsockname()[1]
                reader, writer = await asyncio.open_connection("localhost" if host[0] == "1" else host, port)
                writer.write(b"hello\\n"); print(await reader.readline()); writer.close(); server.close()
            process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
            print((await process.communicate())[0])
        asyncio.run(main())
    """) == "b'HELLO\\n'\nb'HELLO\\n'\nb'child\\n'\n"


def test_http_server_and_client():
    assert python("""
        import http.server, threading, urllib.request
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(self.path.encode())
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(urllib.request.urlopen("http://localhost:8000/path").read())
    """) == "b'/path'\n"


def test_sqlite():
    assert python("""
        import sqlite3
        for place in ":memory:", "data.db", "/tmp/data.db":
            base = sqlite3.connect(place)
            base.execute("pragma journal_mode=wal")
            base.execute("create table t(x)"); base.executemany("insert into t values (?)", [(n,) for n in range(100)]); base.commit()
            print(base.execute("select sum(x) from t").fetchone()[0])
    """) == "4950\n" * 3


def test_threads():
    assert python("""
        import threading, queue
        q = queue.Queue()
        threads = [threading.Thread(target=lambda n=n: q.put(n)) for n in range(20)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(sorted(q.queue) == list(range(20)))
    """) == "True\n"


def test_subprocess():
    assert python("""
        import subprocess, sys
        print(subprocess.run("echo $((6*7)) | tr 4 5", shell=True, capture_output=True, text=True).stdout.strip())
        print(subprocess.check_output([sys.executable, "-c", "print('nested')"], text=True).strip())
        print(subprocess.run(["false"]).returncode)
        try: subprocess.run(["sleep", "20"], timeout=0.1)
        except subprocess.TimeoutExpired: print("timeout")
    """) == "52\nnested\n1\ntimeout\n"


def test_tempfile():
    assert python("""
        import os, tempfile
        with tempfile.NamedTemporaryFile() as f: print(os.path.dirname(f.name))
        with tempfile.TemporaryDirectory() as d: print(os.path.isdir(d))
        with tempfile.TemporaryFile() as f: f.write(b"x"); f.seek(0); print(f.read())
    """) == "/tmp\nTrue\nb'x'\n"


TERMINAL = """
    import os, pty
    pid, fd = pty.fork()
    if pid == 0: os.execvp("tty", ["tty"])
    print(os.read(fd, 100).decode().startswith("/dev/pts/"))
    os.waitpid(pid, 0)
"""


def test_pty():
    assert python(TERMINAL, "--pty") == "True\n"
    assert ok("bash", "script -qec 'test -t 0 && echo terminal' /dev/null < /dev/null", "--pty").strip() == "terminal"


def test_terminals_are_there_for_who_asks():
    """A run without them says so at once, in the words of any system that has no devpts."""
    assert ok("bash", "ls /dev") == "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n"
    assert python('''
        import os
        try: os.openpty()
        except OSError as error: print(error.strerror)
        print(os.path.exists("/dev/ptmx"), os.path.exists("/dev/pts"))
    ''') == "No such file or directory\nFalse False\n"


def test_signals_and_timers():
    assert python("""
        import os, signal, time
        signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.pause()
        if (pid := os.fork()) == 0: signal.pause()
        time.sleep(0.05); os.kill(pid, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """) == "alarm\n-15\n"


def test_file_operations():
    assert python("""
        import fcntl, mmap, os, shutil, stat
        os.makedirs("a/b"); open("a/b/f", "w").write("x" * 10000)
        shutil.copytree("a", "c"); shutil.move("c", "d"); os.symlink("d/b/f", "link"); os.link("link", "hard", follow_symlinks=True)
        os.chmod("hard", 0o640); os.utime("hard", (1, 2)); os.truncate("hard", 100)
        with open("hard", "r+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); m = mmap.mmap(f.fileno(), 0); m[0:1] = b"y"; m.close()
        print(stat.filemode(os.stat("link").st_mode), os.stat("link").st_size, open("link").read(1), sorted(os.listdir()))
        os.mkfifo("fifo"); shutil.rmtree("a"); os.rename("hard", "/work/last"); print(os.path.getmtime("last") > 0)
        print(os.statvfs("/work").f_bavail > 0, shutil.disk_usage("/work").total)
    """, "--disk", "64m").startswith("-rw-r----- 100 y ['a', 'd', 'hard', 'link', 'main.py']\nTrue\nTrue 67108864\n")


# Node


def test_node_timers():
    out = javascript("""
        setTimeout(() => console.log('timeout'), 30);
        setImmediate(() => console.log('immediate'));
        Promise.resolve().then(() => console.log('promise'));
        const i = setInterval(() => { console.log('interval'); clearInterval(i); }, 10);
        void 0
    """)
    assert sorted(out.split()) == ["immediate", "interval", "promise", "timeout"]


def test_node_workers():
    assert javascript("""
        const { Worker } = require('worker_threads');
        const shared = new Int32Array(new SharedArrayBuffer(4));
        const body = "const { parentPort, workerData } = require('worker_threads');" +
                     "Atomics.add(workerData, 0, 21); parentPort.postMessage('done')";
        let left = 2;
        for (let n = 0; n < 2; n++)
          new Worker(body, { eval: true, workerData: shared }).on('message', m => { if (--left == 0) console.log(m, shared[0]); });
    """) == "done 42\n"


def test_node_child_process():
    assert javascript("""
        const { execSync, spawn, fork, execFileSync } = require('child_process');
        console.log(execSync('echo sync').toString().trim());
        console.log(execFileSync(process.execPath, ['-e', 'console.log(6*7)']).toString().trim());
        const child = spawn('cat');
        child.stdout.on('data', d => console.log(d.toString()));
        child.on('close', c => console.log('closed', c));
        child.stdin.end('piped');
    """) == "sync\n42\npiped\nclosed 0\n"


def test_node_fs():
    assert javascript("""
        const fs = require('fs'), os = require('os'), path = require('path');
        fs.mkdirSync('a/b', { recursive: true });
        fs.writeFileSync('a/b/f', 'text');
        fs.promises.readFile('a/b/f', 'utf8').then(async t => {
          console.log(t, fs.readdirSync('a'), os.tmpdir(), process.cwd());
          const d = await fs.promises.mkdtemp(path.join(os.tmpdir(), 'x-'));
          fs.createReadStream('a/b/f').pipe(fs.createWriteStream(d + '/g')).on('finish', () => {
            console.log(fs.readFileSync(d + '/g', 'utf8'));
            fs.rmSync('a', { recursive: true });
          });
        });
        void 0
    """) == "text [ 'b' ] /tmp /work\ntext\n"


def test_node_http():
    assert javascript("""
        const http = require('http');
        const server = http.createServer((q, r) => r.end(q.url)).listen(0, '127.0.0.1', () => {
          http.get({ port: server.address().port, path: '/path' }, r => { r.on('data', d => console.log(String(d))); r.on('end', () => server.close()); });
        });
        void 0
    """) == "/path\n"


def test_node_sees_processors_and_memory():
    out = javascript("""
        const os = require('os');
        console.log(os.cpus().length > 0, os.totalmem() > 0, os.freemem() > 0, os.uptime() > 0, os.hostname(), os.userInfo().username);
    """)
    assert out == "true true true true cordon cordon\n"


def test_node_stays_within_its_memory():
    """The runtime is told of the limit, so that it collects garbage instead of being killed."""
    need("javascript")
    found = result("javascript", "let n = 0; for (let i = 0; i < 3e5; i++) n += new Array(1000).fill(i).length; n", "--memory", "128m")
    assert (found["status"], found["stdout"]) == ("ok", "300000000\n"), found


# Compilers


def test_go():
    need("go")
    code = textwrap.dedent("""
        package main

        import (
            "fmt"
            "net"
            "os"
            "os/exec"
            "sync"
            "time"
        )

        func main() {
            var group sync.WaitGroup
            numbers := make(chan int, 100)
            for i := 0; i < 100; i++ {
                group.Add(1)
                go func(n int) { defer group.Done(); time.Sleep(time.Millisecond); numbers <- n }(i)
            }
            group.Wait()
            close(numbers)
            sum := 0
            for n := range numbers {
                sum += n
            }
            listener, err := net.Listen("tcp", "127.0.0.1:0")
            if err != nil {
                panic(err)
            }
            go func() { c, _ := listener.Accept(); c.Write([]byte("net")); c.Close() }()
            connection, err := net.Dial("tcp", listener.Addr().String())
            if err != nil {
                panic(err)
            }
            text := make([]byte, 3)
            connection.Read(text)
            out, _ := exec.Command("echo", "-n", "exec").Output()
            os.WriteFile("f", []byte("x"), 0o600)
            fmt.Println(sum, string(text), string(out))
        }
    """)
    found = result("go", code, timeout=90)
    assert (found["status"], found["stdout"]) == ("ok", "4950 net exec\n"), found


def test_go_build_inside_a_program():
    """The toolchain itself, as a program in the cell."""
    need("go", "bash")
    code = 'mkdir m && cd m && printf "module m\\ngo 1.18\\n" > go.mod && printf \'package main\\nfunc main() { println("built") }\' > main.go\n' \
           "export GOCACHE=/tmp/gocache GOFLAGS=-p=2; go build -o prog . && ./prog 2>&1"
    found = result("bash", code, "--profile", "heavy", "--memory", "2g", "--disk", "1g", "--wall", "60s", "--cpu", "60s", timeout=90)
    assert found["stdout"] == "built\n", found


def test_gcc():
    need("c")
    code = textwrap.dedent("""
        #include <math.h>
        #include <pthread.h>
        #include <stdio.h>
        static void *add(void *p) { __atomic_add_fetch((int *)p, 1, __ATOMIC_SEQ_CST); return 0; }
        int main(void) {
            int n = 0; pthread_t t[8];
            for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, add, &n);
            for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
            printf("%d %.3f\\n", n, sqrt(2.0)); return 0;
        }
    """)
    assert ok("c", code) == "8 1.414\n"


def test_gcc_inside_a_program():
    need("c", "bash")
    code = 'echo "int printf(const char *, ...); int main(void) { printf(\\"built\\\\n\\"); }" > x.c && gcc -O2 -o x x.c && ./x'
    assert ok("bash", code, "--memory", "1g") == "built\n"


def test_java():
    need("java")
    found = result("java", 'public class Main { public static void main(String[] a) { System.out.println("hello " + (Runtime.getRuntime().maxMemory() <= (512L << 20))); } }')
    assert (found["status"], found["stdout"]) == ("ok", "hello true\n"), found


def test_rust():
    need("rust")
    assert ok("rust", 'fn main() { println!("hello"); }') == "hello\n"


def test_ruby():
    need("ruby")
    assert ok("ruby", "require 'json'; require 'socket'; s = TCPServer.new('127.0.0.1', 0); t = Thread.new { s.accept.puts 'net' }\n"
                      "puts TCPSocket.new('127.0.0.1', s.addr[1]).gets; puts JSON.dump({a: 1}); puts `echo sh`; fork { puts 'child' }; Process.wait") \
        == 'net\n{"a":1}\nsh\nchild\n'


# The place itself


def test_device_files():
    out = ok("bash", textwrap.dedent("""
        echo one > /dev/stdout; echo two > /dev/fd/1; echo three > /proc/self/fd/1; echo err > /dev/stderr
        cat /dev/stdin; cat <(echo process substitution)
        head -c 3 /dev/zero | od -An -tx1; head -c 8 /dev/urandom | wc -c; head -c 8 /dev/random | wc -c
        echo gone > /dev/null; echo full > /dev/full || echo refused
    """), stdin="input\n")
    assert out == "one\ntwo\nthree\ninput\nprocess substitution\n 00 00 00\n8\n8\nrefused\n"


def test_ps():
    need_tool("ps", "procps")
    out = ok("bash", "sleep 5 & until grep -q sleep /proc/$!/comm; do :; done; ps -ef; ps aux | wc -l")
    assert "sleep 5" in out and "cordon" in out
    assert int(out.split()[-1]) < 12, "only the cell's own processes are seen"


def test_free_and_uptime():
    need_tool("free", "procps")
    assert re.search(r"Mem:\s+\d+", ok("bash", "free -m; uptime > /dev/null"))


def test_processors():
    out = python("import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))").split()
    assert int(out[0]) >= 1 and int(out[1]) >= 1
    assert int(ok("bash", "nproc")) >= 1


def test_names_and_numbers():
    out = ok("bash", "hostname 2>/dev/null || cat /proc/sys/kernel/hostname; whoami; id -u; id -g; id -un; id -gn; echo $HOME; pwd; echo ~")
    assert out == "cordon\ncordon\n1000\n1000\ncordon\ncordon\n/work\n/work\n/work\n"


def test_base_environment():
    out = ok("bash", "exec env")
    found = dict(line.split("=", 1) for line in out.splitlines())
    expected = {"PATH": "/etc/cordon/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "TMPDIR": "/tmp", "HOME": "/work", "USER": "cordon"}
    for name, value in expected.items():
        assert found.get(name) == value, name


@pytest.mark.parametrize("command", ["python -c 'print(6*7)'", "nodejs -p 6*7"])
def test_interpreters_by_their_other_names(command):
    assert ok("bash", command) == "42\n"
    assert python(f"import subprocess; subprocess.run({command!r}, shell=True, check=True)") == "42\n"


@pytest.mark.parametrize("command", ["pip install requests", "pip3 download requests", "npm install left-pad"])
def test_package_tools_say_where_packages_come_from(command):
    found = result("bash", command)
    assert found["status"] == "nonzero_exit", found
    assert found["stderr"].endswith(": a run has no network: install packages on the host, where every run sees them\n"), found
    assert found["usage"]["wall_ms"] < found["limits"]["wall_ms"] / 2, found["usage"]


def test_package_tools_are_not_in_the_way():
    out = ok("bash", "for name in python pip npm; do command -v $name; done; : 2> /dev/null > /etc/cordon/bin/x || echo closed; ls -A")
    assert out.splitlines()[-2:] == ["closed", "main.sh"], out
    if tool("pip"):
        assert ok("bash", "pip --version").startswith("pip ")


def test_locale():
    assert python("import locale, sys; print(locale.getpreferredencoding(), sys.stdout.encoding.lower(), 'é')") == "UTF-8 utf-8 é\n"
    out = ok("bash", "locale 2>&1")
    assert "LANG=C.UTF-8" in out and "Cannot" not in out


def test_time_zone():
    assert ok("bash", "date +%Z%z; date -d @0 +%H") == "UTC+0000\n00\n"
    assert python("from zoneinfo import ZoneInfo; import datetime; print(datetime.datetime(2024, 7, 1, tzinfo=ZoneInfo('Europe/Berlin')).utcoffset())") == "2:00:00\n"


def test_user_database():
    out = ok("bash", "cat /etc/passwd; echo; cat /etc/group")
    names = [line.split(":")[0] for line in out.split("\n\n")[0].splitlines()]
    assert "cordon" in names and set(names) <= {"root", "cordon", "nobody"}, names
    assert ":1000:1000:" in out
    assert python("import getpass, pwd, os; print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir)") == "cordon /work\n"


def test_host_files_are_not_there():
    out = ok("bash", "ls -A /root /home /var/log /etc/shadow /etc/ssh /boot /mnt /srv 2>/dev/null; ls -d /*")
    listed = [line for line in out.splitlines() if line and not line.endswith(":")]
    assert set(listed) <= {f"/{name}" for name in ("bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp", "usr", "work",
                                                   "sys", "run", "var", "home", "root")}, listed


def test_everything_else_is_read_only():
    out = ok("bash", "for d in / /usr /etc /opt /proc/sys /dev /var; do touch $d/x 2>/dev/null && echo $d; done; true")
    assert out == ""


def test_name_lookup():
    assert python("import socket; print(socket.gethostbyname('localhost'))") == "127.0.0.1\n"


def test_work_directory_holds_only_the_program():
    assert ok("bash", "ls -A").splitlines() in (["main.sh"], ["main.bash"])


def test_memory_of_the_program_is_not_the_hosts():
    """A large allocation that is never touched is no offence."""
    assert python("import mmap; m = mmap.mmap(-1, 4 << 30); m[0] = 1; print(len(m))") == f"{4 * 1024 * MIB}\n"


def test_nothing_of_one_run_is_in_the_next():
    ok("bash", "for d in /work /tmp /dev/shm; do echo left > $d/left; done; ipcmk -Q >/dev/null 2>&1; true")
    assert ok("bash", "ls /work/left /tmp/left /dev/shm/left 2>/dev/null; ls -A /tmp /dev/shm | grep -v : | grep . ; true") == ""


@pytest.mark.skipif(os.cpu_count() < 2, reason="one processor only")
def test_two_runs_side_by_side(tmp_path):
    from helpers import start
    processes = [start("python", "import time; time.sleep(0.3); print('done')") for _ in range(6)]
    for process in processes:
        out, err = process.communicate(timeout=20)
        assert (out, process.returncode) == (b"done\n", 0), err
