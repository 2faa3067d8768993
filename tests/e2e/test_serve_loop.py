"""The daemon's loop is never away for long, whatever programs print, leave and are asked to have collected.

What is measured is the processor time of the loop's thread between two waits (`cordon_loop_long_turns_total` counts what took
more than 50 ms), so that a busy machine changes nothing."""
import pytest

from helpers import need
from serve_fixtures import support

MIB = 1 << 20
LARGE = {"output_bytes": "64m", "memory_bytes": "1g", "wall_ms": "60s", "cpu_ms": "60s"}


def write(stream, data, times):
    return f"import sys\nfor _ in range({times}): sys.{stream}.buffer.write({data})\n"


def fails(code):
    return code + "sys.stderr.flush()\nsys.exit(1)\n"


def names(count, pattern="'f%05d' % i"):
    return f"import os\nfor i in range({count}):\n    open({pattern}, 'w').close()\n"


DEEP_DIRS = "import os\nfor i in range(60):\n    os.mkdir('d'); os.chdir('d')\n    open('f', 'w').write('x')\n"
GLOBS = [f"**/*{'a*' * (i % 20)}{i}" for i in range(64)]
MANY_STARS = ["*a" * 60 + "*"] * 1 + [f"{'*a' * 50}*{i}" for i in range(63)]
# name: language, code, and more of the request
OUTPUTS = {
    "control characters": ("python", write("stdout", "b'\\1' * (1 << 20)", 40), {"limits": LARGE}),
    "zeros": ("python", write("stdout", "bytes(1 << 20)", 40), {"limits": LARGE}),
    "all bytes": ("python", write("stdout", "bytes(range(256)) * 4096", 30), {"limits": LARGE}),
    "invalid utf-8": ("python", write("stdout", "b'\\xff' * (1 << 20)", 30), {"limits": LARGE}),
    "cut utf-8": ("python", write("stdout", "b'\\xf0\\x9f\\x98' * (1 << 18)", 30), {"limits": LARGE}),
    "quotes": ("python", write("stdout", "b'\"' * (1 << 20)", 60), {"limits": LARGE}),
    "text": ("python", write("stdout", "b'x' * (1 << 20)", 60), {"limits": LARGE}),
    "base64": ("python", write("stdout", "b'\\1' * (1 << 20)", 40), {"limits": LARGE, "output_encoding": "base64"}),
    "both streams": ("python", write("stdout", "b'\\1' * (1 << 20)", 30) + write("stderr", "b'\\2' * (1 << 20)", 30), {"limits": LARGE}),
    "far more than is kept": ("python", write("stdout", "b'\\1' * (1 << 20)", 200), {"limits": {**LARGE, "output_bytes": "16m"}}),
    "errors": ("python", fails(write("stderr", "b'E' * 100 + b'\\n'", 600000)), {"limits": LARGE}),
    "error lines without an end": ("python", fails(write("stderr", "b'a: ' * (1 << 18)", 60)), {"limits": LARGE}),
    "tracebacks": ("python", fails(write("stderr", "b'Traceback (most recent call last):\\n  File \"main.py\", line 1\\n' * 1000", 600)), {"limits": LARGE}),
    "colons and numbers": ("python", fails(write("stderr", "b'main.py:1:1: error: ' * 50000", 30)), {"limits": LARGE}),
    "carriage returns": ("python", fails(write("stderr", "b'\\r' * (1 << 20)", 60)), {"limits": LARGE}),
    "empty lines": ("python", fails(write("stderr", "b'\\n' * (1 << 20)", 60)), {"limits": LARGE}),
    "node errors": ("javascript", "process.stderr.write('at x (y:1:1)\\n'.repeat(3e6)); process.exitCode = 1", {"limits": LARGE}),
    "bash errors": ("bash", "yes 'main.sh: line 1: x: command not found' | head -c 30000000 >&2; exit 1", {"limits": LARGE}),
    "c errors": ("c", "".join(f"int f{i}(void) {{ return undeclared{i}; }}\n" for i in range(3000)), {}),
    "names and globs": ("python", names(8400), {"collect": GLOBS}),
    "names and many stars": ("python", names(3000, "'a' * 200 + '%05d' % i"), {"collect": MANY_STARS}),
    "deep directories": ("python", DEEP_DIRS, {"collect": ["**/f", "**/d/**/f", "*/*/*/**"]}),
    "large files": ("python", "for i in range(8): open(f'f{i}', 'wb').write(b'\\1' * 1000000)", {"collect": ["*"]}),
    "large text files": ("python", "for i in range(8): open(f'f{i}', 'w').write('\"\\\\' * 500000)", {"collect": ["*"]}),
    "names that fail": ("python", names(8400) + "raise SystemExit(1)", {}),
    "names that are no text": ("python", "import os\nfor i in range(4000): open(b'\\xff\\xfe%d' % i, 'w').close()", {"collect": ["*"]}),
    "wide value": ("javascript", "Array.from({length: 40000}, (_, i) => i)", {}),
    "deep value": ("javascript", "let a = []; for (let i = 1; i < 2048; i++) a = [a]; a", {}),
    "secrets": ("python", write("stdout", "b'hunter2hunter2' * 70000", 12),
                {"limits": LARGE, "env": {"S": {"value": "hunter2hunter2", "secret": True}}, "sanitize": "all"}),
    "nearly secrets": ("python", write("stdout", "b'hunter2hunterX' * 70000", 12),
                       {"limits": LARGE, "env": {"S": {"value": "hunter2hunter2", "secret": True}}, "sanitize": "all"}),
    "denials": ("python", "import ctypes\nlibc = ctypes.CDLL(None)\nfor i in range(300): libc.ptrace(i % 100, 0, 0, 0)", {}),
    "many redactions": ("python", write("stdout", "b'AKIAIOSFODNN7EXAMPLE\\n' * 50000", 8), {"limits": LARGE, "sanitize": "all"}),
}


@pytest.fixture(scope="module")
def daemon():
    with support.Daemon("--output-bytes", "64m", "--held-bytes", "16g") as running:
        yield running


def figures(daemon):
    text = daemon.get("/metrics", check=False).body.decode()
    found = dict(line.split(" ") for line in text.splitlines() if line.startswith("cordon_loop_"))
    return int(float(found["cordon_loop_long_turns_total"])), float(found["cordon_loop_longest_turn_seconds"])


def check_loop(daemon, before, what):
    long_turns, longest = figures(daemon)
    assert long_turns == before, f"{what}: the loop was away {long_turns - before} times for more than 50 ms, at most {longest * 1000:.0f} ms since the start"


def request_of(name):
    language, code, more = OUTPUTS[name]
    need(language)
    return {"language": language, "code": code, **more}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_loop_is_never_away_for_long(daemon, name):
    request = request_of(name)
    before, _ = figures(daemon)
    answer = daemon.post("/v1/execute", request, timeout=120, check=False)
    assert answer.status == 200, answer
    daemon.get("/v1/executions?limit=1")  # recorded
    check_loop(daemon, before, name)


@pytest.mark.parametrize("name", ["control characters", "errors", "names and globs"])
def test_reports_and_stored_streams_keep_the_loop_free(daemon, name):
    request = request_of(name)
    run = daemon.start(request.pop("language"), request.pop("code"), **request)
    daemon.result(run, 120)
    before, _ = figures(daemon)
    for accept in ("application/json", "text/plain"):
        assert daemon.get(f"/v1/executions/{run}/report", headers={"Accept": accept}, check=False, timeout=120).status == 200
    check_loop(daemon, before, name)


def test_a_case_of_tests_that_prints_much_keeps_the_loop_free(daemon):
    code = write("stdout", "b'\\1' * (1 << 20)", 30)
    before, _ = figures(daemon)
    answer = daemon.post("/v1/tests", {"language": "python", "code": code, "limits": LARGE, "tests": {"cases": [{}]}}, timeout=120, check=False)
    assert answer.status == 200, answer
    check_loop(daemon, before, "tests")
