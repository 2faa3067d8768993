"""The command line: streaming, exit codes, signals, terminals, and what it says to bad input."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import textwrap
import time

import pytest

from helpers import CORDON, FLAGS, as_result, cordon, marked, ok, run, run_arguments, start, wait_for
from helpers import mark as mark_word

COMMANDS = ["run", "languages", "doctor", "version"]


# Streams


def test_output_arrives_before_the_end():
    process = start("python", "import time\nprint('first', flush=True)\ntime.sleep(1.5)\nprint('last')", "--wall", "10s")
    with process:
        begin = time.monotonic()
        assert process.stdout.readline() == b"first\n"
        first = time.monotonic() - begin
        assert process.stdout.read() == b"last\n"
        rest = time.monotonic() - begin - first
    print(f"first line after {first:.3f} s, the rest {rest:.3f} s later")
    assert process.returncode == 0
    assert rest > 1


def test_stderr_is_streamed_apart():
    done = run("bash", "echo out; echo err >&2")
    assert (done.out, done.err, done.code) == (b"out\n", b"err\n", 0)


def test_stdin_is_passed_on():
    assert run("bash", "cat", stdin=b"a\0b\xff\n").out == b"a\0b\xff\n"


def test_much_stdin():
    data = os.urandom(1 << 20) * 20
    done = run("bash", "sha256sum", stdin=data)
    check = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True)
    assert done.out == check.stdout


def test_a_conversation():
    process = start("bash", "while read line; do echo \"got $line\"; done", stdin=subprocess.PIPE)
    with process:
        for word in (b"one", b"two"):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"got " + word + b"\n"
        process.stdin.close()
    assert process.returncode == 0


def test_stdin_that_nobody_reads():
    assert run("bash", "exit 5", stdin=bytes(8 << 20)).code == 5


def test_stdin_that_stays_open_does_not_delay_the_end():
    process = start("bash", "exit 6", stdin=subprocess.PIPE)
    try:
        assert process.wait(5) == 6
    finally:
        process.communicate()


def test_stdin_option(tmp_path):
    assert run("bash", "cat", "--stdin", "text given").out == b"text given"
    (tmp_path / "data").write_bytes(b"from a file\n")
    assert run("bash", "cat", "--stdin", f"@{tmp_path}/data").out == b"from a file\n"


def test_no_stdin_is_end_of_file():
    assert run("bash", "cat; echo end", stdin=None).out == b"end\n"


def test_in_a_pipeline():
    line = f"seq 5 | {CORDON} run {' '.join(FLAGS)} -l bash -c 'grep 3' | {CORDON} run {' '.join(FLAGS)} -l bash -c 'cat; echo end'"
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + line], capture_output=True, timeout=20, check=False)
    assert (done.stdout, done.returncode) == (b"3\nend\n", 0), done


def test_a_reader_that_leaves_ends_the_run(mark):
    arguments = run_arguments("bash", 'exec -a "$1" yes', "--wall", "30s", "--cpu", "30s", args=[mark])
    begin = time.monotonic()
    done = subprocess.run(["bash", "-c", '"$@" | head -1', "-", CORDON, *arguments], capture_output=True, timeout=25, check=False)
    assert done.stdout == b"y\n"
    assert time.monotonic() - begin < 4
    assert not marked(mark)


def test_a_reader_that_leaves_while_the_program_is_silent(mark):
    """Nothing is lost by waiting for the next write, but then it must end at once."""
    process = start("bash", 'echo first; sleep 1; echo second; (exec -a "$1" sleep 20); :', "--wall", "30s", args=[mark])
    assert process.stdout.readline() == b"first\n"
    process.stdout.close()
    process.wait(6)
    process.stderr.close()
    assert not marked(mark)


# Files and arguments


def test_language_from_the_file_name(tmp_path):
    program = tmp_path / "app.py"
    program.write_text("import sys\nprint(sys.argv[1:], sys.stdin.read())")
    done = cordon("run", *FLAGS, program, "arg1", "--json", "-x", stdin="data")
    assert (done.text, done.code) == ("['arg1', '--json', '-x'] data\n", 0), done


def test_language_of_an_unknown_file_name(tmp_path):
    program = tmp_path / "app.unknownext"
    program.write_text("x")
    done = cordon("run", *FLAGS, program)
    assert done.code == 2 and "-l" in done.errors, done


def test_arguments_after_code():
    assert run("bash", 'printf "%s|" "$@"', args=["a b", "", "*", "é"]).out == "a b||*|é|".encode()


def test_env():
    done = run("bash", 'echo "$A|$B|$C"', "--env", "A=1", "--env", "B=x=y z", "--env-secret", "C=hush")
    assert done.text == "1|x=y z|[REDACTED_SECRET]\n"


# Exit codes


@pytest.mark.parametrize("code, flags, expected", [
    (":", [], 0),
    ("exit 3", [], 3),
    ("kill -SEGV $$", [], 139),
    ("kill -TERM $$", [], 143),
    ("sleep 20", ["--wall", "200ms"], 124),
    ("while :; do :; done", ["--cpu", "200ms"], 124),
    ("yes", ["--output", "1k", "--on-output-limit", "stop"], 124),
])
@pytest.mark.parametrize("json", [False, True], ids=["streamed", "json"])
def test_exit_codes(code, flags, expected, json):
    assert run("bash", code, *(["--json"] if json else []), *flags).code == expected


def test_reason_on_stderr():
    done = run("bash", "echo mine; sleep 20", "--wall", "200ms")
    assert done.out == b"mine\n"
    assert re.fullmatch(r"cordon: [^\n]*wall[^\n]*\n", done.errors), done


def test_quiet():
    done = run("bash", "echo own >&2; sleep 20", "--wall", "200ms", "--quiet")
    assert (done.code, done.out, done.err) == (124, b"", b"own\n")


def test_json_has_nothing_beside_the_object():
    done = run("bash", "echo out; echo err >&2; exit 3", "--json")
    found = as_result(done)
    assert (found["stdout"], found["stderr"], done.err) == ("out\n", "err\n", b"")


def test_nothing_is_recorded(tmp_path):
    """Neither code nor output is written anywhere; only what is known of the interpreters may be kept."""
    word = mark_word()
    before = set(os.listdir("/tmp"))
    run("bash", f"echo {word}", cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path).parts[0] for path in kept} <= {".cache"}
    assert not [path for path in kept if word in path.read_text(errors="replace")]
    assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("cordon")]


# Signals to cordon


def interrupted(number, *flags, group=False, mark=None):
    process = start("bash", 'echo ready; (exec -a "$1" sleep 30); :', "--wall", "25s", *flags, args=[mark], start_new_session=True)
    if "--json" in flags:
        wait_for(lambda: len(marked(mark)) >= 2 or process.poll() is not None)
        time.sleep(0.3)
    else:
        assert process.stdout.readline() == b"ready\n"
    begin = time.monotonic()
    (os.killpg if group else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=10)
    return process.returncode, out, err.decode(), time.monotonic() - begin


@pytest.mark.parametrize("group", [False, True], ids=["cordon alone", "the whole group"])
def test_interrupt(group, mark):
    code, _, errors, seconds = interrupted(signal.SIGINT, group=group, mark=mark)
    assert code == 130, errors
    assert re.search(r"^cordon: .*(cancel|interrupt)", errors, re.MULTILINE), errors
    assert seconds < 2
    assert not marked(mark)


def test_interrupt_with_json(mark):
    code, out, errors, _ = interrupted(signal.SIGINT, "--json", mark=mark)
    assert code == 130, errors
    assert b'"status":"cancelled"' in out.replace(b" ", b""), out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_the_cell_too(number, mark):
    code, _, _, seconds = interrupted(number, mark=mark)
    assert code != 0 and seconds < 2
    wait_for(lambda: not marked(mark), 1)


# Small traps


def test_help_says_that_nothing_is_recorded():
    assert "records nothing and redacts nothing" in cordon("run", "--help").text


def test_nothing_is_recorded_and_nothing_redacted(tmp_path):
    """As README and the help say, where no option asks for it."""
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    env = {**{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CORDON_DATA_DIR"))}, "HOME": str(tmp_path)}
    done = cordon("run", *FLAGS, "-l", "bash", "-c", f"echo {key}", env=env)
    assert done.code == 0 and done.text == f"{key}\n", done
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")} <= {".cache"}
    assert cordon("run", *FLAGS, "--sanitize", "true", "-l", "bash", "-c", f"echo {key}", env=env).text == "[REDACTED_AWS_KEY]\n"


@pytest.mark.parametrize("option", ["--wall", "--cpu"])
@pytest.mark.parametrize("value", ["5", "0.5", "300 "])
def test_a_time_has_a_unit(option, value):
    """A bare 5 was 5 ms; a size without unit means bytes and stays."""
    done = cordon("run", *FLAGS, option, value, "-l", "bash", "-c", "echo ran")
    number = value.strip()
    assert done.code == 2 and not done.out and f"write {number}s for seconds or {number}ms for milliseconds" in done.errors, done
    assert ok("bash", "echo ran", option, "9000ms", "--memory", "67108864") == "ran\n"


def test_a_time_of_tests_and_keys_has_a_unit(tmp_path):
    (tmp_path / "cases.json").write_text('{"cases": [{"expected": "1"}]}')
    (tmp_path / "solution.sh").write_text("echo 1")
    done = cordon("test", "--wall", "5", "--tests", tmp_path / "cases.json", tmp_path / "solution.sh")
    assert done.code == 2 and "write 5s" in done.errors, done
    done = cordon("key", "new", "--data-dir", tmp_path / "data", "--expires", "3600", "name")
    assert done.code == 2 and "write 3600s" in done.errors and not (tmp_path / "data").exists(), done


def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import sys; print(sys.argv[1:])")
    return path


@pytest.mark.parametrize("words, named", [(["--json"], "--json"), (["x", "--wall", "5s"], "--wall"), (["--memory=1g"], "--memory=1g"),
                                          (["-q"], "-q")])
def test_an_option_after_the_file_is_the_programs_and_told(tmp_path, words, named):
    path = program(tmp_path)
    done = cordon("run", *FLAGS, path, *words)
    assert done.code == 0 and done.text == f"{words}\n", done
    assert done.errors.startswith(f"cordon: warning: {named} after ") and "--" in done.errors and len(done.errors.splitlines()) == 1
    for before in (["--"], ["-q"]):
        done = cordon("run", *FLAGS, *before, path, *words)
        assert done.code == 0 and done.text == f"{words}\n" and not done.errors, done


@pytest.mark.parametrize("words", [["--verbose"], ["-x"], ["value"], ["--", "--json"], ["--jsonl"]])
def test_other_words_after_the_file_are_not_told(tmp_path, words):
    done = cordon("run", *FLAGS, program(tmp_path), *words)
    assert done.code == 0 and done.text == f"{words}\n" and not done.errors, done


def test_arguments_of_code_are_not_told():
    done = cordon("run", *FLAGS, "-l", "bash", "-c", 'echo "$1"', "--", "--json")
    assert done.code == 0 and done.text == "--json\n" and not done.errors, done


@pytest.mark.parametrize("words, says", [
    (["run", "--wall", "-l", "bash", "-c", "echo ran"], "--wall needs TIME, but the option -l follows (if that is the value, write --wall=-l)"),
    (["run", "-l", "--json", "-c", "echo ran"], "--language needs NAME, but the option --json follows"),
    (["run", "-l", "bash", "-c", "-q"], "--code needs CODE, but the option -q follows (if that is the value, write --code=-q)"),
    (["batch", "-o", "--json", "x"], "--output needs FILE, but the option --json follows"),
    (["serve", "--check", "--set", "--check"], "--set needs NAME=VALUE, but the option --check follows"),
])
def test_an_option_is_no_value(words, says):
    done = cordon(*words)
    assert done.code == 2 and says in done.errors, done


def test_a_value_may_look_like_an_option_where_it_is_meant():
    assert cordon("run", *FLAGS, "-l", "bash", "--code=echo hi").text == "hi\n"
    assert cordon("run", *FLAGS, "-l", "bash", "-c", "cat", "--stdin=-q").text == "-q"
    assert cordon("run", *FLAGS, "-l", "bash", "-c", "cat", "--stdin", "-x").text == "-x"


def test_another_word_is_no_slip():
    """Three letters of which two are others: foo is not log."""
    done = cordon("serve", "--check", "--set", "foo=1")
    assert done.code == 2 and "there is no setting 'foo'" in done.errors and "did you mean" not in done.errors, done
    assert "did you mean 'log'" in cordon("serve", "--check", "--set", "lgo=1").errors


def test_a_list_that_is_cut_says_so():
    """Whole names, and how many more there are."""
    done = cordon("serve", "--check", "--set", "foo=1")
    assert done.code == 2 and re.search(r"[a-z_]+, and [0-9]+ more\)", done.errors), done


def test_a_signal_is_told_once(tmp_path):
    done = cordon("run", *FLAGS, "-l", "bash", "-c", "kill -SEGV $$")
    assert done.errors.splitlines()[0] == "cordon: ended by signal 11 (SIGSEGV)", done
    done = cordon("run", *FLAGS, "-l", "bash", "-c", "kill -40 $$")
    assert done.code == 168 and done.errors == "cordon: ended by signal 40\n", done
    (tmp_path / "cases.json").write_text('{"cases": [{"expected": "1"}]}')
    (tmp_path / "solution.sh").write_text("kill -SEGV $$")
    flags = [flag for flag in FLAGS if flag != "--warm"]  # `cordon test` has waiting cells of its own
    done = cordon("test", *flags, "--tests", tmp_path / "cases.json", tmp_path / "solution.sh")
    assert done.text.count("ended by signal") == 1 and done.text.count("SIGSEGV") == 1, done
    found = cordon("run", *FLAGS, "--data-dir", tmp_path / "data", "--json", "-l", "bash", "-c", "kill -SEGV $$")
    done = cordon("explain", "--data-dir", tmp_path / "data", json.loads(found.out)["id"])
    assert "SIGSEGV: ended" not in done.text and "ended by signal 11 (SIGSEGV)" in done.text, done


# Terminals


def on_terminal(arguments, seconds=20, keys=b"", environment=None, at=None):
    """Runs cordon with a terminal of its own as stdin, stdout and stderr; returns exit code, what it showed, and how many bytes
    lie in the terminal's input afterwards."""
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([CORDON, *arguments], stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal,
                               env={**os.environ, "TERM": "xterm", **(environment or {})})
    shown, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if select.select([master], [], [], 0.05)[0]:
            shown += os.read(master, 65536)
        elif ended:
            break
        if keys and (at is None or at in shown):
            os.write(master, keys)
            keys = b""
    else:
        process.kill()
        pytest.fail(f"did not end: {shown!r}")
    attributes[3] &= ~termios.ICANON
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    waiting = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4))[0]
    os.close(master)
    os.close(slave)
    return process.wait(), shown.replace(b"\r\n", b"\n").decode(errors="replace"), waiting


def test_no_injection_into_the_callers_terminal():
    code = textwrap.dedent("""
        import fcntl, os, termios
        print("ttys", [os.isatty(fd) for fd in (0, 1, 2)])
        names = ["/dev/tty", "/dev/console", "/dev/tty0", "/proc/self/fd/0", "/proc/self/fd/1"] + ["/dev/pts/%d" % n for n in range(20)]
        descriptors = [0, 1, 2]
        for name in names:
            try: descriptors.append(os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
            except OSError: pass
        for fd in descriptors:
            for byte in b"touch /tmp/injected\\n":
                try: fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte])); print("injected into", fd)
                except OSError: break
            try: fcntl.ioctl(fd, 0x541C, b"\\x03"); print("selected", fd)
            except OSError: pass
        print("done")
    """)
    code, shown, waiting = on_terminal(run_arguments("python", code))
    assert code == 0 and "done\n" in shown, shown
    assert "ttys [False, False, False]" in shown
    assert "injected" not in shown and "selected" not in shown
    assert waiting == 0


def test_no_controlling_terminal_in_the_cell():
    _, shown, _ = on_terminal(run_arguments("bash", "cut -d' ' -f7 /proc/self/stat; echo x > /dev/tty && echo opened"))
    assert shown.startswith("0\n") and "opened" not in shown, shown


def test_interrupt_key(mark):
    code, shown, _ = on_terminal(run_arguments("bash", 'echo ready; (exec -a "$1" sleep 20); :', "--wall", "15s", args=[mark]), keys=b"\x03", at=b"ready")
    assert code == 130, shown
    assert not marked(mark)


def test_typed_lines_reach_the_program():
    code, shown, _ = on_terminal(run_arguments("bash", "echo ready; read x; echo \"got $x\""), keys=b"hello\n", at=b"ready")
    assert code == 0 and "got hello" in shown, shown


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["languages"], ["rnu"], ["doctor"]], ids=" ".join)
def test_no_colours_under_no_color(arguments):
    _, shown, _ = on_terminal(arguments, environment={"NO_COLOR": "1"})
    assert shown and "\033" not in shown


@pytest.mark.parametrize("arguments", [["--help"], ["languages"], ["rnu"], ["doctor"]], ids=" ".join)
def test_no_colours_off_a_terminal(arguments):
    done = cordon(*arguments, env={**os.environ, "TERM": "xterm"})
    assert b"\033" not in done.out + done.err


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command):
    done = cordon(command, "--help")
    assert done.code == 0 and f"cordon {command}" in done.text and done.err == b"", done


def test_help():
    done = cordon("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert command in done.text


def test_help_of_run_names_every_flag():
    text = cordon("run", "--help").text
    for flag in ("-l -c --wall --cpu --cpus --memory --processes --disk --inodes --open-files --file-size --output --profile --isolation "
                 "--network --environment --env --env-secret --mount --file --stdin --collect --optional --json --quiet").split():
        assert re.search(rf"(^|\s|,){flag}\b", text, re.MULTILINE), flag


def test_help_into_a_closed_pipe():
    done = subprocess.run(["bash", "-c", '"$0" run --help | true', CORDON], capture_output=True, timeout=10, check=False)
    assert done.returncode == 0


def test_version():
    done = cordon("version")
    assert done.code == 0 and re.search(r"\d+\.\d+\.\d+", done.text)
    assert cordon("--version").text == done.text


def test_doctor():
    done = cordon("doctor")
    assert done.code in (0, 1)
    for control in ("userns", "seccomp", "cgroup", "landlock"):
        assert control in done.text
    found = as_result(cordon("doctor", "--json"))
    assert found


def test_languages():
    done = cordon("languages")
    assert done.code == 0
    for name in ("python", "javascript", "bash", "ruby", "go", "c"):
        assert re.search(rf"\b{name}\b", done.text), name


# Bad usage


def refused(*arguments, words=(), code=2, **how):
    done = cordon(*arguments, timeout=30, **how)
    assert done.code == code, done
    assert done.out == b"", done
    assert done.errors.startswith("cordon: "), done
    assert len(done.errors.strip().splitlines()) <= 3, done
    for word in words:
        assert re.search(word, done.errors), f"{word!r} is not in {done.errors!r}"
    return done


def test_unknown_command():
    refused("rnu", words=["rnu", r"\brun\b"])


def test_no_command():
    assert cordon().code == 2


def test_unknown_option():
    refused("run", "--memry", "1g", "-l", "bash", "-c", ":", words=["--memry", "--memory"])


def test_option_without_its_value():
    refused("run", "-l", "bash", "-c", words=["-c"])


@pytest.mark.parametrize("wrong, right", [("pyhton", "python"), ("javascrip", "javascript"), ("rubby", "ruby")])
def test_unknown_language(wrong, right):
    refused("run", *FLAGS, "-l", wrong, "-c", "1", words=[wrong, rf"\b{right}\b"])


def test_hostile_language_names():
    for name in ("../../etc/passwd", "", "a/b", "x" * 5000, "python\n"):
        refused("run", *FLAGS, "-l", name, "-c", "1")


def test_no_program():
    refused("run", *FLAGS, "-l", "python", words=["-c|code|file"])


def test_no_language():
    refused("run", *FLAGS, "-c", "print(1)", words=["-l|language"])


def test_missing_file(tmp_path):
    refused("run", *FLAGS, tmp_path / "missing.py", words=["missing.py", "No such file"])


def test_directory_as_file(tmp_path):
    (tmp_path / "dir.py").mkdir()
    refused("run", *FLAGS, tmp_path / "dir.py", words=["dir.py", "[Dd]irectory"])


def test_pipe_as_file():
    line = '"$0" run "$@" -l bash <(echo "echo from a pipe")'
    done = subprocess.run(["bash", "-c", line, CORDON, *FLAGS], capture_output=True, timeout=20, check=False)
    assert done.stdout == b"from a pipe\n", done


def test_unreadable_file(tmp_path):
    program = tmp_path / "secret.py"
    program.write_text("print(1)")
    program.chmod(0)
    # Root reads everything, unless it has given up its capabilities.
    prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    refused("run", *FLAGS, program, prefix=prefix, words=["secret.py", "Permission denied"])


def test_empty_code():
    refused(*run_arguments("python", ""), words=["empty"])
    refused("run", *FLAGS, "-l", "python", "-", words=["empty"])


def test_empty_file(tmp_path):
    (tmp_path / "empty.py").touch()
    done = cordon("run", *FLAGS, tmp_path / "empty.py")
    assert done.code == 0 and done.out == b"" or done.code == 2 and "empty" in done.errors, done


def test_huge_code(tmp_path):
    program = tmp_path / "huge.sh"
    with open(program, "wb") as file:
        file.write(b"echo ran; exit 7\n")
        for _ in range(100):
            file.write(b"#" * ((1 << 20) - 1) + b"\n")
    done = cordon("run", *FLAGS, "--json", program, timeout=30)
    if done.code == 2:
        assert re.search("large|limit|most", done.errors), done
        return
    found = as_result(done)
    assert (found["status"], found["exit_code"], found["stdout"]) == ("nonzero_exit", 7, "ran\n"), found


def test_code_larger_than_the_disk(tmp_path):
    program = tmp_path / "large.sh"
    program.write_bytes(b"echo ran\n" + b"#" * (4 << 20))
    refused("run", *FLAGS, "--disk", "1m", program, words=["disk"])


def test_binary_code(tmp_path):
    for name, content in (("a.py", bytes(range(256)) * 40), ("b.sh", b"\x7fELF\2\1\1\0" + os.urandom(4000)), ("c.py", b"\xff\xfe\0print(1)")):
        (tmp_path / name).write_bytes(content)
        found = as_result(cordon("run", *FLAGS, "--json", tmp_path / name))
        assert found["status"] in ("nonzero_exit", "ok", "signaled"), found


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a//b", "./x", "", "..", "x/", "a" * 300, "a/" * 600 + "b"])
def test_file_destinations_outside_the_work_directory(name, tmp_path):
    (tmp_path / "source").write_text("x")
    refused("run", *FLAGS, "--file", f"{name}={tmp_path}/source", "-l", "bash", "-c", "find / -name x -newer /proc/1", words=["file|path"])


def test_file_that_is_missing(tmp_path):
    refused("run", *FLAGS, "--file", tmp_path / "no-such", "-l", "bash", "-c", ":", words=["no-such", "No such file"])


@pytest.mark.parametrize("value, words", [
    ("12q", "unit"), ("-5", "negative"), ("0", "zero"), ("99999999999g", "too large"), ("", "empty"), ("abc", "number"),
    ("1e9", "."), ("0x10", "."), ("5 5", "."), ("nan", "."), ("99999999999999999999", "too large"), ("0.0001", "."),
])
@pytest.mark.parametrize("flag", ["--memory", "--wall", "--processes", "--cpus"])
def test_bad_limits(flag, value, words):
    if value == "99999999999g" and flag != "--memory":
        words = "unit"
    refused("run", *FLAGS, f"{flag}={value}", "-l", "bash", "-c", ":", words=[flag.strip("-"), words])


@pytest.mark.parametrize("flag", ["--cpu", "--disk", "--inodes", "--open-files", "--file-size", "--output"])
@pytest.mark.parametrize("value", ["12q", "-5", "0", "99999999999999999999g"])
def test_bad_limits_of_the_other_flags(flag, value):
    refused("run", *FLAGS, flag, value, "-l", "bash", "-c", ":", words=[flag.strip("-").replace("-", "[-_ ]").replace("size", "(size|bytes)")])


@pytest.mark.parametrize("flag, value, words", [
    ("--profile", "heavyy", ["heavyy", r"\bheavy\b"]),
    ("--isolation", "containr", ["containr", r"\bcontainer\b"]),
    ("--network", "nonne", ["nonne", r"\bnone\b"]),
    ("--environment", "no-such-env", ["no-such-env"]),
    ("--optional", "cgruop", ["cgruop", r"\bcgroup\b"]),
    ("--on-output-limit", "sotp", ["sotp", r"\bstop\b"]),
    ("--env", "NOVALUE", ["--env", "NAME=VALUE"]),
    ("--env", "=x", ["env"]),
    ("--mount", "/usr", ["mount"]),
    ("--collect", "../*", ["collect|\\.\\."]),
])
def test_bad_values(flag, value, words):
    refused("run", *FLAGS, flag, value, "-l", "bash", "-c", ":", words=words)


@pytest.mark.parametrize("level", ["vm", "oci:runsc", "process", "restricted"])
def test_a_level_that_is_not_there_is_refused(level):
    """Never a weaker one instead."""
    found = as_result(cordon("run", *FLAGS, "--isolation", level, "--json", "-l", "bash", "-c", "echo ran"))
    if found.exit in (2, 125):
        assert level.split(":")[0] in found["reason"] and found["stdout"] == "", found
    else:
        assert found["enforced"]["isolation"] == level, found
