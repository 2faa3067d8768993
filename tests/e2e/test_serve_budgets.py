"""`cordon serve` holds what its callers make it hold within a budget. Each attack runs against a daemon in a control group
of its own whose memory limit stands for the machine: a daemon that holds too much is killed there, and the test fails."""
import collections
import json
import os
import socket
import tempfile
import time

import pytest

from helpers import skip, wait_for
from serve_fixtures import SLEEP, problem, support  # noqa: F401

MIB = 1 << 20


@pytest.fixture
def group():
    """A gibibyte for the daemon and its cells."""
    if os.geteuid() != 0:
        skip("a control group with a memory limit needs the superuser", False)
    try:
        made = support.MemoryGroup(1024 * MIB)
    except OSError as error:
        skip(f"no control group with a memory limit: {error}")
    with made:
        yield made


@pytest.fixture
def disk_dir():
    """A data directory on a disk: what lies in a tmpfs counts as the daemon's memory."""
    with tempfile.TemporaryDirectory(prefix="cordon-test-", dir="/var/tmp") as path:
        os.chmod(path, 0o755)
        yield os.path.join(path, "data")


def held(daemon, name):
    """(what is held, the most) of one budget in bytes."""
    found = {}
    for line in daemon.get("/metrics", check=False).body.decode().splitlines():
        if f'budget="{name}"' in line:
            found[line.split("{")[0]] = float(line.rsplit(" ", 1)[1])
    return found["cordon_held"], found["cordon_held_most"]


# Output


FLOOD = "head -c {n} /dev/zero | tr '\\0' '{c}' & head -c {n} /dev/zero | tr '\\0' '{c}' >&2; wait"


@pytest.mark.parametrize("wanted", ("1g", "17m", "unlimited"))
def test_output_has_a_ceiling(wanted):
    with support.Daemon("--allow-unlimited") as own:
        for path in ("/v1/execute", "/v1/executions"):
            answer = own.post(path, {"language": "bash", "code": ":", "limits": {"output_bytes": wanted}})
            assert "ceiling of 16777216" in problem(answer, 400, field="/limits/output_bytes")["detail"]
        assert own.get("/v1/limits").json["ceilings"]["output_bytes"] == 16 * MIB


@pytest.mark.parametrize("language,more,bytes_more", [
    ("bash", {"collect": ["*"]}, 96 * MIB),  # 8 MiB of files
    ("c", {}, 24 * MIB),  # what a compiler may print
])
def test_what_a_run_may_leave_besides_its_output_is_charged_too(language, more, bytes_more):
    with support.Daemon("--held-bytes", "4g") as own:
        plain = {"language": "bash", "code": "sleep 30"}
        code = plain["code"] if language == "bash" else '#include <unistd.h>\nint main(void) { sleep(30); }'
        charged = []
        for request in (plain, {"language": language, "code": code, **more}):
            run = own.post("/v1/executions", request).json["id"]
            assert wait_for(lambda: held(own, "output")[0])
            charged.append(held(own, "output")[0])
            own.delete(f"/v1/executions/{run}")
            assert wait_for(lambda: not held(own, "output")[0])
        assert charged[1] - charged[0] == bytes_more, charged


def test_a_run_that_collects_fits_into_a_small_budget():
    with support.Daemon("--held-bytes", "128m") as own:
        result = own.post("/v1/execute", {"language": "bash", "code": "echo ok > a", "collect": ["a"]}).json
        assert [file["path"] for file in result["files"]] == ["a"], result


def test_what_tests_capture_is_charged_and_not_all_of_it_is_kept():
    """Cases raise the bound of the program's output, so that what is expected fits into what is compared."""
    with support.Daemon("--held-bytes", "4g") as own:
        code = "import os, time\nfor _ in range(4 << 4): os.write(1, b'x' * 65536)\ntime.sleep(2)\n"
        request = {"language": "python", "code": code, "tests": {"cases": [{"expected": "x" * (4 << 20)}]}}
        plain = own.post("/v1/executions", {"language": "python", "code": "import time; time.sleep(30)"}).json["id"]
        assert wait_for(lambda: held(own, "output")[0])
        usual = held(own, "output")[0]
        own.delete(f"/v1/executions/{plain}")
        assert wait_for(lambda: not held(own, "output")[0])
        run = own.post("/v1/executions", request).json["id"]
        assert wait_for(lambda: held(own, "output")[0])
        assert held(own, "output")[0] - usual >= 2 * (4 << 20), "both streams of the case"
        result = own.result(run)
        assert result["tests"]["passed"] == 1 and result["stdout_truncated"], result["tests"]
        assert len(result["stdout"]) < (1 << 20) + 100 and "bytes cut]" in result["stdout"]


def test_secret_values_are_charged_with_the_request():
    """What looks for them in the output takes some 500 times their size."""
    with support.Daemon("--held-bytes", "128m") as own:
        def request(size):
            secrets = {f"V{i}": {"value": os.urandom(size // 8).hex()[:size // 4], "secret": True} for i in range(4)}
            return {"language": "bash", "code": "sleep 30", "env": secrets}
        detail = problem(own.post("/v1/executions", request(16384)), 400)["detail"]
        assert "more than 8192 bytes together" in detail
        answers = [own.post("/v1/executions", request(8000)) for _ in range(8)]
        assert answers[0].status == 202 and held(own, "requests")[0] > 1 * MIB
        assert problem(answers[-1], 429, "budget")["budget"] == "requests"
        assert held(own, "requests")[0] <= held(own, "requests")[1]


def test_long_runs_leave_places():
    with support.Daemon("--concurrency", "4") as own:
        long = {"language": "bash", "code": "sleep 60", "limits": {"wall_ms": "1h"}}
        ids = [own.post("/v1/executions", long).json["id"] for _ in range(5)]
        states = [own.get(f"/v1/executions/{run}").json["state"] for run in ids]
        assert sorted(states) == ["queued"] * 2 + ["running"] * 3, states
        assert own.execute("bash", "echo ok")["stdout"] == "ok\n"


def test_output_beyond_the_budget_is_refused(group):
    with support.Daemon(prefix=group.prefix) as own:
        answer = own.post("/v1/execute", {"language": "bash", "code": ":", "limits": {"output_bytes": "16m"}})
        assert problem(answer, 413, "budget")["budget"] == "output"
        assert own.execute("bash", "echo ok")["stdout"] == "ok\n"


@pytest.mark.parametrize("character", ("\\1", "\\377", "x"))
def test_output_that_grows_in_json(group, disk_dir, character):
    """Control characters become six bytes of JSON each, bytes that are no text three."""
    with support.Daemon("--concurrency", "8", "--set", "ceilings=wall_ms=60s", "--queue-wait-ms", "5m", data=disk_dir, prefix=group.prefix) as own:
        code = FLOOD.format(n=5 * MIB, c=character)
        runs = [own.start("bash", code, limits={"output_bytes": 5 * MIB, "memory_bytes": "64m", "wall_ms": "60s"}) for _ in range(4)]
        results = [own.result(run, 120) for run in runs]
        assert [each["status"] for each in results] == 4 * ["ok"], [each["reason"] for each in results]
        print(f"\npeak {group.peak() / MIB:.0f} of {group.limit / MIB:.0f} MiB")


def ask_and_never_read(own, path, count, accept="*/*"):
    """Sockets that asked and do not read the answer."""
    sockets = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", own.port), timeout=10)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
        sockets.append(sock)
    return sockets


@pytest.mark.parametrize("path", ("/v1/executions/{}/events", "/v1/executions/{}"))
def test_readers_of_one_run_share_its_bytes(group, disk_dir, path):
    """Ninety of them, of a run of which 16 MiB are kept."""
    with support.Daemon("--set", "ceilings=wall_ms=60s", data=disk_dir, prefix=group.prefix) as own:
        run = own.start("bash", FLOOD.format(n=4 * MIB, c="x"), limits={"output_bytes": "5m", "memory_bytes": "64m", "wall_ms": "60s"})
        expected = own.result(run, 60)
        before = group.peak()
        sockets = ask_and_never_read(own, path.format(run), 90, "text/event-stream")
        try:
            assert own.result(run) == expected
            events = own.stream("GET", f"/v1/executions/{run}/events").rest()
            assert support.text_of(events) == expected["stdout"] and events[-1]["result"] == expected
            print(f"\npeak {before / MIB:.0f} MiB before, {group.peak() / MIB:.0f} with readers")
            assert held(own, "answers")[0] > 0 or "events" not in path
        finally:
            for sock in sockets:
                sock.close()
        wait_for(lambda: held(own, "answers")[0] == 0)


def test_readers_of_a_large_run_in_the_history(group, disk_dir):
    """It is too large to be kept in memory: each reading of it makes it anew, so only as many as there is room for."""
    with support.Daemon("--set", "ceilings=wall_ms=60s", data=disk_dir, prefix=group.prefix) as own:
        run = own.start("bash", FLOOD.format(n=5 * MIB, c="\\1"), limits={"output_bytes": "5m", "memory_bytes": "64m", "wall_ms": "60s"})
        own.result(run, 60)
        sockets = ask_and_never_read(own, f"/v1/executions/{run}", 90)
        try:
            statuses = collections.Counter(int(sock.recv(12).split()[1]) for sock in sockets)
            assert set(statuses) == {200, 429} and statuses[429] > 60, statuses
            assert own.execute("bash", "echo ok")["stdout"] == "ok\n"
            print(f"\npeak {group.peak() / MIB:.0f} MiB, {statuses}")
        finally:
            for sock in sockets:
                sock.close()
        wait_for(lambda: own.get(f"/v1/executions/{run}").status == 200)


def test_followers_beyond_the_budget_are_refused():
    """Each is small, but they are many: one caller may have half of what there is for answers."""
    with support.Daemon("--set", "held_bytes=128m", "--drain-ms", "100ms") as own:
        run = own.start("python", SLEEP)
        streams = []
        with pytest.raises(AssertionError, match="429"):
            for _ in range(100):
                streams.append(own.stream("GET", f"/v1/executions/{run}/events"))
        assert len(streams) == 25, len(streams)
        answer = own.get(f"/v1/executions/{run}/events")
        assert problem(answer, 429, "budget")["budget"] == "answers" and answer.headers["Retry-After"]
        streams.pop().close()
        wait_for(lambda: held(own, "answers")[0] == 24 * (256 << 10))
        own.stream("GET", f"/v1/executions/{run}/events").close()
        for stream in streams:
            stream.close()


# Requests


def test_queued_requests_are_bounded(group, disk_dir):
    """A hundred of 15 MiB each that wait for a place: one caller holds as many as its budget has room for."""
    with support.Daemon("--concurrency", "1", "--queue-wait-ms", "5m", "--drain-ms", "100ms", data=disk_dir, prefix=group.prefix) as own:
        blocker = own.start("python", SLEEP)
        body = json.dumps({"language": "bash", "code": "echo ran", "stdin": "x" * (15 * MIB)}).encode()
        answers = [own.post("/v1/executions", body) for _ in range(40)]
        statuses = collections.Counter(answer.status for answer in answers)
        assert set(statuses) == {202, 429} and statuses[202] == 1, statuses
        assert {problem(answer, 429, "budget")["budget"] for answer in answers[1:]} == {"requests"}
        small = own.start("bash", "echo small")
        own.delete(f"/v1/executions/{blocker}")
        assert own.result(answers[0].json["id"])["stdout"] == "ran\n" and own.result(small)["stdout"] == "small\n"
        wait_for(lambda: own.post("/v1/execute", body).status == 200)
        print(f"\npeak {group.peak() / MIB:.0f} of {group.limit / MIB:.0f} MiB, {statuses}")


def test_a_request_of_many_values_counts_as_what_it_becomes():
    """A value of two bytes is one of hundreds in memory."""
    with support.Daemon("--set", "held_bytes=128m") as own:
        cases = ",".join(["{}"] * 90000)
        body = f'{{"language":"bash","code":":","tests":{{"cases":[{cases}]}}}}'.encode()
        assert problem(own.post("/v1/tests", body), 413, "budget")["budget"] == "requests"
        assert held(own, "requests")[0] == held(own, "bodies")[0] == 0


def test_half_sent_bodies_are_bounded(group, disk_dir):
    with support.Daemon(data=disk_dir, prefix=group.prefix) as own:
        sockets, head = [], f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: {15 * MIB}\r\n\r\n".encode()
        for _ in range(80):
            sock = own.socket(20)
            sock.sendall(head + b" " * (14 * MIB))
            sockets.append(sock)
        assert own.execute("bash", "echo ok")["stdout"] == "ok\n"
        held_bytes, most = held(own, "bodies")
        assert 14 * MIB <= held_bytes <= most / 2, held_bytes
        sockets[-1].sendall(b" " * MIB)
        assert b" 429 " in sockets[-1].recv(4096)
        for sock in sockets:
            sock.close()
        wait_for(lambda: held(own, "bodies")[0] == 0)
        print(f"\npeak {group.peak() / MIB:.0f} of {group.limit / MIB:.0f} MiB")


# Connections


def seconds_of_health(own):
    begin = time.monotonic()
    assert own.get("/healthz", timeout=10).status == 200
    return time.monotonic() - begin


def test_followers_leave_connections_to_others():
    """However many follow a run: health, metrics, and another key are answered."""
    with support.Daemon("--require-keys", "--connections", "40", "--drain-ms", "100ms") as own:
        flood, other, admin = own.new_key(), own.new_key(), own.new_key("--scopes", "admin")
        run = own.start("python", SLEEP, key=flood)
        head = f"GET /v1/executions/{run}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {flood}\r\n\r\n"
        sockets = []
        for _ in range(300):
            sock = own.socket(5)
            sock.sendall(head.encode())
            sockets.append(sock)
        took = [seconds_of_health(own) for _ in range(20)]
        assert own.get("/metrics", key=admin).status == 200
        assert own.post("/v1/execute", {"language": "bash", "code": "echo ok"}, key=other).status == 200
        answer = own.get("/v1/languages", key=flood)
        assert problem(answer, 429, "budget")["budget"] == "calls"
        print(f"\n/healthz within {max(took):.3f} s beside 300 that follow")
        for sock in sockets:
            sock.close()
        wait_for(lambda: own.get("/v1/languages", key=flood).status == 200)


def test_idle_connections_leave_room():
    with support.Daemon("--connections", "40") as own:
        sockets = [own.socket(5) for _ in range(300)]
        took = [seconds_of_health(own) for _ in range(20)]
        print(f"\n/healthz within {max(took):.3f} s beside 300 that say nothing")
        for sock in sockets:
            sock.close()


# What one caller must not push out of another


def test_idempotency_keys_of_others_stay():
    """A caller that sends very many forgets its own."""
    with support.Daemon("--require-keys") as own:
        one, flood = own.new_key(), own.new_key()
        body = {"language": "bash", "code": "echo $RANDOM$RANDOM"}
        first = own.post("/v1/execute", body, key=one, headers={"Idempotency-Key": "mine"}).json["id"]
        oldest = own.post("/v1/execute", body, key=flood, headers={"Idempotency-Key": "0"}).json["id"]
        batch = {"requests": [{"language": "none", "code": ":"}]}
        connection = own.connect()
        for number in range(1, 4200):
            assert own.post("/v1/batches", batch, key=flood, headers={"Idempotency-Key": str(number)}, connection=connection,
                            check=False).status == 202
        connection.close()
        assert own.post("/v1/execute", body, key=one, headers={"Idempotency-Key": "mine"}).json["id"] == first
        assert own.post("/v1/execute", body, key=flood, headers={"Idempotency-Key": "0"}).json["id"] != oldest


def test_finished_batches_of_others_stay():
    with support.Daemon("--require-keys") as own:
        one, flood = own.new_key(), own.new_key()

        def batch(key):
            answer = own.post("/v1/batches", {"requests": [{"language": "none", "code": ":"}]}, key=key)
            assert answer.status == 202, answer
            return answer.json["id"]

        mine, theirs = batch(one), [batch(flood) for _ in range(80)]
        assert own.get(f"/v1/batches/{mine}", key=one).json["state"] == "done"
        assert own.get(f"/v1/batches/{theirs[-1]}", key=flood).status == 200
        assert own.get(f"/v1/batches/{theirs[0]}", key=flood).status == 404


def test_batches_are_bounded_in_bytes():
    """While they wait they are as large as they were sent."""
    with support.Daemon("--set", "held_bytes=128m", "--concurrency", "1", "--drain-ms", "100ms") as own:
        blocker = own.start("python", SLEEP)
        requests = [{"language": "bash", "code": "#" + "x" * 20000} for _ in range(100)]
        answers = [own.post("/v1/batches", {"requests": requests}) for _ in range(2)]
        assert [answer.status for answer in answers] == [202, 429] and problem(answers[1], 429, "budget")["budget"] == "batches"
        large = [{"language": "bash", "code": "#" + "x" * 50000} for _ in range(100)]
        assert problem(own.post("/v1/batches", {"requests": large}), 413, "budget")["budget"] == "batches"
        own.delete(f"/v1/executions/{blocker}")
        wait_for(lambda: own.get("/v1/batches/" + answers[0].json["id"]).json["state"] == "done", 60)
        assert own.post("/v1/batches", {"requests": requests}).status == 202
