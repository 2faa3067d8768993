"""Recorded runs from the command line: history, replay, verify-ledger, and the ledger's form as docs/LEDGER.md tells it.

store_fill puts runs into a store the way the daemon does."""
import csv
import hashlib
import io
import json
import os
import pathlib
import pty
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

from helpers import CORDON, FLAGS, REPOSITORY, as_result, cordon, need, result, skip, wait_for
from serve_fixtures import open_dir  # noqa: F401

FILL = pathlib.Path(CORDON).parent / "tests" / "unit" / "store_fill"


def fill(directory, lines, keep="full"):
    if not FILL.exists():
        skip(f"{FILL} is not built")
    done = subprocess.run([FILL, directory, keep], input="".join(json.dumps(line) + "\n" for line in lines), text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def made_up(number, **members):
    return {"key": "", "request": {"language": "python", "code": f"print({number})"}, "result": {
        "id": f"{number:032x}", "state": "done", "language": "python", "created_at": f"2026-11-15T15:00:{number:02}.000Z",
        "status": "ok", "success": True, "exit_code": 0, "signal": None, "stdout": f"{number}\n", "stderr": "",
        "usage": {"wall_ms": 12.5, "cpu_user_ms": 3.0, "cpu_system_ms": 1.0, "memory_peak_bytes": 4 << 20}, **members}}


@pytest.fixture
def data(open_dir):
    return open_dir / "data"


@pytest.fixture
def three(data):
    fill(data, [made_up(1), made_up(2, status="wall_limit", exit_code=None, language="ruby"), made_up(3)])
    return data


def history(data, *arguments):
    done = cordon("history", "--data-dir", data, *arguments)
    assert done.code == 0, done
    return done


def test_list(three):
    lines = history(three).text.splitlines()
    assert lines[0].split()[0] == "ID"
    assert [line.split()[0] for line in lines[1:]] == [f"{n:032x}" for n in (3, 2, 1)]
    assert "wall_limit" in lines[2] and "ruby" in lines[2] and "12 ms" in lines[1] and "4 MiB" in lines[1]


def test_list_json(three):
    found = json.loads(history(three, "--json", "-n", "2").text)
    assert [item["id"] for item in found["items"]] == [f"{n:032x}" for n in (3, 2)]
    assert found["next_cursor"] and found["items"][0]["kept"] is True and "stdout" not in found["items"][0]


@pytest.mark.parametrize("flags, numbers", [
    (["--language", "ruby"], [2]), (["--status", "ok"], [3, 1]), (["-l", "python", "-n", "1"], [3])])
def test_filters(three, flags, numbers):
    found = json.loads(history(three, "--json", *flags).text)
    assert [item["id"] for item in found["items"]] == [f"{n:032x}" for n in numbers]


@pytest.mark.parametrize("flags, says", [
    (["--status", "nonzero"], "there is no status 'nonzero' (did you mean 'nonzero_exit'?)"), (["--status", "zzz"], "available: ok, nonzero_exit"),
    (["--language", "rubby"], "unknown language 'rubby' (did you mean 'ruby'?"), (["--key", "nobody"], "there is no key with the id 'nobody'"),
    (["--since", "yesterday"], "'yesterday' is no time (write an age such as"), (["--until", "2026-02-30"], "is no time"),
    (["--since", "5"], "'5' is no time"), (["--format", "xml"], "expected jsonl or csv")])
def test_a_filter_that_stands_for_nothing_is_an_error(three, flags, says):
    """An empty list would say that there are no such runs."""
    done = cordon("history", "--data-dir", three, *flags)
    assert done.code == 2 and says in done.errors and not done.out, done


def test_an_alias_is_a_language(three):
    found = json.loads(history(three, "--json", "-l", "py").text)
    assert [item["id"] for item in found["items"]] == [f"{n:032x}" for n in (3, 1)]
    assert json.loads(history(three, "--json", "-l", "go").text)["items"] == []


def test_a_key_that_was_removed_keeps_its_runs(data):
    fill(data, [made_up(1) | {"key": "gone"}])
    assert len(json.loads(history(data, "--json", "--key", "gone").text)["items"]) == 1


def ids(data, *flags):
    return [int(item["id"], 16) for item in json.loads(history(data, "--json", *flags).text)["items"]]


def test_times(data):
    def days_ago(days):
        return time.strftime("%Y-%m-%dT%H:%M:%S.500Z", time.gmtime(time.time() - days * 86400))

    fill(data, [made_up(1, created_at="2026-01-14T23:59:59.999Z"), made_up(2, created_at="2026-01-15T00:00:00.000Z"),
                made_up(3, created_at="2026-01-15T12:30:00.000Z"), made_up(4, created_at="2026-01-15T23:59:59.999Z"),
                made_up(5, created_at="2026-01-16T00:00:00.000Z"), made_up(6, created_at=days_ago(3)), made_up(7, created_at=days_ago(0.01))])
    assert ids(data, "--since", "2026-01-15", "--until", "2026-01-15") == [4, 3, 2]
    assert ids(data, "--since", "2026-01-15T12:30") == [7, 6, 5, 4, 3] and ids(data, "--until", "2026-01-15T12:30:00Z") == [2, 1]
    assert ids(data, "--since", "2026-01-15 12:31", "--until", "2026-01-16 00:00") == [4]
    assert ids(data, "--since", "2h") == [7] and ids(data, "--since", "1w") == [7, 6] and ids(data, "--since", "100h", "--until", "1d") == [6]


def test_export_of_lines(data):
    fill(data, [made_up(n % 60) | {"result": made_up(n % 60)["result"] | {"id": f"{n:032x}"}} for n in range(1203)], "hash")
    lines = [json.loads(line) for line in history(data, "--format", "jsonl").text.splitlines()]
    assert [int(line["id"], 16) for line in lines] == list(range(1202, -1, -1)) and lines[0]["usage"]["wall_ms"] == 12.5
    assert len(history(data, "--format", "jsonl", "-n", "1100").text.splitlines()) == 1100
    assert history(data, "--format", "jsonl", "--status", "denied").text == ""


def test_export_of_a_table(three):
    rows = list(csv.DictReader(io.StringIO(history(three, "--format", "csv").text)))
    assert [row["id"] for row in rows] == [f"{n:032x}" for n in (3, 2, 1)]
    assert (rows[1]["language"], rows[1]["status"], rows[1]["exit_code"]) == ("ruby", "wall_limit", "")
    assert (rows[0]["exit_code"], float(rows[0]["wall_ms"]), rows[0]["memory_peak_bytes"]) == ("0", 12.5, str(4 << 20))
    assert len(list(csv.DictReader(io.StringIO(history(three, "--format", "csv", "-n", "1", "-l", "python").text)))) == 1


def test_values_of_a_table_are_quoted(data):
    """Also against a program that takes a value for a formula."""
    fill(data, [made_up(1) | {"key": '=1+"2",3'}])
    row = next(csv.DictReader(io.StringIO(history(data, "--format", "csv").text)))
    assert row["key"] == "'=1+\"2\",3"


def test_a_run_is_not_exported(three):
    done = cordon("history", "--data-dir", three, "--format", "csv", f"{1:032x}")
    assert done.code == 2 and "--format is for lists" in done.errors, done


def test_short_ids(data):
    """The beginning of an id, where no other run has it."""
    need("python")
    found = dict(result("python", "1 / 0"))
    twins = ["abcd" + 28 * "1", "abcd" + 28 * "2"]
    request = {"language": "python", "code": "1 / 0"} | OPTIONAL
    fill(data, [{"key": "", "request": request, "result": found}] + [made_up(1, id=twin) for twin in twins])
    start = found["id"][:8]
    for command in ("history", "explain", "replay"):
        done = cordon(command, "--data-dir", data, start)
        assert done.code == 0 and not done.errors.startswith("cordon: there"), done
        done = cordon(command, "--data-dir", data, "abcd")
        assert done.code == 2 and f"begins the ids of several runs: {twins[0]}, {twins[1]} (give more" in done.errors, done
        assert "there is no run" in cordon(command, "--data-dir", data, "").errors
        assert "there is no run" in cordon(command, "--data-dir", data, "%").errors
    assert as_result(history(data, "--json", "abcd1"))["id"] == twins[0]


def test_history_shows_what_ran(data):
    fill(data, [made_up(1) | {"request": {"language": "python", "code": "print('\033[2J')\nprint(2)"}},
                made_up(2) | {"request": {"language": "python", "files": {"a.py": "import b", "b.py": "x = 1", "c": {"base64": "AA=="}}}}])
    shown = history(data, f"{1:032x}").text
    assert "code\nprint('?[2J')\nprint(2)\n" in shown, shown
    shown = history(data, f"{2:032x}").text
    assert "file a.py\nimport b\n" in shown and "file b.py\nx = 1\n" in shown and "file c: bytes\n" in shown
    assert as_result(history(data, "--json", f"{1:032x}"))["request"]["code"].endswith("print(2)")


def test_history_says_that_the_code_is_not_kept(data):
    fill(data, [made_up(1)], "hash")
    done = history(data, f"{1:032x}")
    assert "is not kept" in done.errors and as_result(history(data, "--json", f"{1:032x}"))["request"] is None


def test_many_pages(data):
    fill(data, [made_up(n % 60) | {"result": made_up(n % 60)["result"] | {"id": f"{n:032x}"}} for n in range(1203)], "hash")
    found = json.loads(history(data, "--json", "-n", "1150").text)["items"]
    assert [int(item["id"], 16) for item in found] == list(range(1202, 52, -1))


def test_one_run(three):
    shown = history(three, f"{2:032x}").text
    assert '"wall_limit"' in shown and shown.endswith("stdout\n2\n")
    whole = as_result(history(three, f"{2:032x}", "--json"))  # an option may follow
    assert whole["stdout"] == "2\n" and whole["kept"] is True


def test_output_cannot_steer_a_terminal(data):
    fill(data, [made_up(1, stdout="a\033[2Jb\u009bc\x00d\n", reason="\033]0;x\007")])
    shown = history(data, f"{1:032x}").out
    assert b"\033" not in shown and b"\xc2\x9b" not in shown and b"\0" not in shown and b"a?[2Jb" in shown


# What U+009B begins is a command to a terminal, U+202E turns text around, and a byte alone may be either.
STEERING = "a\033[2Jb\u009b2Jc\u202ed\u2066e\u061cf\u2028g"


def shown_on_a_terminal(*arguments):
    leader, follower = pty.openpty()
    process = subprocess.Popen([CORDON, *map(str, arguments)], stdout=follower, stderr=follower, stdin=subprocess.DEVNULL)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            part = b""
        shown += part
        if not part:
            break
    process.wait(timeout=30)
    os.close(leader)
    return shown.decode()  # all of it is UTF-8


def harmless(shown):
    steering = [c for c in shown if c in "\u061c\u200e\u200f" or "\u2028" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"
                or "\x7f" <= c <= "\x9f" or (c < " " and c not in "\r\n\t")]
    return not steering


def test_nothing_of_a_cell_steers_a_terminal(data, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    error = {"type": STEERING, "category": "runtime", "message": STEERING, "file": STEERING, "line": 1, "column": None,
             "snippet": STEERING, "traceback": STEERING, "hint": STEERING}
    files = [{"path": STEERING, "size": 1, "sha256": "0" * 64, "content": STEERING}]
    skipped = {"count": 1, "items": [{"path": STEERING, "size": None, "why": "x"}]}
    run_id = f"{1:032x}"
    fill(data, [made_up(1, status="nonzero_exit", success=False, exit_code=1, stdout=STEERING, stderr=STEERING, reason=STEERING, error=error, files=files,
                        files_skipped=skipped, value={STEERING: STEERING}) | {
        "request": {"language": "python", "code": f"'{STEERING}'", "collect": ["*"]} | OPTIONAL}])
    for command in (["history"], ["history", "--json"], ["history", "--format", "jsonl"], ["history", run_id], ["history", "--json", run_id],
                    ["explain", run_id], ["explain", "--json", run_id], ["replay", run_id], ["replay", "--json", run_id]):
        shown = shown_on_a_terminal(command[0], "--data-dir", data, *command[1:])
        assert harmless(shown), (command, shown)
        assert command[-1] != run_id or "2J" in shown, (command, shown)
    found = as_result(history(data, "--json", run_id))
    assert found["stdout"] == STEERING, "not changed for whoever is no terminal"


@pytest.mark.parametrize("command", ["test", "batch", "run"])
def test_nothing_of_a_run_steers_a_terminal(tmp_path, monkeypatch, command):
    need("python")
    monkeypatch.setenv("NO_COLOR", "1")
    code = f"import sys\nprint({STEERING!a})\nopen({STEERING!a}, 'w')\nraise ValueError({STEERING!a})"
    (tmp_path / "program.py").write_text(code)
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [{"name": STEERING, "expected": STEERING + "x"}]}))
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": STEERING, "language": "python", "code": code, "collect": ["*"]} | OPTIONAL) + "\n")
    words = {"test": ["--tests", tmp_path / "cases.json", tmp_path / "program.py"], "batch": [tmp_path / "tasks.jsonl", "-o", "-"],
             "run": ["--json", "--collect", "*", tmp_path / "program.py"]}[command]
    shown = shown_on_a_terminal(command, *(FLAGS if command != "batch" else []), *words)
    shown = shown.replace("\r\x1b[K", "")  # the progress bar's own
    assert harmless(shown) and "2J" in shown, shown


def test_running(data):
    fill(data, [{"id": "going", "key": "", "request": {"language": "go", "code": ""}}])
    found = as_result(history(data, "--json", "going"))
    assert (found["state"], found["status"], found["language"]) == ("running", None, "go")
    assert cordon("replay", "--data-dir", data, "going").errors == "cordon: replay: run going has not ended\n"


def test_hash_only(data):
    fill(data, [made_up(1)], "hash")
    found = as_result(history(data, "--json", f"{1:032x}"))
    assert found["stdout"] is None and found["kept"] is False
    assert found["stdout_sha256"] == hashlib.sha256(b"1\n").hexdigest()
    done = cordon("replay", "--data-dir", data, f"{1:032x}")
    assert done.code == 125 and "is not kept" in done.errors and "hashes only" in done.errors


@pytest.mark.parametrize("command", ["history", "history x", "replay x", "verify-ledger", "key ls", "key rm x"])
def test_no_store(tmp_path, command):
    for place, error in ((tmp_path / "no", "there is no data directory"), (tmp_path, "there is no store in")):
        done = cordon(*command.split(), env=os.environ | {"CORDON_DATA_DIR": str(place)})
        assert done.code == (125 if command == "verify-ledger" else 2) and error in done.errors, done
    assert not list(tmp_path.iterdir())


def test_unknown_run(three):
    for command in ("history", "replay"):
        done = cordon(command, "--data-dir", three, "nothing")
        assert done.code == 2 and done.errors == "cordon: there is no run 'nothing'\n"


@pytest.mark.parametrize("arguments, error", [
    (["history", "--limit", "0"], "out of range; expected 1 to 100000"), (["history", "--limit", "x"], "--limit: 'x'"),
    (["history", "a", "b"], "unexpected argument 'b'"), (["replay"], "which run?"),
    (["replay", "--env-secret", "X", "a"], "expected NAME=VALUE"), (["verify-ledger", "more"], "unexpected argument"),
    (["verify-ledger", "--head", "123"], "expected 64 digits"), (["history", "--data-dir", ""], "name is empty")])
def test_usage(arguments, error):
    done = cordon(*arguments)
    assert done.code == 2 and error in done.errors, done


# ---- replay ----

def record(data, language, code, keep="full", request=None, flags=()):
    need(language)
    found = result(language, code, *flags)
    fill(data, [{"key": "", "request": {"language": language, "code": code} | (request or {}), "result": dict(found)}], keep)
    return found["id"]


# What tests are given by CORDON_TEST_FLAGS has to be in the recorded request too.
OPTIONAL = {"optional": [FLAGS[i + 1] for i, flag in enumerate(FLAGS) if flag == "--optional"]} if FLAGS else {}


def test_replay_same(data):
    run_id = record(data, "python", "import sys; print(6*7); sys.exit(3)", request=OPTIONAL)
    done = cordon("replay", "--data-dir", data, run_id)
    assert done.code == 0 and done.text.startswith("same: "), done
    found = as_result(cordon("replay", "--data-dir", data, "--json", run_id))
    assert found["same"] is True and found["result"]["exit_code"] == 3 and found["result"]["id"] != run_id


def test_replay_differs(data):
    run_id = record(data, "python", "import time; print('first'); print(time.time_ns())", request=OPTIONAL)
    done = cordon("replay", "--data-dir", data, run_id)
    assert done.code == 1 and done.text.startswith("different: ") and "stdout, line 2" in done.text, done
    found = as_result(cordon("replay", "--data-dir", data, "--json", run_id))
    assert found["same"] is False and [d["field"] for d in found["differences"] if d["decides"]] == ["stdout"]


def test_replay_uses_inputs_and_limits(data):
    code = "import os, sys; print(sys.stdin.read(), sys.argv[1], os.environ['A'])"
    run_id = record(data, "python", "print('in arg b')", request=OPTIONAL | {
        "code": code, "stdin": "in", "args": ["arg"], "env": {"A": "b"}, "limits": {"wall_ms": 9000}})
    found = as_result(cordon("replay", "--data-dir", data, "--json", run_id))
    assert found["same"] is True and found["result"]["limits"]["wall_ms"] == 9000, found


def test_replay_needs_the_secret(data):
    run_id = record(data, "python", "print('[REDACTED_SECRET]')", request=OPTIONAL | {
        "code": "import os; print(os.environ['TOKEN'])", "env": {"TOKEN": {"value": None, "secret": True}}})
    done = cordon("replay", "--data-dir", data, run_id)
    assert done.code == 2 and "--env-secret TOKEN=VALUE" in done.errors, done
    assert cordon("replay", "--data-dir", data, "--env-secret", "TOKEN=hush", run_id).code == 0


def replayed(data, run_id, code):
    found = as_result(cordon("replay", "--data-dir", data, "--json", run_id))
    assert found.exit == code, found
    return {each["field"]: (each["before"], each["after"]) for each in found["differences"] if each["decides"]}, found


def test_replay_compares_files(data):
    """Path and hash of each: one that is another, one that is gone and one that is new."""
    collect = {"collect": ["**"]} | OPTIONAL
    code = "import os, random; open('same', 'w').write('1'); open('other', 'w').write(str(os.getpid()) + str(random.random()))"
    run_id = record(data, "python", code, request=collect, flags=("--collect", "**"))
    differences, _ = replayed(data, run_id, 1)
    assert list(differences) == ["files/other"] and all(re.fullmatch("[0-9a-f]{64}", each) for each in differences["files/other"])
    assert "files/other" in cordon("replay", "--data-dir", data, run_id).text


def test_replay_misses_files_and_finds_new_ones(data):
    run_id = record(data, "python", "open('gone', 'w'); open('same', 'w')", flags=("--collect", "**"),
                    request=OPTIONAL | {"collect": ["**"], "code": "open('same', 'w'); open('new', 'w')"})
    differences, _ = replayed(data, run_id, 1)
    assert sorted(differences) == ["files/gone", "files/new"] and differences["files/gone"][1] is differences["files/new"][0] is None


def test_replay_same_files(data):
    run_id = record(data, "python", "open('same', 'w').write('x')", request=OPTIONAL | {"collect": ["**"]}, flags=("--collect", "**"))
    assert replayed(data, run_id, 0)[1]["same"] is True


def test_replay_compares_the_value(data):
    run_id = record(data, "javascript", "x = {a: 1}", request=OPTIONAL | {"code": "x = {a: 2}"})
    assert replayed(data, run_id, 1)[0] == {"value": ({"a": 1}, {"a": 2})}


@pytest.mark.parametrize("code, members, fields", [
    ("print(1)", {"redactions": [{"rule": "email", "stream": "stdout", "count": 1}]}, ["stdout"]),
    ("print(1)", {"redactions": [{"rule": "email", "stream": "file", "count": 1}]}, ["files"]),
    ("print('x' * 3000000)", {}, ["stdout"]),
    ("import sys; sys.stderr.buffer.write(b'\\xff')", {}, ["stderr"]),
    ("import os; os.symlink('a', 'b')", {}, ["files"]),
])
def test_replay_says_what_it_could_not_compare(data, code, members, fields):
    """Nothing differs, but that is not to say that everything is the same."""
    need("python")
    found = dict(result("python", code, "--collect", "**"))
    fill(data, [{"key": "", "request": {"language": "python", "code": code, "collect": ["**"]} | OPTIONAL, "result": found | members}])
    _, again = replayed(data, found["id"], 3)
    assert again["same"] is None and [each["field"] for each in again["not_compared"]] == fields and again["not_compared"][0]["why"]
    done = cordon("replay", "--data-dir", data, found["id"])
    assert done.code == 3 and done.text.startswith("incomplete: ") and f"not compared: {fields[0]}: " in done.text, done


# ---- the chain ----

def test_verify(three):
    done = cordon("verify-ledger", "--data-dir", three)
    assert done.code == 0 and done.text.startswith("good: 3 rows"), done
    found = as_result(cordon("verify-ledger", "--data-dir", three, "--json"))
    assert found["good"] and found["rows"] == 3
    assert cordon("verify-ledger", "--data-dir", three, "--head", found["head"]).code == 0
    assert cordon("verify-ledger", "--data-dir", three, "--head", "0" * 63 + "1").code == 1


def test_verify_finds_damage(three):
    with sqlite3.connect(three / "cordon.db") as file:
        file.execute("UPDATE ledger SET entry = replace(entry, 'wall_limit', 'wall_limiT') WHERE seq = 2")
    file.close()
    done = cordon("verify-ledger", "--data-dir", three)
    assert done.code == 1 and f"row 2 (run {2:032x}): its hash does not match its content" in done.errors, done
    found = as_result(cordon("verify-ledger", "--data-dir", three, "--json"))
    assert (found["good"], found["bad_row"], found.exit) == (False, 2, 1)


def test_form_of_the_ledger(three):
    """The chain can be checked by anybody who has read docs/LEDGER.md."""
    file = sqlite3.connect(three / "cordon.db")
    prev = "0" * 64
    for seq, (entry, stored_prev, stored) in enumerate(file.execute("SELECT entry, prev, hash FROM ledger ORDER BY seq"), 1):
        assert stored_prev == prev
        prev = hashlib.sha256((prev + entry).encode()).hexdigest()
        assert stored == prev
        members = json.loads(entry)
        assert entry == json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert members["id"] == f"{seq:032x}"
        for part in ("request", "stdout", "stderr", "result"):
            content = file.execute("SELECT content FROM texts JOIN blobs ON blobs.number = blob WHERE id = ? AND part = ?",
                                   (members["id"], part)).fetchone()[0]
            assert hashlib.sha256(content).hexdigest() == members[f"{part}_sha256"]
    assert (three / "ledger.head").read_text() == f"3 {prev}\n"


def test_killed_while_writing(data):
    """A writer that is killed leaves a ledger that verifies, and the next one goes on with it."""
    if not FILL.exists():
        skip(f"{FILL} is not built")
    head = data / "ledger.head"
    with subprocess.Popen([FILL, data, "full", "10000000"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as writer:
        try:
            writer.stdin.write(json.dumps(made_up(1)).encode() + b"\n")
            writer.stdin.close()
            wait_for(lambda: head.exists() and not head.read_text().startswith("0 "), 30)
        finally:
            writer.kill()
    found = as_result(cordon("verify-ledger", "--data-dir", data, "--json"))
    assert found["good"] and found["rows"] >= int(head.read_text().split()[0]) > 0, found
    fill(data, [made_up(7, id="after")])
    assert cordon("verify-ledger", "--data-dir", data).code == 0
    assert json.loads(history(data, "--json", "-n", "1").text)["items"][0]["id"] == "after"


def test_repair(data):
    """What docs/LEDGER.md says about saving what can be read of a damaged file."""
    if not shutil.which("sqlite3"):
        skip("the sqlite3 command is not installed", False)
    fill(data, [made_up(n % 60, id=f"{n:032x}") for n in range(1, 201)])
    commands = re.search(r"```sh\n(sqlite3 .*?)```", (REPOSITORY / "docs" / "LEDGER.md").read_text(), re.S)[1]
    file = sqlite3.connect(data / "cordon.db")
    page = file.execute("SELECT pageno FROM dbstat WHERE name = 'ledger' AND path = '/003/'").fetchone()[0]
    file.close()
    with open(data / "cordon.db", "r+b") as raw:
        raw.seek((page - 1) * 4096)
        raw.write(b"\x5a" * 4096)
    done = cordon("verify-ledger", "--data-dir", data)
    assert done.code == 1 and "the file is damaged after row" in done.errors, done
    assert subprocess.run(["sh", "-c", commands], cwd=data, capture_output=True, check=False).returncode == 0
    done = cordon("verify-ledger", "--data-dir", data)
    assert done.code == 1 and re.search(r"row \d+ is missing: the next is row \d+", done.errors), done
    assert len(json.loads(history(data, "--json", "-n", "500").text)["items"]) > 150
    fill(data, [made_up(7, id="after")])


def test_others_may_not_write(three):
    os.chmod(three, 0o777)
    done = cordon("history", "--data-dir", three)
    assert done.code == 125 and "may be written by others (mode 0777)" in done.errors and "chmod 700" in done.errors
