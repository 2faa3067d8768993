"""Work that the kernel does for a cell outside its group: bounds that are seen from the host."""
import ctypes
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from engine import Engine  # noqa: E402
from host import cordon_cgroups, descendants, read_text  # noqa: E402
from judge import cordon_path  # noqa: E402

CELL_SECONDS = "30"
FLAGS = shlex.split(os.environ.get("CORDON_TEST_FLAGS", ""))
PR_SET_MEMORY_MERGE = 67


def groups(pid):
    """Controller -> directory of the process's group."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in (controllers or "unified").split(","):
            found[name] = Path("/sys/fs/cgroup") / (controllers if controllers else "") / path.lstrip("/")
    return found


def disk_of_usr():
    device = os.stat("/usr").st_dev
    place = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not place.exists():
        return None
    return (place.resolve().parent if (place / "partition").exists() else place.resolve()).joinpath("dev").read_text().strip()


def bound(pid, disk):
    """The throttle on the process's group, in bytes a second: read and write."""
    places = groups(pid)
    if "blkio" in places:
        return [dict(line.split() for line in (places["blkio"] / f"blkio.throttle.{way}_bps_device").read_text().splitlines()).get(disk)
                for way in ("read", "write")]
    line = next((line for line in (places["unified"] / "io.max").read_text().splitlines() if line.startswith(disk)), "")
    return re.findall(r"[rw]bps=(\d+)", line)


def sleeper(engine_pid):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in descendants(engine_pid):
            if read_text(f"/proc/{pid}/comm") == "sleep\n":
                return pid
        time.sleep(0.01)
    raise AssertionError("no cell came up")


@pytest.mark.needs("root")
@pytest.mark.parametrize("how", [[], ["--warm"]], ids=["cold", "warm"])
def test_every_cell_is_bounded_in_what_it_reads(how):
    disk = disk_of_usr()
    if not disk:
        pytest.skip("/usr lies on no block device")
    process = subprocess.Popen([cordon_path(), "run", *FLAGS, *how, "--wall", f"{CELL_SECONDS}s", "-l", "bash", "-c", f"exec sleep {CELL_SECONDS}"])
    try:
        assert bound(sleeper(process.pid), disk) == [str(256 << 20)] * 2
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("how", [[], ["--warm"]], ids=["cold", "warm"])
def test_a_callers_merging_of_pages_is_not_the_cells(how):
    """A process and all its children may be set to have equal pages merged, as systemd does for a service that asks."""
    libc = ctypes.CDLL(None, use_errno=True)

    def merged(pid):
        return "ksm_merge_any: yes" in read_text(f"/proc/{pid}/ksm_stat")

    process = subprocess.Popen([cordon_path(), "run", *FLAGS, *how, "--wall", f"{CELL_SECONDS}s", "-l", "bash", "-c", f"exec sleep {CELL_SECONDS}"],
                               preexec_fn=lambda: libc.prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0))
    try:
        if not merged(process.pid):
            pytest.skip("this kernel merges no whole processes, or does not tell")
        assert not merged(sleeper(process.pid))
    finally:
        process.terminate()
        process.wait()


@pytest.mark.needs("root")
def test_no_group_is_left():
    """Groups of this kind serve many cells; they go with the warden."""
    with Engine() as engine:
        engine.many(20, "bash", "echo")
        warden = engine.warden
    deadline = time.monotonic() + 5
    while (left := {path for path in cordon_cgroups() if f"/cordon-{warden}-" in path}) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, left


# Groups that are gone and still there

MANY = 2100  # more than the warden lets be
RUNS = 48
HOLDER = r"""
import mmap, os, sys
place, count, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(file, "r+b") as held:
    held.truncate(count * 4096)
    pages = mmap.mmap(held.fileno(), count * 4096)
    for number in range(count):
        group = f"{place}/held-{os.getpid()}-{number}"
        os.mkdir(group)
        with open(f"{group}/tasks", "w") as tasks: tasks.write("0")
        pages[number * 4096] = 1
        with open(f"{place}/tasks", "w") as tasks: tasks.write("0")
        os.rmdir(group)
"""


def dying():
    rows = {line.split()[0]: int(line.split()[2]) for line in read_text("/proc/cgroups").splitlines()[1:]}
    return rows["memory"] - rows["pids"]


@pytest.fixture
def many_dying(tmp_path):
    """A page of one file for each group: they go when the file does."""
    memory = Path("/sys/fs/cgroup/memory")
    if not (memory / "tasks").exists():
        pytest.skip("the groups of cgroup v2 are tried in the virtual machine")
    file = Path("/dev/shm") / f"cordon-held-{os.getpid()}"
    file.touch()
    try:
        subprocess.run([sys.executable, "-c", HOLDER, str(memory), str(MANY), str(file)], check=True)
        yield
    finally:
        file.unlink()


def cold_files(count):
    """Files of /usr that are in nobody's page cache."""
    found = []
    for path in Path("/usr/lib/python3").rglob("*.py"):
        if len(found) == count:
            break
        if 4096 < path.stat().st_size < 200000:
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            found.append(str(path))
    return found


@pytest.mark.needs("root")
def test_groups_do_not_pile_up_without_end(many_dying):
    """Each run is the first to read a file, whose pages stay charged to its group."""
    with Engine(threads=1) as engine:
        engine.run_warm("bash", "echo")
        before = dying()
        for file in cold_files(RUNS):
            result = engine.run_warm("bash", f"read -r line < {file}; mapfile lines < {file}; echo ${{#lines[@]}}")
            assert result["status"] == "ok", result
        engine.settled()
        grown = dying() - before
    assert grown < RUNS / 2, f"{grown} of {RUNS} groups stayed"
