"""Names of files that an interpreter or a compiler could take for something else: options, lists of options, commands."""
import json
import os
import pathlib
import re
import sys

import pytest

from helpers import cordon, need, skip, tool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from engine import OPTIONAL, PROGRAM, Engine  # noqa: E402

# How a program prints its first argument after "ran".
ARGUMENT = {
    "python": "import sys\nprint('ran', sys.argv[1])", "javascript": "console.log('ran', process.argv[2])",
    "ruby": "puts \"ran #{ARGV[0]}\"", "bash": "echo ran \"$1\"", "perl": "print \"ran $ARGV[0]\\n\";",
    "php": "<?php echo \"ran $argv[1]\\n\";", "lua": "print('ran', arg[1])", "r": "cat('ran', commandArgs(TRUE)[1])",
    "c": "#include <stdio.h>\nint main(int n, char **v) { printf(\"ran %s\\n\", v[1]); }",
    "java": "class Main { public static void main(String[] a) { System.out.println(\"ran \" + a[0]); } }",
    "rust": "fn main() { println!(\"ran {}\", std::env::args().nth(1).unwrap()); }",
    "typescript": "declare const process: any;\nconsole.log('ran', process.argv[2])",
}
TOOLS = {"perl": "perl", "php": "php", "lua": "lua5.4", "r": "Rscript", "typescript": "tsc"}
NAMES = {
    "python": ["-c", "-", "-m", "-x.py"], "javascript": ["-e", "-p", "inspect", "--eval.js", "-"], "ruby": ["-e", "-x", "-.rb", "-"],
    "bash": ["-x", "-c", "-s", "--version", "-"], "perl": ["-e", "-v", "-"], "php": ["-r", "-i", "--"], "lua": ["-e", "-v", "-"],
    "r": ["-e", "--version"], "c": ["-fplugin=x.c", "@list.c", "-o.c", "-wrapper,x.c"], "java": ["-J-version.java", "@list.java", "-d.java"],
    "rust": ["-x.rs"], "typescript": ["-p.ts", "@list.ts"],
}
CASES = [(language, name) for language, names in NAMES.items() for name in names]
WARM = {"python", "javascript", "ruby", "bash", "perl", "php", "r"}
DEFECT = {"python": "import sys\n1 / 0", "javascript": "null.x", "ruby": "raise 'x'", "bash": "nosuchcommand"}


@pytest.fixture(scope="module")
def engine():
    if not os.access(PROGRAM, os.X_OK):
        skip(f"{PROGRAM} was not built")
    with Engine() as engine:
        yield engine


def have(language):
    if language in TOOLS:
        if not tool(TOOLS[language]):
            skip(f"{language} is not installed", False)
    else:
        need(language)


def request(language, name, code=None):
    have(language)
    return {"files": {name: ARGUMENT[language] if code is None else code}, "entry": name, "args": ["print('injected')"]}


@pytest.mark.parametrize("language, name", CASES)
def test_a_name_is_no_option(engine, language, name):
    found = engine.run(language, warm=False, **request(language, name))
    assert found["status"] == "ok" and found["stdout"].split() == ["ran", "print('injected')"], found


@pytest.mark.parametrize("language, name", [(language, name) for language, name in CASES if language in WARM])
def test_a_name_is_no_option_in_a_waiting_cell(engine, language, name):
    """Where a copy starts its interpreter again, too."""
    asked = request(language, name)
    engine.run_warm(language, ARGUMENT[language], args=["x"])
    found = engine.run_warm(language, **asked)
    assert found["status"] == "ok" and found["stdout"].split() == ["ran", "print('injected')"], found


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("language", DEFECT)
def test_errors_show_the_plain_name(engine, language, warm):
    usual = {"python": "main.py", "javascript": "main.js", "ruby": "main.rb", "bash": "main.sh"}[language]
    have(language)
    if warm:
        engine.run_warm(language, ARGUMENT[language], args=["x"])
    for name in (usual, "-c", "dir/file.x"):
        how = engine.run_warm if warm else engine.run
        found = how(language, **request(language, name, DEFECT[language]), **({} if warm else {"warm": False}))
        assert found["status"] == "nonzero_exit" and found["error"]["file"] == name, (name, found)
        if name != "-c":
            assert "./" not in found["stderr"] and re.search(rf"(^|[ /\"]){name}", found["stderr"]), found["stderr"]
    found = (engine.run_warm if warm else engine.run)(language, DEFECT[language], **({} if warm else {"warm": False}))
    assert found["error"]["file"] == usual and "./" not in found["stderr"], found


def test_a_compiler_shows_the_plain_name(engine):
    have("c")
    for name in ("main.c", "-fplugin=x.c"):
        found = engine.run("c", files={name: "int main(void) { return x; }"}, entry=name)
        assert found["status"] == "compile_error" and found["error"]["file"] == name, found


@pytest.mark.parametrize("framework, language, name, test", [
    ("pytest", "python", "test_-p.py", "def test_one(): pass"), ("pytest", "python", "--co_test.py", "def test_one(): pass"),
    ("bats", "bash", "--help.bats", '@test "one" { true; }'), ("node", "javascript", "--eval.test.js", "require('node:test').test('one', () => {})")])
def test_a_test_files_name_is_no_option(framework, language, name, test):
    need(language)
    asked = {"language": language, "code": ":" if language == "bash" else "", "optional": OPTIONAL,
             "tests": {"framework": framework, "files": {name: test}}}
    done = cordon("batch", "-", "-o", "-", "-q", stdin=json.dumps(asked))
    found = json.loads(done.out)
    if "not installed" in str(found.get("reason")):
        skip(found["reason"], False)
    assert found["tests"]["passed"] == 1, found
