"""Whatever bytes a program writes and whatever value it leaves, every path that a run takes passes them on and records
them: the command line, a data directory, the daemon's answers, its streams, its ledger, reports, replays, batches and
tests."""
import json
import sys

import pytest

from helpers import need, wait_for
from serve_fixtures import daemon, open_dir, support  # noqa: F401

cordon = support.cordon

sys.setrecursionlimit(20000)
MIB = 1 << 20


def written(data):
    """What a reader of a Result is to see of bytes that a program wrote."""
    return data.decode(errors="replace")


def program(data):
    """Writes the same to both streams; the code itself is plain text."""
    return f"import sys\ndata = bytes.fromhex({data.hex()!r})\nsys.stdout.buffer.write(data)\nsys.stderr.buffer.write(data)"


ALL = bytes(range(256))
BYTES = {
    "nul": b"a\0b",
    "only nul": b"\0",
    "all": ALL,
    "all twice over": bytes(b for pair in ((a, c) for a in range(0, 256, 5) for c in range(256)) for b in pair),
    "invalid": b"\xc3(\xa0\xa1\xe2\x28\xa1\xed\xa0\x80\xf8\x88\xf0\x9f\x98",
    "json": b'"\\\n\r\t\b\f{"a":[',
    "separators": "\u2028\u2029\u0085\ufeff\u202e".encode(),
    "beyond the plane": "\U0001f600\U0010ffff".encode(),
    "empty": b"",
}
VALUES = {
    "nul": ("'a\\0b'", "a\0b"),
    "half a pair": ("'x\\ud800y'", "x\ufffdy"),
    "a pair": ("'\\ud83d\\ude00'", "\U0001f600"),
    "an escaped backslash": ("'\\\\ud800'", "\\ud800"),
    "large": ("12345678901234567000", 12345678901234567000.0),
    "exact": ("0.1 + 0.2", 0.1 + 0.2),
    "at the bound": ("let a = []; for (let i = 1; i < 64; i++) a = [a]; a", json.loads("[" * 64 + "]" * 64)),
    "deep": ("let a = []; for (let i = 1; i < 2048; i++) a = [a]; a", "[" * 2048 + "]" * 2048),
    "deep objects": ("let a = {}; for (let i = 1; i < 300; i++) a = {a}; a", '{"a":' * 299 + "{}" + "}" * 299),
    "wide": ("Array.from({length: 30000}, (_, i) => i)", list(range(30000))),
    "many names": ("Object.fromEntries(Array.from({length: 5000}, (_, i) => ['\\x01' + i, i]))",
                   {"\1" + str(i): i for i in range(5000)}),
    "a zero byte in a name": ("({'a\\0b': 1})", '{"a\\u0000b":1}'),
}


def check_everywhere(daemon, request, check):
    """One request through every path of the daemon; each Result passes `check`."""
    before = spent(daemon)
    answer = daemon.post("/v1/execute", request)
    assert answer.status == 200, answer
    check(answer.json)
    stream = daemon.stream("POST", "/v1/execute", request)
    events = stream.rest()
    stream.close()
    check(events[-1]["result"])
    assert support.text_of(events) == events[-1]["result"]["stdout"]
    later = daemon.post("/v1/executions", request)
    assert later.status == 202, later
    check(daemon.result(later.json["id"]))
    for run in (answer.json["id"], events[-1]["result"]["id"], later.json["id"]):
        row = next(item for item in daemon.get("/v1/executions?limit=20").json["items"] if item["id"] == run)
        assert row["status"] == answer.json["status"], row
        check(stored(daemon, run))
        report = daemon.get(f"/v1/executions/{run}/report", check=False)
        assert report.status == 200 and json.loads(report.body), report
        assert daemon.get(f"/v1/executions/{run}/report", headers={"Accept": "text/plain"}, check=False).status == 200
    assert spent(daemon) > before, "processor time is counted"
    return later.json["id"]


def spent(daemon):
    return sum(float(line.split()[-1]) for line in daemon.get("/metrics", check=False).body.decode().splitlines()
               if line.startswith("cordon_cpu_seconds_total{"))


def stored(daemon, run):
    """As the ledger has it, and no memory of the daemon."""
    def found():
        done = cordon.cordon("history", run, "--json", "--data-dir", daemon.data)
        return done if done.returncode == 0 and json.loads(done.stdout)["status"] else None
    return json.loads(wait_for(found, 20).stdout)


def check_replay(daemon, run, printed):
    """Nothing differs; where bytes were replaced, not everything can be compared."""
    replayed = cordon.cordon("replay", run, "--data-dir", daemon.data)
    assert replayed.returncode == (3 if "\ufffd" in printed else 0), replayed.stdout + replayed.stderr


@pytest.mark.parametrize("name", BYTES)
def test_bytes_pass_the_daemon(daemon, name):
    data = BYTES[name]

    def check(result):
        assert result["status"] == "ok", result["reason"]
        assert result["stdout"] == written(data) and result["stderr"] == written(data)

    run = check_everywhere(daemon, {"language": "python", "code": program(data)}, check)
    check_replay(daemon, run, written(data))


@pytest.mark.parametrize("name", VALUES)
def test_values_pass_the_daemon(daemon, name):
    need("javascript")
    code, value = VALUES[name]

    def check(result):
        assert result["status"] == "ok", result["reason"]
        assert result["value"] == value

    run = check_everywhere(daemon, {"language": "javascript", "code": code}, check)
    check_replay(daemon, run, stored(daemon, run)["stdout"])


@pytest.mark.parametrize("name", BYTES)
def test_bytes_pass_the_command_line(name, tmp_path):
    data = BYTES[name]
    result = cordon.run(["-l", "python", "-c", program(data), "--data-dir", tmp_path])
    assert result["stdout"] == written(data) and result["stderr"] == written(data)
    plain = cordon.cordon("run", "-l", "python", "-c", program(data), "--data-dir", tmp_path)
    assert plain.returncode == 0 and plain.stdout == data and plain.stderr == data
    listed = cordon.cordon("history", "--json", "--data-dir", tmp_path)
    items = [json.loads(line) for line in listed.stdout.splitlines()]
    items = items[0]["items"] if len(items) == 1 and "items" in items[0] else items
    assert len(items) == 2 and result["id"] in {item["id"] for item in items}, listed
    assert cordon.cordon("verify-ledger", "--data-dir", tmp_path).returncode == 0


@pytest.mark.parametrize("name", VALUES)
def test_values_pass_the_command_line(name, tmp_path):
    need("javascript")
    code, value = VALUES[name]
    result = cordon.run(["-l", "javascript", "-c", code, "--data-dir", tmp_path])
    assert result["value"] == value
    done = cordon.cordon("history", result["id"], "--json", "--data-dir", tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["value"] == value, done.stderr


def test_bytes_and_values_pass_a_batch(tmp_path):
    need("javascript")
    requests = [{"id": f"b {name}", "language": "python", "code": program(data)} for name, data in BYTES.items()]
    requests += [{"id": f"v {name}", "language": "javascript", "code": code} for name, (code, _) in VALUES.items()]
    lines, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in requests))
    done = cordon.cordon("batch", lines, "-o", out)
    assert done.returncode == 0, done.stderr
    found = {one["id"]: one for one in map(json.loads, out.read_text().split("\n")[:-1])}
    for name, data in BYTES.items():
        assert found[f"b {name}"]["stdout"] == written(data), name
    for name, (_, value) in VALUES.items():
        assert found[f"v {name}"]["value"] == value, name


@pytest.mark.parametrize("name", BYTES)
def test_bytes_pass_tests(daemon, name):
    data = BYTES[name]
    request = {"language": "python", "code": program(data),
               "tests": {"cases": [{"name": "same", "expected": written(data), "match": "exact"}]}}
    result = daemon.post("/v1/tests", request).json
    assert result["status"] == "ok" and result["stdout"] == written(data), result
    case = result["tests"]["cases"][0]
    assert not case["got"].startswith("\0") or data.startswith(b"\0")
    assert stored(daemon, result["id"])["tests"]["cases"][0]["got"] == case["got"]


@pytest.fixture(scope="module")
def large():
    """A daemon that lets programs print as much as a data directory takes."""
    with support.Daemon("--output-bytes", "64m", "--held-bytes", "16g") as running:
        yield running


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, MIB, 24 * MIB])
def test_sizes_pass(large, size):
    daemon = large
    code = f"import sys\nsys.stdout.write('\\0x' * {size // 2} + '\\0' * {size % 2})"
    limits = {"output_bytes": "64m", "memory_bytes": "512m"}
    run = daemon.start("python", code, limits=limits)
    result = daemon.result(run, 120)
    assert result["status"] == "ok" and result["stdout"] == "\0x" * (size // 2) + "\0" * (size % 2)
    assert stored(daemon, run)["stdout"] == result["stdout"]


def test_largest_output_passes(tmp_path):
    """64 MiB of zeros in each way of a data directory."""
    result = cordon.run(["-l", "python", "-c", "import sys\nfor _ in range(64): sys.stdout.buffer.write(bytes(1 << 20))",
                         "--output", "64m", "--wall", "120s", "--data-dir", tmp_path])
    assert len(result["stdout"]) == 64 * MIB and not result["stdout"].strip("\0"), result["reason"]
    assert cordon.cordon("verify-ledger", "--data-dir", tmp_path).returncode == 0


def test_a_restart_keeps_what_had_ended(open_dir):
    """A run accepted for later, whose program prints a zero byte, is no internal error after a restart."""
    data = open_dir / "data"
    data.mkdir()
    with support.Daemon(data=data) as first:
        run = first.start("bash", "printf 'a\\0b'")
        assert first.result(run)["stdout"] == "a\0b"
    with support.Daemon(data=data) as second:
        assert second.result(run)["status"] == "ok" and second.result(run)["stdout"] == "a\0b"
