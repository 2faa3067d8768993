"""Owns the bare Debian 12 machines of tests/bare/run: making the root, keeping it for the next time, entering it, and
clearing it away. Knows nothing of what is tried on them.

A root is kept as a tar file in CORDON_BARE_CACHE (default /var/cache/cordon-bare), named by what it was made from. The
host lends its apt sources for Debian, its apt settings for fetching (proxies among them), and its name resolution.
"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("CORDON_BARE_CACHE", "/var/cache/cordon-bare")
SUITES = ("bookworm", "bookworm-updates", "bookworm-security")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
HOSTS = "127.0.0.1\tlocalhost\n::1\t\tlocalhost ip6-localhost ip6-loopback\nff02::1\t\tip6-allnodes\nff02::2\t\tip6-allrouters\n"
LENT = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PERSON = "person"


class Trouble(Exception):
    """What was tried on a machine failed, or no machine could be made; the text says why."""


def output_of(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def debian_sources():
    """The host's own sources for Debian 12, one a line; none where the host is another system."""
    fields = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
    lines = []
    for row in output_of("apt-get", "indextargets", "--format", fields, "Created-By: Packages").splitlines():
        uri, release, component, origin = row.split("|")
        # Without package lists the origin is not known, and the field stays as it was written.
        if release in SUITES and component == "main" and (origin == "Debian" or origin.startswith("$(")):
            lines.append(f"deb [signed-by={KEYRING}] {uri} {release} main")
    return sorted(set(lines))


def apt_settings():
    """The host's settings for fetching packages: `Acquire` with proxies, retries and dates."""
    text = output_of("apt-config", "dump", "Acquire")
    return "".join(line + "\n" for line in text.splitlines() if re.match(r"Acquire::[\w:.-]+ \"[^\"]*\";$", line))


def cached(name, *made_from):
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    return os.path.join(CACHE, f"{name}-{digest}.tar")


def keep(path, make):
    """Makes the file by make(temporary name) unless it is there. Older ones of the same kind go."""
    if os.path.exists(path):
        return path
    os.makedirs(CACHE, exist_ok=True)
    part = f"{path}.{os.getpid()}.part"
    try:
        make(part)
        os.rename(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    kind = os.path.basename(path).rsplit("-", 1)[0]
    for name in os.listdir(CACHE):
        if re.fullmatch(re.escape(kind) + r"-[0-9a-f]{16}\.tar", name) and name != os.path.basename(path):
            os.unlink(os.path.join(CACHE, name))
    return path


def bare_tar(log):
    """Debian 12: what is required, apt, make and git."""
    sources, settings = debian_sources(), apt_settings()

    def make(path):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(settings)
            file.flush()
            argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", "--include=make,git", f"--aptopt={file.name}",
                    "bookworm", path, *(["-"] if sources else [])]
            done = subprocess.run(argv, input="\n".join(sources) + "\n" if sources else "", stdout=log, stderr=log, text=True,
                                  check=False)
        if done.returncode != 0:
            raise Trouble("mmdebstrap could not make a Debian 12 root: without network the first run cannot; later ones take "
                          f"it from {CACHE}")

    return keep(cached("bare", *sources, settings), make)


class Machine:
    """A root made from a tar, used by commands, and removed at the end with whatever still runs in it."""

    def __init__(self, tar, log):
        self.log = log
        # The name shows in the cells' mounts, where the tests look for words that would tell of Cordon.
        self.root = tempfile.mkdtemp(prefix="bare-debian-", dir="/var/tmp")
        os.chmod(self.root, 0o755)
        self.identity = os.stat(self.root).st_dev, os.stat(self.root).st_ino
        try:
            subprocess.run(["tar", "-xpf", tar, "-C", self.root, "--numeric-owner", "--xattrs", "--exclude=./dev/*"], check=True)
            self.resolve_names()
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def path(self, inside):
        return os.path.join(self.root, inside.lstrip("/"))

    def resolve_names(self):
        """As on the host, but for localhost, which is as Debian sets it up."""
        with open("/etc/hosts", encoding="utf-8") as file:
            others = [line for line in file if not re.match(r"\s*(#|127\.|::1|ff02::|$)", line)]
        with open(self.path("/etc/hosts"), "w", encoding="utf-8") as file:
            file.write(HOSTS + "".join(others))
        shutil.copyfile("/etc/resolv.conf", self.path("/etc/resolv.conf"))

    def add_person(self):
        """An ordinary user with a home that nobody else may enter."""
        self.root_does(["useradd", "--create-home", "--key", "HOME_MODE=0700", "--shell", "/bin/bash", PERSON])

    def start(self, argv, user="root", cwd=None, env=None, **popen):
        home = "/root" if user == "root" else f"/home/{user}"
        become = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        full = {"HOME": home, "USER": user, "LOGNAME": user, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "SHELL": "/bin/bash", "TERM": "dumb", "CORDON_ON_BARE_MACHINE": "1",
                **{name: os.environ[name] for name in LENT if name in os.environ}, **(env or {})}
        settle = ["env", "-i", f"--chdir={cwd or home}", *(f"{name}={value}" for name, value in full.items())]
        return subprocess.Popen([os.path.join(HERE, "enter"), self.root, *become, *settle, *argv], stdin=subprocess.DEVNULL,
                                start_new_session=True, **popen)

    def does(self, argv, user="root", cwd=None, env=None, seconds=600):
        """Runs to the end, with what it prints in the log too: (exit code, text)."""
        self.log.write(f"\n{user}$ {' '.join(argv)}\n")
        self.log.flush()
        process = self.start(argv, user, cwd, env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        timer = time.monotonic() + seconds
        try:
            text, _ = process.communicate(timeout=max(1, timer - time.monotonic()))
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Trouble(f"`{' '.join(argv)}` did not end within {seconds} s") from late
        self.log.write(text)
        self.log.flush()
        return process.returncode, text

    def root_does(self, argv, **how):
        code, text = self.does(argv, **how)
        if code != 0:
            raise Trouble(f"`{' '.join(argv)}` ended with {code}: {text[-600:]}")

    def processes(self):
        found = []
        for name in os.listdir("/proc"):
            try:
                at = os.stat(f"/proc/{name}/root") if name.isdigit() else None
            except OSError:
                continue
            if at and (at.st_dev, at.st_ino) == self.identity:
                found.append(int(name))
        return found

    def end(self):
        """Kills what runs in the root, which takes its mounts along, and removes the root."""
        deadline = time.monotonic() + 20
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        shutil.rmtree(self.root, ignore_errors=True)
