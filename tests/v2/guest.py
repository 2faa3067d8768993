"""Inside the guest: what Cordon promises on a cgroup v2 system, for one kind of caller.

guest.py root|delegated|session|undelegated|outside   prints `ok KIND NAME` or `not ok KIND NAME: why` per check.
Judged from outside the cell: result fields, the process table and the control group tree. Emulated CPUs are slow, so the
times asserted here are loose.
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cordon import command, cordon, run  # noqa: E402

MIB = 1 << 20
RUN_SECONDS = 40
REQUIRED = ("userns pidns mountns netns ipcns utsns seccomp no_new_privs capabilities cgroup").split()


def python(code, *flags):
    return run(["-l", "python", *flags, "-c", code], timeout=RUN_SECONDS)


def expect(condition, what):
    if not condition:
        raise AssertionError(json.dumps(what) if isinstance(what, dict) else str(what))


def processes():
    """Every process with a command line: kernel threads have none."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if line:
            found[int(pid)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def parent(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("PPid:"))


def groups():
    """Cordon's own control groups."""
    expect(os.path.exists("/sys/fs/cgroup/cgroup.procs"), "no cgroup v2 here")
    return {path for path, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(path).startswith("cordon-")}


BEFORE = groups()


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_doctor():
    done = cordon("doctor", "--json")
    told = json.loads(done.stdout)
    expect(done.returncode == 0, told)
    expect({each["name"]: each["enforced"] for each in told["controls"]}["cgroup"] == "v2", told)


def test_hello():
    result = python("print(6*7)")
    expect(result["status"] == "ok" and result["stdout"] == "42\n", result)
    controls = result["enforced"]["controls"]
    expect(controls["cgroup"] == "v2", controls)
    expect(all(controls[name] for name in REQUIRED), controls)


def test_memory_bomb():
    result = python("x = []\nwhile True: x.append(bytearray(b'x' * (4 << 20)))", "--memory", "96m")
    expect(result["status"] == "memory_limit" and result["signal"] == 9, result)
    expect(48 * MIB < result["usage"]["memory_peak_bytes"] <= 97 * MIB, result["usage"])


def test_memory_bomb_of_a_child():
    code = "import os\nif os.fork() == 0:\n  x = bytearray(b'x' * (256 << 20))\nos.wait()"
    result = python(code, "--memory", "96m")
    expect(result["status"] == "memory_limit", result)


def test_memory_peak():
    result = python("x = bytearray(b'x' * (64 << 20))", "--memory", "256m")
    expect(result["status"] == "ok", result)
    expect(64 * MIB < result["usage"]["memory_peak_bytes"] < 256 * MIB, result["usage"])


def test_program_memory():
    result = python("import os; x = bytearray(b'x' * (64 << 20)); os._exit(0)", "--memory", "256m")
    expect(64 * MIB < result["usage"]["memory_program_peak_bytes"] <= result["usage"]["memory_peak_bytes"], result["usage"])


def test_process_limit():
    result = python("import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(60)", "--processes", "12")
    expect(result["status"] == "process_limit", result)
    expect(10 <= result["usage"]["processes_peak"] <= 13, result["usage"])


def test_process_limit_coped_with():
    code = "import os, time\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(60)\nexcept OSError: print('full')"
    result = python(code, "--processes", "12")
    expect(result["status"] == "ok" and result["stdout"] == "full\n", result)
    expect(10 <= result["usage"]["processes_peak"] <= 13, result["usage"])


def test_fork_bomb():
    before = processes()
    result = run(["-l", "bash", "--processes", "30", "--wall", "4s", "-c", "f() { f | f & }; f; sleep 60"],
                 timeout=RUN_SECONDS)
    expect(result["status"] in ("process_limit", "wall_limit", "ok", "nonzero_exit"), result["status"])
    expect(result["usage"]["processes_peak"] <= 31, result["usage"])
    expect(wait_until(lambda: not set(processes()) - set(before), 5), processes())


def test_cpu_limit():
    result = python("while True: pass", "--cpu", "1s", "--wall", "20s")
    expect(result["status"] == "cpu_limit", result)
    used = result["usage"]["cpu_user_ms"] + result["usage"]["cpu_system_ms"]
    expect(900 <= used <= 2000, result["usage"])


def test_cpu_share():
    result = python("while True: pass", "--cpus", "0.5", "--wall", "3s")
    expect(result["status"] == "wall_limit", result)
    expect(result["usage"]["cpu_user_ms"] + result["usage"]["cpu_system_ms"] <= 2000, result["usage"])


def test_wall_limit():
    result = run(["-l", "bash", "--wall", "1s", "-c", "sleep 60"], timeout=RUN_SECONDS)
    expect(result["status"] == "wall_limit", result)
    expect(950 <= result["usage"]["wall_ms"] <= 2500, result["usage"])


def test_nothing_left():
    expect(wait_until(lambda: groups() <= BEFORE, 3), groups() - BEFORE)


def kill_in_mid_run(victim):
    """SIGKILL to the named process while a cell sleeps; everything new must be gone soon after."""
    before = set(processes())
    caller = subprocess.Popen(command("run", "-l", "bash", "-c", "sleep 4242 & sleep 4242"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def new():
        return {pid: line for pid, line in processes().items() if pid not in before}

    def sleeping():
        return list(new().values()).count("sleep 4242") == 2

    try:
        expect(wait_until(lambda: sleeping() or caller.poll() is not None, 20) and sleeping(), new())
        if victim == "cordon":
            caller.kill()
        else:
            wardens = [pid for pid in new() if parent(pid) == caller.pid]
            expect(len(wardens) == 1, new())
            os.kill(wardens[0], signal.SIGKILL)
        caller.wait(10)
        expect(wait_until(lambda: not new(), 3), new())
    finally:
        caller.kill()
        caller.wait()
    return caller.returncode


def test_warden_killed():
    expect(kill_in_mid_run("warden") == 125, "cordon must report its own failure with 125")


def test_caller_killed():
    kill_in_mid_run("cordon")


def test_next_start_sweeps():
    test_hello()
    test_nothing_left()


def test_forked():
    """In a waiting cell that was forked off a zygote: born into its group, with the limits of its own request."""
    result = python("print(6*7)", "--warm")
    expect(result["status"] == "ok" and result["stdout"] == "42\n", result)
    expect(result["enforced"]["warm"] and result["enforced"]["shares_layout"], result["enforced"])
    result = python("x = []\nwhile True: x.append(bytearray(b'x' * (4 << 20)))", "--warm", "--memory", "96m")
    expect(result["status"] == "memory_limit", result)
    result = python("import os\nfor i in range(9):\n    if os.fork() == 0: os.read(0, 1)", "--warm", "--processes", "5")
    expect(result["status"] == "process_limit", result)


def test_slot():
    result = run(["-l", "bash", "--warm", "-c", "echo $((6*7))"], timeout=RUN_SECONDS)
    expect(result["status"] == "ok" and result["stdout"] == "42\n", result)


LOWER = """
import os
for value in (b"0", b"499"):
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try: print(os.write(fd, value))
    except OSError as error: print(error.strerror)
"""


def test_oom_floor():
    """The superuser of a whole machine has every right, so a cell cannot take back that it is taken first."""
    for flags in ((), ("--warm",)):
        result = python(LOWER, *flags)
        expect(result["enforced"]["controls"]["oom_floor"], result["enforced"])
        expect(result["stdout"] == "Permission denied\n" * 2, result)


def test_io_bound():
    device = os.stat("/usr").st_dev
    on_disk = os.path.exists(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    with open("/sys/fs/cgroup/cgroup.controllers", encoding="utf-8") as file:
        offered = "io" in file.read().split()
    result = python("print(6*7)")
    expect(result["status"] == "ok", result)
    expect(result["enforced"]["controls"]["io"] == (on_disk and offered), (on_disk, offered, result["enforced"]))


def test_refused_without_cgroup():
    done = cordon("run", "-l", "python", "-c", "print(6*7)")
    expect(done.returncode == 125 and not done.stdout, done)
    expect(b"cgroup" in done.stderr, done)
    expect(cordon("doctor").returncode == 1, "doctor must fail")


def test_optional_cgroup():
    result = python("print(6*7)", "--optional", "cgroup")
    expect(result["status"] == "ok" and result["stdout"] == "42\n", result)
    expect(result["enforced"]["controls"]["cgroup"] == "none", result["enforced"])


def test_optional_cgroup_still_limits():
    result = python("x = []\nwhile True: x.append(bytearray(b'x' * (4 << 20)))", "--optional", "cgroup", "--memory", "96m")
    expect(result["status"] in ("memory_limit", "nonzero_exit"), result)
    result = python("while True: pass", "--optional", "cgroup", "--cpu", "1s", "--wall", "20s")
    expect(result["status"] == "cpu_limit", result)


def test_the_command_that_the_error_names():
    """A user without a session is refused; what the message says then works, word for word (the superuser is sudo here)."""
    asked = command("run", "--json", "-l", "python", "-c", "print(6*7)")
    plain = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR", *asked]
    done = subprocess.run(plain, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)
    expect(done.returncode == 125 and "cgroup" in done.stdout + done.stderr, done)
    named = re.search(r"`sudo (systemd-run [^`]*) COMMAND`", json.loads(done.stdout)["error"]["hint"])[1].replace("$(id -u)", "1000")
    done = subprocess.run(["bash", "-c", f"{named} {shlex.join(asked)}"], capture_output=True, text=True, check=False,
                          timeout=2 * RUN_SECONDS, cwd="/")
    result = json.loads(done.stdout)
    expect(result["stdout"] == "42\n" and result["enforced"]["controls"]["cgroup"] == "v2", done)
    expect(result["enforced"]["memory"] == "group", result["enforced"])


ENFORCED = [test_doctor, test_hello, test_memory_bomb, test_memory_bomb_of_a_child, test_memory_peak, test_program_memory, test_process_limit,
            test_process_limit_coped_with, test_fork_bomb, test_cpu_limit, test_cpu_share, test_wall_limit,
            test_forked, test_slot, test_nothing_left, test_warden_killed, test_caller_killed, test_next_start_sweeps]
CHECKS = {
    "root": [*ENFORCED, test_oom_floor, test_io_bound],
    "delegated": ENFORCED,
    "session": ENFORCED,
    "outside": [test_the_command_that_the_error_names],
    "undelegated": [test_refused_without_cgroup, test_optional_cgroup, test_optional_cgroup_still_limits,
                    test_nothing_left],
}


def main():
    kind = sys.argv[1]
    for check in CHECKS[kind]:
        name = check.__name__.removeprefix("test_")
        start = time.monotonic()
        try:
            check()
            print(f"ok {kind} {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[1].lineno
            print(f"not ok {kind} {name}: line {where}: {error!r}"[:2000].replace("\n", " "), flush=True)


main()
