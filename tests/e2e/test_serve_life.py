"""`cordon serve` from its start to its end: where it listens, its settings, and how it drains."""
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from helpers import CORDON, mark, marked, skip, wait_for
from serve_fixtures import (SLEEP, daemon, get_json, open_dir, problem, runs, seconds_until_gone,  # noqa: F401
                            support, wait_marked)

# Where it listens


def test_unix_socket(tmp_path):
    path = tmp_path / "cordon.sock"
    with support.Daemon(listen=f"unix:{path}") as own:
        assert own.address == f"unix:{path}" and own.execute("bash", "echo here")["stdout"] == "here\n"
        assert os.stat(path).st_mode & 0o777 == 0o660
        assert own.get("/healthz", headers={"Host": "whatever"}).status == 200
        code, text = support.Daemon(listen=f"unix:{path}").refused()
        assert code == 125 and "somebody else serves" in text, text
        assert own.get("/healthz").status == 200
    # Behind its own fence the daemon cannot remove the socket, and the next one takes its place.
    with support.Daemon(listen=f"unix:{path}") as own:
        assert own.get("/healthz").status == 200


def test_unix_socket_left_by_a_dead_daemon(tmp_path):
    path = tmp_path / "cordon.sock"
    dead = support.Daemon(listen=f"unix:{path}").wait_ready()
    dead.kill()
    dead.clear()
    assert path.exists()
    with support.Daemon(listen=f"unix:{path}") as own:
        assert own.get("/healthz").status == 200


def test_an_address_that_is_taken(daemon):
    code, text = support.Daemon(listen=f"127.0.0.1:{daemon.port}").refused()
    assert code == 125 and "another program listens there" in text, text


@pytest.mark.parametrize("flags, words", [((), "TLS|clear"), (("--behind-proxy",), "there are no keys")])
def test_not_on_every_address_without_keys(flags, words):
    code, text = support.Daemon(*flags, listen="0.0.0.0:0").refused()
    assert code in (2, 125) and re.search(words, text), text


def test_a_proxy_makes_loopback_reachable(open_dir):
    """Whatever comes through it comes from loopback: without a key nobody is let in."""
    code, text = support.Daemon("--behind-proxy", data=open_dir / "none").refused()
    assert code in (2, 125) and "no keys" in text, text
    data = open_dir / "data"
    key = subprocess.run([CORDON, "key", "new", "--name", "one", "--data-dir", data], capture_output=True, check=True)
    with support.Daemon("--behind-proxy", data=data) as own:
        problem(own.get("/v1/languages"), 401)
        assert own.get("/v1/languages", key=key.stdout.decode().strip()).status == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                           "-keyout", place / "key.pem", "-out", place / "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                           "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], capture_output=True, check=False)
    if made.returncode:
        skip("openssl is not installed")
    return place


def test_tls(certificate):
    trust = ssl.create_default_context(cafile=certificate / "cert.pem")
    flags = ("--tls-cert", certificate / "cert.pem", "--tls-key", certificate / "key.pem")
    with support.Daemon(*flags, tls=trust) as own:
        assert own.address.startswith("https://") and own.execute("python", "print(6*7)")["stdout"] == "42\n"
        events = own.stream("POST", "/v1/execute", {"language": "bash", "code": "echo a; echo b >&2"}).rest()
        assert events[-1]["result"]["stdout"] == "a\n"
        word = mark()
        stream = own.stream("POST", "/v1/execute", {"language": "python", "code": SLEEP, "args": [word], "warm": False})
        wait_marked(word)
        stream.close()
        seconds_until_gone(word)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            plain = http.client.HTTPConnection("127.0.0.1", own.port, timeout=10)
            plain.request("GET", "/healthz")
            plain.getresponse()


def test_tls_files_that_do_not_fit(certificate):
    code, text = support.Daemon("--tls-cert", certificate / "key.pem", "--tls-key", certificate / "cert.pem").refused()
    assert code in (2, 125) and "certificate" in text, text
    code, text = support.Daemon("--tls-cert", certificate / "cert.pem").refused()
    assert code in (2, 125) and "tls_key" in text, text


def activated(sock, *flags, **how):
    """As systemd starts it: the socket as descriptor 3."""
    shell = 'exec 3<&"$0" && export LISTEN_FDS=1 LISTEN_PID=$$ && exec "$@"'
    return support.Daemon(*flags, prefix=("bash", "-c", shell, str(sock.fileno())), pass_fds=(sock.fileno(),), **how)


def test_socket_activation():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        with activated(sock, listen="127.0.0.1:1") as own:
            assert own.port == port and own.execute("bash", "echo here")["stdout"] == "here\n"
        with activated(sock, listen="127.0.0.1:1") as own:
            assert own.port == port and own.get("/healthz").status == 200


def test_socket_activation_is_checked_like_an_address():
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))
        sock.listen()
        code, text = activated(sock, listen="127.0.0.1:1").refused()
        assert code in (2, 125) and "reached from elsewhere" in text, text


def test_notify(open_dir):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(open_dir / "notify"))
        os.chmod(open_dir / "notify", 0o777)
        sock.settimeout(20)
        with support.Daemon(env={"NOTIFY_SOCKET": str(open_dir / "notify")}):
            assert b"READY=1" in sock.recv(4096)
        assert b"STOPPING=1" in sock.recv(4096)


# Settings


def test_data_that_its_user_cannot_reach(tmp_path):
    if os.getuid():
        pytest.skip("only the superuser's daemon becomes another user")
    os.chmod(tmp_path, 0o700)
    code, text = support.Daemon(data=tmp_path / "data").refused()
    assert code == 125 and "user 'nobody' cannot use" in text, text


def test_check_only(tmp_path):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("CORDON_")}
    done = subprocess.run([CORDON, "serve", "--check", "--data-dir", tmp_path / "d"], capture_output=True, check=False, env=plain)
    assert done.returncode == 0 and b"good" in done.stdout and not (tmp_path / "d").exists()


def test_check_says_everything(tmp_path):
    """Each error of the file, the environment and the flags, with its line."""
    config = tmp_path / "cordon.yaml"
    config.write_text("concurency: 4\nqueue_wait_ms: 30q\nstore: some\nlisten: 0.0.0.0:1\nsecret_files: [/nonexistent/s]\n")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("CORDON_")}
    done = subprocess.run([CORDON, "serve", "--check", "--config", config, "--set", "body_bytes=x", "--data-dir", tmp_path / "d"],
                          capture_output=True, check=False, env={**plain, "CORDON_QUEUE": "many"})
    text = done.stderr.decode()
    assert done.returncode == 125 and not done.stdout, done
    for words in (f"{config}:1: there is no setting 'concurency'", f"{config}:2: queue_wait_ms '30q'", f"{config}:3: store 'some'",
                  "CORDON_QUEUE: queue 'many'", "body_bytes 'x'", "listen '0.0.0.0:1' can be reached", "secret_files: cannot read /nonexistent/s"):
        assert words in text, text
    assert text.count("cordon: ") == 7, text


def test_reload_names_what_needs_a_restart(open_dir):
    config = open_dir / "cordon.yaml"
    config.write_text("queue: 10\n")
    config.chmod(0o644)
    with support.Daemon("--config", config, "--concurrency", "2") as own:
        config.write_text("queue: 20\nconcurrency: 4\ntls_cert: ''\nceilings: {wall_ms: 5s}\nconnections: 99\n")
        own.signal(signal.SIGHUP)
        wait_for(lambda: own.log("reloaded"))
        # What a flag says goes over the file, so it has not changed.
        assert sorted(own.log("reloaded")[0]["needs_restart"]) == ["connections", "queue"], own.log("reloaded")
        assert own.get("/v1/limits").json["ceilings"]["wall_ms"] == 5000
        config.write_text("queue: 10\n")
        own.signal(signal.SIGHUP)
        wait_for(lambda: len(own.log("reloaded")) == 2)
        assert "needs_restart" not in own.log("reloaded")[1]


def test_a_busy_port_makes_nothing(daemon, open_dir):
    data = open_dir / "data"
    code, text = support.Daemon(listen=f"127.0.0.1:{daemon.port}", data=data).refused()
    assert code == 125 and "another program listens there" in text, text
    assert not data.exists(), list(data.iterdir())


def test_reload(open_dir):
    config = open_dir / "cordon.yaml"

    def write(text, event, own=None):
        config.write_text(text)
        config.chmod(0o644)
        if own:
            count = len(own.log(event))
            own.signal(signal.SIGHUP)
            wait_for(lambda: len(own.log(event)) > count)

    body = {"language": "bash", "code": ":", "limits": {"wall_ms": "9s"}}
    write("ceilings: {wall_ms: 10s, cpu_ms: 20s}\n", None)
    with support.Daemon("--config", config, "--set", "hosts=flag.example", "--log", "debug") as own:
        assert own.post("/v1/execute", body).status == 200
        write("ceilings: {wall_ms: 5s, cpu_ms: 20s}\norigins: [https://page.example]\n", "reloaded", own)
        found = problem(own.post("/v1/execute", body), 400, field="/limits/wall_ms")
        assert "5000" in found["detail"]
        assert own.get("/healthz", headers={"Origin": "https://page.example"}).status == 200
        assert own.get("/healthz", headers={"Host": "flag.example"}).status == 200, "a flag was forgotten"
        write("ceilings: {wall_ms: [}\n", "reload_failed", own)
        assert str(config) in json.dumps(own.log("reload_failed")[-1])
        problem(own.post("/v1/execute", body), 400, field="/limits/wall_ms")
        write("ceilngs: {}\n", "reload_failed", own)
        assert "ceilings" in json.dumps(own.log("reload_failed")[-1])
        assert own.get("/readyz").status == 200


def test_ceilings_of_the_server():
    with support.Daemon("--set", "ceilings=memory_bytes=256m,wall_ms=20s,disk_bytes=128m") as own:
        limits = get_json(own, "/v1/limits")["ceilings"]
        assert limits["memory_bytes"] == 256 << 20
        problem(own.post("/v1/execute", {"language": "bash", "code": ":", "limits": {"memory_bytes": "1g"}}), 400,
                field="/limits/memory_bytes")
        result = own.execute("bash", ":", profile="heavy")
        assert (result["limits"]["memory_bytes"], result["limits"]["wall_ms"]) == (256 << 20, 20000), "a profile asks for nothing"


def test_ceilings_hold_for_every_run_of_tests():
    """A limit above them is refused wherever it is asked for; what only a profile has above them is lowered."""
    with support.Daemon("--set", "ceilings=memory_bytes=256m,wall_ms=3s,disk_bytes=128m") as own:
        def tests(*cases, **more):
            return own.post("/v1/tests", {"language": "python", "code": "print(1)", "tests": {"cases": cases}, **more})
        for name, value in (("wall_ms", "100s"), ("memory_bytes", "2g"), ("wall_ms", "unlimited")):
            problem(tests({"expected": "1", "limits": {name: value}}), 400, field=f"/tests/cases/0/limits/{name}")
        result = tests({"expected": "1"}, profile="heavy").json
        assert result["tests"]["passed"] == 1
        assert (result["limits"]["wall_ms"], result["limits"]["memory_bytes"], result["limits"]["disk_bytes"]) == (3000, 256 << 20, 128 << 20)
        begin = time.monotonic()
        result = tests({"checker": {"language": "bash", "code": "sleep 50"}}).json
        assert result["tests"]["passed"] == 0 and time.monotonic() - begin < 20


def test_places_in_memory():
    """All cells together are bounded; one that can never fit is told so, others wait."""
    with support.Daemon("--set", "memory_bytes=600m", "--concurrency", "8") as own:
        problem(own.post("/v1/execute", {"language": "bash", "code": ":", "limits": {"memory_bytes": "1g"}}), 422, "too_large_for_host")
        started = [own.start("bash", "sleep 0.6") for _ in range(3)]
        assert sorted(own.get(f"/v1/executions/{run}").json["state"] for run in started)[:2] == ["queued", "queued"]
        assert {own.result(run)["status"] for run in started} == {"ok"}


def test_a_lone_caller_has_every_place():
    with support.Daemon("--concurrency", "2", "--drain-ms", "100ms") as own:
        first, second = own.start("python", SLEEP), own.start("python", SLEEP)
        wait_for(lambda: own.get(f"/v1/executions/{second}").json["state"] == "running")
        assert own.get(f"/v1/executions/{first}").json["state"] == "running" and runs(own) == 2


def test_queue_wait():
    with support.Daemon("--concurrency", "1", "--queue-wait-ms", "200ms") as own:
        run = own.start("python", SLEEP)
        answer = own.post("/v1/execute", {"language": "bash", "code": ":"})
        problem(answer, 429, "full")
        assert int(answer.headers["Retry-After"]) > 0
        late = own.start("bash", ":")
        assert own.result(late)["status"] == "rejected"
        own.delete(f"/v1/executions/{run}")


# The end


def test_drain_lets_what_runs_finish():
    with support.Daemon("--concurrency", "1", "--drain-ms", "30s") as own:
        word, answers = mark(), {}

        def call(name, **fields):
            answers[name] = own.post("/v1/execute", {"language": "python", **fields})

        running = threading.Thread(target=call, args=("running",), kwargs={
            "code": "import time; time.sleep(1); print('finished')", "args": [word], "warm": False})
        running.start()
        wait_marked(word)
        waiting = threading.Thread(target=call, args=("waiting",), kwargs={"code": "print(1)"})
        waiting.start()
        stored = own.start("python", "print('accepted')")
        wait_for(lambda: "cordon_runs_queued 2" in own.get("/metrics").body.decode())
        own.signal()
        wait_for(lambda: own.get("/readyz").status == 503)
        refused = own.post("/v1/execute", {"language": "bash", "code": ":"})
        problem(refused, 503, "draining")
        assert int(refused.headers["Retry-After"]) > 0
        assert own.get("/healthz").status == 200
        running.join()
        waiting.join()
        assert answers["running"].status == 200 and answers["running"].json["stdout"] == "finished\n"
        problem(answers["waiting"], 503, "draining")
        own.own_data = False
        assert own.ended() == 0
    try:
        with support.Daemon(data=own.data) as after:
            result = after.result(stored)
            assert result["status"] == "internal_error" and "stopped" in result["reason"], result
    finally:
        own.own_data = True
        own.clear()


def test_drain_tells_those_who_wait_although_nothing_runs():
    """Nobody is cut off between his answer and the end."""
    for _ in range(5):
        with support.Daemon("--concurrency", "2") as own:
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(own.post("/v1/execute", {
                "language": "python", "code": "import time; time.sleep(0.15); print('whole')"}))) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            own.signal()
            for thread in threads:
                thread.join()
            assert own.ended() == 0
        assert sorted(answer.status for answer in answers) in ([200, 200], [200, 503], [503, 503]), answers


def test_drain_deadline():
    with support.Daemon("--drain-ms", "300ms") as own:
        word = mark()
        stream = own.stream("POST", "/v1/execute", {"language": "python", "code": SLEEP, "args": [word], "warm": False})
        wait_marked(word)
        own.signal()
        assert stream.rest()[-1]["result"]["status"] == "cancelled"
        begin = time.monotonic()
        assert own.ended() == 0 and time.monotonic() - begin < 10
        assert not marked(word)


def test_second_signal_ends_at_once():
    with support.Daemon("--drain-ms", "60s") as own:
        word = mark()
        connection = own.connect()
        connection.request("POST", "/v1/execute", json.dumps({"language": "python", "code": SLEEP, "args": [word], "warm": False}))
        wait_marked(word)
        own.signal()
        wait_for(lambda: own.log("draining"))
        begin = time.monotonic()
        own.signal()
        own.ended()
        assert time.monotonic() - begin < 10 and not marked(word)
        connection.close()


def test_idle_connections_do_not_hold_it():
    with support.Daemon() as own:
        idle = [own.socket() for _ in range(10)]
        kept = own.connect()
        own.get("/healthz", connection=kept)
        begin = time.monotonic()
        assert own.stop() == 0 and time.monotonic() - begin < 5
        for sock in idle:
            sock.close()
        kept.close()
