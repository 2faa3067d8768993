"""Waiting cells when something goes wrong: zygotes and wardens killed, limits that are not the pool's, requests that need a start of
their own; and that nothing is used up, by waiting or by many runs."""
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from engine import OPTIONAL, PROGRAM, ROOT, Engine, children, read, wait_for  # noqa: E402
from warm_programs import installed  # noqa: E402
from host import LIBC, PR_SET_CHILD_SUBREAPER, cordon_cgroups  # noqa: E402

HELLO = "print(6 * 7)"
KILLED = signal.SIGKILL


@pytest.fixture
def engine():
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip(f"{PROGRAM} was not built")
    with Engine() as engine:
        engine.run_warm("python", HELLO)
        yield engine


def pool_of(engine, name="python/base"):
    return next(pool for (named, kind), pool in engine.pools().items() if named == name and kind != "slots")


def assert_hello(result):
    assert (result["status"], result["exit_code"], result["stdout"], result["stderr"]) == ("ok", 0, "42\n", ""), result


def need_zygote(engine):
    if not wait_for(engine.zygotes, 5):
        pytest.skip("no language forks its interpreters here")


def kill(pids):
    killed = 0
    for pid in pids:
        try:
            os.kill(pid, KILLED)
            killed += 1
        except ProcessLookupError:
            pass
    return killed


def assert_tidy(engine):
    """Nothing beneath the warden but what waits, and nothing dead."""
    assert wait_for(lambda: not [pid for pid, (state, _) in children(engine.warden).items() if state == "Z"], 5), children(engine.warden)

    def only_who_waits():  # what ended last may still be on its way out
        return len(engine.cells()) <= 2 * (sum(pool["ready"] for pool in engine.pools().values()) + 4)
    assert wait_for(only_who_waits, 5), (children(engine.warden), engine.pools())


# Zygotes


def test_a_dead_zygote_is_replaced(engine):
    need_zygote(engine)
    for _ in range(3):
        began = pool_of(engine)
        assert wait_for(lambda: kill(engine.zygotes()), 10)
        times = []
        for _ in range(2 * began["target"] + 4):
            start = time.monotonic()
            assert_hello(engine.run("python", HELLO))
            times.append(time.monotonic() - start)
        assert max(times) < 5, f"a run waited for a zygote that nobody started: {times}"
        assert wait_for(lambda: pool_of(engine)["zygote"]["state"] == "serving"), pool_of(engine)
        ended = pool_of(engine)
        assert ended["failed"] > began["failed"] and ended["zygote"]["started"] > began["zygote"]["started"], ended
        assert "zygote" in ended["failure"]
        assert engine.run_warm("python", HELLO)["enforced"]["shares_layout"]
    assert_tidy(engine)


def makers(engine):
    """Who clones the inits of slots, and the helper by which it does: not an init, which has their name at first."""
    named = [pid for pid, (_, name) in children(engine.warden).items() if name == "cordon-maker"]
    return [pid for pid in named if f"NSpid:\t{pid}\n" in read(f"/proc/{pid}/status")]


@pytest.mark.parametrize("prey, pause", [(Engine.zygotes, 0.05), (Engine.zygotes, 0.3), (makers, 0.002), (makers, 0.1)],
                         ids=["zygotes before they serve", "zygotes while they serve", "makers at once", "makers"])
def test_who_makes_cells_may_die_under_load(prey, pause):
    with Engine("--cancel-percent", "10", threads=4) as engine:
        engine.run_warm("python", HELLO)
        need_zygote(engine)
        stop, kills = threading.Event(), []

        def hunt():
            while not stop.wait(pause):
                kills.append(kill(prey(engine)))

        hunter = threading.Thread(target=hunt)
        hunter.start()
        end, runs, slowest = time.monotonic() + 4, 0, 0
        try:
            while time.monotonic() < end:
                begin = time.monotonic()
                answers = [engine._take(number) for number in [engine.start("python", HELLO) for _ in range(20)]]
                slowest = max(slowest, time.monotonic() - begin)
                runs += len(answers)
                for answer in answers:
                    assert "error" not in answer, answer
                    if not (answer["cancelled"] and answer["result"]["status"] == "cancelled"):
                        assert_hello(answer["result"])
        finally:
            stop.set()
            hunter.join()
        assert runs >= 40 and sum(kills) >= 3, (runs, kills)
        assert slowest < 6, f"20 runs took {slowest:.1f} s: they waited for a zygote that nobody started"
        assert pool_of(engine)["failed"] >= 3
        assert {engine.run("python", HELLO)["status"] for _ in range(10)} <= {"ok", "cancelled"}
        assert_tidy(engine)


def test_a_slot_that_cannot_be_made_says_why():
    """The control and the kernel's own reason, where it allows no further namespace of a kind."""
    prefix = ["unshare", "-Ur", "sh", "-c", 'echo 0 > "$0" && exec "$@"', "/proc/sys/user/max_pid_namespaces"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace to try it in")
    with Engine(prefix=prefix) as engine:
        with pytest.raises(AssertionError, match="pidns"):
            engine.run("bash", "echo ran", optional=["cgroup"])

        def failures():
            return [pool["failure"] for pool in engine.pools().values() if pool["failed"]]
        assert wait_for(failures) and all(os.strerror(errno.ENOSPC) in each for each in failures()), engine.pools()


def test_a_zygote_that_never_serves_is_given_up():
    with Engine() as engine:
        number = engine.start("python", HELLO)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            kill(engine.zygotes())
            if next((pool for pool in engine.pools().values() if pool["zygote"]["state"] == "given up"), None):
                break
        assert_hello(engine.finish(number))
        pool = pool_of(engine)
        assert pool["zygote"]["state"] == "given up" and pool["kind"] == "started", pool
        assert pool["failed"] >= 3 and "zygote" in pool["failure"], pool
        result = engine.run_warm("python", HELLO)
        assert_hello(result)
        assert result["enforced"]["shares_layout"] is False
        assert_tidy(engine)


# The warden


def test_cells_that_died_waiting_are_not_used(engine):
    """One of them had been given to the library already."""
    for _ in range(2):
        engine.run_warm("python", HELLO)
        assert wait_for(lambda: pool_of(engine)["ready"] > 1)
        time.sleep(0.05)
        dead = engine.cells()
        assert kill(dead) and wait_for(lambda: not set(dead) & set(engine.cells()))
        for _ in range(4):
            assert_hello(engine.run("python", HELLO))
    assert_tidy(engine)


def alive(pids):
    """Those that still do anything. The dead whose warden is gone are ours to reap: until then their init stays."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return [pid for pid in pids if read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])]


def test_a_killed_warden_takes_everything_along(engine):
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    warden, caller = engine.warden, engine.process.pid
    engine.run("bash", "echo")
    engine.settled()
    beneath = list(children(warden))
    assert len(beneath) > 4
    os.kill(warden, KILLED)
    wait_for(lambda: not alive(beneath), 1)
    assert not alive(beneath), [read(f"/proc/{pid}/cmdline") for pid in alive(beneath)]
    answer = engine._take(engine.start("python", HELLO))
    assert "error" in answer or answer["result"]["status"] == "internal_error", answer
    engine.close()
    with Engine() as after:
        after.out("python", HELLO)
        left = wait_for(lambda: not groups_of(warden), 2) or groups_of(warden)
        assert left is True, left
    assert not alive([caller])


def groups_of(warden):
    return [path for path in cordon_cgroups() if os.path.basename(path).startswith(f"cordon-{warden}-")]


def test_a_closed_engine_leaves_nothing(engine):
    engine.many(20, "python", HELLO)
    engine.settled()
    warden, beneath = engine.warden, list(children(engine.warden))
    report = engine.close()
    assert report["errors"] == 0 and report["statuses"]["ok"] >= 21, report
    wait_for(lambda: not alive([warden, *beneath]), 2)
    assert not alive([warden, *beneath])
    assert not groups_of(warden)


# Many at once, little to live on, long waits


def test_threads_may_warm_the_same_pool():
    with Engine("--prewarm", "3", threads=4) as engine:
        for result in engine.many(12, "python", HELLO):
            assert_hello(result)
        assert engine.close()["unwarmed"] == 0


def test_few_descriptors_are_left_to_the_runs():
    programs = {"python": HELLO, "bash": "echo 42", "perl": 'print "42\n"', "ruby": "puts 42", "lua": "print(42)", "php": '<?php echo "42\n";'}
    with Engine(threads=4, prefix=["prlimit", "--nofile=512:512"]) as engine:
        for _ in range(4):
            for language in filter(installed, programs):
                for result in engine.many(6, language, programs[language]):
                    assert_hello(result)


@pytest.fixture(scope="module", autouse=True)
def long_waits():
    """Runs in cells that waited for more than half a minute; it passes while the other tests run."""
    results, stop = [], threading.Event()

    def wait():
        with Engine(threads=1) as engine:
            for pause in (0, 18, 14):
                if stop.wait(pause):
                    return
                results.extend(engine._take(engine.start(*program)) for program in (("bash", "echo 42"), ("python", HELLO)))

    waiter = threading.Thread(target=wait)
    waiter.start()
    yield waiter, results
    stop.set()
    waiter.join()


# Limits at the hand-over

ALLOCATE = "kept = bytearray(300 << 20)\nfor at in range(0, len(kept), 4096): kept[at] = 1"
FORK = "import os, time\nfor _ in range(30):\n    if os.fork() == 0: time.sleep(20)"
OPEN = "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError: print(len(files), flush=True)"
LIMITS = {
    "memory": ({"memory_bytes": 64 << 20}, ALLOCATE, "memory_limit"),
    "processes": ({"processes": 5}, FORK, "process_limit"),
    "disk": ({"disk_bytes": 1 << 20}, "open('big', 'wb').write(bytes(4 << 20))", "disk_limit"),
    "inodes": ({"inodes": 64}, "for n in range(200): open(f'f{n}', 'w').close()", "disk_limit"),
    "file size": ({"file_bytes": 64 << 10}, "open('big', 'wb').write(bytes(1 << 20))", "disk_limit"),
    "wall": ({"wall_ms": 1000}, "import time; time.sleep(30)", "wall_limit"),
    "cpu": ({"cpu_ms": 300}, "while True: pass", "cpu_limit"),
    "open files": ({"open_files": 32}, OPEN, "ok"),
    "output": ({"output_bytes": 1000}, "print('x' * 5000)", "ok"),
    "more memory": ({"memory_bytes": 768 << 20}, "kept = bytearray(600 << 20)\nfor at in range(0, len(kept), 4096): kept[at] = 1", "ok"),
    "more processes": ({"processes": 150}, "import os, time\nfor _ in range(120):\n    if os.fork() == 0: time.sleep(20)", "ok"),
    "more open files": ({"open_files": 4096}, "files = [open('/dev/null') for _ in range(3000)]", "ok"),
    "more disk": ({"disk_bytes": 384 << 20}, "open('big', 'wb').write(bytes(300 << 20))", "ok"),
    "more time": ({"cpu_ms": 20000, "wall_ms": 20000}, HELLO, "ok"),
}
NEEDS_GROUP = {"memory", "processes", "more memory", "cpus"}


@pytest.fixture(scope="module")
def limited():
    """One engine for all limits, so that each meets cells that were made with another."""
    with Engine(threads=1) as engine:
        engine.run_warm("python", HELLO)
        yield engine


# Where there is no control group, there is no bound of this kind to test.
@pytest.mark.parametrize("name", [name for name in LIMITS if not (OPTIONAL and name in NEEDS_GROUP)])
def test_limits_are_the_requests(limited, name):
    limits, code, status = LIMITS[name]
    # Not everybody may raise what a process was started with: those runs get a cell that is not quite as ready.
    run = limited.run if name.startswith("more") else limited.run_warm
    assert_hello(run("python", HELLO, limits=limits))
    result = run("python", code, limits=limits)
    assert result["status"] == status, result
    for limit, value in limits.items():
        assert result["limits"][limit] == value
    if name == "wall":
        assert 1000 <= result["usage"]["wall_ms"] < 4000
    if name == "open files":
        assert 20 <= int(result["stdout"]) < 32
    if name == "output":
        assert result["stdout_truncated"] and len(result["stdout"]) < 1500
    assert_hello(limited.run("python", HELLO))


def half_a_processor(limited):
    code = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"
    limited.run_warm("python", HELLO, limits={"cpus": 0.5})
    usage = limited.run_warm("python", code, limits={"cpus": 0.5})["usage"]
    assert usage["cpu_user_ms"] + usage["cpu_system_ms"] < 0.7 * usage["wall_ms"], usage


if not OPTIONAL:
    test_half_a_processor = half_a_processor


# The kernel kills in a group before anybody listens for it, and later.
@pytest.mark.parametrize("pause", (0, 0.3))
def child_out_of_memory(limited, pause):
    code = f"import os, time\ntime.sleep({pause})\nif os.fork() == 0:\n    kept = bytearray(300 << 20)\ntime.sleep(20)"
    result = limited.run_warm("python", code, limits={"memory_bytes": 64 << 20})
    assert result["status"] == "memory_limit" and result["usage"]["wall_ms"] < 5000, result


if not OPTIONAL:
    test_child_out_of_memory = child_out_of_memory


def test_output_that_stops_the_run(limited):
    result = limited.run_warm("python", "while True: print('x' * 1000)", limits={"output_bytes": 1000}, on_output_limit="stop")
    assert result["status"] == "output_limit", result


def test_program_files_are_not_the_programs_writing(limited):
    """A limit on what the program writes does not hit its own text, whoever puts that into place."""
    text = HELLO + "\n#" + "x" * 20000
    assert_hello(limited.run("python", text, limits={"file_bytes": 1024}))
    assert_hello(limited.run("python", text, limits={"file_bytes": 1024}, warm=False))
    for warm in (True, False):
        answer = limited._take(limited.start("python", text, limits={"disk_bytes": 8192}, warm=warm))
        assert "do not fit" in answer.get("error", {}).get("text", ""), answer


def test_what_waiting_took_is_not_the_programs(limited):
    for _ in range(5):
        result = limited.run_warm("python", HELLO)
        assert_hello(result)
        usage = result["usage"]
        assert usage["cpu_user_ms"] + usage["cpu_system_ms"] < 50, usage
        assert usage["processes_peak"] <= 2 and usage["disk_bytes"] < 1 << 20, usage


# Runs that need a start of their own


@pytest.mark.parametrize("request_", [{"warm": False}, {"env": {"PYTHONPATH": "/work"}}, {"env": {"LD_BIND_NOW": "1"}}, {"env": {"TZ": "Asia/Tokyo"}}],
                         ids=["asked", "PYTHONPATH", "LD_BIND_NOW", "TZ"])
def test_a_start_of_its_own(limited, request_):
    result = limited.run("python", "import os, time\nprint(6 * 7, os.environ.get('PYTHONPATH'), time.tzname[0])", **request_)
    assert result["status"] == "ok" and result["enforced"]["warm"] is False, result
    env = request_.get("env", {})
    assert result["stdout"].split() == ["42", env.get("PYTHONPATH", "None"), "JST" if "TZ" in env else "UTC"]


def test_a_mount(limited, tmp_path):
    (tmp_path / "given.txt").write_text("from outside")
    tmp_path.chmod(0o755)
    for destination in ("/work/data", "/data"):
        result = limited.run("python", f"print(open('{destination}/given.txt').read())",
                             mounts=[{"source": str(tmp_path), "destination": destination}])
        assert (result["status"], result["stdout"]) == ("ok", "from outside\n"), result
        assert result["enforced"]["warm"] is False


def test_a_program_too_large_for_the_hand_over(limited):
    text = HELLO + "\n#" + "x" * 300000
    assert_hello(limited.run("python", text))
    files = {"main.py": "import os; print(sum(len(n) for _, _, n in os.walk('.')))"} | {f"d{n % 7}/f{n}.txt": "x" for n in range(1000)}
    assert limited.out("python", files=files) == "1001\n"


# Nothing is used up


def spent_ns(pid):
    return sum(int((read(path) or "0").split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def spent_while_waiting(engine):
    """{name: ms} of what moved in three seconds."""
    processes = [engine.warden, *children(engine.warden)]
    before = {pid: spent_ns(pid) for pid in processes}
    time.sleep(3)
    moved = {read(f"/proc/{pid}/comm").strip() + f"-{pid}": (spent_ns(pid) - before[pid]) / 1e6 for pid in processes}
    assert len(processes) > 6 and list(children(engine.warden)) == processes[1:]
    return {name: ms for name, ms in moved.items() if ms}


def test_waiting_takes_no_time(engine):
    for language in filter(installed, ("bash", "javascript", "ruby", "perl", "php")):
        engine.run(language, "")
    engine.many(10, "python", HELLO)
    assert engine.settled(), engine.pools()
    time.sleep(1)
    # Pools are looked through every ten seconds, which costs more on a machine that is slow just then; spinning costs 3000.
    moved = [spent_while_waiting(engine) for _ in range(2)]
    assert min(sum(each.values()) for each in moved) < 5 and max(sum(each.values()) for each in moved) < 60, moved
    assert {state for state, _ in children(engine.warden).values()} == {"S"}


def test_many_runs_use_up_nothing():
    """The short form of `make soak`."""
    done = subprocess.run([ROOT / "tests" / "soak" / "run", "--runs", "600", "--languages", "python,bash,javascript,ruby"],
                          capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cell_may_wait_long(long_waits):
    waiter, results = long_waits
    waiter.join(60)
    assert len(results) == 6
    for answer in results:
        assert "error" not in answer, answer
        assert_hello(answer["result"])
