"""What this machine and user cannot do is left out of the selection by its marker; what is merely missing is a skip, and
CORDON_MUST_RUN turns a skip into a failure, unless it is for a language that set-up does not install."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from warm_programs import NotSetUp  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*names): cgroup, root, resource (CAP_SYS_RESOURCE): what the program's bound rests on")


def may_set_floors():
    status = Path("/proc/self/status").read_text()
    return int(status.split("CapEff:")[1].split()[0], 16) >> 24 & 1


def impossible(needs):
    if "resource" in needs and not may_set_floors():
        return True
    if os.getuid() == 0:
        return False
    if "root" in needs:
        return True
    flags = os.environ.get("CORDON_TEST_FLAGS", "")
    delegated = any(os.access(path, os.W_OK) for path in own_cgroups())
    return "cgroup" in needs and ("optional cgroup" in flags or not delegated)


def own_cgroups():
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        root = "/sys/fs/cgroup" if number == "0" and not controllers else f"/sys/fs/cgroup/{controllers}"
        yield f"{root}{path}/cgroup.procs"


def pytest_collection_modifyitems(config, items):
    out = [item for item in items if any(impossible(mark.args) for mark in item.iter_markers("needs"))]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    must_run = os.environ.get("CORDON_MUST_RUN") and not isinstance(call.excinfo and call.excinfo.value, NotSetUp)
    if report.skipped and not hasattr(report, "wasxfail") and must_run:
        report.outcome = "failed"
        report.longrepr = f"skipped under CORDON_MUST_RUN: {call.excinfo.value if call.excinfo else ''}"
