"""Owns the bare Debian 12 machines of tests/bare/run: making the root, keeping it for the next time, entering it, and
clearing it away. Knows nothing of what is tried on them.

What a root begins with is kept as a directory in CORDON_BARE_CACHE (default /var/cache/cordon-bare), named by what it was
made from. The host lends its apt sources for Debian, its apt settings for fetching (proxies among them), and its name
resolution.
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


def keep(kind, made_from, make):
    """The kept directory of that kind, made by make(directory) where there is none. Older ones of the kind go."""
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    path = os.path.join(CACHE, f"{kind}-{digest}")
    if os.path.isdir(path):
        return path
    os.makedirs(CACHE, exist_ok=True)
    os.chmod(CACHE, 0o700)  # set-id files in it may be old ones
    part = tempfile.mkdtemp(prefix=f"{kind}.", dir=CACHE)
    os.chmod(part, 0o755)
    try:
        make(part)
        os.rename(part, path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    for name in os.listdir(CACHE):
        if re.fullmatch(re.escape(kind) + "-[0-9a-f]{16}", name) and name != os.path.basename(path):
            shutil.rmtree(os.path.join(CACHE, name), ignore_errors=True)
    return path


def bare_root(log):
    """Debian 12: what is required, apt, make and git."""
    sources, settings = debian_sources(), apt_settings()

    def make(path):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(settings)
            file.flush()
            argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=directory", "--include=make,git",
                    f"--aptopt={file.name}", "bookworm", path, *(["-"] if sources else [])]
            done = subprocess.run(argv, input="\n".join(sources) + "\n" if sources else "", stdout=log, stderr=log, text=True,
                                  check=False)
        if done.returncode != 0:
            raise Trouble("mmdebstrap could not make a Debian 12 root: without network the first run cannot; later ones take "
                          f"it from {CACHE}")

    return keep("bare", [*sources, settings], make)


def copy(source, target):
    done = subprocess.run(["cp", "-a", "--reflink=auto", f"{source}/.", target], check=False)
    if done.returncode != 0:
        raise Trouble(f"cannot copy {source} to {target}")


class Machine:
    """A root that begins as the directory `base`, is used by commands, and is removed at the end with whatever still runs
    in it. `light`: only changes are stored (overlayfs). `lent`: a directory of the host that keeps what its compilers made
    (ccache), or None."""

    def __init__(self, base, log, light=False, lent=None):
        self.log, self.lent, self.holder, self.identity = log, lent, None, None
        # The name shows in the cells' mounts, where the tests look for words that would tell of Cordon.
        self.store = tempfile.mkdtemp(prefix="bare-debian-", dir="/var/tmp")
        os.chmod(self.store, 0o755)
        try:
            if not light:
                copy(base, self.store)
            self.hold(base if light else "")
            self.resolve_names()
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def hold(self, lower):
        env = {**os.environ, "BARE_LOWER": lower, "BARE_LENT": self.lent or ""}
        self.holder = subprocess.Popen([os.path.join(HERE, "enter"), self.store], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=self.log, env=env, start_new_session=True)
        if self.holder.stdout.readline() != b"ready\n":
            raise Trouble("no mount namespace could be made for the root: tests/bare/enter failed")
        self.identity = self.root_of(self.holder.pid)

    @staticmethod
    def root_of(pid):
        at = os.stat(f"/proc/{pid}/root")
        return at.st_dev, at.st_ino

    def path(self, inside):
        return f"/proc/{self.holder.pid}/root/{inside.lstrip('/')}"

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
        if self.lent:
            full["CCACHE_DIR"] = "/var/cache/lent"
        settle = ["env", "-i", f"--chdir={cwd or home}", *(f"{name}={value}" for name, value in full.items())]
        join = ["nsenter", f"--target={self.holder.pid}", "--mount", "--root", "--wd"]
        return subprocess.Popen([*join, *become, *settle, *argv], stdin=subprocess.DEVNULL, start_new_session=True, **popen)

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
                if name.isdigit() and self.root_of(name) == self.identity:
                    found.append(int(name))
            except OSError:
                continue
        return found

    def end(self):
        """Kills what runs in the root, which takes its mounts along, and removes the root."""
        deadline = time.monotonic() + 20
        while self.identity and (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.holder:
                self.holder.wait()
            time.sleep(0.02)
        shutil.rmtree(self.store, ignore_errors=True)
