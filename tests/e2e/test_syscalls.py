"""Every system call number, as a program in a cell meets it, against the golden table of the policy."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import FLAGS, REPOSITORY, as_result, cordon, need

LIVE = REPOSITORY / "tests" / "live"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    need("c")
    program = tmp_path_factory.mktemp("live") / "syscall_table"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", REPOSITORY / "src", "-O1", "-static", "-o", program, LIVE / "syscall_table.c"], check=True)
    program.parent.chmod(0o755)
    return program


def expected(*args):
    done = subprocess.run([sys.executable, LIVE / "expected.py", *args], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def inside(table, script):
    return as_result(cordon("run", *FLAGS, "--json", "--wall", "60s", "--file", f"syscall_table={table}", "-l", "bash", "-c", script, timeout=90))


def test_every_call_as_in_the_golden_table(table, tmp_path):
    _, forms = expected("forms")
    found = inside(table, f"./syscall_table; ./syscall_table {' '.join(forms.split())}")
    assert found["status"] == "ok", found
    _, calls = expected("calls")
    command = [table, *calls.split()]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
    outside = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60, check=False)
    (tmp_path / "inside").write_text(found["stdout"])
    (tmp_path / "outside").write_text(outside.stdout)
    code, differences = expected("check", str(tmp_path / "inside"), str(tmp_path / "outside"))
    assert code == 0 and not differences.strip(), differences


POLICY = Path(REPOSITORY) / "policies" / "container.policy"


@pytest.mark.parametrize("abi", ["i386", "x32"])
def test_foreign_abi_ends_the_run(table, abi):
    found = inside(table, f"./syscall_table {abi}")
    assert found["status"] == "denied" and found["exit_code"] is None, found
    assert [denial["what"] for denial in found["denials"]] == ["foreign system call ABI"], found
    line = next(line for line in POLICY.read_text().splitlines() if line.startswith("foreign "))
    assert found["denials"][0]["hint"] == line.rsplit('"', 2)[1]
