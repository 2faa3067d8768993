"""Streams of `cordon serve`: SSE and NDJSON, following again by offset, and readers that leave or do not read."""
import base64
import json
import socket
import threading
import time

import pytest

from helpers import mark, marked, wait_for
from serve_fixtures import SLEEP, daemon, runs, seconds_until_gone, support, wait_marked  # noqa: F401

KINDS = ("text/event-stream", "application/x-ndjson")
TWO = """
import sys, time
for number in range(6):
    print('out', number, flush=True)
    print('err', number, file=sys.stderr, flush=True)
    time.sleep(0.05)
"""


def outputs(events):
    return [event for event in events if event["type"] in ("stdout", "stderr")]


def check_offsets(events, base=0):
    """Each begins where the one before ended."""
    at = base
    for event in outputs(events):
        assert event["offset"] == at, (event, at)
        at += len(event["data"].encode())
    return at


@pytest.mark.parametrize("kind", KINDS)
def test_stream(daemon, kind):
    stream = daemon.stream("POST", "/v1/execute", {"language": "python", "code": TWO}, accept=kind)
    events = stream.rest()
    assert events[0]["type"] == "start" and events[-1]["type"] == "result"
    result = events[-1]["result"]
    assert events[0]["id"] == result["id"] and result["status"] == "ok"
    for name in ("stdout", "stderr"):
        assert support.text_of(events, name) == result[name] and "5" in result[name]
    assert check_offsets(events) == sum(len(result[name]) for name in ("stdout", "stderr"))
    assert len(outputs(events)) > 2, "it came all at once"
    assert daemon.get(f"/v1/executions/{result['id']}").json["stdout"] == result["stdout"]


@pytest.mark.parametrize("accept, kind", [
    ("text/event-stream", "text/event-stream"), ("application/x-ndjson", "application/x-ndjson"),
    ("application/json, text/event-stream", "application/json"), ("text/event-stream, application/json", "text/event-stream"),
    ("application/json;q=0.5, text/event-stream", "text/event-stream"), ("text/event-stream;q=0, */*", "application/json"),
    ("*/*", "application/json"), ("text/html", "application/json"), ("text/*", "text/event-stream"),
    ("TEXT/Event-Stream", "text/event-stream"), ("x-text/event-stream-not", "application/json"), (",;q=", "application/json")])
def test_which_answer_is_meant(daemon, accept, kind):
    answer = daemon.post("/v1/execute", {"language": "bash", "code": ":"}, headers={"Accept": accept})
    assert answer.status == 200 and answer.headers["Content-Type"] == kind


def test_it_is_live(daemon):
    """What is printed is there before the program ends."""
    word = mark()
    stream = daemon.stream("POST", "/v1/execute", {"language": "python", "code": SLEEP, "args": [word], "warm": False})
    assert "up\n".startswith(stream.until("stdout")["data"])
    assert marked(word)
    daemon.delete(f"/v1/executions/{stream.events[0]['id']}")
    assert stream.rest()[-1]["result"]["status"] == "cancelled"


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_ends_the_run(daemon, kind):
    word = mark()
    stream = daemon.stream("POST", "/v1/execute", {"language": "python", "code": SLEEP, "args": [word], "warm": False}, accept=kind)
    wait_marked(word)
    stream.close()
    took = seconds_until_gone(word)
    print(f"\ncell gone {1000 * took:.0f} ms after the reader left")
    assert took < 2


def test_leaving_while_waiting_for_a_place():
    with support.Daemon("--concurrency", "1", "--drain-ms", "100ms") as own:
        first = own.start("python", SLEEP)
        stream = own.stream("POST", "/v1/execute", {"language": "bash", "code": ":"})
        assert stream.next()["type"] == "start"
        wait_for(lambda: "cordon_runs_queued 1" in own.get("/metrics").body.decode())
        stream.close()
        wait_for(lambda: "cordon_runs_queued 0" in own.get("/metrics").body.decode())
        assert own.get(f"/v1/executions/{first}").json["state"] == "running"


def test_one_that_waits_is_told_when_it_runs():
    with support.Daemon("--concurrency", "1") as own:
        first = own.start("bash", "sleep 0.5")
        events = own.stream("POST", "/v1/execute", {"language": "bash", "code": "echo 1"}).rest()
        assert [event["type"] for event in events if event["type"] != "stdout"] == ["start", "status", "result"]
        assert events[1]["state"] == "running" and own.result(first)["status"] == "ok"


# Following again


def test_follow_while_running(daemon):
    run = daemon.start("python", TWO)
    events = daemon.stream("GET", f"/v1/executions/{run}/events").rest()
    assert events[0] == {"type": "start", "id": run} and events[-1]["result"]["status"] == "ok"
    assert support.text_of(events) == "".join(f"out {number}\n" for number in range(6))
    check_offsets(events)


@pytest.mark.parametrize("kind", KINDS)
def test_follow_from_every_offset_after_the_end(daemon, kind):
    run = daemon.start("python", "import sys\nprint('abc', flush=True)\nprint('défg', file=sys.stderr)")
    daemon.result(run)
    whole = daemon.stream("GET", f"/v1/executions/{run}/events", accept=kind).rest()
    delivered = b"".join(event["data"].encode() for event in outputs(whole))
    assert delivered.decode() == "abc\ndéfg\n"
    for offset in [*range(len(delivered) + 2), 10 ** 9]:
        events = daemon.stream("GET", f"/v1/executions/{run}/events?offset={offset}", accept=kind).rest()
        rest = delivered[offset:].decode(errors="replace")
        assert "".join(event["data"] for event in outputs(events)) == rest, offset
        assert not rest or outputs(events)[0]["offset"] == offset
        assert events[-1]["result"]["id"] == run


def test_follow_again_and_again(daemon):
    """Whoever loses the connection loses nothing: he goes on at the sum of what he has."""
    run = daemon.start("python", "import time\nfor n in range(40):\n    print('line', n, 'é' * 5, flush=True)\n    time.sleep(0.02)")
    have, result, tries = b"", None, 0
    while result is None:
        stream = daemon.stream("GET", f"/v1/executions/{run}/events?offset={len(have)}")
        for count, event in enumerate(iter(stream.next, None)):
            if event["type"] == "stdout":
                assert event["offset"] == len(have)
                have += event["data"].encode()
            if event["type"] == "result":
                result = event["result"]
            if count == 3:
                break
        stream.close()
        tries += 1
    assert have.decode() == result["stdout"] and tries > 1


def test_followers_may_leave(daemon):
    """Only who started it by streaming owns it."""
    word = mark()
    run = daemon.start("python", "import time; print('up', flush=True); time.sleep(1); print('end')", args=[word], warm=False)
    for _ in range(3):
        stream = daemon.stream("GET", f"/v1/executions/{run}/events")
        stream.until("stdout")
        stream.close()
    assert daemon.result(run)["stdout"] == "up\nend\n"


def test_many_followers(daemon):
    run = daemon.start("python", TWO)
    found = []
    threads = [threading.Thread(target=lambda: found.append(support.text_of(daemon.stream("GET", f"/v1/executions/{run}/events").rest())))
               for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["".join(f"out {number}\n" for number in range(6))] * 16


def test_follow_what_only_the_history_has():
    """After a restart: standard output first, then standard error."""
    first = support.Daemon().wait_ready()
    first.own_data = False
    run = first.start("python", "import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr, flush=True)\nprint('c')")
    coded = first.start("bash", r"printf '\xff\x00\x01'", output_encoding="base64")
    first.result(run)
    first.result(coded)
    first.stop()
    with support.Daemon(data=first.data) as own:
        own.own_data = True
        events = own.stream("GET", f"/v1/executions/{run}/events").rest()
        assert [(event["type"], event["data"], event["offset"]) for event in outputs(events)] == [("stdout", "a\nc\n", 0), ("stderr", "b\n", 4)]
        assert events[-1]["result"]["status"] == "ok"
        events = own.stream("GET", f"/v1/executions/{run}/events?offset=2", accept="application/x-ndjson").rest()
        assert [event["data"] for event in outputs(events)] == ["c\n", "b\n"]
        events = own.stream("GET", f"/v1/executions/{coded}/events?offset=1").rest()
        assert base64.b64decode(outputs(events)[0]["data"]) == b"\x00\x01"


# What is printed


def test_characters_are_never_parted(daemon):
    code = "import os, time\nfor byte in 'aé€😀'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.01)"
    events = daemon.stream("POST", "/v1/execute", {"language": "python", "code": code}).rest()
    assert support.text_of(events) == "aé€😀" == events[-1]["result"]["stdout"]
    check_offsets(events)


def test_what_is_no_text(daemon):
    """Repaired before it is counted, so that offsets can be added up; the same as in the result."""
    code = "import os\nos.write(1, b'a\\xff\\xfeb\\xc3')"
    run = daemon.start("python", code)
    result = daemon.result(run)
    events = daemon.stream("GET", f"/v1/executions/{run}/events").rest()
    assert support.text_of(events) == result["stdout"] == "a\ufffd\ufffdb\ufffd"
    assert check_offsets(events) == len(result["stdout"].encode())


def test_base64(daemon):
    run = daemon.start("bash", r"printf 'a\xff\x00b'", output_encoding="base64")
    result = daemon.result(run)
    events = daemon.stream("GET", f"/v1/executions/{run}/events").rest()
    assert b"".join(base64.b64decode(event["data"]) for event in outputs(events)) == b"a\xff\x00b" == base64.b64decode(result["stdout"])


def test_cut_output(daemon):
    """A live stream stops at the head; the tail comes with the result."""
    events = daemon.stream("POST", "/v1/execute", {"language": "bash", "code": "seq 100000", "limits": {"output_bytes": 4000}}).rest()
    result = events[-1]["result"]
    assert result["stdout_truncated"] and result["stdout"].startswith(support.text_of(events))
    assert 0 < len(support.text_of(events)) <= 4000 and result["stdout"].endswith("100000\n")


def test_much_output_that_grows_in_json(daemon):
    """Six bytes for each: more in one event than a slow reader is allowed to be behind, and it arrives."""
    code = "import sys\nsys.stdout.write('\\x01' * (3 << 20))"
    body = {"language": "python", "code": code, "limits": {"output_bytes": "4m"}, "sanitize": False}
    run = daemon.start(**body)
    result = daemon.result(run)
    assert len(result["stdout"]) == 3 << 20
    events = daemon.stream("GET", f"/v1/executions/{run}/events").rest()
    assert support.text_of(events) == result["stdout"] == events[-1]["result"]["stdout"]
    events = daemon.stream("POST", "/v1/execute", body).rest()
    assert support.text_of(events) == result["stdout"] == events[-1]["result"]["stdout"]


def test_redaction_in_the_stream(daemon):
    secret = "token-" + mark()
    body = {"language": "python", "env": {"T": {"value": secret, "secret": True}},
            "code": "import os, time\nfor c in os.environ['T']:\n    print(c, end='', flush=True)\n    time.sleep(0.005)\nprint(' done')"}
    events = daemon.stream("POST", "/v1/execute", body).rest()
    text = support.text_of(events)
    assert secret not in text and text == events[-1]["result"]["stdout"] and text.endswith(" done\n")
    assert secret not in json.dumps(events)


# Readers that do not read


def test_a_reader_that_never_reads_holds_nobody():
    with support.Daemon("--concurrency", "2") as own:
        body = json.dumps({"language": "python", "code": "import sys\nfor _ in range(3000): sys.stdout.write('y' * 1024)",
                           "limits": {"output_bytes": "4m"}}).encode()
        stuck = []
        for _ in range(8):
            sock = own.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s"
                         % (len(body), body))
            stuck.append(sock)
        wait_for(lambda: runs(own) == 0 and len(own.log("run")) == 8, 60)
        begin = time.monotonic()
        assert own.execute("bash", "echo free")["stdout"] == "free\n"
        assert time.monotonic() - begin < 5
        for sock in stuck:
            sock.close()
        wait_for(lambda: "cordon_http_connections 1" in own.get("/metrics").body.decode())


def test_connections_of_those_who_left_are_given_back(daemon):
    """A call whose client leaves while it waits does not stay."""
    for _ in range(10):
        connection = daemon.connect()
        connection.request("POST", "/v1/execute", json.dumps({"language": "bash", "code": "sleep 20"}))
        time.sleep(0.02)
        connection.close()
    wait_for(lambda: "cordon_http_connections 1\n" in daemon.get("/metrics").body.decode())
    wait_for(lambda: runs(daemon) == 0)


def test_follow_from_beyond_what_there_is(daemon):
    """Who has the first bytes already is told nothing of them, although they come later."""
    run = daemon.start("python", "import time; time.sleep(0.4); print('first', flush=True); print('second')")
    events = daemon.stream("GET", f"/v1/executions/{run}/events?offset=6").rest()
    assert "".join(event["data"] for event in events if event["type"] == "stdout") == "second\n"
    assert next(event["offset"] for event in events if event["type"] == "stdout") == 6
