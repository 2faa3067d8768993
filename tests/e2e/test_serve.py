"""`cordon serve`: every endpoint as the contract has it, errors that name the field, and who may call."""
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from helpers import mark, need, wait_for
from serve_fixtures import SLEEP, daemon, get_json, problem, seconds_until_gone, support, wait_marked  # noqa: F401

ID = "0123456789abcdef0123456789abcdef"


# Running


def test_execute(daemon):
    result = daemon.execute("python", "print(6*7)")
    assert (result["status"], result["stdout"], result["exit_code"], result["success"]) == ("ok", "42\n", 0, True)
    assert re.fullmatch("[0-9a-f]{32}", result["id"]) and result["state"] == "done"
    assert result["enforced"]["isolation"] == "container"


def test_execute_what_a_program_may_do(daemon):
    result = daemon.execute("bash", 'cat; echo "$1" "$WORD" >&2; echo kept > out.txt; exit 3', stdin="in", args=["one"],
                            env={"WORD": "two"}, collect=["*.txt"], limits={"wall_ms": "5s"})
    assert (result["status"], result["exit_code"], result["stdout"], result["stderr"]) == ("nonzero_exit", 3, "in", "one two\n")
    assert result["files"][0]["path"] == "out.txt" and result["limits"]["wall_ms"] == 5000


def test_what_comes_back_can_be_sent(daemon):
    code = "printf '\\x00\\xff' > bytes; mkdir d; echo text > d/text; echo new >> given; echo 1 > $'a\\xff'; ln -s x link"
    first = daemon.execute("bash", code, files={"given": "old\n", "kept": "kept"}, collect=["**"])
    assert [file["path"] for file in first["files"]] == ["a\\xff", "bytes", "d/text", "given"], first
    assert first["files_skipped"] == {"count": 1, "items": [{"path": "link", "size": None, "why": "it is a symbolic link"}]}
    again = daemon.execute("bash", "cat given d/text; rm -f kept", files=first["files"], collect=["**"], collect_all=True)
    assert again["stdout"] == "old\nnew\ntext\n", again
    assert [file for file in again["files"] if file["path"] != "main.sh"] == first["files"]
    kept = daemon.execute("bash", "cat given", files=again["files"])
    assert kept["status"] == "ok" and get_json(daemon, f"/v1/executions/{kept['id']}")["stdout"] == "old\nnew\n"


@pytest.mark.parametrize("query, field, says", [
    ("status=nonzero", "/status", "did you mean 'nonzero_exit'"), ("language=rubby", "/language", "unknown language 'rubby'"),
    ("limit=0", None, "limit is '0'")])
def test_a_filter_that_stands_for_nothing_is_an_error(daemon, query, field, says):
    found = problem(daemon.get(f"/v1/executions?{query}", check=False), 400, "bad_request", field)
    assert says in found["detail"], found


def test_filters_of_the_list(daemon):
    run_id = daemon.execute("bash", "exit 4")["id"]
    for query in ("status=nonzero_exit", "language=bash", "language=sh", "limit=5"):
        assert run_id in [item["id"] for item in get_json(daemon, f"/v1/executions?{query}")["items"]], query
    assert get_json(daemon, "/v1/executions?language=java")["items"] == []


def test_execute_limit(daemon):
    result = daemon.execute("python", "while True: pass", limits={"wall_ms": 300})
    assert result["status"] == "wall_limit" and "raise" in result["reason"]


def test_a_secret_is_nowhere(daemon):
    """Neither in the answer nor in what is kept of it, nor in the log."""
    secret = "s3cr3t-" + mark()
    result = daemon.execute("bash", 'echo "$TOKEN"; echo "$TOKEN" | base64', env={"TOKEN": {"value": secret, "secret": True}})
    assert result["status"] == "ok" and secret not in json.dumps(result), result
    assert sum(row["count"] for row in result["redactions"]) >= 2, result
    assert secret not in json.dumps(get_json(daemon, f"/v1/executions/{result['id']}"))
    assert secret not in daemon.log_text()
    daemon.get("/v1/executions")  # the writer has caught up
    for name in os.listdir(daemon.data):
        path = os.path.join(daemon.data, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                assert secret.encode() not in file.read(), name


def test_keep_alive(daemon):
    connection = daemon.connect()
    for number in range(5):
        answer = daemon.post("/v1/execute", {"language": "bash", "code": f"echo {number}"}, connection=connection)
        assert answer.status == 200 and answer.json["stdout"] == f"{number}\n"
        own = connection.sock.getsockname()
        assert number == 0 or own == before, "another connection"
        before = own
    connection.close()


def test_async(daemon):
    run = daemon.start("python", "import time; time.sleep(0.3); print('late')")
    first = daemon.get(f"/v1/executions/{run}").json
    assert first["id"] == run and first["state"] in ("queued", "running") and first["status"] is None
    result = daemon.result(run)
    assert result["status"] == "ok" and result["stdout"] == "late\n"


def test_async_answer_says_where(daemon):
    answer = daemon.post("/v1/executions", {"language": "bash", "code": ":"})
    assert answer.status == 202 and answer.headers["Location"] == f"/v1/executions/{answer.json['id']}"
    assert daemon.result(answer.json["id"])["status"] == "ok"


def test_cancel_by_delete(daemon):
    word = mark()
    run = daemon.start("python", SLEEP, args=[word], warm=False)
    wait_marked(word)
    answer = daemon.delete(f"/v1/executions/{run}")
    assert answer.status == 202, answer
    took = seconds_until_gone(word)
    print(f"\ncell gone {1000 * took:.0f} ms after DELETE was answered")
    assert took < 2
    assert daemon.result(run)["status"] == "cancelled"


def test_cancel_by_leaving(daemon):
    word = mark()
    connection = daemon.connect()
    connection.request("POST", "/v1/execute", json.dumps({"language": "python", "code": SLEEP, "args": [word], "warm": False}))
    wait_marked(word)
    connection.sock.close()
    connection.close()
    took = seconds_until_gone(word)
    print(f"\ncell gone {1000 * took:.0f} ms after the client left")
    assert took < 2
    wait_for(lambda: daemon.get("/v1/executions?limit=1").json["items"][0]["status"] == "cancelled")


def test_erase(daemon):
    result = daemon.execute("python", "print('remember me')")
    path = f"/v1/executions/{result['id']}"
    assert get_json(daemon, path)["stdout"] == "remember me\n"
    assert daemon.delete(path).status == 204
    after = get_json(daemon, path)
    assert after["status"] == "ok" and after["stdout"] is None and after["kept"] is False
    assert daemon.delete(f"/v1/executions/{ID}").status == 404


def test_erase_right_after_the_end(daemon):
    """What the ledger has not written yet is erased too."""
    run = daemon.start("python", "print('short')")
    daemon.result(run)
    assert daemon.delete(f"/v1/executions/{run}").status == 204
    assert get_json(daemon, f"/v1/executions/{run}")["stdout"] is None


def test_list(daemon):
    ids = [daemon.execute("bash", f"exit {number % 2}")["id"] for number in range(5)]
    last = daemon.execute("python", "print(1)")["id"]
    page = get_json(daemon, "/v1/executions?limit=2")
    assert [row["id"] for row in page["items"]] == [last, ids[4]]
    assert "stdout" not in page["items"][0] or page["items"][0]["stdout"] is None
    following = get_json(daemon, f"/v1/executions?limit=2&cursor={page['next_cursor']}")
    assert [row["id"] for row in following["items"]] == [ids[3], ids[2]]
    assert {row["language"] for row in get_json(daemon, "/v1/executions?language=python")["items"]} == {"python"}
    failed = get_json(daemon, "/v1/executions?status=nonzero_exit&language=bash&limit=1000")
    assert {row["status"] for row in failed["items"]} == {"nonzero_exit"} and failed["next_cursor"] is None
    assert get_json(daemon, "/v1/executions?key=none")["items"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=", "limit=x", "limit=-1", "limit=%2B5", "limit=1e2", "cursor=x",
                                   "limit=99999999999999999999999", "limit=%ff%fe", "cursor=r%00"])
def test_list_bad_query(daemon, query):
    problem(daemon.get(f"/v1/executions?{query}"), 400)


def test_report(daemon):
    run = daemon.execute("python", "def f():\n    return {}['key']\nf()")["id"]
    for path in (f"/v1/executions/{run}/report",):
        found = get_json(daemon, path)
        assert found["error"]["type"] == "KeyError" and found["what_to_change"], found
        text = daemon.get(path, headers={"Accept": "text/plain"})
        assert text.headers["Content-Type"].startswith("text/plain") and b"KeyError" in text.body
    running = daemon.start("python", SLEEP)
    problem(daemon.get(f"/v1/executions/{running}/report"), 409, "running")
    daemon.delete(f"/v1/executions/{running}")
    problem(daemon.get(f"/v1/executions/{ID}/report"), 404, "not_found")


def test_tests(daemon):
    need("python")
    answer = daemon.post("/v1/tests", {"language": "python", "code": "print(int(input()) * 2)", "tests": {"cases": [
        {"name": "two", "stdin": "2", "expected": "4"}, {"name": "wrong", "stdin": "2", "expected": "5"}]}})
    assert answer.status == 200, answer
    tests = answer.json["tests"]
    assert (tests["passed"], tests["failed"], tests["total"]) == (1, 1, 2)
    assert [case["status"] for case in tests["cases"]] == ["passed", "failed"]
    problem(daemon.post("/v1/tests", {"language": "python", "code": "1"}), 400, field="/tests")


# Batches


def batch_done(daemon, batch, seconds=60):
    return wait_for(lambda: (lambda found: found if found["state"] == "done" else None)(get_json(daemon, f"/v1/batches/{batch}")),
                    seconds, 0.02)


def test_batch(daemon):
    requests = [{"language": "bash", "code": f"echo {number}; exit {number % 2}"} for number in range(30)]
    requests[7] = {"language": "nothing", "code": "1"}
    requests[8]["id"] = "mine"
    answer = daemon.post("/v1/batches", {"requests": requests})
    assert answer.status == 202 and answer.headers["Location"] == f"/v1/batches/{answer.json['id']}"
    found = batch_done(daemon, answer.json["id"])
    assert (found["total"], found["done"], found["succeeded"], found["failed"]) == (30, 30, 15, 15)
    assert found["items"][8]["id"] == "mine" and found["items"][9]["id"] == "9"
    assert found["items"][7]["status"] == "rejected" and found["items"][7]["problem"]["field"] == "/language"
    assert daemon.result(found["items"][8]["execution"])["stdout"] == "8\n"


@pytest.mark.parametrize("body, field", [({}, "/requests"), ({"requests": []}, "/requests"), ({"requests": {}}, "/requests"),
                                         ({"requests": [1] * 10001}, "/requests")])
def test_batch_bad(daemon, body, field):
    problem(daemon.post("/v1/batches", body), 400, field=field)


def test_batch_of_nonsense(daemon):
    answer = daemon.post("/v1/batches", {"requests": [1, None, [], {}, {"language": "bash", "code": ":", "id": 5},
                                                    {"language": "bash", "code": ":", "id": "a\0b"}]}, check=False)
    assert answer.status == 202
    found = wait_for(lambda: (lambda got: got if got["state"] == "done" else None)(
        daemon.get(f"/v1/batches/{answer.json['id']}").json))
    assert [item["status"] for item in found["items"]] == ["rejected"] * 6
    assert all(item["problem"]["detail"] for item in found["items"])


def test_batch_bounded_for_one_caller():
    with support.Daemon("--concurrency", "1", "--drain-ms", "100ms") as own:
        answers = [own.post("/v1/batches", {"requests": [{"language": "python", "code": SLEEP, "limits": {"wall_ms": "50s"}}]})
                   for _ in range(9)]
        assert [answer.status for answer in answers] == [202] * 8 + [429]


# Idempotency


def test_idempotency_same_request(daemon):
    headers = {"Idempotency-Key": mark()}
    body = {"language": "python", "code": "import random; print(random.random())", "warm": False}
    first = daemon.post("/v1/execute", body, headers=headers)
    again = daemon.post("/v1/execute", body, headers=headers)
    assert first.status == again.status == 200 and first.json["id"] == again.json["id"]
    assert first.json["stdout"] == again.json["stdout"]
    assert daemon.post("/v1/execute", body, headers={"Idempotency-Key": mark()}).json["id"] != first.json["id"]


def test_idempotency_other_request(daemon):
    headers = {"Idempotency-Key": mark()}
    assert daemon.post("/v1/execute", {"language": "bash", "code": "echo 1"}, headers=headers).status == 200
    problem(daemon.post("/v1/execute", {"language": "bash", "code": "echo 2"}, headers=headers), 409, "idempotency_conflict")
    problem(daemon.post("/v1/executions", {"language": "bash", "code": "echo 1"}, headers=headers), 409, "idempotency_conflict")


def test_idempotency_while_running(daemon):
    headers = {"Idempotency-Key": mark()}
    body = {"language": "python", "code": "import time; time.sleep(0.5); print(1)"}
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(daemon.post("/v1/execute", body, headers=headers))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.json["id"] for answer in answers}) == 1 and {answer.status for answer in answers} == {200}


def test_idempotency_of_async_and_stream(daemon):
    headers = {"Idempotency-Key": mark()}
    body = {"language": "python", "code": "print(1)"}
    first = daemon.post("/v1/executions", body, headers=headers)
    again = daemon.post("/v1/executions", body, headers=headers)
    assert first.status == again.status == 202 and first.json["id"] == again.json["id"]
    daemon.result(first.json["id"])
    assert daemon.post("/v1/executions", body, headers=headers).json["state"] == "done"
    headers = {"Idempotency-Key": mark()}
    first = daemon.post("/v1/execute", body, headers=headers).json
    events = daemon.stream("POST", "/v1/execute", body, headers=headers).rest()
    assert events[0] == {"type": "start", "id": first["id"]} and events[-1]["result"]["id"] == first["id"]


def test_idempotency_of_batches(daemon):
    headers = {"Idempotency-Key": mark()}
    body = {"requests": [{"language": "bash", "code": ":"}]}
    assert daemon.post("/v1/batches", body, headers=headers).json["id"] == daemon.post("/v1/batches", body, headers=headers).json["id"]


def test_idempotency_forgets_what_was_refused():
    """A run that got no place did not happen: the same key tries again."""
    with support.Daemon("--concurrency", "1", "--queue", "1", "--queue-wait-ms", "10m") as own:
        runs = [own.start("python", SLEEP) for _ in range(2)]
        headers, body = {"Idempotency-Key": "again"}, {"language": "bash", "code": "echo 1"}
        problem(own.post("/v1/execute", body, headers=headers), 429, "full")
        for run in runs:
            own.delete(f"/v1/executions/{run}")
        wait_for(lambda: own.post("/v1/execute", body, headers=headers).status == 200)


def test_the_owner_of_an_idempotent_run_may_leave(daemon):
    """It goes on, so that a repeated request finds it."""
    headers, word = {"Idempotency-Key": mark()}, mark()
    body = {"language": "python", "code": "import time; time.sleep(0.6); print('whole')", "args": [word], "warm": False}
    connection = daemon.connect()
    connection.request("POST", "/v1/execute", json.dumps(body), headers)
    wait_marked(word)
    connection.close()
    assert daemon.post("/v1/execute", body, headers=headers).json["stdout"] == "whole\n"


# What it tells of itself


def test_information(daemon):
    languages = get_json(daemon, "/v1/languages")["items"]
    assert {"python", "bash"} <= {row["id"] for row in languages}
    limits = get_json(daemon, "/v1/limits")
    assert limits["profiles"]["standard"]["wall_ms"] == 15000 and limits["ceilings"] == {"output_bytes": 16 << 20}
    assert get_json(daemon, "/v1/environments")["items"][0]["id"] == "host"
    assert get_json(daemon, "/healthz") == {"status": "ok"} and get_json(daemon, "/readyz")["status"] == "ready"
    assert get_json(daemon, "/")["openapi"] == "/openapi.json"
    with open(os.path.join(support.cordon.ROOT, "docs", "openapi.json"), encoding="utf-8") as file:
        assert get_json(daemon, "/openapi.json") == json.load(file)


def test_metrics(daemon):
    daemon.execute("bash", "exit 1")
    text = daemon.get("/metrics").body.decode()
    assert re.search(r'^cordon_runs_total\{[^}]*language="bash"[^}]*status="nonzero_exit"[^}]*\} [1-9]', text, re.M), text[:3000]
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z_]+(\{.*\})? [-+0-9.e]+(Inf)?", line), line


def test_log_lines(daemon):
    answer = daemon.post("/v1/execute", {"language": "bash", "code": ":"})
    request = wait_for(lambda: [line for line in daemon.log("request") if line["request_id"] == answer.headers["X-Request-Id"]])[0]
    assert (request["status"], request["route"], request["method"]) == (200, "/v1/execute", "POST")
    assert wait_for(lambda: [line for line in daemon.log("run") if line["id"] == answer.json["id"]])


def documented(name):
    """The blocks fenced as ```shell: commands after `$ `, and what they print, with `…` for anything."""
    with open(os.path.join(support.cordon.ROOT, name), encoding="utf-8") as file:
        found = re.findall(r"^```shell\n(.*?)^```", file.read(), re.M | re.S)
    return [[(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in re.split(r"^\$ ", block, flags=re.M)[1:]] for block in found]


@pytest.mark.parametrize("name", ["README.md", "docs/HTTP.md"])
def test_documented_calls(daemon, name):
    """Each block in one shell, against this daemon instead of the usual address."""
    assert documented(name)
    for block in documented(name):
        script = "".join(f"{command.replace('localhost:7700', f'localhost:{daemon.port}')}\necho; echo @@@\n" for command, _ in block)
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=False)
        for (command, shown), printed in zip(block, done.stdout.decode().split("@@@\n")):
            pattern = ".*".join(re.escape(part) for part in re.split("…\n?", shown.rstrip("\n")))
            assert re.fullmatch(pattern, printed.strip("\n"), re.S), f"{name}: $ {command}\nprinted:\n{printed}"


# Bad requests

BAD = [
    (b"", ""), (b"{", None), (b"[]", ""), (b"null", ""), (b"1", ""), (b'"x"', ""), (b"\xff\xfe", None), (b"{} {}", None),
    (b'{"language":"python","code":"\x00"}', None), (b"{" * 100, None), (b"[" * 5000, None),
    (b'{"language":"python","code":"1","code":"2"}', None),
    (b'{"language":"python","code":"\\ud800"}', None),
    (b'{"language":"python","code":"\\udc00\\ud800"}', None),
    (b'{"language":"python","code":"1","limits":{"wall_ms":1e999}}', None),
    (b'{"language":"python","code":"1","limits":{"wall_ms":123456789012345678901234567890}}', None),
    (b'{"language":"python","code":"1","limits":{"wall_ms":-1}}', "/limits/wall_ms"),
    (b'{"language":"python","code":"1","limits":{"wall_ms":0}}', "/limits/wall_ms"),
    (b'{"language":"python","code":"1","limits":{"wall_ms":"5 parsecs"}}', "/limits/wall_ms"),
    (b'{"language":"python","code":"1","limits":{"wall_ms":"unlimited"}}', "/limits/wall_ms"),
    (b'{"language":"python","code":"1","limits":{"speed":1}}', "/limits/speed"),
    (b'{"language":"python","code":"1","limits":[]}', "/limits"),
    (b'{"code":"1"}', "/language"), (b'{"language":5,"code":"1"}', "/language"),
    (b'{"language":"klingon","code":"1"}', "/language"), (b'{"language":"python"}', "/code"),
    (b'{"language":"python","code":5}', "/code"), (b'{"language":"python","code":"1","unknown":1}', "/unknown"),
    (b'{"language":"python","files":{"../x":"1"},"entry":"../x"}', "/files/..~1x"),
    (b'{"language":"python","files":{"a.py":{"base64":"!"}},"entry":"a.py"}', "/files/a.py/base64"),
    (b'{"language":"python","files":{"a.py":"1"},"entry":"b.py"}', "/entry"),
    (b'{"language":"python","code":"1","env":{"A=B":"1"}}', None),
    (b'{"language":"python","code":"1","args":["\\u0000"]}', "/args/0"),
    (b'{"language":"python","code":"1","mounts":["/etc:/data"]}', "/mounts"),
    (b'{"language":"python","code":"1","isolation":"magic"}', "/isolation"),
    (b'{"language":"python","code":"1","network":"all"}', "/network"),
    (b'{"language":"python","code":"1","optional":["magic"]}', "/optional/0"),
    (b'{"language":"python","code":"1","profile":"huge"}', "/profile"),
    (b'{"language":"python","code":"1","sanitize":["no_such_rule"]}', "/sanitize/0"),
    (b'{"language":"python","code":"1","sanitize":5}', "/sanitize"),
    (b'{"language":"python","code":"1","on_output_limit":"explode"}', "/on_output_limit"),
    (b'{"language":"python","code":"1","collect":["/etc/*"]}', "/collect/0"),
]


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/executions"])
def test_bad_requests_name_their_field(daemon, path):
    wrong = []
    connection = daemon.connect()
    for body, field in BAD:
        answer = daemon.post(path, body, connection=connection)
        found = answer.json if answer.status in (400, 422) else {}
        if not found or not found["detail"] or (field is not None and found.get("field", "") != field):
            wrong.append((body[:100], field, answer))
    connection.close()
    assert not wrong, "\n".join(map(repr, wrong))


def test_bad_request_leaves_no_run(daemon):
    before = get_json(daemon, "/v1/executions?limit=1")["items"]
    problem(daemon.post("/v1/execute", {"language": "klingon", "code": "1"}), 400)
    assert get_json(daemon, "/v1/executions?limit=1")["items"] == before


def test_offsets_that_are_none(daemon):
    run = daemon.execute("bash", ":")["id"]
    for offset in ("-1", "x", "", "1x", "%201", "99999999999999999999999999", "0x10"):
        problem(daemon.get(f"/v1/executions/{run}/events?offset={offset}"), 400)


def test_unknown_paths(daemon):
    for path in ("/nothing", "/v1", "/v1/", "/v1/execute/", "//v1/execute", "/v1/executions/x", f"/v1/executions/{ID.upper()}",
                 f"/v1/executions/{ID}0", f"/v1/executions/{ID}/", f"/v1/executions/{ID}/../../../healthz", "/v1/../healthz",
                 "/%2e%2e/healthz", "/v1%2fexecutions", f"/v1/executions/{ID}%00", f"/v1/executions/{ID}%0a", "/healthz%20",
                 "/healthz%-f", "/healthz;x", "/HEALTHZ", "/%zz", "/%", f"/v1/executions/{ID}/events/x", "/" + "a" * 2000):
        assert daemon.get(path).status == 404, path
    for path in ("/health%7a", "/%68ealthz", "/healthz?x=%00&y=%", "/healthz?" + "a=1&" * 200):
        assert daemon.get(path, check=False).status == 200, path
    problem(daemon.get(f"/v1/executions/{ID}"), 404, "not_found")
    problem(daemon.get(f"/v1/batches/{ID}"), 404, "not_found")
    problem(daemon.get(f"/v1/executions/{ID}/events"), 404, "not_found")


def test_methods(daemon):
    for method, path, allowed in (("GET", "/v1/execute", "POST"), ("PUT", "/v1/executions", "POST, GET, HEAD"),
                                  ("POST", f"/v1/executions/{ID}", "GET, HEAD, DELETE"), ("PATCH", "/healthz", "GET, HEAD"),
                                  ("OPTIONS", "/v1/execute", "POST"), ("DELETE", "/", "GET, HEAD"), ("BREW", "/readyz", "GET, HEAD")):
        answer = daemon.request(method, path)
        problem(answer, 405, "method_not_allowed")
        assert answer.headers["Allow"] == allowed, (method, path, answer)


def test_head(daemon):
    run = daemon.execute("python", "print(1)")["id"]
    for path in ("/healthz", "/v1/languages", f"/v1/executions/{run}", "/v1/executions", f"/v1/executions/{run}/events"):
        answer = daemon.request("HEAD", path)
        assert answer.status == 200 and answer.body == b"", (path, answer)
    assert daemon.request("HEAD", "/nothing").status == 404
    assert daemon.request("HEAD", "/v1/execute").status == 405


# Bodies


def raw(daemon, text, seconds=10):
    """What comes back for these bytes until the daemon closes or says nothing more."""
    sock = daemon.socket(seconds)
    got = b""
    try:
        sock.sendall(text)
        while True:
            more = sock.recv(65536)
            if not more:
                break
            got += more
            if b"\r\n\r\n" in got and b"chunked" not in got.split(b"\r\n\r\n")[0]:
                head, body = got.split(b"\r\n\r\n", 1)
                length = re.search(rb"content-length: (\d+)", head, re.I)
                if length and len(body) >= int(length[1]):
                    break
    except (ConnectionError, TimeoutError):
        pass
    finally:
        sock.close()
    return got


def test_body_announced_as_too_large(daemon):
    """It is refused although none of it was sent."""
    got = raw(daemon, b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413 ") and b"too_large" in got, got
    got = raw(daemon, b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413 "), got
    got = raw(daemon, b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n")
    assert re.match(rb"HTTP/1.1 (413|400) ", got), got


URLLIB = """
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], open(sys.argv[2], "rb").read(), timeout=30)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""
FETCH = """
const body = require("fs").readFileSync(process.argv[2]);
fetch(process.argv[1], {method: "POST", body}).then(async (answer) => console.log(answer.status, await answer.text()));
"""
SENDERS = {"curl": ("curl", "-sS", "-w", "%{http_code}", "--data-binary"),
           "curl that does not ask": ("curl", "-sS", "-w", "%{http_code}", "-H", "Expect:", "--data-binary"),
           "urllib": ("/usr/bin/python3", "-c", URLLIB), "fetch": ("node", "-e", FETCH)}


def send_much(sender, address, path):
    """What a client of people sees when it sends this file: its output, and what it complains of."""
    name = str(path) if sender[0] != "curl" else f"@{path}"
    argv = [*sender, name, address] if sender[0] == "curl" else [*sender, address, name]
    done = subprocess.run(argv, capture_output=True, timeout=60)
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("size", (20 << 20, 48 << 20))
def test_clients_see_413(daemon, tmp_path, sender, size):
    """A client that sends all of its request before it listens sees the answer, not a broken pipe."""
    if not shutil.which(SENDERS[sender][0]):
        pytest.skip(f"no {SENDERS[sender][0]}")
    path = tmp_path / "body"
    path.write_bytes(b" " * size)
    out, complaint = send_much(SENDERS[sender], daemon.address + "/v1/execute", path)
    assert "413" in out and "too_large" in out and not complaint, (out, complaint)


def test_clients_see_every_early_refusal(daemon, tmp_path):
    """The same for a path that is not there: every answer that comes before the body was read."""
    path = tmp_path / "body"
    path.write_bytes(b" " * (8 << 20))
    out, complaint = send_much(SENDERS["urllib"], daemon.address + "/v1/nothing", path)
    assert out.startswith("404 ") and not complaint, (out, complaint)


def test_body_too_large_in_chunks():
    with support.Daemon("--body-bytes", "64k") as own:
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        head = b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert raw(own, head + 20 * chunk + b"0\r\n\r\n").startswith(b"HTTP/1.1 413 ")
        # One that does not end is not read for ever.
        sock = own.socket(10)
        sent = 0
        with pytest.raises(OSError):
            sock.sendall(head)
            while sent < 64 << 20:
                sock.sendall(chunk)
                sent += len(chunk)
        sock.close()
        assert sent < 32 << 20, sent
        assert own.post("/v1/execute", {"language": "bash", "code": "x" * 70000}).status == 413
        assert own.execute("bash", "echo ok")["stdout"] == "ok\n"


def test_body_in_chunks(daemon):
    body = json.dumps({"language": "bash", "code": "echo chunked"}).encode()
    connection = daemon.connect()
    connection.request("POST", "/v1/execute", iter([body[:5], body[5:]]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert json.loads(connection.getresponse().read())["stdout"] == "chunked\n"
    connection.close()


def test_body_encoding_and_type(daemon):
    """The type is not looked at; a compressed body is refused."""
    body = {"language": "bash", "code": "echo ok"}
    for kind in ("application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8"):
        assert daemon.post("/v1/execute", body, headers={"Content-Type": kind}).status == 200
    problem(daemon.post("/v1/execute", body, headers={"Content-Encoding": "gzip"}), 415)
    assert daemon.post("/v1/execute", body, headers={"Content-Encoding": "identity"}).status == 200


# Who may call


@pytest.mark.parametrize("host, status", [("localhost", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200), ("[::1]:7700", 200),
                                          ("LOCALHOST:80", 200), ("evil.example", 421), ("localhost.evil.example", 421),
                                          ("127.0.0.1.evil.example", 421), ("localhost:x@evil.example", 421), ("localhost:80@evil.example", 421),
                                          ("[::1]x", 421), ("localhost:", 200), ("localhost:123456", 421), ("", 421), ("evil@localhost", 421), ("\xff", 421)])
def test_host(daemon, host, status):
    answer = daemon.get("/healthz", headers={"Host": host})
    assert answer.status == status, answer
    if status == 421:
        problem(answer, 421, "foreign_host")


def test_no_host(daemon):
    assert raw(daemon, b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 4")
    assert b" 421 " in raw(daemon, b"GET /healthz HTTP/1.0\r\n\r\n").split(b"\r\n")[0]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "http://127.0.0.1", "https://localhost", "",
                                    "file://", "http://localhost.evil.example"])
def test_foreign_origin(daemon, origin):
    for method, path in (("GET", "/healthz"), ("POST", "/v1/execute"), ("OPTIONS", "/v1/execute")):
        answer = daemon.request(method, path, b"{}" if method == "POST" else None,
                                headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
        problem(answer, 403, "foreign_origin")
        assert not any(name.lower().startswith("access-control") for name in answer.headers)


def test_own_origin(daemon):
    assert daemon.get("/healthz", headers={"Origin": daemon.address}).status == 200
    other = daemon.address.replace("http://", "https://")
    problem(daemon.get("/healthz", headers={"Origin": other}), 403, "foreign_origin")


def test_a_second_origin_is_refused(daemon):
    own = f"Origin: {daemon.address}\r\n".encode()
    host = f"Host: {daemon.address[7:]}\r\n".encode()
    got = raw(daemon, b"GET /healthz HTTP/1.1\r\n" + host + own + b"Origin: https://evil.example\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400 ") and b"Origin" in got, got
    assert raw(daemon, b"GET /healthz HTTP/1.1\r\n" + host + own + b"\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("header", [b"Transfer-Encoding : chunked", b"Content-Length\t: 3", b"X : y"])
def test_a_blank_behind_a_header_name_is_refused(daemon, header):
    """A proxy may take it for the name without the blank, and so find another end of the body."""
    got = raw(daemon, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400 ") and b"blank" in got, got


MALFORMED = {
    "length of letters": (b"Content-Length: x\r\n\r\n{}", 400), "negative length": (b"Content-Length: -1\r\n\r\n{}", 400),
    "length beyond numbers": (b"Content-Length: 99999999999999999999\r\n\r\n{}", 413),
    "chunk of letters": (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
    "large header": (b"X: " + b"a" * 100000 + b"\r\n\r\n", 431),
    "large headers": (b"".join(b"X-%d: y\r\n" % i for i in range(9000)) + b"\r\n", 431),
    "unknown encoding": (b"Transfer-Encoding: gzip\r\n\r\nxx", 501),
    "two encodings": (b"Transfer-Encoding: gzip, chunked\r\n\r\nxx", 501),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_get_problems(daemon, name):
    """Also those that the HTTP library answers itself, without asking anybody."""
    text, status = MALFORMED[name]
    got = raw(daemon, b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\n" + text)
    head, body = got.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 %d " % status), got
    assert b"Content-Type: application/problem+json" in head and b"html" not in got.lower(), got
    assert json.loads(body)["status"] == status and json.loads(body)["detail"], body


def test_a_long_request_line_gets_a_problem(daemon):
    got = raw(daemon, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 414 ") and b'"status":414' in got, got


def test_anonymous_requests_may_have_ceilings():
    with support.Daemon("--set", "anonymous=wall_ms=2s") as own:
        body = {"language": "bash", "code": "echo ok", "limits": {"wall_ms": "3s"}}
        found = problem(own.post("/v1/execute", body), 400, field="/limits/wall_ms")
        assert "anonymous" in found["detail"]
        assert own.execute("bash", "echo ok")["limits"]["wall_ms"] == 2000
        assert own.get("/v1/limits").json["key_ceilings"] == {"wall_ms": 2000}
        assert own.post("/v1/execute", body, key=own.new_key()).status == 200


def test_listed_names():
    with support.Daemon("--set", "hosts=box.example", "--set", "origins=https://app.example") as own:
        assert own.get("/healthz", headers={"Host": "box.example:99"}).status == 200
        assert own.get("/healthz", headers={"Host": "other.example"}).status == 421
        page = {"Origin": "https://app.example"}
        answer = own.post("/v1/execute", {"language": "bash", "code": ":"}, headers=page)
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        asked = own.request("OPTIONS", "/v1/execute", headers={**page, "Access-Control-Request-Method": "POST"})
        assert asked.status == 204 and "POST" in asked.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in asked.headers["Access-Control-Allow-Headers"] and asked.headers["Vary"] == "Origin"
        assert own.get("/healthz", headers={"Origin": "https://app.example.evil"}).status == 403
