"""The shape of a result: every key, its type, and numbers that can be true."""
import datetime
import hashlib
import os
import re
import subprocess
import sys
import textwrap

import pytest

from helpers import CORDON, MIB, cordon, has_cgroup, need, result, run, run_arguments

KEYS = {"id", "state", "language", "language_version", "environment", "code_sha256", "created_at", "status", "success",
        "exit_code", "signal", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "value", "compile", "reason",
        "error", "usage", "timing", "limits", "enforced", "denials", "redactions", "files", "files_skipped", "tests"}
USAGE = {"wall_ms", "cpu_user_ms", "cpu_system_ms", "memory_peak_bytes", "memory_program_peak_bytes", "processes_peak", "disk_bytes", "stdout_bytes",
         "stderr_bytes"}
TIMING = {"queue_us", "start_us", "run_us", "finish_us"}
LIMITS = {"wall_ms", "cpu_ms", "cpus", "memory_bytes", "processes", "disk_bytes", "inodes", "open_files", "file_bytes",
          "output_bytes"}
REQUIRED = {"userns", "pidns", "mountns", "netns", "ipcns", "utsns", "seccomp", "no_new_privs", "capabilities", "cgroup"}
SHOWN = {"landlock", "cgroupns", "denial_reports", "own_uid", "io", "oom_floor"}


@pytest.fixture(scope="module")
def plain():
    return result("python", "print('hello')")


def test_has_every_key(plain):
    assert set(plain) == KEYS


def test_identity(plain):
    assert plain["state"] == "done"
    assert plain["language"] == "python"
    assert re.match(r"3\.\d+", plain["language_version"].removeprefix("Python ")), plain["language_version"]
    assert plain["environment"] == "host"
    assert plain["code_sha256"] == hashlib.sha256(b"print('hello')").hexdigest()
    assert len(plain["id"]) >= 16
    assert result("bash", ":")["id"] != result("bash", ":")["id"]


def test_created_at_is_now(plain):
    created = datetime.datetime.fromisoformat(plain["created_at"].replace("Z", "+00:00"))
    assert created.tzinfo is not None
    assert abs(datetime.datetime.now(datetime.timezone.utc) - created) < datetime.timedelta(minutes=5)


def test_an_alias_gives_the_same_language():
    assert result("py", "print(1)")["language"] == "python"


def test_types(plain):
    for key in ("stdout", "stderr", "status", "id", "language"):
        assert isinstance(plain[key], str), key
    for key in ("success", "stdout_truncated", "stderr_truncated"):
        assert isinstance(plain[key], bool), key
    for key in ("denials", "redactions", "files"):
        assert plain[key] == [], key
    for key in ("value", "compile", "reason", "error", "signal", "tests"):
        assert plain[key] is None, key


def test_usage_has_every_number(plain):
    assert set(plain["usage"]) >= USAGE
    for key in USAGE:
        assert isinstance(plain["usage"][key], (int, float)) and plain["usage"][key] >= 0, key


def test_usage_is_plausible():
    code = textwrap.dedent("""
        import os, sys, time
        end = time.process_time() + 0.3
        while time.process_time() < end: pass
        keep = bytearray(50 << 20)
        for i in range(0, len(keep), 4096): keep[i] = 1
        open("file", "wb").write(bytes(3 << 20))
        if os.fork() == 0: time.sleep(0.2); os._exit(0)
        if os.fork() == 0: time.sleep(0.2); os._exit(0)
        os.wait(); os.wait()
        sys.stdout.write("o" * 1000); sys.stderr.write("e" * 10)
    """)
    found = result("python", code)
    usage = found["usage"]
    assert found["status"] == "ok", found
    assert 500 <= usage["wall_ms"] <= found.seconds * 1000 + 1
    assert 250 <= usage["cpu_user_ms"] + usage["cpu_system_ms"] < 2000
    assert 50 * MIB <= usage["memory_program_peak_bytes"] <= usage["memory_peak_bytes"] < 200 * MIB
    assert usage["processes_peak"] >= 3 or not has_cgroup()
    assert 3 * MIB <= usage["disk_bytes"] < 4 * MIB
    assert (usage["stdout_bytes"], usage["stderr_bytes"]) == (1000, 10)


PLATEAU = """
import os, time
keep = bytearray(60 << 20)
for i in range(0, len(keep), 4096): keep[i] = 1
open("/dev/shm/held", "wb").write(bytes(20 << 20))
end = time.monotonic() + 0.15
while time.monotonic() < end: time.sleep(0.01)
size = os.path.getsize("/data/big")
with open("/data/big", "rb") as file:
    while file.read(1 << 20): pass
"""


def drop_cache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_program_memory_is_the_same_each_time(tmp_path):
    """Whether or not a file that is read happens to be in the host's page cache, in which it then counts for nobody."""
    big = tmp_path / "big"
    big.write_bytes(os.urandom(64 << 20))
    found = []
    for cold in (True, False, True, False, False):
        if cold:
            drop_cache(big)
        found.append(result("python", PLATEAU, "--mount", f"{tmp_path}:/data"))
        assert found[-1]["status"] == "ok", found[-1]
    peaks = [each["usage"]["memory_program_peak_bytes"] for each in found]
    assert max(peaks) - min(peaks) <= 0.05 * max(peaks), [each["usage"] for each in found]
    assert 80 * MIB <= min(peaks) and max(peaks) < 110 * MIB, peaks
    assert all(each["usage"]["memory_peak_bytes"] >= peak for each, peak in zip(found, peaks))


def test_program_memory_of_a_short_run_is_known():
    usage = result("python", "import os; keep = bytearray(30 << 20)\nkeep[::4096] = b'x' * 7680\nos._exit(0)")["usage"]
    assert 30 * MIB <= usage["memory_program_peak_bytes"] <= usage["memory_peak_bytes"], usage


def test_timing(plain):
    timing = plain["timing"]
    assert set(timing) >= TIMING
    for key in TIMING:
        assert isinstance(timing[key], int) and 0 <= timing[key] < 30_000_000, key
    assert sum(timing[key] for key in TIMING) <= plain.seconds * 1_000_000
    slow = result("bash", "sleep 0.3")["timing"]
    assert 300_000 <= slow["run_us"] < 1_500_000


def test_start_time_does_not_include_compiling():
    need("c")
    found = result("c", "int main(void) { return 0; }", "--no-cache")
    assert found["timing"]["run_us"] < 1_000_000
    assert found["compile"]["timing"]["run_us"] > 0


# Limits in force


@pytest.mark.parametrize("profile, memory, seconds, processes, cpus, disk, open_files, output", [
    ("lightweight", 128, 5, 25, 1, 64, 256, 1),
    ("standard", 512, 15, 100, 1, 256, 1024, 1),
    ("heavy", 1024, 30, 200, 2, 512, 4096, 4),
])
def test_limits_of_a_profile(profile, memory, seconds, processes, cpus, disk, open_files, output):
    limits = result("bash", ":", "--profile", profile)["limits"]
    assert set(limits) == LIMITS
    assert limits["memory_bytes"] == memory * MIB
    assert limits["wall_ms"] == limits["cpu_ms"] == seconds * 1000
    assert limits["processes"] == processes
    assert limits["cpus"] == cpus
    assert limits["disk_bytes"] == disk * MIB
    assert limits["open_files"] == open_files
    assert limits["output_bytes"] == output * MIB
    assert limits["inodes"] in range({"lightweight": 8, "standard": 32, "heavy": 128}[profile] * 1000,
                                     {"lightweight": 8, "standard": 32, "heavy": 128}[profile] * 1024 + 1)


def test_standard_is_the_default():
    assert result("bash", ":")["limits"] == result("bash", ":", "--profile", "standard")["limits"]


def test_limits_given_win_over_the_profile():
    limits = result("bash", ":", "--profile", "lightweight", "--wall", "7s", "--cpu", "300ms", "--cpus", "0.5", "--memory", "200m",
                    "--processes", "11", "--disk", "5m", "--inodes", "777", "--open-files", "99", "--file-size", "2m",
                    "--output", "64k")["limits"]
    assert limits == {"wall_ms": 7000, "cpu_ms": 300, "cpus": 0.5, "memory_bytes": 200 * MIB, "processes": 11, "disk_bytes": 5 * MIB,
                      "inodes": 777, "open_files": 99, "file_bytes": 2 * MIB, "output_bytes": 65536}


def test_disk_of_a_profile_is_at_most_half_the_memory():
    assert result("bash", ":", "--memory", "100m")["limits"]["disk_bytes"] == 50 * MIB


def test_unlimited():
    found = result("bash", "echo yes", "--wall", "unlimited")
    assert found["status"] == "ok", found
    assert found["limits"]["wall_ms"] == "unlimited"


# Controls in force


def test_enforced(plain):
    enforced = plain["enforced"]
    assert enforced["isolation"] == "container"
    assert enforced["network"] == "none"
    assert isinstance(enforced["warm"], bool)
    assert set(enforced["controls"]) == REQUIRED | SHOWN
    for control in REQUIRED - {"cgroup"}:
        assert enforced["controls"][control] is True, control
    assert enforced["controls"]["cgroup"] in ("v1", "v2", "none")


def test_enforced_tells_what_the_kernel_tells():
    """The same facts, read in the cell."""
    found = result("bash", "grep -E '^(Seccomp|NoNewPrivs|Cap(Prm|Eff|Bnd|Amb)):' /proc/self/status; ls /sys/class/net 2>&1; echo $$")
    status = dict(line.split(":\t") for line in found["stdout"].splitlines() if ":\t" in line)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", found
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, found
    assert int(found["stdout"].split()[-1]) < 20


def test_a_missing_optional_control_shows():
    found = result("bash", ":", "--optional", "cgroup")
    assert found["status"] == "ok"
    assert found["enforced"]["controls"]["cgroup"] in ("v1", "v2", "none")


# Output


def test_both_streams_are_apart():
    found = result("bash", "echo out; echo err >&2")
    assert (found["stdout"], found["stderr"]) == ("out\n", "err\n")


def test_invalid_utf8_becomes_replacement_characters():
    found = result("bash", r"printf 'a\xffb\xe2\x82c\xf0\x9f\x98\x80'; printf '\xc3' >&2")
    assert found["stdout"] == "a\ufffdb\ufffdc\U0001f600"
    assert found["stderr"] == "\ufffd"
    assert found["usage"]["stdout_bytes"] == 10


def test_nul_and_control_characters_survive():
    assert result("bash", r"printf '\0\1\t\033[1m\r\n\177'")["stdout"] == "\0\1\t\033[1m\r\n\x7f"


LINES = "import sys\nfor n in range(1000): sys.stdout.write('%015d\\n' % n)"
WRITTEN = "".join("%015d\n" % n for n in range(1000))


def test_cut_output_keeps_three_quarters_and_the_last_quarter():
    found = result("python", LINES, "--output", "4k")
    assert found["stdout_truncated"] is True and found["stderr_truncated"] is False
    assert found["stdout"] == WRITTEN[:3072] + "[cordon: 11904 bytes cut]\n" + WRITTEN[-1024:]
    assert found["usage"]["stdout_bytes"] == 16000


def test_cut_output_in_mid_line():
    found = result("python", "print('x' * 99999, end='!')", "--output", "1000")
    assert found["stdout"] == "x" * 750 + "\n[cordon: 99000 bytes cut]\n" + "x" * 249 + "!"


def test_output_of_exactly_the_cap_is_whole():
    found = result("python", "print('x' * 1000, end='')", "--output", "1000")
    assert found["stdout"] == "x" * 1000 and found["stdout_truncated"] is False


def test_one_byte_over_the_cap():
    found = result("python", "print('x' * 1001, end='')", "--output", "1000")
    assert found["stdout"] == "x" * 750 + "\n[cordon: 1 bytes cut]\n" + "x" * 250


def test_streamed_output_is_cut_alike():
    done = run("python", LINES, "--output", "4k")
    assert done.text == WRITTEN[:3072] + "[cordon: 11904 bytes cut]\n" + WRITTEN[-1024:]


def test_streamed_bytes_are_the_programs_own():
    assert run("bash", r"printf 'a\xffb\0c'").out == b"a\xffb\0c"


MEASURE = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["streamed", "json"])
def test_a_flood_costs_no_memory(flags):
    """1 GiB on stdout; a small parent starts cordon, for a big one would count in the peak it inherits."""
    arguments = run_arguments("bash", "exec head -c 1G /dev/zero", "--wall", "60s", "--cpu", "60s", *flags)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, CORDON, *arguments], capture_output=True, timeout=60, check=False)
    peak = int(done.stderr.split()[-1]) * 1024
    print(f"peak of cordon {peak / MIB:.1f} MiB")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) < 8 * MIB
    assert peak < 64 * MIB


# Parts of a result


def test_files():
    code = textwrap.dedent("""
        import os
        os.makedirs("out/deep")
        open("out/a.txt", "w").write("text \\u00e9\\n")
        open("out/deep/b.bin", "wb").write(bytes(range(256)))
        open("other", "w").write("no")
    """)
    files = result("python", code, "--collect", "out/**")["files"]
    assert [file["path"] for file in files] == ["out/a.txt", "out/deep/b.bin"]
    text, binary = files
    assert text == {"path": "out/a.txt", "size": 8, "sha256": hashlib.sha256("text é\n".encode()).hexdigest(), "content": "text é\n"}
    assert binary["size"] == 256 and binary["sha256"] == hashlib.sha256(bytes(range(256))).hexdigest()
    assert "content" not in binary and binary["content_base64"].startswith("AAECAwQF")


@pytest.mark.parametrize("code, value, printed", [
    ("const x = 40 + 2; x", 42, "42\n"),
    ("'text'", "text", "text\n"),
    ("1 < 2", True, "true\n"),
    ("({a: [1, 2, {b: null}]})", {"a": [1, 2, {"b": None}]}, ""),
    ("[1, 'two']", [1, "two"], ""),
    ("null", None, ""),
    ("undefined", None, ""),
    ("console.log('said'); let y = 3; y * 2", 6, "said\n6\n"),
    ("const z = 1", None, ""),
])
def test_value_of_javascript(code, value, printed):
    need("javascript")
    found = result("javascript", code)
    assert found["status"] == "ok", found
    assert found["value"] == value and found["stdout"] == printed, found


def test_value_cannot_break_the_result():
    need("javascript")
    for code in ("const a = {}; a.a = a; a", "({get x() { throw 1 }})", "() => 1", "'x'.repeat(5e6)", "Symbol('s')", "10n ** 30n",
                 "require('fs').writeSync(3, '{bad')"):
        found = result("javascript", code)
        assert found["status"] in ("ok", "nonzero_exit"), (code, found)


def test_compile_is_a_result_of_its_own():
    need("c")
    found = result("c", '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }')
    assert (found["status"], found["stdout"]) == ("ok", "hi\n"), found
    compiled = found["compile"]
    for key in ("status", "success", "exit_code", "signal", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "reason",
                "usage", "timing", "limits"):
        assert key in compiled, key
    assert (compiled["status"], compiled["exit_code"]) == ("ok", 0)
    assert compiled["limits"]["memory_bytes"] == 1024 * MIB
    assert compiled["limits"]["wall_ms"] == 60000
    assert compiled["limits"]["processes"] == 200
    assert set(compiled["usage"]) >= USAGE


def test_error_of_an_exception():
    found = result("python", "def f(x):\n    return 1 / x\n\nf(0)\n")
    error = found["error"]
    assert found["status"] == "nonzero_exit" and found["exit_code"] == 1
    assert set(error) == {"type", "category", "message", "file", "line", "column", "snippet", "traceback", "hint"}
    assert error["type"] == "ZeroDivisionError" and error["category"] == "runtime"
    assert error["message"] == "division by zero"
    assert error["file"].endswith("main.py") and error["line"] == 2
    assert "1 / x" in error["snippet"]
    assert "Traceback" in error["traceback"]


@pytest.mark.parametrize("code, kind, category, hint", [
    ("import no_such_thing", "ModuleNotFoundError", "import", "no_such_thing|install|environment"),
    ("print('a'", "SyntaxError", "syntax", "."),
    ("open('/usr/x', 'w')", "OSError", "permission", "read-only|/work"),
    ("import socket; socket.create_connection(('203.0.113.1', 80), 2)", "OSError", "network", "network"),
    ("open('/root/x')", "(PermissionError|FileNotFoundError)", ".", "."),
])
def test_error_categories(code, kind, category, hint):
    error = result("python", code)["error"]
    assert re.fullmatch(kind, error["type"]), error
    assert re.match(category, error["category"]), error
    assert error["hint"] and re.search(hint, error["hint"], re.IGNORECASE), error


@pytest.mark.parametrize("status, category, language, code, flags", [
    ("wall_limit", "timeout", "bash", "sleep 20", ["--wall", "200ms"]),
    ("memory_limit", "memory", "python", "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1",
     ["--memory", "64m"]),
])
def test_error_of_a_limit(status, category, language, code, flags):
    found = result(language, code, *flags)
    assert found["status"] == status, found
    assert found["error"]["category"] == category, found["error"]
    assert found["error"]["message"]


def test_no_error_when_there_is_none_to_tell():
    assert result("bash", "echo fine >&2")["error"] is None


def test_json_is_one_line():
    done = cordon(*run_arguments("bash", r"printf 'a\nb\n'", "--json"))
    assert done.out.endswith(b"}\n") and done.out.count(b"\n") == 1
