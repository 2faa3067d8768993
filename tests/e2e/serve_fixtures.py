"""What the tests of the daemon share: the support folder on the path, one daemon for a file, and words for waiting."""
import os
import pathlib
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import daemon as support  # noqa: E402
from helpers import marked, wait_for  # noqa: E402

# With `warm` off, as everywhere that its arguments have to be seen from outside.
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(60)"


@pytest.fixture(scope="module")
def daemon():
    """One for all tests of a file that do not change it."""
    with support.Daemon() as running:
        yield running


@pytest.fixture
def open_dir():
    """A directory that the daemon's own user can enter too, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="cordon-test-", dir=support.QUICK) as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def get_json(daemon, path, **how):
    answer = daemon.get(path, **how)
    assert answer.status == 200, answer
    return answer.json


def problem(answer, status, code=None, field=None):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json", answer
    found = answer.json
    assert found["status"] == status and found["detail"], found
    assert code in (None, found["code"]), found
    assert field is None or found.get("field") == field, found
    return found


def runs(daemon):
    """How many runs have a place."""
    for line in daemon.get("/metrics", check=False).body.decode().splitlines():
        if line.startswith("cordon_runs_running "):
            return int(float(line.split()[1]))
    raise AssertionError("no cordon_runs_running in /metrics")


def wait_marked(word, seconds=20):
    return wait_for(lambda: marked(word), seconds)


def seconds_until_gone(word, seconds=10):
    """How long it took until no process had the word."""
    begin = time.monotonic()
    wait_for(lambda: not marked(word), seconds, 0.001)
    return time.monotonic() - begin


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
