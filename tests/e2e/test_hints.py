"""Every failure of hints.yaml gets the hint that a person would want, and every hint of the tables is reached by one."""
import subprocess

import pytest
import yaml

import hint_cases
from helpers import REPOSITORY, cordon, has_cgroup, need, run, skip
from hint_cases import CASES


@pytest.fixture(scope="module")
def results():
    return hint_cases.run_all(CASES)


@pytest.mark.parametrize("index", range(len(CASES)), ids=[hint_cases.name(case) for case in CASES])
def test_hint(index, results):
    case = CASES[index]
    if index not in results:
        skip(f"{case.get('module', case['language'])} is not installed", False)
    if case.get("needs") == "cgroup" and not has_cgroup():
        pytest.skip("no control group here")
    assert not hint_cases.complaints(case, results[index]), results[index]


def test_there_are_many():
    assert len([case for case in CASES if not case.get("recorded")]) >= 60
    assert len({hint_cases.name(case) for case in CASES}) == len(CASES)


def reached(results, hint, text=""):
    """Whether a case got the hint, and said the text in its own words or by its kind of end."""
    for result in results.values():
        error = result["error"] or {}
        said = " ".join([error.get("message") or "", error.get("type") or "", result.get("stderr") or ""]).lower()
        if error.get("hint") == hint and text.lower() in said:
            return True
    return False


def test_every_row_of_the_common_tables_is_reached(results):
    if not has_cgroup():
        pytest.skip("no control group here")
    if len(results) < len(CASES):
        skip("some languages, or pip, are not installed", False)
    rows = subprocess.run([hint_cases.HINT_ROWS], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert len(rows) > 40
    missing = [row for row in rows if not reached(results, *reversed(row.split("\t")))]
    assert not missing, "no case of hints.yaml reaches:\n" + "\n".join(map(str, missing))


@pytest.mark.parametrize("language", sorted({case["language"] for case in CASES}))
def test_every_row_of_a_language_is_reached(language, results):
    mine = {i: result for i, result in results.items() if CASES[i]["language"] == language}
    if any(case["language"] == language and i not in results for i, case in enumerate(CASES)):
        skip(f"{language} is not installed", False)
    notes = yaml.safe_load((REPOSITORY / "languages" / "notes" / f"{language}.yaml").read_text())
    rows = [(row["hint"], row["type"]) for row in notes["categories"] if "hint" in row]
    missing = [row for row in rows if not reached(mine, *row)]
    assert not missing, "no case of hints.yaml reaches:\n" + "\n".join(map(str, missing))


def test_every_language_has_cases():
    notes = {path.stem for path in (REPOSITORY / "languages" / "notes").glob("*.yaml")}
    assert notes == {case["language"] for case in CASES}


def test_the_command_line_tells_the_hint():
    need("python")
    done = run("python", "open('data.csv')")
    assert done.code == 1
    assert done.errors.splitlines()[-1].startswith("cordon: hint: there is no data.csv in /work: send it with `files`"), done
    assert done.errors.count("cordon: ") == 1, done


def test_a_limit_says_by_itself_what_to_change():
    assert run("bash", "sleep 20", "--wall", "200ms").errors.count("cordon: ") == 1


def test_quiet_tells_no_hint():
    need("python")
    assert "hint" not in run("python", "open('data.csv')", "-q").errors
    assert run("python", "print(1)").errors == ""


def test_make_prints_the_table():
    done = subprocess.run([REPOSITORY / "tests" / "hints", "bash"], stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["LANGUAGE", "CAUSE", "HINT"]
    assert len(lines) > 3 and all(line.startswith(("bash ", " ")) for line in lines[1:]), done.stdout
    assert "install packages on the host" in done.stdout
    assert cordon("languages").code == 0
