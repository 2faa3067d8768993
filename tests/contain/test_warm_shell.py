"""A copy of a waiting Bash does as a Bash that is started for the program: the same output, errors and end."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from engine import PROGRAM, Engine  # noqa: E402

# What changes from one to the next, and what commands before the program leave.
CHANGING = "S?RANDOM|SECONDS|EPOCH|BASHPID|BASH_ARGC|PIPESTATUS"
PROGRAMS = {
    "what it knows of itself": dict(code='echo "$0|$#|$*|$BASH_SOURCE|$LINENO|$-|$_|$$|$BASHPID|$PPID|$SHLVL|$PWD|${OLDPWD-unset}|$UID|$EUID|${GROUPS[*]}|$?"'),
    "its variables": dict(code=f"declare -p | grep -Ev ' ({CHANGING})' | sort"),
    "the environment of others": dict(code="env | sort"),
    "what the kernel shows of its environment": dict(code="tr '\\0' '\\n' < /proc/$$/environ | grep . | sort"),
    "options": dict(code="set -o; shopt; ulimit -a; umask; trap -p; hash; jobs; enable | wc -l"),
    "what is mapped": dict(code="grep -c cordon /proc/$$/maps; ls /tmp -A"),
    "arguments": dict(code='printf "<%s>" "$@"', args=["a b", "it's", "", "*", "$x", "two\nlines", "é"]),
    "variables of the request": dict(code='printf "<%s>" "$PLAIN" "$QUOTED" "$EMPTY"; env | grep -c "^PLAIN=\\|^EMPTY=$"',
                                     env={"PLAIN": "1", "QUOTED": "it's \"$x\"\n`y`", "EMPTY": ""}),
    "a variable that is no name": dict(code="env | grep -a 'odd'", env={"odd-name": "1"}),
    "a setting from outside": dict(code="echo $-", env={"SHELLOPTS": "nounset"}),
    "standard input": dict(code='read -r a; cat; echo "$a"', stdin="one\ntwo\nthree"),
    "a missing command": dict(code="echo before\nno-such-command\necho $?"),
    "a syntax error": dict(code="echo before\nif true; then\necho (\n"),
    "an unset variable": dict(code="set -u\necho $unset\necho after"),
    "an exit status": dict(code="trap 'echo left $?' EXIT; exit 7"),
    "ending by a signal": dict(code="kill -TERM $$; sleep 5"),
    "set -e": dict(code="set -eE; trap 'echo line $LINENO' ERR; f() { false; }; f; echo after"),
    "jobs": dict(code="set -m; sleep 0.01 & wait $!; echo $?; (exit 3) | cat; echo ${PIPESTATUS[*]}"),
    "a trap": dict(code="trap 'echo got' USR1; kill -USR1 $$; echo on"),
    "a coprocess": dict(code="coproc cat; echo text >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line"),
    "a function for others": dict(code="f() { echo in; }; export -f f; bash -c f"),
    "returning from a program": dict(code="return 3"),
    "its own text": dict(code="# first\ncat $0; tail -c 7 ${BASH_SOURCE[0]}"),
    "a here document": dict(code="cat << END\n$((6 * 7))\nEND"),
    "many lines": dict(code="\n" * 3000 + "echo $LINENO"),
    "files": dict(entry="main.sh", files={"main.sh": "source lib/a.sh; echo $x ${BASH_SOURCE[0]}", "lib/a.sh": "x='from a file'; echo $BASH_SOURCE"}),
    "another entry": dict(entry="run.sh", files={"run.sh": "echo $0 $*; ls"}, args=["a", "b"]),
}


@pytest.fixture(scope="module")
def engine():
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} was not built")
    with Engine() as engine:
        engine.run_warm("bash", "true")
        yield engine


def outcome(result):
    return {name: result[name] for name in ("status", "exit_code", "signal", "stdout", "stderr")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_as_a_shell_of_its_own(engine, name):
    request = dict(PROGRAMS[name])
    code = request.pop("code", None)
    cold = engine.run("bash", code, warm=False, **request)
    warm = engine.run_warm("bash", code, **request) if "SHELLOPTS" not in request.get("env", {}) else engine.run("bash", code, **request)
    assert outcome(warm) == outcome(cold)


def test_a_shell_that_is_not_known_gives_way_to_slots(tmp_path):
    """Its zygote is given up, and nobody notices but whoever asks for the pools."""
    languages = Path(__file__).resolve().parents[2] / "languages"
    for path in languages.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(languages)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "warm" / "bash.sh").write_text("echo not today >&2; exit 3\n")
    with Engine("--languages", str(tmp_path)) as engine:
        for _ in range(8):
            assert engine.run("bash", "echo $((6 * 7))")["stdout"] == "42\n"
        assert engine.settled()
        pool = engine.pools()[("bash/base", "forked")]
        assert pool["zygote"]["state"] == "given up" and "not today" in pool["failure"], pool
        assert not engine.run("bash", "echo $((6 * 7))")["enforced"]["warm"]
