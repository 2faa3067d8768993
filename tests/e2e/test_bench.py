"""`cordon bench`: the shape of what it prints, that every run it made was right, and how it ends. No figure is judged."""
import json
import os
import signal
import subprocess
import time

import pytest

from helpers import CORDON, REPOSITORY, cordon, need, tool, wait_for

PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "gap_p50_ms", "gap_p90_ms", "gap_p99_ms")
RATES = ("rate_1", "rate_2", "rate_8")
QUICK = ("--runs", 3, "--seconds", 0.2, "--gap", 5)


def bench(*arguments, code=0, timeout=300):
    done = cordon("bench", *arguments, "--json", timeout=timeout)
    assert done.code == code, done
    return json.loads(done.out)


@pytest.fixture(scope="module")
def measured():
    need("bash", "python")
    return bench(*QUICK, "--workload", "bash,python")


def test_rows_have_the_fields_of_the_contract(measured):
    for row in measured["rows"]:
        assert row["workload"] in ("bash", "python")
        assert all(row[key] > 0 for key in (*PERCENTILES, *RATES)), row
        assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"], row
        assert row["runs"] > 0 and row["gap_runs"] > 0


def test_no_run_went_wrong(measured):
    """Of Cordon's own and of what the benchmark starts itself; what other runners get wrong is only told."""
    wrong = [(row["name"], row["error"]) for row in measured["rows"] if row["errors"]]
    assert [each for each in wrong if each[0].startswith(("cordon", "plain"))] == []


def test_cordon_and_the_plain_program_are_in_every_workload(measured):
    for workload in ("bash", "python"):
        names = {row["name"] for row in measured["rows"] if row["workload"] == workload}
        assert {"cordon cold", "plain subprocess"} <= names
        assert "cordon warm" in names or {"name": "cordon warm", "workload": workload} in [
            {"name": each["name"], "workload": each["workload"]} for each in measured["skipped"]]


def test_bubblewrap_takes_part_where_it_works(measured):
    named = {row["name"] for row in measured["rows"]} | {each["name"] for each in measured["skipped"]}
    assert tool("bwrap") is None or "bubblewrap" in named
    for row in measured["rows"]:
        if row["name"] == "bubblewrap":
            assert row["to_bubblewrap"] == 1


def test_the_result_accounts_for_the_callers_time(measured):
    for row in measured["rows"]:
        if row["name"].startswith("cordon"):
            assert abs(row["unaccounted_us"]) < 1e6 and 0 <= row["warm_share"] <= 1
        else:
            assert row["unaccounted_us"] is None and row["warm_share"] is None


def test_waiting_cells_take_the_warm_runs_and_only_those(measured):
    shares = {row["name"]: row["warm_share"] for row in measured["rows"] if row["workload"] == "python"}
    assert shares["cordon cold"] == 0
    if "cordon warm" in shares:
        assert shares["cordon warm"] > 0


def test_the_machine_is_described(measured):
    machine = measured["machine"]
    assert machine["cores"] == os.cpu_count() and machine["kernel"] == os.uname().release
    assert machine["cgroup"] in ("v1", "v2", "none") and machine["memory_bytes"] > 1 << 20
    assert len(machine["load"]) == 3 and machine["cordon"] and isinstance(machine["peers"], dict)
    assert machine["languages"]["python"]


def test_the_settings_are_recorded(measured):
    assert measured["settings"] == {"runs": 3, "seconds": 0.2, "gap_ms": 5, "workers": [1, 2, 8], "budget_s": None}
    assert measured["interrupted"] is False


def test_the_time_is_bounded():
    """A hundred runs with gaps of half a second would take each contestant 50 s."""
    need("bash")
    result = bench("--within", 4, "--gap", 500, "--workload", "bash", "--only", "cordon")
    assert result["settings"]["budget_s"] == 4 and result["settings"]["runs"] == 100
    assert {row["name"] for row in result["rows"]} >= {"cordon cold"}
    for row in result["rows"]:
        assert row["p50_ms"] > 0 and 0 < row["gap_runs"] < 10, row


def test_the_usual_bound():
    need("bash")
    process = subprocess.Popen([CORDON, "bench", "--json", "--only", "cordon"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: catches_interrupt(process.pid))
    process.send_signal(signal.SIGINT)
    assert json.loads(process.communicate(timeout=60)[0])["settings"]["budget_s"] == 70
    assert "within 90 seconds" in cordon("bench", "--help").text


def catches_interrupt(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt:"))
    return caught >> (signal.SIGINT - 1) & 1


def test_full_has_no_bound():
    result = bench("--full", "--only", "cordon", "--workload", "bash", "--runs", 1, "--seconds", 0, "--gap", 0)
    assert result["settings"]["budget_s"] is None


def test_the_manual_shows_these_fields(measured):
    page = (REPOSITORY / "man" / "cordon-bench.1").read_text(encoding="utf-8")
    shown = json.loads(page.split(".Bd -literal\n")[1].split(".Ed")[0])
    assert shown.keys() == measured.keys() and shown["settings"].keys() == measured["settings"].keys()
    assert shown["machine"].keys() == measured["machine"].keys()
    assert shown["rows"][0].keys() == measured["rows"][0].keys()
    for entry in measured["skipped"][:1]:
        assert shown["skipped"][0].keys() == entry.keys()


def test_what_is_not_measured_is_null():
    need("bash")
    result = bench("--runs", 2, "--seconds", 0, "--gap", 0, "--workload", "bash", "--only", "cordon")
    assert {row["name"] for row in result["rows"]} <= {"cordon warm", "cordon cold"} and result["rows"]
    for row in result["rows"]:
        assert row["p50_ms"] > 0
        assert [row[key] for key in ("gap_p50_ms", *RATES, "to_bubblewrap")] == [None] * 5


def test_other_numbers_of_workers():
    need("bash")
    result = bench("--runs", 1, "--seconds", 0.1, "--gap", 0, "--workers", "1,3", "--workload", "bash", "--only", "cordon")
    for row in result["rows"]:
        assert row["rate_1"] > 0 and row["rate_3"] > 0 and row["rate_2"] is None


def test_the_table_and_the_file(tmp_path):
    need("bash")
    path = tmp_path / "figures.json"
    done = cordon("bench", "--runs", 1, "--seconds", 0, "--gap", 0, "--workload", "bash", "--only", "cordon", "-o", path)
    assert done.code == 0, done
    lines = done.text.splitlines()
    assert lines[0].split()[:2] == ["WORKLOAD", "RUNNER"] and any("cordon cold" in line for line in lines)
    assert "\033" not in done.text + done.errors
    assert {row["workload"] for row in json.loads(path.read_text())["rows"]} == {"bash"}


def test_only_peers():
    need("bash")
    result = bench("--runs", 1, "--seconds", 0, "--gap", 0, "--workload", "bash", "--only", "peers")
    assert not [row for row in result["rows"] if row["name"].startswith("cordon")]
    assert "plain subprocess" in {row["name"] for row in result["rows"]}


def test_interrupted_it_prints_what_there_is_and_leaves_nothing(tmp_path):
    need("bash")
    process = subprocess.Popen([CORDON, "bench", "--json", "--workload", "bash", "--runs", "1000", "--only", "cordon"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_for(lambda: os.listdir(tmp_path))
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"] is True
    assert os.listdir(tmp_path) == []


def test_help():
    done = cordon("bench", "--help")
    assert done.code == 0 and done.text.startswith("Usage: cordon bench")
    for flag in ("--full", "--workload", "--runs", "--seconds", "--workers", "--gap", "--only", "--json", "--output"):
        assert flag in done.text


@pytest.mark.parametrize("arguments, told", [
    (["--workload", "pyton"], "did you mean python?"),
    (["--workload", "cobol"], "unknown workload 'cobol'"),
    (["--runs", "0"], "not between 1 and"),
    (["--runs", "many"], "many"),
    (["--seconds", "-1"], "not between 0 and"),
    (["--seconds", "soon"], "soon"),
    (["--seconds", "nan"], "nan"),
    (["--workers", "2,0"], "not between 1 and"),
    (["--workers", "1,2,3,4,5,6,7,8,9"], "more than 8"),
    (["--gap", "x"], "x"),
    (["--only", "docker"], "neither cordon nor peers"),
    (["--sconds", "1"], "did you mean --seconds?"),
    (["word"], "unexpected argument 'word'"),
])
def test_bad_usage(arguments, told):
    done = cordon("bench", *arguments)
    assert done.code == 2 and told in done.errors and done.out == b"", done


def test_a_file_that_cannot_be_written():
    need("bash")
    done = cordon("bench", "--runs", 1, "--seconds", 0, "--gap", 0, "--workload", "bash", "--only", "cordon",
                  "-o", "/nowhere/figures.json")
    assert done.code == 125 and "/nowhere/figures.json" in done.errors, done
