"""Keys of `cordon serve`: who may do what, how much of it, and who sees whose runs."""
import subprocess
import threading

import pytest

from helpers import CORDON, mark, wait_for
from serve_fixtures import SLEEP, percentile, support

RUN = {"language": "bash", "code": "echo 1"}


@pytest.fixture(scope="module")
def daemon():
    with support.Daemon("--require-keys", "--concurrency", "4", "--queue", "64") as running:
        yield running


def key_id(key):
    return key.split("_")[1]


def status(answer, expected, code=None):
    assert answer.status == expected and code in (None, answer.json["code"]), answer
    return answer


def test_no_key(daemon):
    for method, path in (("POST", "/v1/execute"), ("POST", "/v1/executions"), ("GET", "/v1/executions"), ("GET", "/v1/languages"),
                         ("GET", "/metrics"), ("GET", "/v1/limits"), ("POST", "/v1/batches"), ("POST", "/v1/tests")):
        answer = daemon.request(method, path, RUN if method == "POST" else None)
        status(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/healthz", "/readyz", "/openapi.json", "/"):
        assert daemon.get(path).status == 200


def test_no_key_is_said_before_the_body_is_read(daemon):
    sock = daemon.socket(10)
    sock.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
    assert sock.recv(100).startswith(b"HTTP/1.1 401 ")
    sock.close()


def test_wrong_keys(daemon):
    good = daemon.new_key()
    flipped = good[:-1] + ("A" if good[-1] != "A" else "B")
    for key in ("x", good[:-1], good + "x", flipped, good.upper(), "cordon_" + "0" * 16 + "_" + "A" * 43, "é", " ", good.split("_")[2]):
        answer = daemon.get("/v1/languages", headers={"Authorization": f"Bearer {key}".encode()})
        assert answer.status == 401, (key, answer)
        assert key not in daemon.log_text() or len(key) < 5
    for header in (f"Basic {good}", good, "Bearer", "bearer", f"Bearer: {good}"):
        assert daemon.get("/v1/languages", headers={"Authorization": header}).status == 401, header
    assert daemon.get("/v1/languages", key=good).status == 200
    assert daemon.get("/v1/languages", headers={"Authorization": f"bearer {good}"}).status == 200
    assert good not in daemon.log_text() and good.split("_")[2] not in daemon.log_text()


def test_removed_and_expired_keys(daemon):
    key, short = daemon.new_key(), daemon.new_key("--expires", "3s")
    assert daemon.get("/v1/languages", key=key).status == 200
    subprocess.run([CORDON, "key", "rm", "--data-dir", daemon.data, key_id(key)], check=True, capture_output=True)
    wait_for(lambda: daemon.get("/v1/languages", key=key).status == 401)
    wait_for(lambda: daemon.get("/v1/languages", key=short).status == 401)


@pytest.mark.parametrize("scopes, may", [("run", {"run"}), ("read", {"read"}), ("run,read", {"run", "read"}), ("session", set()),
                                         ("admin", {"run", "read", "admin"})])
def test_scopes(daemon, scopes, may):
    key = daemon.new_key("--scopes", scopes)
    calls = {"run": daemon.post("/v1/execute", RUN, key=key), "read": daemon.get("/v1/executions", key=key),
             "admin": daemon.get("/metrics", key=key)}
    for name, answer in calls.items():
        assert answer.status == (200 if name in may else 403), (scopes, name, answer)


def test_a_key_sees_its_own_runs_only(daemon):
    mine, other, admin = daemon.new_key(), daemon.new_key(), daemon.new_key("--scopes", "admin")
    run = daemon.start("python", "print('private')", key=mine)
    daemon.result(run, key=mine)
    running = daemon.start("python", SLEEP, key=mine)
    batch = daemon.post("/v1/batches", {"requests": [RUN]}, key=mine).json["id"]
    for path in (f"/v1/executions/{run}", f"/v1/executions/{run}/events", f"/v1/executions/{run}/report",
                 f"/v1/executions/{running}", f"/v1/executions/{running}/events", f"/v1/batches/{batch}"):
        status(daemon.get(path, key=other), 404, "not_found")
    for each in (run, running):
        status(daemon.delete(f"/v1/executions/{each}", key=other), 404)
    assert daemon.get("/v1/executions", key=other).json["items"] == []
    assert daemon.get(f"/v1/executions?key={key_id(mine)}", key=other).json["items"] == []
    assert run in [row["id"] for row in daemon.get("/v1/executions", key=mine).json["items"]]
    assert {row["key"] for row in daemon.get(f"/v1/executions?key={key_id(mine)}", key=admin).json["items"]} == {key_id(mine)}
    unknown = daemon.get("/v1/executions?key=nobody", key=admin, check=False)
    assert unknown.status == 400 and unknown.json["field"] == "/key" and "there is no key" in unknown.json["detail"]
    assert daemon.get("/v1/executions?key=nobody", key=mine).json["items"] == [], "whether a key exists is no business of others"
    assert daemon.get(f"/v1/executions/{running}", key=mine).json["state"] == "running"
    assert daemon.delete(f"/v1/executions/{running}", key=admin).status == 202


def test_idempotency_keys_are_not_shared(daemon):
    headers = {"Idempotency-Key": mark()}
    one, two = (daemon.post("/v1/execute", RUN, headers=headers, key=daemon.new_key()).json["id"] for _ in range(2))
    assert one != two


def test_per_minute(daemon):
    key, other = daemon.new_key("--per-minute", "3"), daemon.new_key()
    assert [daemon.post("/v1/execute", RUN, key=key).status for _ in range(3)] == [200] * 3
    refused = status(daemon.post("/v1/execute", RUN, key=key), 429, "rate_limited")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    status(daemon.post("/v1/executions", RUN, key=key), 429, "rate_limited")
    assert daemon.get("/v1/executions", key=key).status == 200, "reading is not running"
    assert daemon.post("/v1/execute", RUN, key=other).status == 200


def test_concurrent(daemon):
    key, other = daemon.new_key("--concurrent", "1"), daemon.new_key()
    first, second = (daemon.start("python", SLEEP, key=key) for _ in range(2))
    wait_for(lambda: daemon.get(f"/v1/executions/{first}", key=key).json["state"] == "running")
    assert daemon.get(f"/v1/executions/{second}", key=key).json["state"] == "queued"
    assert daemon.post("/v1/execute", RUN, key=other).status == 200, "another key is not held up"
    daemon.delete(f"/v1/executions/{first}", key=key)
    wait_for(lambda: daemon.get(f"/v1/executions/{second}", key=key).json["state"] == "running")
    daemon.delete(f"/v1/executions/{second}", key=key)
    assert daemon.result(second, key=key)["status"] == "cancelled"


def test_cpu_per_day():
    burn = {"language": "python", "code": "import time\nend = time.process_time() + 1.1\nwhile time.process_time() < end: pass"}
    first = support.Daemon("--require-keys").wait_ready()
    first.own_data = False
    key, other = first.new_key("--cpu-per-day", "1s"), first.new_key()
    assert first.post("/v1/execute", burn, key=key).json["status"] == "ok"
    for path, body in (("/v1/execute", RUN), ("/v1/executions", RUN), ("/v1/batches", {"requests": [RUN]})):
        refused = status(first.post(path, body, key=key), 429, "cpu_quota")
        assert 1 <= int(refused.headers["Retry-After"]) <= 86400
    assert first.post("/v1/execute", RUN, key=other).status == 200
    first.stop()
    with support.Daemon("--require-keys", data=first.data) as again:
        again.own_data = True
        status(again.post("/v1/execute", RUN, key=key), 429, "cpu_quota")


def test_cpu_per_day_within_a_batch(daemon):
    """What is left of a batch when the time is used up is told so."""
    key = daemon.new_key("--cpu-per-day", "1s", "--concurrent", "1")
    burn = {"language": "python", "code": "import time\nend = time.process_time() + 1.1\nwhile time.process_time() < end: pass"}
    batch = daemon.post("/v1/batches", {"requests": [burn] + [RUN] * 30}, key=key).json["id"]
    found = wait_for(lambda: (lambda got: got if got["state"] == "done" else None)(daemon.get(f"/v1/batches/{batch}", key=key).json), 30)
    assert found["by_status"]["rejected"] >= 10, found["by_status"]
    assert found["items"][-1]["problem"]["code"] == "cpu_quota"


def test_ceilings(daemon):
    key = daemon.new_key("--ceiling", "memory_bytes=256m", "--ceiling", "wall_ms=10s", "--ceiling", "disk_bytes=64m")
    assert daemon.get("/v1/limits", key=key).json["key_ceilings"]["memory_bytes"] == 256 << 20
    answer = status(daemon.post("/v1/execute", {**RUN, "limits": {"memory_bytes": "512m"}}, key=key), 400)
    assert answer.json["field"] == "/limits/memory_bytes" and "key" in answer.json["detail"]
    # A profile asks for nothing: what it has above the ceiling is lowered.
    for profile in ("standard", "heavy"):
        limits = daemon.post("/v1/execute", {**RUN, "profile": profile}, key=key).json["limits"]
        assert (limits["memory_bytes"], limits["wall_ms"], limits["disk_bytes"]) == (256 << 20, 10000, 64 << 20)
    limits = daemon.post("/v1/execute", {**RUN, "profile": "lightweight", "limits": {"memory_bytes": "64m"}}, key=key).json["limits"]
    assert (limits["memory_bytes"], limits["wall_ms"], limits["disk_bytes"]) == (64 << 20, 5000, 32 << 20)
    batch = daemon.post("/v1/batches", {"requests": [{**RUN, "limits": {"memory_bytes": "1g"}}]}, key=key).json["id"]
    found = wait_for(lambda: (lambda got: got if got["state"] == "done" else None)(daemon.get(f"/v1/batches/{batch}", key=key).json))
    assert found["items"][0]["status"] == "rejected" and found["items"][0]["problem"]["field"] == "/limits/memory_bytes"


def test_words(daemon):
    key = daemon.new_key("--network", "loopback", "--isolation", "vm,container")
    answer = status(daemon.post("/v1/execute", RUN, key=key), 400)
    assert answer.json["field"] == "/network", answer
    key = daemon.new_key("--isolation", "vm")
    assert daemon.post("/v1/execute", RUN, key=key).json["field"] == "/isolation"
    assert daemon.post("/v1/execute", {**RUN, "isolation": "container"}, key=key).json["field"] == "/isolation"
    key = daemon.new_key("--network", "none", "--isolation", "container")
    assert daemon.post("/v1/execute", RUN, key=key).status == 200


def test_fresh(daemon):
    """Its runs share no interpreter with others, whatever they ask for."""
    key = daemon.new_key("--fresh")
    for fields in ({}, {"warm": True}):
        for _ in range(3):
            result = daemon.post("/v1/execute", {"language": "python", "code": "print(1)", **fields}, key=key).json
            assert result["enforced"]["shares_layout"] is False and result["enforced"]["warm"] is False, result["enforced"]


def test_a_flood_of_one_key_does_not_starve_another(daemon):
    """bench/flood measures how long the other one takes; here nobody in the long queue may go before it."""
    flooder, other = daemon.new_key(name="flood"), daemon.new_key(name="other")
    answered = []

    def ask(key):
        return daemon.post("/v1/execute", {"language": "bash", "code": "echo 1"}, key=key, check=False).status

    def keep_asking(count):
        for _ in range(count):
            answered.append(ask(flooder))

    threads = [threading.Thread(target=keep_asking, args=(10,)) for _ in range(50)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answered) > 10, 30)
    overtaken = []
    for _ in range(20):
        before = answered.count(200)
        assert ask(other) == 200
        overtaken.append(answered.count(200) - before)
    for thread in threads:
        thread.join()
    assert set(answered) <= {200, 429}
    assert percentile(overtaken, 0.5) < 10 and max(overtaken) < 50, overtaken
