"""What the daemon counts: every cell of a request, its test cases, checkers, interactors and compile steps included, in
quotas, the ledger, metrics, admission and ceilings."""
import json
import os
import pathlib
import threading

import pytest

from helpers import mark, marked, need, wait_for
from serve_fixtures import problem, support

BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


@pytest.fixture(scope="module")
def daemon():
    with support.Daemon("--require-keys", "--concurrency", "2", "--set", "memory_bytes=1g") as running:
        yield running


def burn(seconds):
    return BURN.format(seconds=seconds)


def python(seconds):
    return {"language": "python", "code": burn(seconds)}


def cpu_total(daemon):
    admin = daemon.admin
    text = daemon.get("/metrics", key=admin, check=False).body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("cordon_cpu_seconds_total{"))


def ledger_cpu_ms(daemon, run, key):
    def row():
        items = daemon.get("/v1/executions?limit=50", key=key).json["items"]
        return next((item for item in items if item["id"] == run), None)
    return wait_for(row, 20)["cpu_ms"]


ALIKE = {"language": "python", "code": "print(input())"}
CASES = [{"stdin": "1\n", "expected": "1\n"} for _ in range(4)]


def test_tests_are_charged_for_every_case(daemon):
    daemon.admin = daemon.new_key("--scopes", "admin")
    key = daemon.new_key("--cpu-per-day", "1h")
    before = cpu_total(daemon)
    result = daemon.post("/v1/tests", {**python(0.2), "tests": {"cases": [{"expected": ""}] * 4}}, key=key).json
    assert result["tests"]["passed"] == 4, result
    assert ledger_cpu_ms(daemon, result["id"], key) >= 800
    assert cpu_total(daemon) - before >= 0.8


def test_checkers_and_interactors_are_charged(daemon):
    daemon.admin = daemon.new_key("--scopes", "admin")
    key = daemon.new_key("--cpu-per-day", "1h")
    for helper in ("checker", "interactor"):
        tests = {"cases": [{}] * 2, helper: python(0.3)}
        result = daemon.post("/v1/tests", {"language": "bash", "code": "exit 0", "tests": tests}, key=key).json
        assert result["tests"]["passed"] == 2, result
        assert ledger_cpu_ms(daemon, result["id"], key) >= 600, helper


def test_compile_steps_of_tests_are_charged_once(daemon):
    need("c")
    key = daemon.new_key("--cpu-per-day", "1h")
    code = "#include <stdio.h>\n/* %s */\nint main(void) { return 0; }" % key
    plain = daemon.post("/v1/execute", {"language": "c", "code": code + "\n"}, key=key).json
    compiling = plain["compile"]["usage"]["cpu_user_ms"] + plain["compile"]["usage"]["cpu_system_ms"]
    result = daemon.post("/v1/tests", {"language": "c", "code": code, "tests": {"cases": [{}] * 10}}, key=key).json
    charged = ledger_cpu_ms(daemon, result["id"], key)
    assert result["tests"]["passed"] == 10 and compiling > 0
    assert 0.3 * compiling < charged < 6 * compiling, (compiling, charged)


def cpu_seconds(word):
    """Processor time of the processes that have the word on their command line."""
    ticks = 0
    for pid in marked(word):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_a_cancelled_set_of_tests_is_charged(daemon):
    key, word = daemon.new_key("--cpu-per-day", "1s"), mark()
    connection = daemon.connect()
    body = json.dumps({**python(60), "warm": False, "args": [word], "tests": {"cases": [{}] * 100}})
    connection.request("POST", "/v1/tests", body, daemon._headers(None, key, body))
    wait_for(lambda: cpu_seconds(word) > 1.1, 60)
    connection.close()
    wait_for(lambda: daemon.post("/v1/execute", ALIKE, key=key).status == 429, 20, 0.1)


@pytest.mark.parametrize("limits, field", [
    ({"tests": {"cases": [{"limits": {"wall_ms": 60000}}]}}, "/tests/cases/0/limits/wall_ms"),
    ({"tests": {"cases": [{}, {"limits": {"memory_bytes": "512m"}}]}}, "/tests/cases/1/limits/memory_bytes"),
    ({"tests": {"cases": [{}], "limits": {"wall_ms": 60000}}}, "/tests/limits/wall_ms"),
    ({"tests": {"cases": [{}]}, "limits": {"wall_ms": 60000}}, "/limits/wall_ms"),
    ({"tests": {"cases": [{}], "checker": {**ALIKE, "limits": {"wall_ms": 60000}}}}, "/tests/checker/limits/wall_ms"),
    ({"tests": {"cases": [{"interactor": {**ALIKE, "limits": {"wall_ms": 60000}}}]}},
     "/tests/cases/0/interactor/limits/wall_ms"),
])
def test_ceilings_hold_for_every_program_of_tests(daemon, limits, field):
    key = daemon.new_key("--ceiling", "memory_bytes=256m", "--ceiling", "wall_ms=10s")
    found = problem(daemon.post("/v1/tests", {**ALIKE, **limits}, key=key), 400, field=field)
    assert "above this key's ceiling" in found["detail"]


def test_a_profile_above_a_ceiling_is_lowered_in_tests_too(daemon):
    key = daemon.new_key("--ceiling", "memory_bytes=64m", "--ceiling", "wall_ms=3s")
    tests = {"cases": [{"expected": ""}], "checker": {"language": "bash", "code": "exit 0"}}
    result = daemon.post("/v1/tests", {"language": "bash", "code": "exit 0", "tests": tests}, key=key).json
    assert result["success"] and result["limits"]["memory_bytes"] == 64 << 20 and result["limits"]["wall_ms"] == 3000


@pytest.mark.parametrize("tests, fits", [
    ({"cases": [{"limits": {"memory_bytes": "600m"}}]}, True),
    ({"cases": [{"limits": {"memory_bytes": "1100m"}}]}, False),
    ({"cases": [{}], "checker": {**ALIKE, "limits": {"memory_bytes": "1100m"}}}, False),
    ({"cases": [{}], "checker": {"language": "bash", "code": "exit 0", "limits": {"memory_bytes": "600m"}}}, True),
    ({"cases": [{}], "interactor": {**ALIKE, "limits": {"memory_bytes": "600m"}}}, False),
])
def test_cells_of_tests_count_for_the_daemons_memory(daemon, tests, fits):
    """The daemon has 1 GiB for all cells; an interactor runs beside the program, a checker after it."""
    request = {"language": "bash", "code": "exit 0", "limits": {"memory_bytes": "600m"}, "tests": tests}
    answer = daemon.post("/v1/tests", request, key=daemon.new_key())
    if fits:
        assert answer.status == 200 and answer.json["success"], answer
    else:
        problem(answer, 422, "too_large_for_host")


def test_cpu_per_day_holds_for_what_was_queued(daemon):
    """Runs that were admitted while there was time left do not start when there is none any more."""
    key = daemon.new_key("--cpu-per-day", "1s", "--concurrent", "1")
    answers = []
    callers = [threading.Thread(target=lambda: answers.append(daemon.post("/v1/execute", python(0.6), key=key, timeout=120)))
               for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    ran = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status == 429]
    assert len(ran) <= 3 and len(ran) + len(refused) == 8, answers
    for answer in refused:
        problem(answer, 429, "cpu_quota")
        assert int(answer.headers["Retry-After"]) > 0


def test_what_ran_is_recorded_whatever_its_report_claims(daemon):
    """The tested program can write into the report of its own framework."""
    daemon.admin = daemon.new_key("--scopes", "admin")
    key = daemon.new_key("--cpu-per-day", "1h")
    forge = "import os\nopen('/work/.cordon-tests/report', 'w').write('{\"missing\": true}\\n')\nos._exit(3)\n"
    answer = daemon.post("/v1/tests", {"language": "python", "code": burn(0.2) + forge,
                                       "tests": {"framework": "unittest", "files": {"test_a.py": "import main"}}}, key=key)
    assert answer.status == 200 and answer.json["status"] == "nonzero_exit", answer.body
    assert ledger_cpu_ms(daemon, answer.json["id"], key) >= 200
