"""Runs a hostile program in a cell and judges the outcome from outside, or without a cell to see that the attack is real."""
import base64
import json
import os
import pty
import pwd
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
import termios
import threading
import time
import tty
from fcntl import ioctl
from pathlib import Path

import corpus
from totals import Totals
from host import Host, descendants, memory_free, open_to_peers, read_text, session_keyrings, thread_count

REPOSITORY = Path(__file__).resolve().parent.parent.parent
REQUIRED = ("userns", "pidns", "mountns", "netns", "ipcns", "utsns", "seccomp", "no_new_privs", "capabilities", "cgroup")
PATIENCE_S = 60
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "s": 1, "": 1}


def cordon_path():
    return os.environ.get("CORDON_BIN") or str(REPOSITORY / "build" / "cordon")


def amount(text):
    return float(text.rstrip("kmgs")) * UNITS[text[-1] if text[-1] in "kmgs" else ""]


class Watcher(threading.Thread):
    """Samples the host while a run lasts: free memory, threads, and the size of cordon and its warden."""

    def __init__(self, pid, probe=None):
        super().__init__(daemon=True)
        self.pid, self.probe = pid, probe
        self.memory_start = memory_free()
        self.memory_drop, self.threads_start, self.threads_peak, self.supervisor_peak = 0, thread_count(), 0, 0
        self.ended = threading.Event()
        self.totals = Totals()
        self.start()

    def run(self):
        while not self.ended.is_set():
            self.memory_drop = max(self.memory_drop, self.memory_start - memory_free())
            self.threads_peak = max(self.threads_peak, thread_count())
            for pid in [self.pid] + [int(p) for p in read_text(f"/proc/{self.pid}/task/{self.pid}/children").split()]:
                status = read_text(f"/proc/{pid}/status")
                if "VmHWM:" in status and status.split("\n", 1)[0].split()[1].startswith("cordon"):
                    self.supervisor_peak = max(self.supervisor_peak, int(status.split("VmHWM:")[1].split()[0]) * 1024)
            self.totals.sample()
            if self.probe:
                self.probe()
            self.ended.wait(0.02)

    def stop(self):
        self.ended.set()
        self.join()
        self.totals.stop()


class Outcome:
    """What is known of one run: the raw bytes that came out, how the process ended, and what the host saw."""

    def __init__(self):
        self.raw = self.errors = b""
        self.exit_code, self.seconds, self.cpu_seconds = None, 0.0, 0.0
        self.watcher, self.evidence, self.trouble, self.uids, self.inspected = None, set(), [], set(), False
        self.result = None

    def everything(self):
        data = self.raw + b"\n" + self.errors
        for file in (self.result or {}).get("files") or []:
            if file.get("content_base64"):
                data += base64.b64decode(file["content_base64"])
        return data


class Judge:
    def __init__(self, binary=None, flags=None, outer=None):
        self.binary = binary or cordon_path()
        self.host = Host()
        self.programs = corpus.load()
        self.attack_binary = corpus.build(self.programs)
        self.outer = outer
        self.scratch = tempfile.mkdtemp(prefix="hostile-")
        os.chmod(self.scratch, 0o755)
        self.temporary = Path(self.scratch, "tmp")
        self.temporary.mkdir()
        self.flags = shlex.split(os.environ.get("CORDON_TEST_FLAGS", "")) if flags is None else flags
        try:
            self.probe_result = self.probe_machine()
        except BaseException:
            self.close()
            raise

    def probe_machine(self):
        """A harmless run: does cordon work here, and with which control groups?"""
        outcome = self.execute([self.binary, "run", "--json", *self.flags, "-l", "bash", "-c", "echo ready"], dict(os.environ))
        if outcome.exit_code == 125 and b"cgroup" in outcome.raw + outcome.errors and os.getuid() != 0 and "cgroup" not in self.flags:
            self.flags += ["--optional", "cgroup"]
            return self.probe_machine()
        if outcome.exit_code != 0:
            raise RuntimeError(f"cordon does not run here: exit {outcome.exit_code}: {(outcome.raw + outcome.errors).decode(errors='replace')}")
        result = json.loads(outcome.raw)
        self.controls = result["enforced"]["controls"]
        self.has_cgroup = self.controls.get("cgroup") not in (None, False, "none")
        return result

    def close(self):
        self.host.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def execute(self, command, environment, probe=None, directory=None, terminal=None, prepare=None, wait=True):
        """Runs a command with the careless caller's descriptors; collects output, time and what the host looked like."""
        outcome = Outcome()

        def enter():
            os.setsid()
            if terminal is not None:
                ioctl(terminal, termios.TIOCSCTTY, 0)
            for path in self.outer or ():
                Path(path, "tasks").write_text("0")
            if prepare:
                prepare()

        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL if terminal is None else terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment, pass_fds=self.host.leaks, preexec_fn=enter, cwd=directory)
        outcome.process = process
        outcome.watcher = Watcher(process.pid, (lambda: probe(process.pid, outcome)) if probe else None)
        readers = []
        for name, stream in (("raw", process.stdout), ("errors", process.stderr)):
            reader = threading.Thread(target=lambda n=name, s=stream: setattr(outcome, n, s.read()), daemon=True)
            reader.start()
            readers.append(reader)

        def finish():
            killer = threading.Timer(PATIENCE_S, process.kill)
            killer.start()
            _, status, usage = os.wait4(process.pid, 0)
            killer.cancel()
            outcome.seconds = time.monotonic() - start
            outcome.cpu_seconds = usage.ru_utime + usage.ru_stime
            process.returncode = outcome.exit_code = os.waitstatus_to_exitcode(status)
            outcome.watcher.stop()
            for reader in readers:
                reader.join(2)
                if reader.is_alive():
                    outcome.trouble.append("somebody still holds the output of cordon")
            return outcome

        outcome.finish = finish
        return finish() if wait else outcome

    # In a cell.

    def command(self, program, mark, environment, stage):
        source = program.path
        if program.get("template"):
            source = Path(self.scratch, program.path.name)
            source.write_text(program.path.read_text().replace("@BAIT_DIR@", str(self.host.directory)))
            source.chmod(0o644)
        command = [self.binary, "run", "--json", *self.flags, *shlex.split(program.get("limits").format(bait=self.host.directory))]
        for name, value in environment.items():
            command += ["--env", f"{name}={value}"]
        if program.compiled:
            return command + ["-l", "bash", "--file", f"prog={self.attack_binary}", "-c", f"chmod +x prog; exec ./prog {program.name} {stage}"]
        return command + ["-l", program.language, str(source), *([stage] if stage else [])]

    def run_in_cell(self, program, mark, told, stage="", wait=True):
        caller = dict(os.environ, CONTAIN_SECRET=self.host.secrets["ENV"], TMPDIR=str(self.temporary))
        terminal = None
        if program.get("probe") == "terminal":
            master, terminal = pty.openpty()
            tty.setraw(terminal)
        probe = getattr(self, "probe_" + program.get("probe"), None) if program.get("probe") not in ("", "terminal") else None
        self.told = told
        self.keyrings = session_keyrings()
        outcome = self.execute(self.command(program, mark, told, stage), caller, probe, terminal=terminal, wait=wait)
        if terminal is not None:
            self.look_at_terminal(terminal, outcome)
            os.close(master)
            os.close(terminal)
        return outcome

    def check(self, program):
        """Runs the program as its header says; returns what is wrong, an empty list when the cell held."""
        found = []
        outcomes = []
        for _ in range(int(program.get("repeat") or 1)):
            mark = "mark" + secrets.token_hex(8)
            told = self.host.environment(mark)
            stages = program.get("stages").split() or [""]
            self.concurrent = "&" in stages
            if self.concurrent:
                first = self.run_in_cell(program, mark, told, stages[0], wait=False)
                time.sleep(0.6)
                second = self.run_in_cell(program, mark, told, stages[-1])
                outcomes = [first.finish(), second]
            else:
                outcomes = [self.run_in_cell(program, mark, told, stage) for stage in stages]
                if program.get("twice"):
                    outcomes.append(self.run_in_cell(program, mark, told))
            for outcome in outcomes:
                found += self.judge(program, outcome)
            found += self.judge_host(mark, outcomes)
            if found:
                self.host.restore(mark)
                break
            self.host.before = self.host.snapshot()
        if "root" in program.needs and program.get("probe") == "inspect" and outcomes[0].uids & outcomes[-1].uids:
            found.append(f"two cells at once have the same host uid: {outcomes[0].uids}")
        if program.get("twice") == "differ" and not found:
            found += self.judge_difference(outcomes)
        return found

    def judge(self, program, outcome):
        try:
            outcome.result = json.loads(outcome.raw.decode("utf-8"))
        except ValueError as error:
            return [f"stdout of cordon is not one JSON object: {error}: {outcome.raw[:300]!r} {outcome.errors[:300]!r}"]
        result, found = outcome.result, list(outcome.trouble)
        if program.get("probe") == "inspect" and not outcome.inspected:
            found.append("the program was never seen from outside")
        found += [f"secret seen: {name}" for name in self.host.secrets_in(outcome.everything())]
        found += sorted(f"host saw: {item}" for item in outcome.evidence)
        for stream in ("stdout", "stderr"):
            found += [f"{stream}: {line}" for line in (result.get(stream) or "").splitlines() if line.startswith("PWNED")][:10]
        found += self.judge_result(outcome)
        text = program.get("expect")
        if not self.has_cgroup and program.get("without-cgroup"):
            text = program.get("without-cgroup")
        conditions = [part.strip() for part in text.split(";") if part.strip()]
        if "silent" not in conditions and "held" not in (result.get("stdout") or "").splitlines():
            found.append(f"the attack did not run to its end: stdout {result.get('stdout')!r} stderr {result.get('stderr')!r}")
        for condition in conditions:
            trouble = self.judge_condition(condition, outcome)
            if trouble:
                found.append(f"expected {condition}: {trouble}")
        return found

    def judge_result(self, outcome):
        """What holds for every result, whatever the program did."""
        result, found = outcome.result, []
        status, code, number = result.get("status"), result.get("exit_code"), result.get("signal")
        if status == "internal_error":
            found.append(f"the program caused internal_error: {result.get('reason')}")
        if result.get("success") != (status == "ok"):
            found.append(f"success is {result.get('success')} with status {status}")
        expected = {"ok": 0, "nonzero_exit": code, "signaled": 128 + (number or 0), "wall_limit": 124, "cpu_limit": 124, "denied": 126}.get(status)
        if expected is not None and outcome.exit_code != expected:
            found.append(f"cordon exited with {outcome.exit_code} for status {status}, not {expected}")
        if status not in ("ok", "nonzero_exit") and not result.get("reason"):
            found.append(f"no reason is given for {status}")
        controls = result.get("enforced", {}).get("controls", {})
        for name in REQUIRED:
            if not controls.get(name) or (controls[name] == "none" and name not in self.flags):
                found.append(f"control {name} is not in force: {controls.get(name)}")
        return found

    def judge_condition(self, condition, outcome):
        result, watcher = outcome.result, outcome.watcher
        for sign in ("~", "<", "="):
            if sign in condition:
                key, value = (part.strip() for part in condition.split(sign, 1))
                break
        else:
            return None if condition == "silent" else "unknown condition"
        if key == "status":
            return None if result["status"] in value.split("|") else f"status is {result['status']} ({result.get('reason')}), stderr {result.get('stderr', '')[:300]!r}"
        if key == "exit":
            return None if result["exit_code"] == int(value) else f"exit_code is {result['exit_code']}"
        if key == "signal":
            return None if result["signal"] == int(value) else f"signal is {result['signal']}"
        if key == "denials":
            names = [item.get("what", "") for item in result.get("denials") or []]
            return None if not self.controls.get("denial_reports") or any(value in name for name in names) else f"denials are {names}"
        if key == "files":
            names = sorted(item["path"] for item in result.get("files") or [])
            if sign == "~":
                return None if value in names else f"files are {names}"
            return None if names == ([] if value == "none" else sorted(value.split(","))) else f"files are {names}"
        if key == "truncated":
            return None if result.get(f"{value}_truncated") is True else "it is not"
        if key == "stdout-bytes":
            return None if result["usage"]["stdout_bytes"] == int(value) else f"counted {result['usage']['stdout_bytes']}"
        measured = {"mem": watcher.memory_drop, "procs": watcher.threads_peak - watcher.threads_start, "host-rss": watcher.supervisor_peak,
                    "ends": outcome.seconds, "cpu": outcome.cpu_seconds, "raw": len(outcome.raw), "flushes": watcher.totals.flushes,
                    "disk": watcher.totals.disk_bytes, "kernel-cpu": watcher.totals.kernel_seconds, "huge-pages": watcher.totals.huge_peak}
        if key not in measured:
            return "unknown condition"
        return None if measured[key] < amount(value) else f"measured {measured[key]:.1f}"

    def judge_host(self, mark, outcomes):
        found = []
        left, _ = self.host.wait_alone(2.0)
        for pid in left:
            found.append(f"process left behind: {pid} {read_text(f'/proc/{pid}/cmdline')!r}")
        self.host.kill_strangers()
        found += [f"bait was hit: {name}" for name in self.host.take_hits()]
        if self.host.victim_trouble():
            found.append(self.host.victim_trouble())
        found += [f"left behind in TMPDIR: {path.name}" for path in self.temporary.iterdir()]
        return found + self.host.changes(mark, outcomes[0].process.pid)

    def judge_difference(self, outcomes):
        first, second = (dict(line.split(" ", 1) for line in o.result["stdout"].splitlines() if " " in line) for o in outcomes)
        return [f"'{name}' is the same in two runs: {value}" for name, value in first.items() if second.get(name) == value]

    # Looking in from outside while the program runs.

    def probe_listen(self, pid, outcome):
        calls = ((socket.AF_INET, ("127.0.0.1", int(self.told["LISTEN_PORT"]))), (socket.AF_UNIX, "\0" + self.told["LISTEN_UNIX"]))
        for family, address in calls:
            with socket.socket(family) as caller:
                caller.settimeout(0.2)
                if caller.connect_ex(address) == 0:
                    outcome.evidence.add("reached")

    def probe_inspect(self, pid, outcome):
        for child in descendants(pid):
            status = dict(line.split(":\t", 1) for line in read_text(f"/proc/{child}/status").splitlines() if ":\t" in line)
            if status.get("Name") == "prog" and len(status.get("NSpid", "").split()) > 0:
                outcome.inspected = True
                outcome.uids.add(status["Uid"].split()[0])
                outcome.evidence.update(self.inspect(child, status))
                if not self.concurrent and not session_keyrings() - self.keyrings:
                    outcome.evidence.add("has no session keyring of its own")
            if len(status.get("NSpid", "").split()) > 1 and status["NSpid"].split()[-1] == "1" and open_to_peers(child):
                outcome.evidence.add("the memory of init is open to its own user")
            if status.get("Name") and self.host.secrets_in(read_text(f"/proc/{child}/environ").encode()) and len(status["NSpid"].split()) > 1:
                outcome.evidence.add(f"{status['Name']} in the cell holds the caller's environment")

    def inspect(self, pid, status):
        found = []
        for field, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), *((f"Cap{kind}", "0" * 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))):
            if status.get(field) != value:
                found.append(f"{field} is {status.get(field)}")
        if os.getuid() == 0 and ("0" in status["Uid"].split() or "0" in status["Gid"].split() or status.get("Groups", "").split()):
            found.append(f"host ids: {status['Uid']} / {status['Gid']} / groups {status.get('Groups')}")
        kinds = ["user", "pid", "mnt", "net", "ipc", "uts"] + (["cgroup"] if self.controls.get("cgroupns") else [])
        for kind in kinds:
            try:
                if os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}"):
                    found.append(f"shares the {kind} namespace of the host")
            except OSError:
                pass
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if int(fd) > 2 or not target.startswith(("pipe:", "/dev/null")):
                    found.append(f"holds descriptor {fd}: {target}")
        except OSError:
            pass
        if self.host.secrets_in(read_text(f"/proc/{pid}/environ").encode()):
            found.append("has the caller's environment")
        for line in read_text(f"/proc/{pid}/mountinfo").splitlines():
            fields, kind = line.split(" - ")[0].split(), line.split(" - ")[1].split()[0]
            flags = set(fields[5].split(","))
            if kind not in ("tmpfs", "proc", "devpts", "devtmpfs", "mqueue") and "ro" not in flags:
                found.append(f"{fields[4]} ({kind}) is mounted writable")
            if "nosuid" not in flags:
                found.append(f"{fields[4]} is mounted without nosuid")
        return found

    def look_at_terminal(self, terminal, outcome):
        os.set_blocking(terminal, False)
        try:
            if os.read(terminal, 100):
                outcome.evidence.add("typed")
        except BlockingIOError:
            pass

    # Without a cell.

    def bare(self, program):
        """Runs the attack with no cell round it; returns the evidence that it got through."""
        mark = "mark" + secrets.token_hex(8)
        told = self.host.environment(mark)
        self.told = told
        as_nobody = program.get("bare").endswith("as nobody") and os.getuid() == 0
        with tempfile.TemporaryDirectory(prefix="contain-bare-", dir="/var/tmp") as work:
            os.chmod(work, 0o777)
            environment = dict(os.environ, CONTAIN_SECRET=self.host.secrets["ENV"], HOME=work, BARE="1", **told)
            outcomes = []
            stages = program.get("stages").split() or [""]
            terminal = None
            if program.get("probe") == "terminal":
                master, terminal = pty.openpty()
                tty.setraw(terminal)
            probe = self.probe_listen if program.get("probe") == "listen" else None

            def drop():
                if as_nobody:
                    nobody = pwd.getpwnam("nobody")
                    os.setgroups([])
                    os.setgid(nobody.pw_gid)
                    os.setuid(nobody.pw_uid)

            for stage in [s for s in stages if s != "&"]:
                command = self.bare_command(program, work, stage)
                concurrent = "&" in stages and stage == stages[0]
                outcomes.append(self.execute(command, environment, probe, directory=work, terminal=terminal, prepare=drop, wait=not concurrent))
                if concurrent:
                    time.sleep(0.3)
            if "&" in stages:
                outcomes[0].finish()
            if terminal is not None:
                self.look_at_terminal(terminal, outcomes[-1])
                os.close(master)
                os.close(terminal)
            evidence = self.bare_evidence(outcomes, mark)
            self.host.restore(mark)
        return evidence, outcomes

    def bare_command(self, program, work, stage):
        if program.get("run") == "c":
            source = Path(work, "source.c")
            source.write_text(program.path.read_text().replace("@BAIT_DIR@", str(self.host.directory)))
            return ["bash", "-c", "gcc source.c -o out; ./out"]
        if program.compiled:
            copy = Path(work, "prog")
            if not copy.exists():
                shutil.copy(self.attack_binary, copy)
            return ["./prog", program.name, *([stage] if stage else [])]
        runner = {"python": "/usr/bin/python3", "bash": "bash", "javascript": "node"}[program.language]
        return [runner, str(program.path), *([stage] if stage else [])]

    def bare_evidence(self, outcomes, mark):
        evidence = set().union(*(o.evidence for o in outcomes))
        output = b"".join(o.raw + o.errors for o in outcomes)
        if b"PWNED" in output:
            evidence.add("pwned")
        if self.host.secrets_in(output):
            evidence.add("secret")
        if self.host.take_hits():
            evidence.add("bait")
        if self.host.victim_trouble():
            evidence.add("victim")
        if self.host.wait_alone(0.2)[0]:
            evidence.add("leftover")
        for change in self.host.changes(mark, patience=0):
            evidence.add("sysv" if "SysV" in change else "mqueue" if "queue" in change else "scribbled" if "inherited" in change else "changed")
        return evidence
