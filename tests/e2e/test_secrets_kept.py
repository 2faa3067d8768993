"""A secret that a request brings shows nowhere: not in what is answered, in no form that languages and shells print it in, and
not in what is kept."""
import json
import sqlite3

import pytest

from helpers import need
from serve_fixtures import open_dir, support  # noqa: F401

cordon = support.cordon
SECRET = "s3cr'et \"Wert\" é$"
ENV = {"KEY": {"value": SECRET, "secret": True}}


@pytest.fixture(scope="module")
def daemon():
    with support.Daemon() as running:
        yield running


def assert_clean(text, what, secret=SECRET):
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]):
        assert form not in text, f"{what} has the secret as {form!r}"


def stored_texts(directory):
    file = sqlite3.connect(f"file:{directory}/cordon.db?mode=ro", uri=True)
    try:
        return "\n".join(bytes(row[0]).decode(errors="replace") for row in file.execute("SELECT content FROM blobs")) + \
            "\n".join(row[0] for row in file.execute("SELECT entry FROM ledger"))
    finally:
        file.close()


# What each program prints of its variable, and what is left of that where a form leaves something around it.
FORMS = {
    "plain": ("python", "import os; print(os.environ['KEY'])"),
    "repr": ("python", "import os; print(repr(os.environ['KEY']))"),
    "repr of bytes": ("python", "import os; print(os.environb[b'KEY'])"),
    "ascii": ("python", "import os; print(ascii([os.environ['KEY']]))"),
    "json": ("python", "import os, json; print(json.dumps(os.environ['KEY']))"),
    "shlex": ("python", "import os, shlex; print(shlex.quote(os.environ['KEY']))"),
    "stripped": ("python", "import os; print(os.environ['KEY'].strip() + '!')"),
    "printf %q": ("bash", "printf '%q\\n' \"$KEY\""),
    "@Q": ("bash", "echo \"${KEY@Q}\""),
    "xtrace": ("bash", "set -x; : \"$KEY\""),
    "declare": ("bash", "declare -p KEY"),
    "inspect": ("javascript", "console.log([process.env.KEY])"),
    "stringify": ("javascript", "console.log(JSON.stringify(process.env.KEY))"),
}
def test_a_value_written_with_escapes_is_redacted(daemon):
    """Whoever reads the JSON decodes them."""
    code = r"require('fs').writeSync(3, JSON.stringify({ key: process.env.KEY }).replace(/[a-zA-Z]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))); process.exit(0)"
    need("javascript")
    result = daemon.execute("javascript", code, env=ENV)
    assert SECRET not in json.dumps(result["value"]) and "[REDACTED" in json.dumps(result["value"]), result["value"]


VALUES = ["s3cr'et \"Wert\" é$", "plain-secret-value", "ends-with-newline-secret\n", "a'b'c'd'e'f", 'q"u"o"t"e', "two\nlines\there", "back\\slash\\value",
          "\x01control\x7fvalue"]


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_are_printed(daemon, name):
    language, code = FORMS[name]
    need(language)
    for value in VALUES:
        result = daemon.execute(language, code, env={"KEY": {"value": value, "secret": True}})
        shown = result["stdout"] + result["stderr"]
        assert "[REDACTED" in shown, (value, shown)
        inner = value.strip()
        longest = max(inner.replace("'", "\n").replace('"', "\n").replace("\\", "\n").replace("\x01", "\n").replace("\x7f", "\n").replace("é", "\n").split("\n"), key=len)
        assert len(longest) < 5 or longest not in shown, (value, shown)


def test_names_snippets_reports_and_what_is_kept(daemon):
    code = ("import os\nname = " + repr(SECRET) + "; raise ValueError(name)  # " + SECRET + "\n")
    request = {"language": "python", "code": code, "env": ENV, "collect": ["**"], "files": {f"{SECRET}.txt": "x"}, "args": [SECRET],
               "stdin": SECRET}
    run = daemon.post("/v1/executions", request).json["id"]
    result = daemon.result(run)
    assert result["error"]["line"] == 2 and result["error"]["snippet"], result["error"]
    assert_clean(json.dumps(result, ensure_ascii=False), "the result")
    for accept in ("application/json", "text/plain"):
        report = daemon.get(f"/v1/executions/{run}/report", headers={"Accept": accept}, check=False)
        assert report.status == 200
        assert_clean(report.body.decode(), f"the report as {accept}")
    daemon.get("/v1/executions")
    assert_clean(stored_texts(daemon.data), "the store")


def test_collected_names(daemon):
    code = "import os\nopen(os.environ['KEY'].replace('/', '_') + '.txt', 'w').write(os.environ['KEY'])"
    result = daemon.execute("python", code, env=ENV, collect=["*.txt"])
    assert result["status"] == "ok" and len(result["files"]) == 1, result
    assert_clean(json.dumps(result["files"], ensure_ascii=False), "a collected file")
    assert_clean(json.dumps(result, ensure_ascii=False), "the result")


def test_names_and_reasons_of_cases(daemon):
    tests = {"cases": [{"name": f"with {SECRET}", "stdin": SECRET, "expected": SECRET},
                       {"name": f"also {SECRET}", "expected": SECRET, "checker": {"language": "python", "code": f"print({SECRET!r}); raise SystemExit(1)"}}]}
    result = daemon.post("/v1/tests", {"language": "python", "code": "import os; print(os.environ['KEY'] + 'x')", "env": ENV, "tests": tests}).json
    assert result["tests"]["failed"] == 2, result
    assert_clean(json.dumps(result, ensure_ascii=False), "the result of tests")
    daemon.get("/v1/executions")
    assert_clean(stored_texts(daemon.data), "the store")


def test_command_line_keeps_no_secret(tmp_path):
    code = f"import os\nraise ValueError({SECRET!r})"
    done = cordon.cordon("run", "-l", "python", "-c", code, "--env-secret", f"KEY={SECRET}", "--data-dir", tmp_path)
    assert done.returncode == 1, done
    assert_clean(stored_texts(tmp_path), "the store")


def test_lines_of_secret_files(open_dir):
    secrets = open_dir / "secrets"
    secrets.write_text("  operators-secret-word \t\r\n\n   \nsecond one\n")
    secrets.chmod(0o644)
    with support.Daemon("--set", f"secret_files={secrets}") as own:
        shown = own.execute("bash", "echo operators-secret-word; echo second one; echo 'operators-secret-word x'")["stdout"]
        assert "operators" not in shown and "second" not in shown and shown.endswith(" x\n"), shown


def test_compiled_programs_are_a_keys_own():
    need("c")
    with support.Daemon("--require-keys") as own:
        one, two = own.new_key(), own.new_key()
        request = {"language": "c", "code": f"int main(void) {{ return 0; }} /* {one} */"}
        cached = [own.post("/v1/execute", request, key=key).json["compile"]["cached"] for key in (one, one, two, two)]
        assert cached == [False, True, False, True]
        tests = {**request, "code": request["code"] + "\n", "tests": {"cases": [{}]}}
        cached = [own.post("/v1/tests", tests, key=key).json["compile"]["cached"] for key in (one, one, two)]
        assert cached == [False, True, False], cached
