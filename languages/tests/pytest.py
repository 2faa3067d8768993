"""Runs test files with pytest and reports each test as a line of JSON. Arguments: the report, then the files."""
import json
import os
import sys

report, files = sys.argv[1], sys.argv[2:]
out = open(report, "w", encoding="utf-8")


def tell(**row):
    out.write(json.dumps(row) + "\n")
    out.flush()


try:
    import pytest
except ImportError:
    tell(missing=True)
    sys.exit(3)


def message(found):
    crash = getattr(found.longrepr, "reprcrash", None)
    if crash is not None:
        return f"{os.path.basename(crash.path)}:{crash.lineno}: {crash.message}"
    if isinstance(found.longrepr, tuple):
        return str(found.longrepr[-1])
    return str(found.longrepr or "")


class Report:
    """A test is set up, called and torn down; the worst of the three counts."""

    rank = {"passed": 0, "skipped": 1, "failed": 2}

    def __init__(self):
        self.tests = {}

    def pytest_runtest_logreport(self, report):
        row = self.tests.setdefault(report.nodeid, {"name": report.nodeid, "status": "passed", "wall_ms": 0.0})
        row["wall_ms"] += report.duration * 1000
        if self.rank[report.outcome] > self.rank[row["status"]]:
            row["status"], row["message"] = report.outcome, message(report)
        if report.when == "teardown":
            tell(**self.tests.pop(report.nodeid))

    def pytest_collectreport(self, report):
        if report.failed:
            tell(name=report.nodeid, status="failed", message=message(report))


sys.argv = sys.argv[:1]
sys.path[0] = os.getcwd()
sys.exit(int(pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[Report()])))
