"""The runners compared: each turns a program's argv into the argv that runs it isolated.

All see the same policy as a cell where they can express it: own namespaces, read-only /usr, small tmpfs for the rest, no
capabilities, a cleared environment, the cell's own system call filter.
"""
import json
import os
import shutil
import subprocess

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/work", "LANG": "C.UTF-8", "TZ": "UTC", "TMPDIR": "/tmp",
               "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
WORKLOADS = {"bash": (["/bin/bash", "-c", ":"], ["-l", "bash", "-c", ":"], b""),
             "python": (["/usr/bin/python3", "-c", "print('hello')"], ["-l", "python", "-c", "print('hello')"], b"hello\n")}
FILTER_FD = 9


class Peer:
    """`argv(workload)` is what to spawn; `open_filter` asks for the filter on descriptor FILTER_FD."""

    def __init__(self, name, argv, open_filter=False, note=""):
        self.name, self.argv, self.open_filter, self.note = name, argv, open_filter, note


def plain():
    return Peer("plain, no isolation", lambda workload: WORKLOADS[workload][0])


def cordon(binary):
    flags, note = [], ""
    if subprocess.run([binary, "doctor"], capture_output=True, check=False).returncode != 0:
        flags, note = ["--optional", "cgroup"], "without control groups: none can be had here"
    return Peer("cordon cold", lambda workload: [binary, "run", *flags, *WORKLOADS[workload][1]], note=note)


def bubblewrap():
    argv = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
            "--uid", "1000", "--gid", "1000", "--hostname", "cordon", "--cap-drop", "ALL",
            "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin",
            "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
            "--tmpfs", "/tmp", "--tmpfs", "/work", "--proc", "/proc", "--dev", "/dev", "--chdir", "/work",
            "--seccomp", str(FILTER_FD)]
    for name, value in ENVIRONMENT.items():
        argv += ["--setenv", name, value]
    return Peer("bubblewrap", lambda workload: [*argv, *WORKLOADS[workload][0]], open_filter=True)


def firejail():
    argv = [shutil.which("firejail"), "--quiet", "--noprofile", "--net=none", "--private", "--private-dev",
            "--caps.drop=all", "--seccomp", "--nonewprivs", "--noroot"]
    return Peer("firejail", lambda workload: [*argv, *WORKLOADS[workload][0]])


def oci(runtime, work):
    """crun and runc: one bundle per workload, the container's name made fresh by the runtime's own process id."""
    namespaces = ["pid", "mount", "network", "ipc", "uts", "cgroup"]

    def bundle(workload):
        path = os.path.join(work, runtime, workload)
        root = os.path.join(path, "root")
        if not os.path.exists(root):
            for name in ("usr", "proc", "dev", "tmp", "work"):
                os.makedirs(os.path.join(root, name))
            for name in ("bin", "sbin", "lib", "lib64"):
                os.symlink("usr/" + name, os.path.join(root, name))
            mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                      {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]}]
            mounts += [{"destination": where, "type": "tmpfs", "source": "tmpfs"} for where in ("/dev", "/tmp", "/work")]
            config = {"ociVersion": "1.0.2", "root": {"path": "root", "readonly": True}, "hostname": "cordon",
                      "process": {"terminal": False, "cwd": "/work", "args": WORKLOADS[workload][0],
                                  "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
                                  "user": {"uid": 1000, "gid": 1000}, "noNewPrivileges": True},
                      "mounts": mounts, "linux": {"namespaces": [{"type": name} for name in namespaces]}}
            with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
        return path

    return Peer(runtime, lambda workload: ["/bin/sh", "-c", f'exec {runtime} run --bundle "$0" "bench-$$"', bundle(workload)])


def all_of(binary, work):
    found = [cordon(binary)]
    if shutil.which("bwrap"):
        found.append(bubblewrap())
    found.append(plain())
    if shutil.which("firejail"):
        found.append(firejail())
    return found + [oci(runtime, work) for runtime in ("crun", "runc") if shutil.which(runtime) and os.getuid() == 0]
