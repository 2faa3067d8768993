"""Several wardens on one machine that do not see each other: each is in a pid namespace of its own, with the same pids."""
import json
import os
import subprocess

import pytest

from judge import cordon_path

RUNS = 6
PROGRAM = "cat /proc/self/uid_map; date +%s.%N; sleep 0.1; date +%s.%N"


def start(how):
    loop = f"for i in {' '.join(map(str, range(RUNS)))}; do {cordon_path()} run --json {how} -l bash -c '{PROGRAM}'; done"
    return subprocess.Popen(["unshare", "--fork", "--pid", "--mount-proc", "bash", "-c", loop], stdout=subprocess.PIPE, text=True)


def spans(process):
    """Of each run: from when to when its program ran, and the host ids it had."""
    found = []
    for line in process.communicate(timeout=60)[0].splitlines():
        result = json.loads(line)
        assert result["status"] == "ok", result
        root, user, begin, end = result["stdout"].splitlines()
        found.append((float(begin), float(end), {root.split()[1], user.split()[1]}))
    assert len(found) == RUNS
    return found


@pytest.mark.needs("root")
@pytest.mark.parametrize("how", ["", "--warm"], ids=["cold", "warm"])
def test_wardens_in_other_pid_namespaces_share_nothing(how):
    first, second = [spans(process) for process in [start(how), start(how)]]
    beside = [(a, b) for a in first for b in second if a[0] < b[1] and b[0] < a[1]]
    assert beside, "no two runs were at the same time"
    for (_, _, ids), (_, _, others) in beside:
        assert not ids & others, f"two cells at once have the same host ids: {ids & others}"
    assert all(ids != {"0", "1000"} for _, _, ids in first + second) or os.getuid() != 0
