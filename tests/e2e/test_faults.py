"""When something is missing, exhausted or killed: a precise error, and nothing left behind."""
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import time

import pytest

import helpers
from helpers import CORDON, FLAGS, as_result, cordon, descendants, marked, need, ok, result, run, run_arguments, start, still_alive, wait_for

# The sanitizer itself needs address space and descriptors, and its leak check cannot run under a tracer.
not_sanitized = pytest.mark.skipif(os.environ.get("CORDON_TEST_SANITIZED") == "1", reason="the sanitizer stands in the way")


def check_own_failure(done, *words):
    """Exit 125 and one precise line."""
    assert done.code == 125, done
    assert done.errors.startswith("cordon: "), done
    for word in words:
        assert re.search(word, done.errors, re.IGNORECASE), f"{word!r} is not in {done.errors!r}"


# Missing things


def test_missing_interpreter():
    missing = [row for row in json.loads(cordon("languages", "--json").out)["items"] if not row["installed"]]
    if not missing:
        pytest.skip("every language is installed")
    for row in missing:
        done = cordon("run", *FLAGS, "-l", row["id"], "-c", "1")
        assert done.code in (2, 125) and done.out == b"", done
        assert row["name"] in done.errors and "not installed" in done.errors, done
        for package in row["packages"][:1]:
            assert package in done.errors, done


NO_NAMESPACES = ["unshare", "-Ur", "sh", "-c", 'echo 0 > "$0" && exec "$@"']


@pytest.mark.parametrize("kind, control", [("user", "userns"), ("pid", "pidns"), ("net", "netns"), ("mnt", "mountns")])
def test_no_namespaces(kind, control):
    """Inside a user namespace where the kernel allows no further namespace of that kind."""
    prefix = [*NO_NAMESPACES, f"/proc/sys/user/max_{kind}_namespaces"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"no user namespace to try it in: {probe.stderr.decode().strip()}")
    done = cordon("run", "--optional", "cgroup", "-l", "bash", "-c", "echo ran", prefix=prefix)
    assert b"ran" not in done.out
    check_own_failure(done, control, "namespaces" if kind == "user" else f"max_{kind}_namespaces|namespace")


def test_no_namespaces_in_doctor():
    prefix = [*NO_NAMESPACES, "/proc/sys/user/max_user_namespaces"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace to try it in")
    done = cordon("doctor", prefix=prefix)
    assert done.code == 1 and "userns" in done.text and "max_user_namespaces" in done.text, done


def test_no_control_group():
    """Asked for by default, so its absence is an error unless it was called optional."""
    prefix = ["unshare", "-Ur"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace to try it in")
    done = cordon("run", "-l", "bash", "-c", "echo ran", prefix=prefix)
    if done.code == 0:
        assert as_result(cordon("run", "--json", "-l", "bash", "-c", ":", prefix=prefix))["enforced"]["controls"]["cgroup"] in ("v1", "v2")
        return
    check_own_failure(done, "cgroup", "--optional cgroup")
    found = as_result(cordon("run", "--optional", "cgroup", "--json", "-l", "bash", "-c", "echo ran", prefix=prefix))
    assert found["stdout"] == "ran\n" and found["enforced"]["controls"]["cgroup"] == "none", found


def test_missing_warden(tmp_path):
    """A binary far from its helper says so."""
    lonely = tmp_path / "cordon"
    lonely.write_bytes(open(CORDON, "rb").read())
    lonely.chmod(0o755)
    done = subprocess.run([lonely, "run", *FLAGS, "-l", "bash", "-c", ":"], capture_output=True, timeout=10, check=False)
    assert done.returncode in (0, 2, 125)
    if done.returncode:
        assert re.search(rb"cordon: .*(warden|languages)", done.stderr), done


# Exhausted things


@not_sanitized
@pytest.mark.parametrize("limit", [3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32])
def test_descriptors_exhausted(limit, mark):
    done = run("bash", "echo ran", args=[mark], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)), timeout=15)
    if done.code:
        check_own_failure(done, "open files|descriptor")
        assert b"ran" not in done.out
    else:
        assert done.out == b"ran\n"


@pytest.mark.parametrize("limit", [0, 1, 4096, 65536])
def test_no_room_for_files(limit, mark):
    """The caller may write only small files: a stand-in for a full disk."""
    done = run("bash", "echo ran", args=[mark], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), timeout=15)
    if done.code:
        check_own_failure(done, "file too large|large|space")
    else:
        assert done.out == b"ran\n"


def test_no_processes_left(mark):
    if os.getuid() == 0:
        pytest.skip("root is not bound by it")
    done = run("bash", "echo ran", args=[mark], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)), timeout=15)
    if done.code:
        check_own_failure(done, "temporarily unavailable|process")


@not_sanitized
def test_little_memory(mark):
    for size in (8 << 20, 32 << 20):
        done = run("bash", "echo ran", args=[mark], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)), timeout=15)
        assert done.code in (0, 125) or done.code < 0 and size < (16 << 20), done


def test_temporary_directory_is_not_needed():
    assert run("bash", "echo ran", env={"TMPDIR": "/nonexistent", "HOME": "/nonexistent", "PATH": "/nonexistent"}).out == b"ran\n"


def test_no_environment_at_all():
    assert run("bash", "echo ran", env={}).out == b"ran\n"


def test_full_device_as_stdout():
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen([CORDON, *run_arguments("bash", "echo x; exit 0")], stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 125 and b"No space left" in errors, (process.returncode, errors)


# Killed


LIVELY = """
import os, signal, time
for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)
print("ready", flush=True)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(61)
        os._exit(0)
time.sleep(61)
"""


def check_gone(word, before, but=None, within=0.2):
    """Nothing of the run is alive that long after, cordon itself excepted when it is `but`."""
    begin = time.monotonic()
    while True:
        left = [pid for pid in marked(word) if pid != but] + still_alive(before)
        passed = time.monotonic() - begin
        if not left:
            return passed
        assert passed < within, f"alive after {within} s: {left}"
        time.sleep(0.005)


def wardens(process):
    """The processes directly beneath cordon."""
    return [pid for pid in descendants(process.pid) if (helpers._stat(pid) or (None, None))[1] == process.pid]


def test_cordon_killed_at_any_moment():
    random.seed(20)
    slowest = 0
    for turn in range(20):
        word = helpers.mark()
        process = start("python", LIVELY, "--wall", "30s", args=[word])
        if turn % 4 == 0:
            assert process.stdout.readline() == b"ready\n"
        time.sleep(random.uniform(0, 0.12))
        before = descendants(process.pid)
        process.kill()
        process.wait()
        slowest = max(slowest, check_gone(word, before))
        process.stdout.close()
        process.stderr.close()
    print(f"gone after {slowest * 1000:.0f} ms at most")


def test_warden_killed_at_any_moment():
    random.seed(21)
    slowest = 0
    for turn in range(20):
        word = helpers.mark()
        process = start("python", LIVELY, "--wall", "30s", args=[word])
        if turn % 4 == 0:
            assert process.stdout.readline() == b"ready\n"
        found = wait_for(lambda: wardens(process) or process.poll() is not None, 5, 0.0005)
        time.sleep(random.uniform(0, 0.12))
        before = descendants(process.pid)
        for pid in wardens(process) or []:
            os.kill(pid, signal.SIGKILL)
        slowest = max(slowest, check_gone(word, before, but=process.pid))
        out, errors = process.communicate(timeout=5)
        assert found and process.returncode == 125, (turn, process.returncode, out, errors)
        assert re.search(rb"^cordon: .*warden", errors, re.MULTILINE), errors
        assert not marked(word)
    print(f"gone after {slowest * 1000:.0f} ms at most")


def test_warden_killed_with_json(mark):
    process = start("bash", '(exec -a "$1" sleep 30); :', "--json", args=[mark])
    wait_for(lambda: len(marked(mark)) >= 2)
    for pid in wardens(process):
        os.kill(pid, signal.SIGKILL)
    out, errors = process.communicate(timeout=5)
    assert process.returncode == 125, (out, errors)
    assert b'"status":"internal_error"' in out.replace(b": ", b":"), out


def second_of_its_cell(process):
    """The program's process, which is pid 2 of its cell from its beginning."""
    for pid in descendants(process.pid):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if re.search(r"^NSpid:.*\t2$", status, re.MULTILINE):
            return pid
    return None


def test_a_program_killed_before_it_starts_is_nobodys_fault(tmp_path):
    """Its files take so long to write that it is still before exec; nothing is wrong with the request."""
    if "--warm" in FLAGS:
        helpers.skip("a waiting cell has its second process before there is a request", False)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(120 << 20)
    process = start("bash", "echo ran", "--json", "--file", str(large), "--memory", "400m", "--disk", "200m")
    os.kill(wait_for(lambda: second_of_its_cell(process), 20, 0.0005), signal.SIGKILL)
    out, errors = process.communicate(timeout=20)
    found = json.loads(out)
    assert (process.returncode, found["status"]) == (125, "internal_error"), (out, errors)
    assert "before the program started" in found["reason"], found


def test_program_cannot_cause_an_internal_error():
    """Whatever it kills, it can only kill itself."""
    code = """
import os, signal
for pid in range(-1, 4):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        if pid not in (0, -1, os.getpid()):
            try: os.kill(pid, number)
            except OSError: pass
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
print("alone", flush=True)
os.kill(0, signal.SIGKILL)
"""
    found = result("python", code)
    assert (found["status"], found["signal"]) == ("signaled", 9), found


# The caller's own state


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_closed_standard_descriptors(closed, mark):
    """The program ends as it would, and what cordon opens meanwhile never takes their place."""
    shell = '"$@" ' + " ".join(f"{fd}<&-" if fd == 0 else f"{fd}>&-" for fd in closed)
    arguments = run_arguments("bash", "cat; ls /proc/self/fd | wc -l > /dev/null; exit 3", args=[mark])
    done = subprocess.run(["bash", "-c", shell, "-", CORDON, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=10, check=False)
    assert done.returncode == 3, done
    assert done.stdout == b"" and done.stderr == b"", done


def test_output_with_stdin_closed():
    done = subprocess.run(["bash", "-c", '"$@" <&-', "-", CORDON, *run_arguments("bash", "echo out; echo err >&2")], capture_output=True, timeout=10, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 0)


def strange_signals():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


def test_signals_of_the_caller_do_not_reach_the_program():
    done = run("bash", "exec grep ^Sig /proc/self/status", preexec_fn=strange_signals, restore_signals=False)
    found = dict(line.split(":\t") for line in done.text.splitlines())
    for name in ("SigBlk", "SigIgn", "SigPnd"):
        assert int(found[name], 16) == 0, done


def test_limits_hold_under_strange_signals(mark):
    found = result("bash", '(exec -a "$1" sleep 30); :', "--wall", "300ms", args=[mark], preexec_fn=strange_signals, restore_signals=False)
    assert found["status"] == "wall_limit" and found.seconds < 3, found


def test_exit_code_under_strange_signals():
    assert run("bash", "sleep 0.1 & wait; exit 3", preexec_fn=strange_signals, restore_signals=False).code == 3


def test_environment_of_the_caller_does_not_leak():
    secret = helpers.mark()
    names = ("AWS_SECRET_ACCESS_KEY", "LD_PRELOAD_X", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "LC_ALL", "SSH_AUTH_SOCK", "TERM")
    environment = {**os.environ, **{name: secret for name in names}}
    out = run("bash", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'", env=environment)
    assert out.code == 0 and secret not in out.text


def test_descriptors_of_the_caller_do_not_leak(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    done = run("bash", "exec ls -l /proc/self/fd", prefix=["bash", "-c", f'exec "$@" 3<{secret} 9<{secret} 99<{secret}', "-"])
    names = re.findall(r" (\d+) -> (\S+)", done.text)
    assert [fd for fd, _ in names] == ["0", "1", "2", "3"], done
    assert names[3][1].startswith("/proc/"), done
    assert "secret" not in done.text


def test_deleted_working_directory(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = run("bash", "pwd", preexec_fn=lambda: (os.chdir(gone), os.rmdir(gone)))
    assert (done.text, done.code) == ("/work\n", 0), done


def test_umask_of_the_caller(tmp_path):
    (tmp_path / "data").write_text("x")
    out = run("bash", "umask; touch f; stat -c %a f /tmp /work; cat data", "--file", tmp_path / "data", preexec_fn=lambda: os.umask(0o077)).text
    lines = out.splitlines()
    assert lines[0] == "0022" and lines[1] == "644" and lines[4] == "x", out


def test_niceness_and_limits_of_the_caller():
    """Soft limits of the caller are not the program's."""
    done = run("bash", "ulimit -Sc; ulimit -Sn", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    assert done.text == "0\n1024\n", done


@not_sanitized
def test_under_a_threaded_and_traced_caller():
    if not helpers.tool("strace"):
        pytest.skip("strace is not installed")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("tracing is not allowed here")
    done = run("bash", "echo ran", prefix=["strace", "-o", "/dev/null"])
    assert done.code in (0, 125), done


def test_many_runs_leave_nothing(mark):
    """Counts of processes, descriptors, mounts and control groups, as before."""
    need("python")

    def groups():
        found = set()
        for root, folders, _ in os.walk("/sys/fs/cgroup"):
            found |= {os.path.join(root, name) for name in folders if "cordon" in name}
        return found

    def empty(found):
        return [group for group in found if os.path.exists(group) and not open(f"{group}/cgroup.procs").read()]

    before = len(open("/proc/self/mounts").readlines())
    known = groups()
    for turn in range(30):
        if turn % 3:
            ok("bash", "sleep 60 & echo x > /tmp/x")
        else:
            process = start("bash", '(exec -a "$1" sleep 60); :', args=[mark])
            time.sleep(0.02 * (turn % 4))
            process.terminate()
            process.communicate(timeout=5)
    assert not marked(mark)
    assert len(open("/proc/self/mounts").readlines()) == before
    fresh = empty(groups() - known) if os.getuid() == 0 else []
    time.sleep(1 if len(fresh) > 3 else 0)
    fresh = empty(fresh)  # others on the machine have theirs for a moment
    print(f"{len(fresh)} empty groups left, {FLAGS}")
    assert len(fresh) <= 3
