"""Tests as a request: `cordon test`, and the judge behind it."""
import base64
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest

from helpers import CORDON, FLAGS, REPOSITORY, cordon, need, need_module, result as run_alone, skip, tool

SUM = "print(sum(map(int, input().split())))\n"
TEST_FLAGS = [flag for flag in FLAGS if flag != "--warm"]
JUDGE = pathlib.Path(CORDON).parent / "tests" / "judge_lines"


def b64(data):
    return {"base64": base64.b64encode(data).decode()}


class Bench:
    """A directory of tests and the command that runs them."""

    def __init__(self, path):
        self.path = path

    def write(self, name, text):
        (self.path / name).write_text(text if isinstance(text, str) else json.dumps(text))
        return self.path / name

    def text(self, tests, code, *flags, language="python", **how):
        return cordon("test", *TEST_FLAGS, "--tests", self.write("cases.json", tests), *flags, "-l", language, "-c", code, **how)

    def __call__(self, tests, code, *flags, language="python", **how):
        done = self.text(tests, code, "--json", *flags, language=language, **how)
        assert done.out, done
        result = json.loads(done.out)
        if result.get("tests"):
            assert done.code == (0 if result["success"] else 1), done
            assert result["tests"]["total"] == sum(result["tests"][key] for key in ("passed", "failed", "skipped")), result
        result["exit"] = done.code
        return result


@pytest.fixture
def bench(tmp_path):
    need("python")
    return Bench(tmp_path)


def statuses(result):
    return [case["status"] for case in result["tests"]["cases"]]


def test_cases_pass_and_fail(bench):
    result = bench([{"stdin": "1 2", "expected": "3"}, {"name": "wrong", "stdin": "2 2", "expected": "5"},
                    {"stdin": "x", "expected": "0"}, {"stdin": "4 4", "expected": "8\n"}], SUM)
    assert statuses(result) == ["passed", "failed", "nonzero_exit", "passed"]
    assert {key: result["tests"][key] for key in ("passed", "failed", "total")} == {"passed": 2, "failed": 2, "total": 4}
    first, wrong, crashed, _ = result["tests"]["cases"]
    assert (first["name"], first["expected"], first["got"], first["reason"]) == ("case 1", "3", "3\n", None)
    assert first["usage"]["wall_ms"] > 0
    assert wrong["reason"] == 'line 1, column 1: expected "5", got "4"'
    assert "ValueError" in crashed["reason"] and "line 1" in crashed["reason"]
    # The result is that of the first case that did not pass.
    assert (result["status"], result["success"], result["exit_code"], result["stdout"]) == ("ok", False, 0, "4\n")
    assert result["reason"].startswith("wrong: failed: line 1")


def test_all_passed(bench):
    result = bench([{"stdin": f"{i} 1", "expected": str(i + 1)} for i in range(5)], SUM)
    assert (result["success"], result["status"], result["reason"], result["stdout"]) == (True, "ok", None, "5\n")


@pytest.mark.parametrize("match, expected, printed, passed", [
    ("exact", "a\n", "a\n", True), ("exact", "a", "a\n", False), ("trim", "a\nb", "a \nb\n\n", True), ("trim", "a b", "a  b", False),
    ("tokens", "1 2 3", "1\n2  3\n", True), ("tokens", "1 2 3", "1 2", False), ("float", "0.333333", "0.33333333", True),
    ("float", "1.0", "1.1", False)])
def test_ways_to_compare(bench, match, expected, printed, passed):
    result = bench([{"match": match, "expected": expected}], f"import sys; sys.stdout.write({printed!r})")
    assert result["success"] == passed, result


def test_tolerance(bench):
    result = bench({"match": "float", "tolerance": 0.2, "cases": [{"expected": "1.0"}, {"expected": "1.0", "tolerance": 0.01}]},
                   "print(1.1)")
    assert statuses(result) == ["passed", "failed"]


def test_arguments_and_limits_of_a_case(bench):
    result = bench({"limits": {"wall_ms": "10s"},
                    "cases": [{"args": ["b"], "expected": "b"}, {"expected": "a"}, {"args": [], "expected": "none"},
                              {"args": ["sleep"], "limits": {"wall_ms": 300}}]},
                   "import sys, time\nif sys.argv[1:] == ['sleep']: time.sleep(20)\nprint(*(sys.argv[1:] or ['none']))", "--wall", "5s")
    assert statuses(result) == ["passed", "failed", "passed", "wall_limit"]
    assert "300 ms" in result["tests"]["cases"][3]["reason"]


def test_memory_limit_is_a_status(bench):
    if "cgroup" in TEST_FLAGS:
        skip("memory is not limited by a group here", False)
    result = bench([{"limits": {"memory_bytes": "64m"}}], "x = bytearray(1 << 30)")
    assert statuses(result) == ["memory_limit"] and result["status"] == "memory_limit"


def test_without_expected_only_the_end_counts(bench):
    assert statuses(bench([{}, {"stdin": "x"}], "import sys; sys.exit(1 if sys.stdin.read() else 0)")) == ["passed", "nonzero_exit"]


def test_stop_at_the_first_failure(bench):
    cases = [{"stdin": f"{i} 0", "expected": str(i if i < 3 else 99)} for i in range(200)]
    for parallel in ("1", "4"):
        result = bench(cases, SUM, "--stop", "first_failure", "--parallel", parallel)
        assert statuses(result) == ["passed"] * 3 + ["failed"]
        assert result["tests"]["skipped"] == 196


def test_parallel_results_are_in_order(bench):
    result = bench([{"stdin": f"{i} 0", "expected": str(i)} for i in range(60)], SUM, "--parallel", "4")
    assert [case["expected"] for case in result["tests"]["cases"]] == [str(i) for i in range(60)] and result["success"]


def test_bytes_that_are_no_text(bench):
    every = bytes(range(256))
    result = bench([{"stdin": b64(every), "expected": b64(every), "match": "exact"},
                    {"stdin": b64(every), "expected": b64(every[:-1] + b"x"), "match": "exact"}],
                   "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())")
    assert statuses(result) == ["passed", "failed"]
    assert r"\xff" in result["tests"]["cases"][1]["reason"]


def test_large_expected_output(bench):
    lines = "".join(f"{i}\n" for i in range(400000))
    result = bench([{"expected": lines}, {"expected": lines + "x"}, {"expected": lines, "limits": {"output_bytes": "1m"}}],
                   "import sys; sys.stdout.write(''.join('%d\\n' % i for i in range(400000)))")
    assert statuses(result) == ["passed", "failed", "failed"]
    rows = result["tests"]["cases"]
    assert rows[1]["reason"] == 'line 400001, column 1: expected "x", got the end of the output'
    assert "output_bytes" in rows[2]["reason"]
    assert all(len(row["got"]) < 5000 and "bytes cut]" in row["got"] for row in rows)


def test_many_cases_stay_small(bench):
    result = bench([{"stdin": "1 1", "expected": "2"}] * 300, "print(2); import sys; sys.stderr.write('x' * 100000)", "--parallel", "4")
    assert result["tests"]["passed"] == 300
    assert len(json.dumps(result["tests"])) < 300 * 600


def test_a_program_that_does_not_compile(bench):
    need("c")
    result = bench([{"expected": "1"}] * 3, "int main(void) { return x; }", language="c")
    assert result["status"] == "compile_error" and statuses(result) == ["compile_error"] * 3
    assert "undeclared" in result["stderr"] and "undeclared" in result["tests"]["cases"][2]["reason"]


@pytest.mark.parametrize("flags", [(), ("--no-cache",)])
def test_compiled_once(bench, flags, tmp_path):
    """A program that holds the second of its compilation holds the same in every case."""
    need("c")
    code = '#include <stdio.h>\n#include <unistd.h>\nint main(int c, char **v) { if (c > 1) usleep(1100000); puts(__TIME__); }\n'
    result = bench([{"args": ["wait"]}, {}], code, *flags, language="c", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    first, second = result["tests"]["cases"]
    assert result["success"] and first["got"] == second["got"] and re.match(r"\d\d:\d\d:\d\d\n", first["got"])
    assert result["compile"]["status"] == "ok"


CHECKER = {"language": "python", "code": "import sys\nasked, printed, wanted = (open(path).read() for path in sys.argv[1:])\n"
           "print('asked', asked.strip(), 'got', printed.strip())\nsys.exit({'good': 0, 'bad': 1}.get(printed.strip(), 7))"}


def test_checker(bench):
    result = bench({"checker": CHECKER, "cases": [{"stdin": "good"}, {"stdin": "bad", "expected": "x"}, {"stdin": "odd"},
                                                  {"stdin": "odd", "match": "trim", "expected": "odd"}]}, "print(input())")
    assert statuses(result) == ["passed", "failed", "checker_error", "passed"]
    rows = result["tests"]["cases"]
    assert rows[1]["reason"] == "asked bad got bad"
    assert rows[2]["reason"] == "the checker failed: exited with 7: asked odd got odd"


def test_checker_that_does_not_compile(bench):
    need("c")
    result = bench([{"checker": {"language": "c", "code": "int main(void) { return x; }"}}], "print(1)")
    assert statuses(result) == ["checker_error"] and "did not compile" in result["tests"]["cases"][0]["reason"]


INTERACTOR = {"language": "python", "code": "import sys\nsecret = 37\nfor turn in range(10):\n    guess = int(input())\n"
              "    print('=' if guess == secret else '<' if secret < guess else '>', flush=True)\n"
              "    if guess == secret:\n        sys.exit(0)\nprint('too many turns', file=sys.stderr)\nsys.exit(1)"}
HALVE = ("low, high = 1, 100\nwhile True:\n    middle = (low + high) // 2\n    print(middle, flush=True)\n    said = input()\n"
         "    if said == '=': break\n    if said == '<': high = middle - 1\n    else: low = middle + 1\n")


@pytest.mark.parametrize("code, status, reason", [
    (HALVE, "passed", None),
    ("while True:\n    print(1, flush=True)\n    input()", "failed", "too many turns"),
    ("print('x', flush=True)\ninput()", "failed", "ValueError"),
    ("print(0, flush=True)\ninput()\nprint(200, flush=True)", "failed", "EOF"),
    ("1 / 0", "nonzero_exit", "ZeroDivisionError"),
    ("input()", "wall_limit", "wall limit"),
])
def test_interactor(bench, code, status, reason):
    result = bench({"interactor": INTERACTOR, "cases": [{"name": "one"}]}, code, "--wall", "2s")
    case = result["tests"]["cases"][0]
    assert case["status"] == status, case
    assert reason is None or reason in case["reason"], case


def test_much_goes_both_ways_at_once(bench):
    """More than pipes hold, written by both before either reads."""
    interactor = {"language": "python", "code": "import sys\nsys.stdout.write('a' * 2000000 + '\\n')\nsys.stdout.flush()\n"
                  "sys.exit(0 if len(input()) == 2000000 else 1)"}
    result = bench({"interactor": interactor, "cases": [{}]},
                   "import sys\nsys.stdout.write('b' * 2000000 + '\\n')\nsys.stdout.flush()\nassert len(input()) == 2000000")
    assert result["success"], result["tests"]


PYTEST = """import pytest
from main import add
@pytest.mark.parametrize("n", [1, 2])
def test_adds(n): assert add(n, 1) == n + 1
def test_wrong(): assert add(1, 1) == 3
@pytest.mark.skip(reason="later")
def test_skipped(): pass
@pytest.fixture
def broken(): raise RuntimeError("no fixture")
def test_broken(broken): pass
"""
UNITTEST = """import unittest
from main import add
class Adding(unittest.TestCase):
    def test_adds(self): self.assertEqual(add(1, 1), 2)
    def test_wrong(self): self.assertEqual(add(1, 1), 3)
    def test_parts(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    @unittest.skip("later")
    def test_skipped(self): pass
"""
NODE = """const { test, describe, it } = require('node:test'), assert = require('assert'), { add } = require('./main.js');
test('adds', () => assert.equal(add(1, 1), 2));
test('wrong', () => assert.equal(add(1, 1), 3));
test('skipped', { skip: true }, () => {});
describe('suite', () => { it('inner', () => {}); });
"""
MINITEST = """require 'minitest/autorun'
require_relative 'main'
class Adding < Minitest::Test
  def test_adds = assert_equal(2, add(1, 1))
  def test_wrong = assert_equal(3, add(1, 1))
  def test_skipped = skip('later')
  def test_raises = raise('boom')
end
"""
GO = """package program
import "testing"
func TestAdds(t *testing.T) { if Add(1, 1) != 2 { t.Fatal("no") } }
func TestWrong(t *testing.T) { if Add(1, 1) != 3 { t.Fatalf("got %d", Add(1, 1)) } }
func TestParts(t *testing.T) { t.Run("good", func(t *testing.T) {}); t.Run("bad", func(t *testing.T) { t.Error("bad part") }) }
func TestSkipped(t *testing.T) { t.Skip("later") }
"""
BATS = """@test "adds" { run bash main.sh 1 1; [ "$output" = 2 ]; }
@test "wrong" { run bash main.sh 1 1; [ "$output" = 3 ]; }
@test "skipped" { skip later; }
"""
ADD = {"python": "def add(a, b): return a + b", "javascript": "exports.add = (a, b) => a + b;", "ruby": "def add(a, b) = a + b",
       "go": "package program\nfunc Add(a, b int) int { return a + b }\n", "bash": "echo $(($1 + $2))"}
# Framework: language, file, tests, passed, failed, skipped, and a failed one with a part of its reason.
FRAMEWORKS = {
    "pytest": ("python", "test_add.py", PYTEST, 2, 2, 1, "test_add.py::test_wrong", "assert 2 == 3"),
    "unittest": ("python", "test_add.py", UNITTEST, 1, 2, 1, "test_add.Adding.test_wrong", "2 != 3 (test_add.py line 5)"),
    "node": ("javascript", "add.test.js", NODE, 2, 1, 1, "wrong", "2 == 3"),
    "minitest": ("ruby", "test_add.rb", MINITEST, 1, 2, 1, "Adding#test_wrong", "Expected: 3"),
    "go": ("go", "add_test.go", GO, 2, 2, 1, "TestWrong", "got 2"),
    "bats": ("bash", "add.bats", BATS, 1, 1, 1, "wrong", "failed"),
}


def need_framework(name):
    need(FRAMEWORKS[name][0])
    if name == "pytest":
        need_module("pytest")
    if name == "bats" and not tool("bats"):
        skip("bats is not installed", False)
    if name == "minitest" and subprocess.run([tool("ruby"), "-e", "require 'minitest'"], capture_output=True, check=False).returncode:
        skip("minitest is not installed", False)
    if name == "node" and int(subprocess.run([tool("node"), "--version"], capture_output=True, text=True,
                                             check=False).stdout[1:].split(".")[0]) < 20:
        skip("node is older than 20", False)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_framework(bench, name):
    need_framework(name)
    language, file, tests, passed, failed, skipped, wrong, part = FRAMEWORKS[name]
    result = bench({"framework": name, "files": {file: tests}}, ADD[language], language=language, timeout=120)
    plain = run_alone(language, " ")  # a compiler refuses it, and the version is told all the same
    assert (result["language"], result["language_version"]) == (plain["language"], plain["language_version"])
    counts = tuple(result["tests"][key] for key in ("passed", "failed", "skipped"))
    assert counts == (passed, failed, skipped), result
    case = next(each for each in result["tests"]["cases"] if each["name"] == wrong)
    assert case["status"] == "failed" and part in case["reason"], case
    assert result["status"] == "nonzero_exit" and not result["success"] and result["language"] == language
    assert result["files"] == []


@pytest.mark.parametrize("name", ["pytest", "unittest", "node", "minitest"])
def test_framework_in_waiting_cells(bench, name):
    """The first run of an engine starts its interpreter; those after it find one that waits."""
    need_framework(name)
    language, file, tests, passed, failed, skipped, _, _ = FRAMEWORKS[name]
    request = {"language": language, "code": ADD[language], "tests": {"framework": name, "files": {file: tests}}}
    if TEST_FLAGS[:1] == ["--optional"]:
        request["optional"] = TEST_FLAGS[1:2]
    tasks = bench.write("tasks.jsonl", "".join(json.dumps({"id": i, **request}) + "\n" for i in range(5)))
    done = cordon("batch", tasks, "-o", bench.path / "results.jsonl", "--parallel", "1", timeout=120)
    for line in (bench.path / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        counts = tuple(result["tests"][key] for key in ("passed", "failed", "skipped"))
        assert (result["status"], counts) == ("nonzero_exit", (passed, failed, skipped)), result
    assert done.code == 1


def test_framework_that_all_pass(bench):
    need_module("pytest")
    result = bench({"framework": "pytest", "files": {"test_a.py": "import main\ndef test_a(): assert main.X == 1\n"}}, "X = 1")
    assert result["success"] and result["status"] == "ok" and statuses(result) == ["passed"]


@pytest.mark.parametrize("tests, reason", [("def test_a(: pass", "SyntaxError"), ("X = 1\n", None)])
def test_framework_that_runs_nothing(bench, tests, reason):
    need_module("pytest")
    result = bench({"framework": "pytest", "files": {"test_a.py": tests}}, "X = 1")
    assert not result["success"] and result["tests"]["passed"] == 0
    assert reason is None or reason in json.dumps(result["tests"])


def test_a_program_cannot_say_that_its_framework_is_missing(bench):
    need_module("pytest")
    forge = """import os
os.makedirs("/work/.cordon-tests", exist_ok=True)
open("/work/.cordon-tests/report", "w").write('{"missing": true}\\n{"missing": "evil-package"}\\n')
os._exit(3)
"""
    result = bench({"framework": "pytest", "files": {"test_a.py": "import main\ndef test_a(): pass\n"}}, forge)
    assert not result["success"] and result["status"] == "nonzero_exit" and result["tests"]["total"] == 0, result


def test_framework_that_never_ends(bench):
    result = bench({"framework": "unittest", "files": {"test_a.py": "while True: pass"}}, "X = 1", "--wall", "1s")
    assert result["status"] == "wall_limit" and not result["success"]


@pytest.mark.parametrize("tests, code, says", [
    ({"framework": "pytst", "files": {"a": ""}}, "python", "did you mean 'pytest'"),
    ({"framework": "go", "files": {"a_test.go": ""}}, "python", "go tests programs in go; the language is python"),
    ({"framework": "pytest", "files": {"main.py": ""}}, "python", "/tests/files/main.py: the program has a file of this name"),
    ({"framework": "pytest", "files": {"../a.py": ""}}, "python", "does not stay beneath"),
    ([{"stdn": "1"}], "python", "/tests/cases/0/stdn: there is no field 'stdn'"),
    ([{}, {"limits": {"wall_ms": 0}}], "python", "/tests/cases/1/limits/wall_ms"),
    ([{"limits": {"disk_bytes": "1g"}}], "python", "above memory_bytes"),
    ([{"args": [5]}], "python", "/tests/cases/0/args/0"),
    ([{"checker": {"language": "pyton", "code": "1"}}], "python", "pyton"),
    ([{"checker": {"language": "python"}}], "python", "/tests/cases/0/checker"),
    ([], "python", "there are 0 cases"),
])
def test_refused(bench, tests, code, says):
    done = bench.text(tests, "print(1)", language=code)
    assert done.code == 2 and says in done.errors, done
    assert json.loads(bench.text(tests, "print(1)", "--json", language=code).out)["status"] == "rejected"


def test_a_plain_run_refuses_tests(tmp_path):
    lines = pathlib.Path(CORDON).parent / "tests" / "engine_lines"
    if not lines.exists():
        skip("engine_lines is not built", False)
    request = {"language": "python", "code": "print(1)", "tests": {"cases": [{}]}}
    done = subprocess.run([lines], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60, check=False)
    assert "does not judge tests" in done.stdout + done.stderr, done


def test_table(bench):
    done = bench.text([{"stdin": "1 1", "expected": "2"}, {"name": "odd\x1b[31m", "stdin": "1 1", "expected": "3"}], SUM)
    assert done.code == 1 and b"\x1b" not in done.out, done
    lines = done.text.splitlines()
    assert lines[0].split() == ["case", "status", "memory", "expected", "got"]
    words = lines[1].split()
    assert words[-2:] == ['"3"', '"2\\n"'] and "failed" in words and words[-3] == "MiB", words
    assert 'expected "3", got "2"' in done.text and lines[-1].startswith("1 of 2 passed, 1 failed (")
    assert bench.text([{"stdin": "1 1", "expected": "2"}], SUM).text.startswith("1 of 1 passed (")


def test_reasons_name_the_flag(bench):
    done = bench.text([{}], "while True: pass", "--wall", "300ms")
    assert "raise --wall" in done.text, done


def test_a_directory_of_cases(bench):
    for name, given, wanted, end in (("1", "1 1", "2", "out"), ("10", "1 2", "3", "ans"), ("2", "2 2", "5", "out")):
        bench.write(f"{name}.in", given)
        bench.write(f"{name}.{end}", wanted)
    program = bench.write("solution.py", SUM)
    result = json.loads(cordon("test", *TEST_FLAGS, "--json", "--tests", bench.path, program).out)
    assert [(case["name"], case["status"]) for case in result["tests"]["cases"]] == [("1", "passed"), ("2", "failed"), ("10", "passed")]
    (bench.path / "2.out").unlink()
    done = cordon("test", *TEST_FLAGS, "--tests", bench.path, program)
    assert done.code == 2 and "2.ans" in done.errors, done


@pytest.mark.parametrize("arguments, says", [
    ([], "there are no tests"), (["--tests", "{cases}"], "there is no program"), (["--tests", "/nowhere", "{file}"], "cannot read /nowhere"),
    (["--tests", "{cases}", "--stop", "soon", "{file}"], "--stop: 'soon' is neither"), (["--tests", "{cases}", "--parallel", "0", "{file}"], "--parallel"),
    (["--tests", "{cases}", "-c", "1"], "needs a language"), (["--tests", "{cases}", "--memory", "12q", "{file}"], "--memory"),
    (["--tests", "{file}", "{file}"], "line 1, column"), (["--tests", "{cases}", "--warm", "{file}"], "unknown option --warm"),
])
def test_usage(bench, arguments, says):
    places = {"cases": bench.write("cases.json", [{}]), "file": bench.write("a.py", "print(1)")}
    done = cordon("test", *(word.format(**places) for word in arguments))
    assert done.code == 2 and says in done.errors, done


def test_interrupt(bench):
    cases = bench.write("cases.json", [{}, {"args": ["x"]}, {"args": ["x"]}])
    process = subprocess.Popen([CORDON, "test", *TEST_FLAGS, "--tests", cases, "--json", "-l", "python", "-c",
                                "import sys, time; time.sleep(60 if sys.argv[1:] else 0)"], stdout=subprocess.PIPE)
    time.sleep(1.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    result = json.loads(process.communicate(timeout=20)[0])
    assert time.monotonic() - begin < 5 and process.returncode == 130
    assert result["status"] == "cancelled" and not result["success"] and result["reason"].startswith("cancelled after")
    assert "cancelled" not in statuses(result)


def test_progress_is_for_terminals(bench):
    cases = bench.write("cases.json", [{}] * 3)
    leader, follower = pty.openpty()
    process = subprocess.Popen([CORDON, "test", *TEST_FLAGS, "--tests", cases, "-l", "python", "-c", "1"], stdout=subprocess.PIPE,
                               stderr=follower)
    out = process.communicate(timeout=60)[0]
    os.close(follower)
    assert b"3 of 3" in os.read(leader, 4096) and out.startswith(b"3 of 3 passed")
    os.close(leader)
    assert b"of 3" not in bench.text([{}] * 3, "1").err


class TestJudge:
    """What no command offers."""

    @staticmethod
    def run(request, *flags):
        need("python")
        if not JUDGE.exists():
            skip("judge_lines is not built", False)
        if TEST_FLAGS[:1] == ["--optional"]:
            request = {"optional": TEST_FLAGS[1:2], **request}
        done = subprocess.run([JUDGE, "--warden", pathlib.Path(CORDON).parent / "cordon-warden", "--languages",
                               REPOSITORY / "languages", *flags], input=json.dumps(request),
                              capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout) if done.stdout else {}, done.stderr

    def test_comparison_comes_before_the_filter(self):
        request = {"language": "python", "code": "import sys\nprint('key is hunter2')\nprint('hunter2', file=sys.stderr)",
                   "sanitize": True, "tests": {"cases": [{"expected": "key is hunter2"}, {"expected": "key is hunter3"},
                                                         {"expected": "key is [hidden]"}]}}
        result, _ = self.run(request, "--filter", "hunter2")
        assert statuses(result) == ["passed", "failed", "failed"]
        assert "hunter2" not in json.dumps(result)
        assert result["tests"]["cases"][0]["got"] == "key is [hidden]\n" and result["stderr"] == "[hidden]\n"
        assert "redacted" in result["tests"]["cases"][2]["reason"]

    def test_the_filter_sees_errors_and_checkers(self):
        checker = {"language": "python", "code": "print(open('output.txt').read()); raise SystemExit(1)"}
        request = {"language": "python", "code": "key = 'hunt' + 'er2'\nprint(key)\nif input(): raise ValueError(key)",
                   "tests": {"cases": [{"stdin": "\n", "checker": checker}, {"stdin": "1\n"}]}}
        result, _ = self.run(request, "--filter", "hunter2")
        assert statuses(result) == ["failed", "nonzero_exit"]
        assert "hunter2" not in json.dumps(result) and "[hidden]" in result["tests"]["cases"][1]["reason"]
        request["tests"]["cases"].pop(0)
        result, _ = self.run(request, "--filter", "hunter2")
        assert "hunter2" not in json.dumps(result) and result["error"]["message"] == "[hidden]"

    def test_sanitize_needs_a_filter(self):
        result, _ = self.run({"language": "python", "code": "1", "sanitize": True, "tests": {"cases": [{}]}})
        assert result["error"]["field"] == "/sanitize"

    @pytest.mark.parametrize("code", ["import time; time.sleep(50)", "while True: pass"])
    def test_cancel_ends_quickly(self, code):
        begin = time.monotonic()
        result, _ = self.run({"language": "python", "code": code, "tests": {"cases": [{}] * 50}}, "--cancel", "500", "--parallel", "2")
        assert time.monotonic() - begin < 8
        assert result["status"] == "cancelled" and result["tests"]["skipped"] == 50 and result["tests"]["cases"] == []

    def test_cancel_ends_a_compile_step(self):
        need("c")
        begin = time.monotonic()
        result, _ = self.run({"language": "c", "code": "#include \"/dev/zero\"\nint main(void) {}", "tests": {"cases": [{}] * 3}},
                             "--cancel", "300", "--no-cache")
        assert time.monotonic() - begin < 8 and not result["success"]

    def test_cancel_ends_a_framework(self):
        begin = time.monotonic()
        result, _ = self.run({"language": "python", "code": "1", "tests": {"framework": "unittest", "files": {
            "test_a.py": "import time; time.sleep(50)"}}}, "--cancel", "500")
        assert time.monotonic() - begin < 8 and result["status"] == "cancelled"

    def test_every_case_is_told(self):
        _, told = self.run({"language": "python", "code": "1", "tests": {"cases": [{}] * 4}}, "--parallel", "2")
        assert sorted(told.split("\n")) == ["", *(f"case {i} of 4: passed" for i in range(4))]

    def test_check_runs_nothing(self):
        good = {"language": "python", "code": "1", "tests": {"cases": [{}]}}
        assert self.run(good, "--check") == ({}, "")
        bad, _ = self.run({**good, "tests": {"cases": [{"limits": {"wall": 1}}]}}, "--check")
        assert bad["error"]["field"].startswith("/tests/cases/0/limits")
        bad, _ = self.run({**good, "tests": {"framework": "pytest", "files": {"/a": ""}}}, "--check")
        assert "beneath" in bad["error"]["message"]


@pytest.mark.skipif(not os.environ.get("CORDON_HUMANEVAL"), reason="CORDON_HUMANEVAL does not name HumanEval.jsonl.gz")
@pytest.mark.parametrize("flags", [(), ("--tests",)])
def test_humaneval(flags):
    need("python")
    done = subprocess.run([REPOSITORY / "tests" / "humaneval" / "run", os.environ["CORDON_HUMANEVAL"], "--first", "10", *flags],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
