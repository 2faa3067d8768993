"""`cordon batch`: many requests out of a file, and going on after whatever ended it."""
import json
import os
import pty
import random
import signal
import subprocess
import time

import pytest

from helpers import CORDON, FLAGS, cordon, need

OPTIONAL = [FLAGS[i + 1] for i, flag in enumerate(FLAGS) if flag == "--optional"]


class Batch:
    """An input and an output of the test's own."""

    def __init__(self, path):
        self.tasks, self.results = path / "tasks.jsonl", path / "results.jsonl"

    def write(self, *requests):
        lines = [each if isinstance(each, str) else json.dumps({**({"optional": OPTIONAL} if OPTIONAL else {}), **each})
                 for each in requests]
        self.tasks.write_text("".join(line + "\n" for line in lines))
        return self

    def run(self, *flags, **how):
        return cordon("batch", self.tasks, "-o", self.results, *flags, timeout=120, **how)

    def read(self):
        return [json.loads(line) for line in self.results.read_text().splitlines()]

    def by_id(self):
        found = self.read()
        assert len({json.dumps(each["id"]) for each in found}) == len(found), "an id has two results"
        return {each["id"]: each for each in found}


@pytest.fixture
def batch(tmp_path):
    need("python")
    return Batch(tmp_path)


def python(code, **more):
    return {"language": "python", "code": code, **more}


def test_every_request_has_its_result(batch):
    done = batch.write(*(python(f"print({i})", id=f"n{i}") for i in range(20))).run("--parallel", "3")
    assert done.code == 0, done
    found = batch.by_id()
    assert {name: each["stdout"] for name, each in found.items()} == {f"n{i}": f"{i}\n" for i in range(20)}
    assert found["n3"]["status"] == "ok" and found["n3"]["enforced"]["isolation"] == "container"
    lines = done.text.splitlines()
    assert lines[0].split() == ["status", "count", "p50", "ms", "p99", "ms"] and lines[1].split()[:2] == ["ok", "20"]
    assert lines[2].startswith("20 of 20 ok in ")


def test_without_an_id_it_is_the_line(batch):
    assert batch.write(python("print(1)"), "", python("print(2)"), python("print(3)", id=7)).run().code == 0
    assert {name: each["stdout"] for name, each in batch.by_id().items()} == {1: "1\n", 3: "2\n", 7: "3\n"}


def test_a_bad_line_stops_nothing(batch):
    done = batch.write("nonsense", python("print(1)", id="good"), {"language": "pythn", "code": "1", "id": "bad"}, "[1]",
                       python("1", id=[1]), python("1", id="good"), python("1", nofield=1, id="odd"), "{" * 5000).run()
    found = batch.read()
    assert done.code == 1 and len(found) == 8, done
    assert sorted(each["status"] for each in found) == ["ok"] + ["rejected"] * 7
    reasons = {json.dumps(each["id"]): each["reason"] for each in found if each["status"] == "rejected"}
    assert "invalid JSON" in reasons["1"] and "did you mean 'python'" in reasons['"bad"'] and "no object" in reasons["4"]
    assert "line 2 has this id already" in reasons['"good"'] and "nofield" in reasons['"odd"']
    assert all(each["error"]["message"] for each in found if each["status"] == "rejected")


def test_requests_with_tests(batch):
    cases = {"cases": [{"stdin": "1", "expected": "2"}, {"stdin": "2", "expected": "3"}]}
    done = batch.write(python("print(int(input()) + 1)", id="right", tests=cases), python("print(2)", id="wrong", tests=cases),
                       python("1", id="bad", tests={"cases": [{"expcted": "1"}]})).run()
    found = batch.by_id()
    assert done.code == 1
    assert found["right"]["success"] and found["right"]["tests"]["passed"] == 2
    assert not found["wrong"]["success"] and (found["wrong"]["status"], found["wrong"]["tests"]["failed"]) == ("ok", 1)
    assert found["bad"]["status"] == "rejected" and found["bad"]["error"]["field"] == "/tests/cases/0/expcted"
    assert "tests failed  1" in done.text


def test_done_before_is_not_run_again(batch):
    batch.write(*(python("import time; print(time.time())", id=i) for i in range(5))).run()
    first = batch.results.read_bytes()
    done = batch.run()
    assert done.code == 0 and batch.results.read_bytes() == first and "5 done before" in done.text
    batch.write(*(python("import time; print(time.time())", id=i) for i in range(8))).run()
    assert batch.results.read_bytes().startswith(first) and len(batch.by_id()) == 8


def test_an_unfinished_last_line_is_dropped(batch):
    batch.write(*(python("print(1)", id=i) for i in range(4))).run()
    whole = batch.results.read_bytes()
    for cut in (1, 5, len(whole.splitlines()[-1])):
        batch.results.write_bytes(whole[:-cut])
        assert batch.run().code == 0
        assert sorted(batch.by_id()) == [0, 1, 2, 3]


def outputs(batch):
    return {name: each["stdout"] for name, each in batch.by_id().items()}


def test_a_changed_request_runs_again(batch):
    batch.write(python("print(1)", id="a"), python("print(2)", id="b"), python("print(3)", id="c", stdin="x")).run()
    done = batch.write({"code": "print(1)", "id": "a", "language": "python"}, python("print(20)", id="b"),
                       python("print(3)", id="c", stdin="y")).run("--json")
    assert done.code == 0 and outputs(batch) == {"a": "1\n", "b": "20\n", "c": "3\n"}, done
    summary = json.loads(done.out)
    assert (summary["done"], summary["done_before"], summary["changed"]) == (2, 1, 2)
    assert all(len(each["request_sha256"]) == 64 for each in batch.read())


def test_an_inserted_line_moves_no_result(batch):
    batch.write(python("print('a')"), python("print('b')")).run()
    assert batch.write(python("print('new')"), python("print('a')"), python("print('b')")).run().code == 0
    assert outputs(batch) == {1: "new\n", 2: "a\n", 3: "b\n"}


def test_a_number_of_a_line_is_no_id(batch):
    """Lines with and without ids may be mixed: `line` tells the results of lines that have no id of their own."""
    requests = [python("print('two')", id=2), python("print('second')"), python("print('third')")]
    for time in range(2):
        done = batch.write(*requests).run("--json")
        assert done.code == 0 and json.loads(done.out)["done_before"] == (3 if time else 0), done
        found = {(each["id"], each.get("line")): each["stdout"] for each in batch.read()}
        assert found == {(2, None): "two\n", (2, 2): "second\n", (3, 3): "third\n"}


def test_a_result_without_hash_is_made_again_with_a_warning(batch):
    requests = [python("print('a')", id="a"), python("print('b')"), python("print('c')", id="c")]
    batch.write(*requests).run()
    kept = []
    for each in batch.read():
        if each["id"] != "c":
            del each["request_sha256"]
            each.pop("line", None)
            each["stdout"] = "old\n"
        kept.append(each)
    batch.results.write_text("".join(json.dumps(each) + "\n" for each in kept))
    done = batch.run("--json")
    assert done.code == 0 and "2 results" in done.errors and "request_sha256" in done.errors, done
    assert json.loads(done.out)["done_before"] == 1 and outputs(batch) == {"a": "a\n", 2: "b\n", "c": "c\n"}
    assert not batch.run().errors


def test_resumed_it_exits_like_a_fresh_one(batch):
    """What is in the output only, because its request was taken out of the input, counts for nothing."""
    bad, good = python("1 / 0", id="bad"), python("print(1)", id="good")
    assert batch.write(bad, good).run().code == 1
    assert batch.write(good).run().code == 0
    assert sorted(batch.by_id()) == ["bad", "good"]
    assert batch.write(good, bad).run().code == 1
    assert batch.write(good, python("print(2)", id="bad")).run().code == 0
    assert batch.run().code == 0 and outputs(batch) == {"good": "1\n", "bad": "2\n"}


def test_an_id_given_twice_is_told_each_time(batch):
    batch.write(python("print(1)", id="a"), python("print(2)", id="a")).run()
    first = batch.results.read_bytes()
    done = batch.run()
    assert done.code == 1 and "2 done before, of which 1 had failed" in done.text and batch.results.read_bytes() == first, done


def test_the_output_may_be_a_link(batch):
    real = batch.results.with_name("real.jsonl")
    real.touch(mode=0o640)
    batch.results.symlink_to(real.name)
    batch.write(python("print(1)", id="a")).run()
    assert batch.write(python("print(2)", id="a")).run().code == 0
    assert batch.results.is_symlink() and outputs(batch) == {"a": "2\n"} and real.stat().st_mode & 0o777 == 0o640


def test_retrying_leaves_a_running_batch_its_file(batch):
    process = started(batch.write(python("1 / 0", id="a"), python("import time; time.sleep(30)", id="b", limits={"wall_ms": "60s"})), "-p", "1")
    try:
        wait_for_lines(batch, 1)
        inode = batch.results.stat().st_ino
        done = batch.run("--retry-failed")
        assert done.code == 2 and "another batch is writing" in done.errors and batch.results.stat().st_ino == inode, done
    finally:
        process.kill()
        process.communicate()


def test_another_file_is_left_alone(batch):
    batch.write(python("print(1)"))
    for text in ("important\n", '{"a": 1}\n', '{"id": 1}\nx\n', "important", '{"a": 1}', '{ "a": 1'):
        batch.results.write_text(text)
        for flags in ((), ("--retry-failed",)):
            done = batch.run(*flags)
            assert done.code == 2 and "is no result of a batch" in done.errors and batch.results.read_text() == text, done


def test_failed_before_counts(batch):
    batch.write(python("print(1)", id="a"), python("1 / 0", id="b")).run()
    done = batch.run()
    assert done.code == 1 and "1 had failed" in done.text, done
    done = batch.write(python("print(1)", id="a"), python("print(2)", id="b")).run("--retry-failed")
    assert done.code == 0, done
    assert batch.by_id()["b"]["stdout"] == "2\n" and len(batch.read()) == 2


def test_summary_as_json(batch):
    done = batch.write(python("print(1)"), python("1 / 0"), "x").run("--json")
    summary = json.loads(done.out)
    assert (summary["done"], summary["ok"], summary["failed"], summary["done_before"]) == (3, 1, 2, 0)
    assert summary["statuses"]["ok"]["count"] == 1 and summary["statuses"]["ok"]["p50_ms"] > 0
    assert summary["statuses"]["rejected"] == {"count": 1, "p50_ms": None, "p99_ms": None} and summary["statuses"]["nonzero_exit"]["count"] == 1


def test_from_standard_input(batch):
    done = cordon("batch", "-o", batch.results, "-", stdin=json.dumps(python("print(5)", optional=OPTIONAL)) + "\n")
    assert done.code == 0 and batch.read()[0]["stdout"] == "5\n", done


def started(batch, *flags, **popen):
    return subprocess.Popen([CORDON, "batch", str(batch.tasks), "-o", str(batch.results), *flags], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **popen)


def wait_for_lines(batch, count, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if batch.results.exists() and batch.results.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"there were not {count} results within {seconds} s")


def test_interrupted_and_gone_on_with(batch):
    requests = [python("print(1)", id=i) for i in range(3)] + [python("import time; time.sleep(40)", id="slow", limits={"wall_ms": "60s"})]
    process = started(batch.write(*requests, python("print(1)", id="last")), "--parallel", "1")
    wait_for_lines(batch, 3)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - begin < 8, (out, err)
    assert b"the same command goes on" in err and sorted(batch.by_id()) == [0, 1, 2]
    requests[3]["code"] = "print(2)"
    assert batch.write(*requests, python("print(1)", id="last")).run().code == 0
    assert len(batch.by_id()) == 5 and batch.by_id()["slow"]["stdout"] == "2\n"


def test_what_ends_soon_is_waited_for(batch):
    process = started(batch.write(python("print(1)", id="a"), python("import time; time.sleep(0.6)", id="b"), python("1", id="c")),
                      "--parallel", "1")
    wait_for_lines(batch, 1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130 and "cancelled" not in batch.results.read_text()
    assert batch.run().code == 0 and len(batch.by_id()) == 3


def test_killed_and_gone_on_with(batch):
    process = started(batch.write(*(python("print(1)", id=i) for i in range(150))), "--parallel", "2")
    wait_for_lines(batch, 10)
    process.kill()
    process.communicate()
    assert batch.run().code == 0
    assert sorted(batch.by_id()) == list(range(150))


def test_killed_at_any_moment_it_leaves_nobody(batch):
    """What it printed to is closed by everybody: also when a cell was being forked whose maker could not tell of it any more."""
    tasks = batch.write(*(python("print(1)", id=i) for i in range(150)))
    for _ in range(15):
        process = started(tasks, "--parallel", "2")
        time.sleep(random.uniform(0.1, 0.7))
        process.kill()
        process.communicate(timeout=10)
        batch.results.unlink(missing_ok=True)


def test_two_batches_do_not_share_a_file(batch):
    process = started(batch.write(python("print(1)"), python("import time; time.sleep(30)", limits={"wall_ms": "60s"})), "-p", "1")
    try:
        wait_for_lines(batch, 1)
        done = batch.run()
        assert done.code == 2 and "another batch is writing" in done.errors, done
    finally:
        process.kill()
        process.communicate()


def test_results_to_standard_output(batch):
    done = cordon("batch", batch.write(python("print(1)", id="a"), python("print(2)", id="b")).tasks, "-o", "-", "--json",
                  cwd=batch.tasks.parent)
    assert done.code == 0 and sorted(json.loads(line)["id"] for line in done.text.splitlines()) == ["a", "b"], done
    assert json.loads(done.errors)["done"] == 2 and not batch.tasks.with_name("-").exists()


def test_a_full_disk_is_told(batch):
    done = cordon("batch", batch.write(python("print(1)")).tasks, "-o", "/dev/full")
    assert done.code == 125 and "cannot write /dev/full" in done.errors, done


def test_bar_is_for_terminals(batch):
    leader, follower = pty.openpty()
    process = subprocess.Popen([CORDON, "batch", str(batch.write(*(python("import time; time.sleep(0.2)", id=i) for i in range(3))).tasks),
                                "-o", str(batch.results), "-p", "1"], stdout=subprocess.PIPE, stderr=follower)
    process.communicate(timeout=60)
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert "/3  " in shown and "ok 2" in shown and shown.endswith("\r\x1b[K"), shown
    assert b"/3" not in Batch(batch.tasks.parent).run().err


@pytest.mark.parametrize("arguments, says", [
    ([], "there are no requests"), (["x.jsonl"], "nowhere to go"), (["/nowhere", "-o", "r"], "cannot read /nowhere"),
    (["-", "-o", "r", "more"], "unexpected argument 'more'"), (["-", "-o", "/nowhere/r"], "cannot write /nowhere/r"),
    (["-", "-o", "r", "--parallel", "x"], "--parallel: 'x' is no number"), (["-", "-o", "r", "--paralel", "2"], "did you mean --parallel"),
])
def test_usage(arguments, says, tmp_path):
    done = cordon("batch", *arguments, cwd=tmp_path)
    assert done.code == 2 and says in done.errors, done


def test_secrets_are_redacted(batch):
    """Compared as they are, shown redacted; in plain runs and in tests."""
    env = {"S": {"value": "hunter2hunter2", "secret": True}}
    code = "import os; print(os.environ['S'], 'a@b.com')"
    tests = {"cases": [{"expected": "hunter2hunter2 a@b.com"}, {"expected": "hunter2hunter2 other"}]}
    batch.write(python(code, id="plain", env=env), python(code, id="all", env=env, sanitize="all"),
                python(code, id="tests", env=env, tests=tests)).run()
    assert "hunter2" not in batch.results.read_text()
    found = batch.by_id()
    assert found["plain"]["stdout"] == "[REDACTED_SECRET] a@b.com\n"
    assert found["all"]["stdout"] == "[REDACTED_SECRET] [REDACTED_EMAIL]\n"
    assert {each["rule"] for each in found["all"]["redactions"]} == {"known_secret", "email"}
    assert [case["status"] for case in found["tests"]["tests"]["cases"]] == ["passed", "failed"]
    assert found["tests"]["redactions"]
