"""Work that the kernel does for a cell outside its group: bounds that are seen from the host."""
import os
import re
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
    process = subprocess.Popen([cordon_path(), "run", *how, "--wall", f"{CELL_SECONDS}s", "-l", "bash", "-c", f"exec sleep {CELL_SECONDS}"])
    try:
        assert bound(sleeper(process.pid), disk) == [str(256 << 20)] * 2
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
