"""One engine for many runs, from Python: drives engine_lines, which meson builds beside the library.

CORDON_BIN tells where the build is, CORDON_TEST_FLAGS which controls are optional, as for the command line.
"""
import itertools
import json
import os
import shlex
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.path.abspath(os.environ.get("CORDON_BIN") or ROOT / "build" / "cordon")).parent
PROGRAM = BUILD / "tests" / "engine_lines"
WARDEN = BUILD / "cordon-warden"
FLAGS = shlex.split(os.environ.get("CORDON_TEST_FLAGS", ""))
OPTIONAL = [FLAGS[n + 1] for n, flag in enumerate(FLAGS) if flag == "--optional"]
PATIENCE_S = 120


def read(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def children(pid):
    """Of every thread of the process: pid -> (state, name)."""
    found = {}
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in read(tasks).split():
            line = read(f"/proc/{child}/stat")
            if line:
                found[int(child)] = (line[line.rindex(")") + 2], line[line.index("(") + 1:line.rindex(")")])
    return found


def wait_for(condition, seconds=10, step=0.005):
    """The condition's value once it is true, or as it is when the time is over."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(step)
    return value


class Engine:
    """A process with one warm engine. Requests are given as keyword arguments; a result is its dict."""

    def __init__(self, *options, threads=4, prefix=()):
        command = [*prefix, PROGRAM, "--threads", str(threads), "--languages", ROOT / "languages", "--warden", WARDEN, *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answers, self.numbers, self.came = {}, itertools.count(), threading.Condition()
        self.report = None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.warden = wait_for(lambda: next((pid for pid, (_, name) in children(self.process.pid).items()
                                             if name == "cordon-warden"), None))

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.came:
                self.answers[answer["line"]] = answer
                self.came.notify_all()
        with self.came:
            self.answers[None] = {}
            self.came.notify_all()

    def _send(self, line):
        number = next(self.numbers)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return number

    def _take(self, number, patience=PATIENCE_S):
        with self.came:
            if not self.came.wait_for(lambda: number in self.answers or None in self.answers, patience):
                raise AssertionError(f"no answer within {patience} s")
            if number not in self.answers:
                raise AssertionError("engine_lines has ended")
            return self.answers.pop(number)

    def start(self, language, code=None, **request):
        """Begins a run; `finish` takes the number that this returns."""
        request |= {"language": language} | ({"code": code} if code is not None else {})
        if OPTIONAL:
            request["optional"] = OPTIONAL
        return self._send(json.dumps(request))

    def finish(self, number):
        answer = self._take(number)
        assert "error" not in answer, answer
        return answer["result"]

    def run(self, language, code=None, **request):
        return self.finish(self.start(language, code, **request))

    def out(self, language, code=None, **request):
        """What a program that must succeed has printed."""
        result = self.run(language, code, **request)
        assert result["status"] == "ok", result
        return result["stdout"]

    def many(self, count, language, code=None, **request):
        numbers = [self.start(language, code, **request) for _ in range(count)]
        return [self.finish(number) for number in numbers]

    def run_warm(self, language, code=None, seconds=40, **request):
        """A run in a waiting cell, once there is one. It may be another's before this run comes, so it is asked for again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            result = self.run(language, code, **request)
            if result["enforced"]["warm"]:
                return result
            wait_for(lambda: any(pool["ready"] for (name, kind), pool in self.pools().items()
                                 if kind != "slots" and name.split("/")[0] == result["language"]), 5, 0.05)
        raise AssertionError(f"no waiting cell for {language} {request}: {self.pools()}")

    def pools(self):
        return {(pool["name"], pool["kind"]): pool for pool in self._take(self._send("pools"))["pools"]}

    def settled(self):
        """Waits until every pool is filled."""
        def full():
            return all(pool["ready"] >= pool["target"] and not pool["filling"] for pool in self.pools().values())
        return wait_for(full, 20, 0.05)

    def cells(self):
        """Processes beneath the warden, but for zygotes, the scout and the maker, which live outside of every cell."""
        own = link(f"/proc/{self.warden}/ns/pid")
        return [pid for pid in children(self.warden) if link(f"/proc/{pid}/ns/pid") not in ("", own)]

    def zygotes(self):
        """Interpreters that are the warden's own children but in no cell: they have a root of their own and its pid namespace."""
        own = [link(f"/proc/{self.warden}/ns/{kind}") for kind in ("pid", "mnt")]
        seen = {pid: [link(f"/proc/{pid}/ns/{kind}") for kind in ("pid", "mnt")] for pid, (_, name) in children(self.warden).items()
                if name not in ("cordon-warden", "cordon-maker")}
        return [pid for pid, (pids, mounts) in seen.items() if pids == own[0] and mounts not in ("", own[1])]

    def close(self):
        """Ends it; what it told at its end, or None when it could not."""
        if self.process.stdout.closed:
            return self.report
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(5)
        text = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        last = text.strip().splitlines()[-1:] or [""]
        self.report = json.loads(last[0]) if last[0].startswith("{") else None
        return self.report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
