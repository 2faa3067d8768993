"""Starts `cordon serve` for a test, calls it, and shows that nothing is left of it.

Every answer is held against docs/openapi.json by check_answer(). CORDON_BIN and CORDON_TEST_FLAGS are as in cordon.py; of the
flags only `--optional` means something to a daemon.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import cordon
import openapi_check

CONTRACT = openapi_check.Contract()
OPTIONAL = [cordon.FLAGS[i + 1] for i, flag in enumerate(cordon.FLAGS) if flag == "--optional"]
START_SECONDS = 30
# A store forces what it writes to its disk, which takes seconds on one that is busy.
QUICK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
PF_EXITING = 4


def check_answer(method, path, request, answer):
    """The one place where an answer meets the contract. HEAD and OPTIONS have no body to check."""
    if method in CONTRACT_METHODS:
        CONTRACT.check(method, path, request, answer.status, answer.headers, answer.body)


CONTRACT_METHODS = ("GET", "POST", "DELETE")


class Answer:
    """What came back."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers}\n{self.body[:2000]!r}"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Stream:
    """A streamed answer, event by event. Closing it is how a client leaves."""

    def __init__(self, connection, response, sse):
        self.connection, self.response, self.sse = connection, response, sse
        self.status, self.headers = response.status, dict(response.getheaders())
        self.events = []

    def _block(self):
        """The lines of the next event; [] at the end."""
        lines = []
        while True:
            line = self.response.readline()
            if not line or (self.sse and line == b"\n" and lines) or (not self.sse and line.strip()):
                return lines + [line.decode()] if line.strip() else lines
            if line.strip():
                lines.append(line.decode())

    def next(self):
        """The next event, checked against the contract; None at the end."""
        lines = self._block()
        if not lines:
            return None
        if self.sse:
            fields = dict(line.rstrip("\n").split(": ", 1) for line in lines)
            event = json.loads(fields["data"])
            assert fields["event"] == event["type"], lines
        else:
            event = json.loads(lines[0])
        found = CONTRACT.schemas.errors({"$ref": "#/components/schemas/StreamEvent"}, event)
        assert not found, found
        self.events.append(event)
        return event

    def rest(self):
        """Every event that is still to come, but for pings."""
        return [event for event in iter(self.next, None) if event["type"] != "ping"]

    def until(self, kind):
        for event in iter(self.next, None):
            if event["type"] == kind:
                return event
        raise AssertionError(f"no {kind} in {self.events}")

    def close(self):
        # The response holds the socket too.
        self.response.close()
        self.connection.close()


def text_of(events, stream="stdout"):
    return "".join(event["data"] for event in events if event["type"] == stream)


class MemoryGroup:
    """A control group of our own with a memory limit, for a daemon that is attacked: what it must not reach. Its `prefix`
    starts a command inside. None of it is seen by check_gone(), whose names begin with "cordon-"."""

    def __init__(self, limit):
        self.limit = limit
        v1 = os.path.isdir("/sys/fs/cgroup/memory")
        top = "/sys/fs/cgroup/memory" if v1 else "/sys/fs/cgroup"
        self.path = f"{top}/test-cordon-{os.getpid()}-{time.monotonic_ns()}"
        os.mkdir(self.path)
        self._write("memory.limit_in_bytes" if v1 else "memory.max", limit)
        for name in ("memory.memsw.limit_in_bytes",) if v1 else ("memory.swap.max",):
            if os.path.exists(f"{self.path}/{name}"):
                self._write(name, limit if v1 else 0)
        self.peak_name = "memory.max_usage_in_bytes" if v1 else "memory.peak"
        self.prefix = ("/bin/sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh")

    def _write(self, name, value):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def peak(self):
        with open(f"{self.path}/{self.peak_name}", encoding="ascii") as file:
            return int(file.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + 10
        while True:
            try:
                for top, _, _ in os.walk(self.path, topdown=False):
                    os.rmdir(top)
                return
            except OSError:
                assert time.monotonic() < deadline, f"{self.path} is not empty"
                time.sleep(0.05)


class Daemon:
    """`cordon serve` with a data directory of its own."""

    def __init__(self, *flags, listen="127.0.0.1:0", data=None, env=None, prefix=(), key=None, tls=None, binary=cordon.BIN,
                 prove=False, optional=OPTIONAL, **popen):
        self.own_data = data is None
        self.data = str(data) if data else tempfile.mkdtemp(prefix="cordon-serve-", dir=QUICK)
        self.key, self.tls = key, tls
        self.log_path = self.data.rstrip("/") + ".log"
        optional = [each for name in optional for each in ("--set", f"optional={name}")]
        # To run every language once takes a while, which only its own tests want to see.
        proving = () if prove else ("--set", "prove_languages=false")
        argv = [*prefix, binary, "serve", "--listen", listen, "--data-dir", self.data, *proving, *optional, *map(str, flags)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CORDON_")}
        if os.environ.get("CORDON_TEST_SANITIZED") == "1":  # looking for leaks needs ptrace, which the daemon gives up
            environment["ASAN_OPTIONS"] = "detect_leaks=0"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                            env={**environment, **(env or {})}, **popen)
        self.ready = None

    def __enter__(self):
        return self.wait_ready()

    def __exit__(self, *_):
        self.stop()

    def wait_ready(self):
        """Until it says where it serves."""
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline, line = time.monotonic() + START_SECONDS, b""
        while not line.endswith(b"\n"):
            more = self.process.stdout.read()
            line += more or b""
            if not more and (self.process.poll() is not None or time.monotonic() > deadline):
                code = self.process.poll()
                self.kill()
                raise AssertionError(f"it did not start (exit {code}): {line!r}\n{self.log_text()}")
            time.sleep(0 if more else 0.005)
        self.ready = line.decode().strip()
        self.address = re.search(r" (?:serves|listens) at (\S+), data in ", self.ready)[1]
        return self

    def refused(self):
        """That it does not start: the exit code and what it says."""
        code = self.process.wait(START_SECONDS)
        text = self.log_text()
        self.clear()
        return code, text

    # Looking at it

    @property
    def pid(self):
        return self.process.pid

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def log(self, event=None):
        """Its log lines as objects."""
        lines = [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]
        return [line for line in lines if event in (None, line["event"])]

    def warden(self):
        """The pid of its warden."""
        found = [int(name) for name in os.listdir("/proc") if name.isdigit() and (_stat(name) or "?")[1:2] == (self.pid,)]
        found = [pid for pid in found if name_of(pid) == "cordon-warden"]
        assert len(found) == 1, f"the daemon's wardens: {found}"
        return found[0]

    # Calling it

    def connect(self, timeout=60):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:], timeout)
        host = self.address.split("://")[1].rsplit(":", 1)[0].strip("[]")
        if self.tls:
            return http.client.HTTPSConnection(host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(host, self.port, timeout=timeout)

    def socket(self, timeout=60):
        """A plain connection, for what a client library would not send."""
        connection = self.connect(timeout)
        connection.connect()
        return connection.sock

    def request(self, method, path, body=None, headers=None, key=None, connection=None, timeout=60, check=True):
        """One call. `body` is bytes, or a value to be sent as JSON. On a connection that is given it is kept alive."""
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        own = connection is None
        connection = connection or self.connect(timeout)
        try:
            connection.request(method, path, sent, self._headers(headers, key, sent))
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            if own:
                connection.close()
        if check:
            check_answer(method, path, sent, answer)
        return answer

    def _headers(self, headers, key, body=None):
        key = key or self.key
        return {**({"Content-Type": "application/json"} if body is not None else {}),
                **({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}

    def get(self, path, **how):
        return self.request("GET", path, **how)

    def post(self, path, body, **how):
        return self.request("POST", path, body, **how)

    def delete(self, path, **how):
        return self.request("DELETE", path, **how)

    def execute(self, language, code, **fields):
        """A run that must be answered with a result."""
        answer = self.post("/v1/execute", {"language": language, "code": code, **fields})
        assert answer.status == 200, answer
        return answer.json

    def start(self, language, code, headers=None, key=None, **fields):
        """A run that is asked for later: its id."""
        answer = self.post("/v1/executions", {"language": language, "code": code, **fields}, headers=headers, key=key)
        assert answer.status == 202, answer
        return answer.json["id"]

    def result(self, run, seconds=30, key=None):
        """What became of it, once it is done."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.get(f"/v1/executions/{run}", key=key)
            assert answer.status == 200, answer
            if answer.json["state"] == "done":
                return answer.json
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)

    def stream(self, method, path, body=None, accept="text/event-stream", key=None, headers=None, timeout=60):
        connection = self.connect(timeout)
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Accept": accept, **self._headers(headers, key, sent)})
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read())
        assert response.headers["Content-Type"] == accept, response.headers
        return Stream(connection, response, accept == "text/event-stream")

    def new_key(self, *flags, name="test"):
        """The text of a fresh key, once the daemon has seen it."""
        done = cordon.cordon("key", "new", "--name", name, "--data-dir", self.data, *flags)
        assert done.returncode == 0, done.stderr
        key, deadline = done.stdout.decode().strip(), time.monotonic() + 10
        while self.get("/v1/languages", key=key).status == 401:
            assert time.monotonic() < deadline, "the daemon does not see a new key"
            time.sleep(0.02)
        return key

    # Ending it

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self, seconds=30):
        """SIGTERM; the exit code. Nothing may be left: no process, no control group."""
        if self.process.poll() is None:
            self.signal()
        return self.ended(seconds)

    def ended(self, seconds=30):
        family = descendants(self.pid)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            text = self.log_text()
            self.kill()
            raise AssertionError(f"it did not end within {seconds} s\n{text[-3000:]}") from None
        self.check_gone(family)
        self.clear()
        return code

    def kill(self):
        """SIGKILL, with everything it started that does not end by itself."""
        family = descendants(self.pid)
        self.process.kill()
        self.process.wait()
        self.check_gone(family)

    @staticmethod
    def check_gone(family, seconds=10, groups=True):
        """No process of these, and, unless the warden was killed, no control group of theirs."""
        deadline = time.monotonic() + seconds
        while True:
            left = [(pid, name_of(pid)) for pid, began in family.items() if began_at(pid) == began]
            kept = [path for path in control_groups() if groups and any(f"cordon-{pid}-t{began}-" in path for pid, began in family.items())]
            if not left and not kept:
                return
            assert time.monotonic() < deadline, f"left behind: {left} {kept}"
            time.sleep(0.01)

    def clear(self):
        self.process.stdout.close()
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)
            os.unlink(self.log_path)
            self.own_data = False


# Processes


def _stat(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return "X" if int(fields[6]) & PF_EXITING else fields[0], int(fields[1]), fields[19]


def began_at(pid):
    """When it began, in the kernel's ticks; None when it is gone."""
    found = _stat(pid)
    return found[2] if found and found[0] not in "ZX" else None


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(root):
    """{pid: when it began} of everything beneath a process."""
    table = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    found, grown = {root}, True
    while grown:
        more = {pid for pid, entry in table.items() if entry and entry[1] in found} - found
        found |= more
        grown = bool(more)
    return {pid: table[pid][2] for pid in found - {root} if table.get(pid)}


def control_groups():
    return [os.path.join(top, name) for top, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("cordon-")]
