"""A program handed to a waiting interpreter behaves as by the stock command: the same output, errors and exit status.

The bootstraps of languages/warm run here without a cell, in a temporary directory, on a socket like the warden's.
"""
import fcntl
import os
import re
import shutil
import socket
import threading

import pytest

from bootstrap_programs import DIFFERENT, PROGRAMS, Program
from helpers import CELL_PATH, REPOSITORY, SET_UP, skip, tool, wait_for

yaml = pytest.importorskip("yaml", reason="python3-yaml reads the manifests")

LANGUAGES = REPOSITORY / "languages"
MANIFESTS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(LANGUAGES.glob("*.yaml"))}
# Bash, which is only ever forked, has tests/contain/test_warm_shell.py.
WARM = [language for language, manifest in MANIFESTS.items() if "argv" in (manifest.get("warm") or {})]
VALUE, CHANNEL = 3, 4
SECONDS = 30


def expand(text, manifest, **more):
    values = {"heap_mb": "300", "cpus": "1", "entry": manifest["file"], "preload": "", **more}
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)


class Running:
    """A process with pipes as in a cell. What it prints is read all the time."""

    def __init__(self, argv, manifest, work, env=None, channel=None):
        self.output, self.threads = {}, []
        ends, actions = [], []
        for fd in (0, 1, 2, *([VALUE] if manifest.get("value") else [])):
            here, there = os.pipe() if fd else reversed(os.pipe())
            self.keep(fd, here)
            ends.append((there, fd))
        if channel:
            ends.append((channel.detach(), CHANNEL))
        for end, fd in ends:  # first all out of the way of the numbers they shall have
            high = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20)
            os.close(end)
            actions.append((os.POSIX_SPAWN_DUP2, high, fd))
        variables = {"HOME": str(work), "PATH": CELL_PATH, "LANG": "C.UTF-8", "TZ": "UTC", "TMPDIR": str(work.parent / "tmp")}
        variables |= {row["name"]: expand(row["value"], manifest) for row in manifest["run"].get("env") or []}
        os.chdir(work)
        try:
            self.pid = os.posix_spawn(tool(argv[0]), argv, {**variables, **(env or {})}, file_actions=actions)
        finally:
            for _, high, _ in actions:
                os.close(high)

    def keep(self, fd, here):
        if fd == 0:
            self.stdin = here
            return
        thread = threading.Thread(target=self.read, args=(fd, here))
        thread.start()
        self.threads.append(thread)

    def read(self, fd, here):
        with open(here, "rb") as file:
            self.output[fd] = file.read()

    def finish(self, stdin=b""):
        """(exit status, stdout, stderr, value) with what differs from process to process made equal."""
        with open(self.stdin, "wb") as file:
            file.write(stdin)
        self.stdin = None
        status = []
        try:
            wait_for(lambda: status.append(os.waitpid(self.pid, os.WNOHANG)) or status[-1][0], SECONDS, 0.001)
            self.pid = None
        finally:
            self.end()
        texts = [re.sub(rb"0x[0-9a-f]+|\(node:\d+\)", b"...", self.output[fd]) for fd in sorted(self.output)]
        return (os.waitstatus_to_exitcode(status[-1][1]), *texts)

    def end(self):
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
            self.pid = None
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None
        for thread in self.threads:
            thread.join()


def pack(kind, entry, args, env, files):
    """The message of the warden."""
    items = [kind, entry, str(len(args)), *args, str(len(env)), *(f"{name}={value}" for name, value in env.items()), str(len(files))]
    items = [item.encode() for item in items]
    for path, (mode, content) in files.items():
        items += [path.encode(), mode.encode(), content]
    return " ".join(str(len(item)) for item in items).encode() + b"\n" + b"".join(items)


class Waiting(Running):
    """A started interpreter that is ready for its program."""

    def __init__(self, language, work, preload=""):
        manifest = MANIFESTS[language]
        warm = manifest["warm"]
        bootstrap = (LANGUAGES / "warm" / warm["bootstrap"]).read_text()
        self.socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SECONDS)
        argv = [expand(part, manifest, bootstrap=bootstrap, preload=preload) for part in warm["argv"]]
        env = {row["name"]: expand(row["value"], manifest) for row in warm.get("env") or []}
        super().__init__(argv, manifest, work, env, there)
        if self.socket.recv(16) != b"r":
            pytest.fail(f"{language} did not become ready: {self.finish()}")

    def run(self, program, manifest, kind):
        self.send(program, manifest, kind)
        return self.finish(program.stdin)

    def send(self, program, manifest, kind="files"):
        entry, files = program.whole(manifest)
        self.socket.send(pack(kind, entry, program.args, program.env, files))
        self.socket.close()

    def end(self):
        self.socket.close()
        super().end()


def stock(program, manifest, kind, work):
    entry, files = program.whole(manifest)
    for path, (mode, content) in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(content)
        (work / path).chmod(int(mode, 8))
    step = manifest["run_code"] if kind == "code" and "run_code" in manifest else manifest["run"]
    argv = []
    for part in step["argv"]:
        argv += program.args if part == "{args}" else [expand(part, manifest, entry=entry)]
    return Running(argv, manifest, work, program.env).finish(program.stdin)


@pytest.fixture
def work(tmp_path):
    """Makes an empty work directory, always the same one of a name."""
    before, mask = os.getcwd(), os.umask(0o022)
    (tmp_path / "tmp").mkdir()

    def empty(name="work"):
        os.chdir(before)
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        (tmp_path / name).mkdir()
        return tmp_path / name
    yield empty
    os.chdir(before)
    os.umask(mask)
    assert not list((tmp_path / "tmp").glob(".warm*")), "the bootstrap left something behind"


def need_language(language):
    command = MANIFESTS[language]["version"][0]
    if not tool(command):
        skip(f"{language} is not installed ({command} is missing)", language in SET_UP)


def tree(folder):
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
            for path in sorted(folder.rglob("*"))}


CASES = [(language, name, kind) for language, programs in PROGRAMS.items() for name in programs
         for kind in (("files", "code") if "run_code" in MANIFESTS[language] else ("files",))]


# Descriptors that are open a little sooner, or longer, than in a new interpreter: the first stream's spare one, and the file
# that was put before the program.
KEPT = {"javascript": rb"/dev/null\n", "php": rb".*\(deleted\)\n"}


def test_every_bootstrap_has_programs():
    assert set(WARM) == set(PROGRAMS)


@pytest.mark.parametrize("language, name, kind", CASES, ids=[f"{language}: {name}, {kind}" for language, name, kind in CASES])
def test_runs_as_by_the_stock_command(language, name, kind, work, request):
    need_language(language)
    if (language, name) in DIFFERENT:
        request.applymarker(pytest.mark.xfail(reason=DIFFERENT[language, name], strict=True))
    manifest, program = MANIFESTS[language], PROGRAMS[language][name]
    folder = work()
    expected = stock(program, manifest, kind, folder), tree(folder)
    found = Waiting(language, work()).run(program, manifest, kind), tree(folder)
    if name == "descriptors" and language in KEPT:
        found, expected = ((re.sub(KEPT[language], b"", each[0][1]), each[0][2]) for each in (found, expected))
    assert found == expected


@pytest.mark.parametrize("language", WARM)
def test_leaves_quietly_when_no_program_comes(language, work):
    need_language(language)
    waiting = Waiting(language, work())
    waiting.socket.close()
    status, *output = waiting.finish()
    assert status == 0 and not any(output), output


RANDOM = {
    "python": "import random, secrets, tempfile; print(random.random(), secrets.token_hex(), tempfile.mktemp())",
    "javascript": "console.log(Math.random(), require('crypto').randomUUID())",
    "ruby": "p rand, Random.rand, [1, 2, 3].shuffle(random: Random.new), Random.seed",
    "perl": "print rand(), \"\\n\"",
    "php": "<?php echo mt_rand(), ' ', rand(), ' ', lcg_value(), ' ', random_int(0, PHP_INT_MAX);",
    "r": "print(runif(2), digits = 16)",
    "octave": "printf ('%.16g %.16g\\n', rand (), randn ())",
}


@pytest.mark.parametrize("language", RANDOM)
def test_no_two_have_the_same_random_numbers(language, work):
    need_language(language)
    waiting = [Waiting(language, work(name)) for name in ("first", "second")]
    for each in waiting:
        each.send(Program(RANDOM[language]), MANIFESTS[language])
    outputs = [each.finish() for each in waiting]
    assert all(status == 0 and out for status, out, *_ in outputs), outputs
    first, second = (out.split() for _, out, *_ in outputs)
    assert not [pair for pair in zip(first, second) if pair[0] == pair[1] and len(pair[0]) > 4]
