"""`cordon serve` when clients misbehave, the disk fails or something is killed: it goes on, or says why not, and loses nothing
that it accepted."""
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

import pytest

from helpers import CORDON, mark, marked, skip, wait_for
from serve_fixtures import SLEEP, daemon, open_dir, percentile, support, wait_marked  # noqa: F401

RUN = {"language": "bash", "code": "echo 1"}
HEAD = b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\n"


def verify(data):
    done = subprocess.run([CORDON, "verify-ledger", "--data-dir", data], capture_output=True, check=False)
    assert done.returncode == 0, done
    return done.stdout.decode()


def is_alive(own):
    """That it still serves, promptly."""
    begin = time.monotonic()
    assert own.execute("bash", "echo alive")["stdout"] == "alive\n"
    took = time.monotonic() - begin
    assert took < 10, took
    return took


def exchange(own, text, seconds=1.5):
    """Sends bytes as they are; what came back before it closed or was silent for so long."""
    sock, got = own.socket(seconds), b""
    try:
        sock.sendall(text)
        while more := sock.recv(65536):
            got += more
            if whole := re.match(rb"(?s)HTTP/1.*?content-length: (\d+).*?\r\n\r\n", got, re.I):
                sock.settimeout(0.1 if len(got) >= whole.end() + int(whole[1]) else seconds)
    except OSError:
        pass
    finally:
        sock.close()
    return got


# What is no HTTP

MALFORMED = [
    b"\x00" * 100, b"\xff\xfe\xfd\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET  /healthz  HTTP/1.1\r\n\r\n",
    b"\r\n" * 1000, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(5000)) + b"\r\n",
    HEAD + b"Content-Length: x\r\n\r\n{}", HEAD + b"Content-Length: -1\r\n\r\n{}", HEAD + b"Content-Length: 5\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n", HEAD + b"Transfer-Encoding: gzip\r\n\r\nxx",
    b"GET /healthz HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET http://evil/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT evil:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


def test_malformed_http(daemon):
    """Nothing that is no request is answered with a success, and none of it disturbs."""
    for text in MALFORMED:
        got = exchange(daemon, text)
        assert not got or re.match(rb"HTTP/1\.[01] [45]\d\d ", got), (text[:100], got[:200])
    is_alive(daemon)


def test_smuggled_requests(daemon):
    """What follows a refused body is no request of its own."""
    inner = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for text in (HEAD + b"Content-Length: 99999999\r\n\r\n" + inner,
                 HEAD.replace(b"/v1/execute", b"/nothing") + b"Content-Length: %d\r\n\r\n" % len(inner) + inner,
                 HEAD + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner):
        assert b'"status":"ok"' not in exchange(daemon, text), text


def test_random_bytes(daemon):
    chance = random.Random(7)
    good = HEAD + b"Content-Length: 40\r\n\r\n" + b'{"language":"bash","code":"echo random"}'
    for _ in range(80):
        text = bytearray(good)
        for _ in range(chance.randrange(1, 8)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        exchange(daemon, bytes(text), 0.1)
    is_alive(daemon)


def test_deep_and_wide_json(daemon):
    for body in (b'{"a":' * 100000 + b"1" + b"}" * 100000, b"[" * 1000000, b'{"files":{' + b",".join(b'"f%d":"x"' % i for i in range(50000)) + b'},"language":"bash"}',
                 b'{"language":"' + b"x" * 1000000 + b'","code":"1"}', b'{"language":"bash","code":"1","args":[' + b'"a",' * 100000 + b'"a"]}',
                 b'{"language":"bash","code":":","env":{' + b",".join(b'"E%d":"x"' % i for i in range(100000)) + b"}}"):
        answer = daemon.post("/v1/execute", body, check=False)
        assert answer.status == 400 and answer.json["detail"], answer
        assert len(answer.body) < 4096, "an error repeats what was sent"
    is_alive(daemon)


# Clients that take their time


def slowly(own, first, then, gap=0.1):
    """Sends a piece now and then; for how long it was let."""
    sock = own.socket(30)
    begin = time.monotonic()
    try:
        sock.sendall(first)
        while time.monotonic() - begin < 20:
            time.sleep(gap)
            sock.sendall(then)
            sock.setblocking(False)
            try:
                if not sock.recv(65536):
                    break
            except BlockingIOError:
                pass
            sock.setblocking(True)
    except OSError:
        pass
    finally:
        sock.close()
    return time.monotonic() - begin


def test_slow_loris():
    """Headers and bodies that never end are cut off; others are served meanwhile."""
    with support.Daemon("--request-ms", "1s") as own:
        cases = {"headers": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"), "line": (HEAD, b"a"),
                 "body": (HEAD + b"Content-Length: 1000\r\n\r\n", b"{"), "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"),
                 "silent body": (HEAD + b"Content-Length: 1000\r\n\r\n", b"")}
        took = {}
        threads = [threading.Thread(target=lambda name=name, pieces=pieces: took.__setitem__(name, slowly(own, *pieces)))
                   for name, pieces in cases.items() for _ in range(4)]
        for thread in threads:
            thread.start()
        is_alive(own)
        for thread in threads:
            thread.join()
        assert set(took) == set(cases) and all(seconds < 8 for seconds in took.values()), took
        # A run may take longer than its request.
        assert own.execute("python", "import time; time.sleep(2.5); print('long')")["stdout"] == "long\n"


def test_a_thousand_idle_connections():
    """More than there are places for: who says nothing gives way to who does."""
    with support.Daemon("--connections", "200") as own:
        idle = []
        try:
            for _ in range(1000):
                sock = socket.socket()
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", own.port))
                idle.append(sock)
            times = [is_alive(own) for _ in range(5)]
            print(f"\nserved within {max(times):.2f} s beside 1000 idle connections")
        finally:
            for sock in idle:
                sock.close()
        is_alive(own)


def test_half_sent_requests_fill_no_memory():
    """Bodies are bounded together as well as one by one."""
    with support.Daemon("--body-bytes", "1m", "--connections", "100") as own:
        held = []
        for _ in range(40):
            sock = own.socket()
            sock.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
            sock.setblocking(False)
            try:
                for _ in range(16):
                    sock.send(b" " * 60000)
            except BlockingIOError:
                pass
            held.append(sock)
        time.sleep(0.5)
        with open(f"/proc/{own.pid}/status", encoding="utf-8") as file:
            resident = int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024
        print(f"\n{resident:.0f} MiB resident with 40 bodies half sent")
        for sock in held:
            sock.close()
        wait_for(lambda: own.post("/v1/execute", RUN).status == 200)


def test_a_client_that_vanishes(daemon):
    """With a reset, in the middle of a run and of a request."""
    word = mark()
    body = json.dumps({"language": "python", "code": SLEEP, "args": [word], "warm": False}).encode()
    socks = []
    for accept in (b"application/json", b"text/event-stream"):
        sock = daemon.socket()
        sock.sendall(HEAD + b"Accept: %s\r\nContent-Length: %d\r\n\r\n%s" % (accept, len(body), body))
        socks.append(sock)
    wait_for(lambda: len(marked(word)) >= 2, 20)
    half = daemon.socket()
    half.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    for sock in (*socks, half):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    begin = time.monotonic()
    wait_for(lambda: not marked(word), 5, 0.001)
    print(f"\ncells gone {1000 * (time.monotonic() - begin):.0f} ms after the reset")
    is_alive(daemon)


# Something is killed


@contextlib.contextmanager
def under_load(own):
    """Clients that go on to the end of the block; every answer they got."""
    stop, answers = threading.Event(), []

    def ask(number):
        while not stop.is_set():
            try:
                if number % 2:
                    answers.append(own.post("/v1/execute", {"language": "bash", "code": f"echo {number}"}, check=False))
                else:
                    answers.append(own.post("/v1/executions", {"language": "python", "code": "import time; time.sleep(0.05); print(1)"}, check=False))
                    time.sleep(0.1)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def check_after(data, answers):
    """Nothing that was accepted is lost, and the chain holds."""
    accepted = [answer.json["id"] for answer in answers if answer.status == 202]
    finished = [answer.json for answer in answers if answer.status == 200]
    assert accepted and finished
    with support.Daemon(data=data) as again:
        lost = 0
        for run in accepted:
            answer = again.get(f"/v1/executions/{run}")
            assert answer.status == 200 and answer.json["state"] == "done", answer
            assert answer.json["status"] in ("ok", "internal_error"), answer
            lost += answer.json["status"] == "internal_error"
            if answer.json["status"] == "internal_error":
                assert answer.json["reason"], answer
        is_alive(again)
        print(f"\n{len(accepted)} accepted, {lost} of them told that the daemon or its warden ended; {len(finished)} answered")
    print(verify(data).strip())


def test_the_daemon_is_killed():
    own = support.Daemon("--concurrency", "4").wait_ready()
    own.own_data = False
    with under_load(own) as answers:
        wait_for(lambda: sum(answer.status == 202 for answer in list(answers)) > 20, 60)
        own.kill()  # and nothing of it is left
    verify(own.data)
    try:
        check_after(own.data, answers)
    finally:
        own.own_data = True
        own.clear()


def test_the_warden_is_killed():
    own = support.Daemon("--concurrency", "4").wait_ready()
    own.own_data = False
    with under_load(own) as answers:
        wait_for(lambda: sum(answer.status == 202 for answer in list(answers)) > 20, 60)
        family = support.descendants(own.pid)
        os.kill(own.warden(), signal.SIGKILL)
        assert own.process.wait(30) == 125, "it cannot go on without a warden, and says so"
        assert own.log("warden_gone")
        own.check_gone(family, groups=False)
    assert {answer.status for answer in answers} <= {200, 202, 429, 500, 503}, {answer.status for answer in answers}
    try:
        check_after(own.data, answers)
        own.check_gone(family)  # the next warden has removed the groups
    finally:
        own.own_data = True
        own.clear()


def test_closed_connections_are_given_back(daemon):
    """Also when the end came together with the last bytes."""
    for text in (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"GET", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        for _ in range(10):
            sock = daemon.socket()
            sock.sendall(text)
            sock.close()
    wait_for(lambda: "cordon_http_connections 1\n" in daemon.get("/metrics").body.decode())


def test_a_run_keeps_its_key_over_a_crash():
    own = support.Daemon("--require-keys").wait_ready()
    own.own_data = False
    key = own.new_key()
    run = own.start("python", SLEEP, key=key)
    own.kill()
    with support.Daemon("--require-keys", data=own.data) as again:
        again.own_data = True
        result = again.result(run, key=key)
        assert result["status"] == "internal_error" and result["language"] == "python", result


# The disk


def test_two_daemons_on_one_directory(daemon):
    code, text = support.Daemon(data=daemon.data).refused()
    assert code == 125 and "cordon" in text and daemon.data in text, text
    is_alive(daemon)


def test_a_damaged_ledger(open_dir):
    data = open_dir / "data"
    with support.Daemon(data=data) as own:
        own.execute("bash", "echo kept")
    file = data / "cordon.db"
    whole = file.read_bytes()
    file.write_bytes(b"this is no database" + whole[19:])
    code, text = support.Daemon(data=data).refused()
    assert code == 125 and re.search("damaged|not a database|malformed", text), text
    file.write_bytes(whole)
    with support.Daemon(data=data) as own:
        assert len(own.get("/v1/executions").json["items"]) == 1


def test_a_ledger_that_somebody_holds(open_dir):
    """Runs are refused with the reason while it cannot write, and taken again afterwards."""
    with support.Daemon(data=open_dir / "data") as own:
        own.execute("bash", "echo before")
        other = sqlite3.connect(open_dir / "data" / "cordon.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        try:
            begin = time.monotonic()
            answer = wait_for(lambda: (lambda got: got if got.status == 503 else None)(own.post("/v1/executions", RUN)), 60)
            assert answer.json["code"] == "store" and "locked" in answer.json["detail"], answer
            assert own.get("/healthz").status == 200 and own.get("/readyz").status == 503
            print(f"\nrefused {time.monotonic() - begin:.1f} s after the ledger was locked")
        finally:
            other.execute("ROLLBACK")
            other.close()
        wait_for(lambda: own.post("/v1/executions", RUN).status == 202, 30)
        wait_for(lambda: own.get("/readyz").status == 200)


@pytest.fixture
def small_disk():
    yield from mounted("3m")


@pytest.fixture
def larger_disk():
    """Of which the part that the store keeps for erasing holds its log."""
    yield from mounted("64m")


def mounted(size):
    if os.getuid():
        pytest.skip("only the superuser can mount a small file system")
    place = tempfile.mkdtemp(prefix="cordon-disk-")
    os.chmod(place, 0o755)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", place], capture_output=True, check=False).returncode:
        skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
    shutil.rmtree(place, ignore_errors=True)


def fill(own, size):
    """Runs of so many bytes until one is refused: the ids of those that were accepted, and the refusal."""
    accepted = []
    for number in range(600):
        answer = own.post("/v1/executions", {"language": "bash", "code": f"# {number}\n# {os.urandom(size // 2).hex()}"})
        if answer.status == 503:
            return accepted, answer
        assert answer.status in (202, 429), answer
        if answer.status == 202:
            accepted.append(answer.json["id"])
    raise AssertionError("nothing was refused")


def erase_until_ready(own, accepted):
    """How many of the runs had to be erased until the store took more."""
    for count, run in enumerate(accepted, 1):
        wait_for(lambda: own.get(f"/v1/executions/{run}").json["state"] == "done")
        answer = own.delete(f"/v1/executions/{run}")
        assert answer.status == 204, answer
        if own.get("/readyz").status == 200:
            return count
    wait_for(lambda: own.get("/readyz").status == 200, 10)
    return len(accepted)


def test_erasing_on_a_full_disk(larger_disk):
    """What makes room works when there is none."""
    data = os.path.join(larger_disk, "data")
    own = support.Daemon(data=data)
    with own:
        accepted, refused = fill(own, 500000)
        assert "disk is full" in refused.json["detail"] and "DELETE" in refused.json["hint"], refused
        erased = erase_until_ready(own, accepted)
        print(f"\n{erased} of {len(accepted)} runs were erased until there was room")
        assert own.get(f"/v1/executions/{accepted[0]}").json.get("stdout") is None
        assert own.result(own.start("bash", "echo again"))["status"] == "ok"
    verify(data)


def test_a_store_at_its_ceiling(open_dir):
    """It says that it is full in words that name the setting, and erasing makes room."""
    data = str(open_dir / "data")
    own = support.Daemon("--set", "store_bytes=3m", "--set", "retention_bytes=3m", data=data)
    with own:
        accepted, refused = fill(own, 40000)
        assert "the store is full: it may hold 3 MiB (store_bytes)" in refused.json["detail"], refused
        assert "retention_bytes" in refused.json["hint"] and "DELETE" in refused.json["hint"], refused
        assert os.path.getsize(os.path.join(data, "cordon.db")) <= 3 << 20
        assert "store_bytes" in own.get("/readyz").json["detail"]
        erase_until_ready(own, accepted)
        assert own.result(own.start("bash", "echo again"))["status"] == "ok"
    verify(data)


def test_the_oldest_texts_go_before_the_ceiling(open_dir):
    """With the defaults' order of the two bounds runs go on being accepted."""
    own = support.Daemon("--set", "store_bytes=8m", "--set", "retention_bytes=1m", data=str(open_dir / "data"))
    with own:
        first = own.start("bash", f": {os.urandom(20000).hex()}")
        assert own.result(first)["status"] == "ok"
        for _ in range(100):
            assert own.post("/v1/execute", {"language": "bash", "code": f": {os.urandom(20000).hex()}"}).status == 200
        assert own.get("/readyz").status == 200


def test_a_full_disk(small_disk):
    """It stops accepting and says why, loses nothing that it accepted, and goes on when there is room."""
    data = os.path.join(small_disk, "data")
    own = support.Daemon(data=data)
    with own:
        accepted, refused = [], None
        for number in range(400):
            answer = own.post("/v1/executions", {"language": "bash", "code": f"# {number}\n: {os.urandom(20000).hex()}"})
            if answer.status == 503:
                refused = answer
                break
            assert answer.status in (202, 429), answer
            if answer.status == 202:
                accepted.append(answer.json["id"])
        assert refused and refused.json["code"] == "store" and re.search("full|space", refused.json["detail"], re.I), refused
        assert own.get("/readyz").status == 503
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        wait_for(lambda: own.get("/readyz").status == 200, 30)
        for run in accepted:
            assert own.result(run)["status"] == "ok"
        is_alive(own)
        print(f"\n{len(accepted)} accepted before the disk was full, none lost")
    verify(data)
