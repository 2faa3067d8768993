"""Every installed language runs the examples of its manifest; programs of several files, arguments, environment."""
import json
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

from helpers import CELL_PATH, CORDON, FLAGS, REPOSITORY, SET_UP, TOOLS, as_result, cordon, need, ok, result, run, skip

yaml = pytest.importorskip("yaml", reason="python3-yaml reads the manifests")

# A manifest and, in a file of its own that is read only when needed, its error tables and examples.
MANIFESTS = {path.stem: yaml.safe_load(path.read_text()) | yaml.safe_load((path.parent / "notes" / path.name).read_text())
             for path in sorted((REPOSITORY / "languages").glob("*.yaml"))}
EXAMPLES = [(language, example) for language, manifest in MANIFESTS.items() for example in manifest.get("examples") or []]


def need_manifest(language):
    """Skips a language whose commands are not on the cell's PATH."""
    manifest = MANIFESTS[language]
    steps = [manifest.get(step) for step in ("compile", "run", "run_code")]
    for command in [manifest["version"][0]] + [step["argv"][0] for step in steps if step]:
        if "/" not in command and "{" not in command and not shutil.which(command, path=CELL_PATH):
            skip(f"{language} is not installed ({command} is missing)", language in SET_UP)


@pytest.mark.parametrize("language, example", EXAMPLES, ids=[f"{language}: {example['name']}" for language, example in EXAMPLES])
def test_example(language, example):
    need_manifest(language)
    found = result(language, example["code"], stdin=example.get("input") or "")
    assert (found["status"], found["stdout"]) == ("ok", example["output"]), found


@pytest.mark.parametrize("language", MANIFESTS)
def test_has_examples(language):
    assert MANIFESTS[language].get("examples"), "a manifest needs an example for the tests"


@pytest.mark.parametrize("language", sorted(SET_UP | {"cpp"}))
def test_full_languages_have_a_manifest(language):
    assert language in MANIFESTS


@pytest.mark.parametrize("language", MANIFESTS)
def test_version(language):
    need_manifest(language)
    example = (MANIFESTS[language].get("examples") or [{"code": ""}])[0]
    found = result(language, example["code"], stdin=example.get("input") or "")
    assert re.search(r"\d+(\.\d+)?", found["language_version"] or ""), found["language_version"]


ALIASES = [(alias, language) for language, manifest in MANIFESTS.items() for alias in manifest.get("aliases") or []]


def test_names_are_unique():
    names = list(MANIFESTS) + [alias for alias, _ in ALIASES]
    assert len(names) == len(set(names))
    extensions = [extension for manifest in MANIFESTS.values() for extension in manifest.get("extensions") or []]
    assert len(extensions) == len(set(extensions))


@pytest.mark.parametrize("alias, language", [("python3", "python"), ("py", "python"), ("js", "javascript"), ("node", "javascript"),
                                             ("sh", "bash")])
def test_aliases_of_the_contract(alias, language):
    assert (alias, language) in ALIASES
    need(language)
    assert result(alias, ":" if language == "bash" else "1")["language"] == language


def test_language_list():
    found = json.loads(cordon("languages", "--json").out)
    assert {row["id"] for row in found["items"]} == set(MANIFESTS)
    for row in found["items"]:
        assert isinstance(row["installed"], bool) and isinstance(row["aliases"], list), row
        assert row["installed"] or row["packages"] or row["id"] == "julia", "the package to install is told"


# The snippets that came with the request for this system


def test_javascript_value():
    need("javascript")
    found = result("javascript", "const x = 40 + 2; x")
    assert found["stdout"].strip() == "42" and found["value"] == 42


def test_javascript_fibonacci():
    need("javascript")
    code = textwrap.dedent("""
        function fibonacci(n) {
          if (n <= 1) return n;
          return fibonacci(n-1) + fibonacci(n-2);
        }
        fibonacci(10)
    """)
    assert ok("javascript", code).strip() == "55"


def test_python_average():
    code = 'import json\ndata = [1, 2, 3, 4, 5]\nresult = sum(data) / len(data)\nprint(json.dumps({"average": result}))'
    assert ok("python", code) == '{"average": 3.0}\n'


def test_bash_user_and_directory():
    assert ok("bash", 'echo "User: $USER"; echo "PWD: $PWD"') == "User: cordon\nPWD: /work\n"


def test_missing_module_is_named():
    found = result("python", "import nonexistent_module")
    assert found["success"] is False
    assert found["error"]["type"] == "ModuleNotFoundError"
    assert "nonexistent_module" in found["error"]["message"]


# Programs of several files


def write(directory, files):
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


PROJECTS = {
    "python": ("main.py", {"main.py": "import helper\nfrom pkg.mod import g\nprint(helper.f(2), g())",
                           "helper.py": "def f(x): return x * 21", "pkg/__init__.py": "", "pkg/mod.py": "def g(): return 'g'"}),
    "javascript": ("app.js", {"app.js": "const h = require('./lib/h.js');\nconsole.log(h.f(2), 'g');",
                              "lib/h.js": "exports.f = x => x * 21;"}),
    "bash": ("go.sh", {"go.sh": ". ./lib.sh\nf 42", "lib.sh": 'f() { echo "$1 g"; }'}),
    "ruby": ("main.rb", {"main.rb": "require_relative 'h'\nputs \"#{f(2)} g\"", "h.rb": "def f(x) = x * 21"}),
    "c": ("main.c", {"main.c": '#include <stdio.h>\n#include "h.h"\nint main(void) { printf("%d g\\n", f(2)); return 0; }',
                     "h.c": '#include "h.h"\nint f(int x) { return x * 21; }', "h.h": "int f(int x);"}),
    "go": ("main.go", {"main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(f(2), "g") }',
                       "h.go": "package main\n\nfunc f(x int) int { return x * 21 }"}),
}


@pytest.mark.parametrize("language", PROJECTS)
def test_several_files(language, tmp_path):
    need(language)
    entry, files = PROJECTS[language]
    write(tmp_path, files)
    flags = [flag for name in files if name != entry for flag in ("--file", f"{name}={tmp_path}/{name}")]
    done = cordon("run", *FLAGS, *flags, tmp_path / entry)
    assert (done.text, done.code) == ("42 g\n", 0), done


def test_code_beside_files(tmp_path):
    write(tmp_path, {"data.txt": "content", "sub/x": "deep"})
    found = run("python", "print(open('data.txt').read(), open('d/y').read())", "--file", tmp_path / "data.txt",
                "--file", f"d/y={tmp_path}/sub/x")
    assert found.text == "content deep\n", found


def test_files_belong_to_the_program(tmp_path):
    write(tmp_path, {"data.txt": "content"})
    assert ok("bash", "echo more >> data.txt && cat data.txt && rm data.txt && ls", "--file", str(tmp_path / "data.txt")).startswith("contentmore\n")


def test_code_from_standard_input():
    done = cordon("run", *FLAGS, "-l", "python", "-", "one", stdin="import sys; print(6*7, sys.argv[1:])")
    assert done.text == "42 ['one']\n", done


@pytest.mark.parametrize("language, code", [
    ("python", "import sys; print('|'.join(sys.argv[1:]))"),
    ("javascript", "console.log(process.argv.slice(2).join('|'))"),
    ("bash", "IFS='|'; echo \"$*\""),
    ("ruby", "puts ARGV.join('|')"),
    ("c", '#include <stdio.h>\nint main(int n, char **v) { for (int i = 1; i < n; i++) printf("%s%s", v[i], i + 1 < n ? "|" : "\\n"); }'),
    ("go", 'package main\n\nimport ("fmt"; "os"; "strings")\n\nfunc main() { fmt.Println(strings.Join(os.Args[1:], "|")) }'),
])
def test_arguments(language, code):
    need(language)
    found = result(language, code, args=["a b", "-x", "--json", "", "$HOME", "é"])
    assert found["stdout"] == "a b|-x|--json||$HOME|é\n", found


@pytest.mark.parametrize("language, code", [
    ("python", "import os; print(os.environ['PLAIN'], os.environ['TOKEN'])"),
    ("javascript", "console.log(process.env.PLAIN, process.env.TOKEN)"),
    ("bash", "echo $PLAIN $TOKEN"),
    ("ruby", "puts ENV['PLAIN'] + ' ' + ENV['TOKEN']"),
])
def test_environment(language, code):
    need(language)
    assert ok(language, code, "--env", "PLAIN=one", "--env-secret", "TOKEN=second") == "one [REDACTED_SECRET]\n"


@pytest.mark.parametrize("language, code", [
    ("python", "print(sum(map(int, input().split())))"),
    ("javascript", "console.log(require('fs').readFileSync(0, 'utf8').trim().split(' ').map(Number).reduce((a, b) => a + b))"),
    ("bash", "read a b; echo $((a + b))"),
    ("ruby", "puts gets.split.map(&:to_i).sum"),
    ("c", '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); return 0; }'),
    ("go", 'package main\n\nimport "fmt"\n\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }'),
])
def test_stdin(language, code):
    need(language)
    assert ok(language, code, stdin="40 2\n") == "42\n"


@pytest.mark.parametrize("language, code, kind, line", [
    ("javascript", "let a = 1;\nnull.x", "TypeError", 2),
    ("ruby", "x = 1\nnil.foo", "NoMethodError", 2),
    ("bash", "true\nno_such_command_here", None, 2),
])
def test_errors_are_located(language, code, kind, line):
    need(language)
    error = result(language, code)["error"]
    assert error, "no error was found"
    assert kind is None or error["type"] == kind, error
    assert error["line"] == line, error


def test_a_compiler_has_its_own_limits():
    """Too little memory for a compiler does not stop it: the program's limits are the program's."""
    need("c")
    found = result("c", "int main(void) { return 0; }", "--memory", "16m", "--processes", "2", "--wall", "5s")
    assert found["status"] == "ok", found


def test_interpreters_are_not_looked_up_on_the_callers_path(tmp_path):
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\necho fake")
    fake.chmod(0o755)
    assert run("python", "print('real')", env={"PATH": f"{tmp_path}:/usr/bin:/bin"}).text == "real\n"


def test_the_version_is_that_of_the_interpreter_in_the_cell():
    need("python")
    version = subprocess.run([shutil.which(TOOLS["python"], path=CELL_PATH), "--version"], capture_output=True, check=True).stdout.split()[1].decode()
    assert version in result("python", "1")["language_version"]


def test_every_language_gives_the_same_keys():
    need("javascript", "ruby")
    keys = [set(as_result(cordon("run", *FLAGS, "--json", "-l", language, "-c", "1"))) for language in ("python", "javascript", "ruby")]
    assert keys[0] == keys[1] == keys[2]


# What `cordon languages` says of a language


class Tree:
    """A cordon of its own with manifests of its own, and a cache that nobody else has."""

    def __init__(self, path):
        self.path, self.cache = path, path / "cache" / "cordon" / "proofs"
        for folder in ("build", "cache", "languages", "languages/notes"):
            (path / folder).mkdir()
        for name in ("cordon", "cordon-warden"):
            shutil.copy2(pathlib.Path(CORDON).parent / name, path / "build" / name)

    def write(self, name, code="echo 42", output="42\n", **manifest):
        manifest = {"id": name, "name": name.title(), "extensions": [name], "file": f"main.{name}", "version": ["bash", "--version"],
                    "run": {"argv": ["bash", "{entry}"]}, "packages": [f"{name}-package"], **manifest}
        notes = {"examples": [{"name": "first", "code": code, "output": output}]}
        (self.path / "languages" / f"{name}.yaml").write_text(yaml.safe_dump(manifest))
        (self.path / "languages" / "notes" / f"{name}.yaml").write_text(yaml.safe_dump(notes))

    def copy(self, name, change=lambda text: text):
        for part in (f"{name}.yaml", f"notes/{name}.yaml"):
            (self.path / "languages" / part).write_text(change((REPOSITORY / "languages" / part).read_text()))

    def call(self, *arguments):
        env = {"PATH": CELL_PATH, "XDG_CACHE_HOME": str(self.path / "cache"), "HOME": str(self.path)}
        return subprocess.run([self.path / "build" / "cordon", "languages", *arguments], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=True).stdout

    def list(self):
        return {row["id"]: row for row in json.loads(self.call("--json"))["items"]}


@pytest.fixture
def tree(tmp_path):
    need("bash")
    return Tree(tmp_path)


def test_typescript_without_its_compiler_is_not_installed(tree):
    need("javascript")
    tree.copy("typescript", lambda text: text.replace("exec tsc", "exec tsc-of-nowhere").replace("[tsc, --version]", "[tsc-of-nowhere, --version]"))
    assert not tree.list()["typescript"]["installed"]
    assert "no: apt install node-typescript" in tree.call()


def test_a_compiler_behind_a_shell_that_fails_is_not_installed(tree):
    need("javascript")
    tree.copy("typescript", lambda text: text.replace("exec tsc", "exec tsc-of-nowhere").replace("[tsc, --version]", "[node, --version]"))
    found = tree.list()["typescript"]
    assert not found["installed"] and "tsc-of-nowhere" in found["problem"], found
    assert "no: " in tree.call() and not tree.cache.joinpath("typescript").exists()


def test_a_language_is_proved_by_running_it(tree):
    tree.write("good")
    tree.write("broken", run={"argv": ["bash", "-c", "echo it is broken >&2; exit 3", "{entry}"]})
    tree.write("liar", output="43\n")
    tree.write("absent", version=["command-of-nowhere"])
    found = tree.list()
    assert {name for name, row in found.items() if row["installed"]} == {"good"}, found
    assert found["good"]["problem"] is None and found["absent"]["problem"] is None
    assert found["broken"]["problem"] == "exited with 3: it is broken" and "printed '42'" in found["liar"]["problem"]
    assert re.search(r"broken .*no: exited with 3: it is broken", tree.call())


def test_a_proof_is_kept_until_something_changes(tree):
    tree.write("good")
    assert tree.list()["good"]["installed"]
    proof = tree.cache / "good"
    first = proof.stat().st_ino, proof.read_text()
    assert tree.list()["good"]["installed"] and (proof.stat().st_ino, proof.read_text()) == first
    proof.write_text("of another runtime")
    assert tree.list()["good"]["installed"] and proof.read_text() == first[1], "an old proof counts for nothing"
    tree.write("good", run={"argv": ["bash", "-c", "exit 3", "{entry}"]})
    assert not tree.list()["good"]["installed"], "the manifest has changed"


def test_help_tells_of_the_proof():
    assert "proved by running" in cordon("languages", "--help").text
