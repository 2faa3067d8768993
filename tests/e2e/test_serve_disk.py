"""The daemon while the disk of its data directory does not answer: everything that does not need the disk goes on, and
what it had to write down is written when the disk answers again.

The disk is stopped within the daemon, by a library that is loaded before libc (tests/support/stall.c)."""
import contextlib
import os
import pathlib
import tempfile
import threading

from helpers import CORDON, skip, wait_for
from serve_fixtures import support

STALL = pathlib.Path(CORDON).parent / "tests" / "stall.so"
TICKS = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.02)"


@contextlib.contextmanager
def stallable(*flags):
    """A daemon, and a function that stops its disk or lets it go on."""
    if not STALL.exists():
        skip(f"{STALL} is not built")
    if os.environ.get("CORDON_TEST_SANITIZED") == "1":
        skip("the sanitizer has to be loaded first", expected=False)
    with tempfile.TemporaryDirectory(prefix="cordon-stall-", dir=support.QUICK) as place:
        data, flag = pathlib.Path(place) / "data", pathlib.Path(place) / "flag"
        data.mkdir()
        flag.write_bytes(b"\0")
        os.chmod(place, 0o755)

        def stall(on):
            with open(flag, "r+b") as file:
                file.write(b"\1" if on else b"\0")
        env = {"LD_PRELOAD": str(STALL), "STALL_FLAG": str(flag), "STALL_DIR": str(data)}
        daemon = support.Daemon(*flags, data=data, env=env).wait_ready()
        try:
            yield daemon, stall
        finally:
            stall(False)
            daemon.stop()


def background(daemon, method, path, body=None, key=None):
    """A call that is not answered as long as the disk is stopped; the list gets its answer."""
    answers = []
    caller = threading.Thread(target=lambda: answers.append(daemon.request(method, path, body, key=key, timeout=300)))
    caller.start()
    return caller, answers


def test_the_loop_goes_on_without_the_disk():
    with stallable("--concurrency", "4") as (daemon, stall):
        old = daemon.execute("bash", "echo before")["id"]
        wait_for(lambda: daemon.get("/v1/executions").json["items"], 10)
        stream = daemon.stream("POST", "/v1/execute", {"language": "python", "code": TICKS})
        assert stream.until("stdout")["data"].startswith("0")
        stall(True)
        asked = [background(daemon, "GET", "/v1/executions") for _ in range(12)]
        asked += [background(daemon, "POST", "/v1/executions", {"language": "bash", "code": "echo later"})]
        asked += [background(daemon, "GET", f"/v1/executions/{old}/report") for _ in range(4)]
        ids = [daemon.execute("python", "print('x' * (1 << 20))")["id"] for _ in range(20)]
        assert daemon.get("/healthz").status == 200
        rest = stream.rest()
        assert rest[-1]["type"] == "result" and rest[-1]["result"]["stdout"].split() == [str(i) for i in range(40)]
        assert not asked[12][1], "a run was accepted for later: the disk answers, and the test shows nothing"
        # What has ended and is not on the disk yet is still known.
        assert daemon.get(f"/v1/executions/{ids[0]}").json["status"] == "ok"
        assert daemon.get("/metrics", check=False).status == 200
        stall(False)
        for caller, answers in asked:
            caller.join()
            assert answers[0].status in (200, 202), answers[0]
        listed = {item["id"] for item in daemon.get("/v1/executions?limit=100").json["items"]}
        assert listed >= {old, *ids, rest[-1]["result"]["id"]}
        data = daemon.data
        daemon.signal()
        daemon.process.wait(30)
        done = support.cordon.cordon("verify-ledger", "--data-dir", data)
        assert done.returncode == 0, done.stdout + done.stderr


def test_keys_and_quotas_need_no_disk():
    with stallable("--require-keys") as (daemon, stall):
        key = daemon.new_key("--cpu-per-day", "1h")
        stall(True)
        for _ in range(3):
            assert daemon.post("/v1/execute", {"language": "bash", "code": "echo 1"}, key=key).json["status"] == "ok"
        assert daemon.get("/healthz").status == 200
        assert daemon.get("/v1/languages", key=key).status == 200


def test_a_new_day_or_a_changed_key_does_not_wait_for_the_disk():
    """A key that is made meanwhile is not known yet; the others are."""
    with stallable("--require-keys") as (daemon, stall):
        key = daemon.new_key()
        stall(True)
        done = support.cordon.cordon("key", "new", "--name", "late", "--data-dir", daemon.data)
        assert done.returncode == 0, done.stderr
        late = done.stdout.decode().strip()
        assert daemon.get("/v1/languages", key=key).status == 200
        assert daemon.get("/v1/languages", key=late).status == 401
        assert daemon.get("/healthz").status == 200
        stall(False)
        wait_for(lambda: daemon.get("/v1/languages", key=late).status == 200, 20, 0.05)


def test_more_than_the_daemon_may_hold_is_refused():
    """Results that cannot be written down are held up to a bound; then runs are refused, and say why."""
    with stallable("--concurrency", "4") as (daemon, stall):
        code = "import sys\nsys.stdout.write('x' * (12 << 20))"
        request = {"language": "python", "code": code, "limits": {"output_bytes": "16m", "memory_bytes": "256m"}}
        stall(True)
        answers = []
        while len(answers) < 60 and (not answers or answers[-1].status == 200):
            answers.append(daemon.post("/v1/execute", request))
        assert answers[-1].status in (429, 503) and len(answers) > 2, answers[-1]
        assert daemon.get("/healthz").status == 200
        stall(False)
        wait_for(lambda: daemon.post("/v1/execute", request).status == 200, 60, 0.1)
