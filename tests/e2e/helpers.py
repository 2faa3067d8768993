"""What the end-to-end tests share: calling the cordon binary, reading results, looking for left-over processes.

CORDON_BIN is the binary (default build/cordon), CORDON_TEST_FLAGS are put after every `run`, and with CORDON_MUST_RUN=1
a missing tool is a failure instead of a skip.
"""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import time
import uuid

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CORDON = os.path.abspath(os.environ.get("CORDON_BIN") or REPOSITORY / "build" / "cordon")
FLAGS = shlex.split(os.environ.get("CORDON_TEST_FLAGS", ""))
MUST_RUN = os.environ.get("CORDON_MUST_RUN", "") not in ("", "0")
CELL_PATH = "/usr/local/bin:/usr/bin:/bin"

# The tool that shows whether a language is installed; those of set-up are always expected.
TOOLS = {"python": "python3", "javascript": "node", "ruby": "ruby", "go": "go", "c": "gcc", "cpp": "g++", "bash": "bash",
         "java": "javac", "rust": "rustc"}
SET_UP = {"python", "javascript", "ruby", "go", "c", "bash"}

MIB = 1 << 20
PF_EXITING = 4


def skip(reason, expected=True):
    """Skips; where everything must run, something that set-up should have provided is a failure."""
    if MUST_RUN and expected:
        pytest.fail(f"must run, but {reason}")
    pytest.skip(reason)


def tool(name):
    return shutil.which(name, path=CELL_PATH)


def need(*languages):
    for language in languages:
        if not tool(TOOLS[language]):
            skip(f"{language} is not installed ({TOOLS[language]} is not on {CELL_PATH})", language in SET_UP)


def need_module(*modules):
    """Python modules as the interpreter in the cell would find them."""
    need("python")
    for module in modules:
        found = subprocess.run([tool("python3"), "-I", "-c", f"import {module}"], capture_output=True, check=False)
        if found.returncode:
            skip(f"the Python module {module} is not installed")


class Done:
    """A finished process: exit code, output, how long it took."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def errors(self):
        return self.err.decode(errors="replace")

    def __repr__(self):
        return f"exit {self.code} after {self.seconds:.2f} s\nstdout: {self.out[-3000:]!r}\nstderr: {self.err[-3000:]!r}"


class Result(dict):
    """The JSON of one run, with the exit code of cordon and the time it took from outside."""

    exit = None
    seconds = None
    stderr = ""


def cordon(*arguments, stdin=b"", timeout=60, prefix=(), binary=CORDON, **popen):
    """Calls cordon and waits. `stdin` is bytes or text to feed, or None for /dev/null; `prefix` is put before the binary: a
    wrapper such as unshare."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    begin = time.monotonic()
    process = subprocess.Popen([*prefix, binary, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, **popen)
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"cordon did not end within {timeout} s\nstdout: {out[-2000:]!r}\nstderr: {err[-2000:]!r}")
    return Done(process.returncode, out or b"", err or b"", time.monotonic() - begin)


def run_arguments(language, code, *flags, args=()):
    return ["run", *FLAGS, *flags, "-l", language, "-c", code, *(["--", *args] if args else [])]


def run(language, code, *flags, args=(), **how):
    """`cordon run` with the output streamed."""
    return cordon(*run_arguments(language, code, *flags, args=args), **how)


def as_result(done):
    try:
        value = json.loads(done.out)
    except ValueError:
        pytest.fail(f"stdout is not one JSON object: {done!r}")
    assert isinstance(value, dict), done
    result = Result(value)
    result.exit, result.seconds, result.stderr = done.code, done.seconds, done.errors
    return result


def result(language, code, *flags, args=(), **how):
    """`cordon run --json`."""
    return as_result(run(language, code, "--json", *flags, args=args, **how))


def ok(language, code, *flags, **how):
    """The stdout of a program that must succeed."""
    found = result(language, code, *flags, **how)
    assert found["status"] == "ok", found
    return found["stdout"]


def start(language, code, *flags, args=(), **popen):
    """`cordon run` left running."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
    return subprocess.Popen([CORDON, *run_arguments(language, code, *flags, args=args)], **pipes)


def mark():
    """A word to find the processes of one test by: pass it as an argument of the program."""
    return "mark-" + uuid.uuid4().hex


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def marked(word):
    """Processes with the word on their command line."""
    return [int(name) for name in os.listdir("/proc")
            if name.isdigit() and word.encode() in _read(f"/proc/{name}/cmdline")]


def _stat(pid):
    """(state, parent, start time) or None. One that is past its exit is X, although it may wait for its zombies to be reaped."""
    text = _read(f"/proc/{pid}/stat").decode(errors="replace")
    if not text:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return "X" if int(fields[6]) & PF_EXITING else fields[0], int(fields[1]), fields[19]


def descendants(root):
    """{pid: start time} of everything beneath a process."""
    table = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    table = {pid: entry for pid, entry in table.items() if entry}
    found, grown = {root}, True
    while grown:
        more = {pid for pid, entry in table.items() if entry[1] in found} - found
        found |= more
        grown = bool(more)
    return {pid: table[pid][2] for pid in found - {root} if pid in table}


def still_alive(processes):
    alive = []
    for pid, started in processes.items():
        now = _stat(pid)
        if now and now[2] == started and now[0] not in "ZX":
            alive.append((pid, _read(f"/proc/{pid}/comm").decode(errors="replace").strip()))
    return alive


def wait_for(condition, seconds=10, step=0.005):
    """Polls; returns the value that was true, or fails."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"nothing after {seconds} s"
        time.sleep(step)


_cgroup = None


def has_cgroup():
    """Whether runs are held by a control group here, or (when that is optional) only by limits per process."""
    global _cgroup
    if _cgroup is None:
        _cgroup = result("bash", ":")["enforced"]["controls"]["cgroup"] != "none"
    return _cgroup
