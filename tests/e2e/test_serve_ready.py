"""What the daemon knows before it says that it serves: that it can read what it needs, and run what it offers."""
import os
import pathlib
import shutil
import tempfile

import pytest

import serve_fixtures  # noqa: F401  puts the support folder on the path
from daemon import Daemon
from helpers import CORDON, REPOSITORY, wait_for

PROGRAMS = ("cordon", "cordon-service", "cordon-warden", "libcordon_zygote.so")
FORTY_TWO = {"python": "print(6*7)", "javascript": "console.log(6*7)", "bash": "echo $((6*7))", "ruby": "puts 6*7",
             "c": '#include <stdio.h>\nint main(void) { puts("42"); }'}


@pytest.fixture
def closed_tree():
    """The programs and manifests in a directory that only its owner may enter, as a clone beneath /root is."""
    with tempfile.TemporaryDirectory(prefix="cordon-closed-", dir="/var/tmp") as top:
        os.chmod(top, 0o700)
        tree = pathlib.Path(top)
        (tree / "build").mkdir()
        for name in PROGRAMS:
            shutil.copy2(os.path.join(os.path.dirname(CORDON), name), tree / "build" / name)
        shutil.copytree(REPOSITORY / "languages", tree / "languages")
        yield tree


def execute(daemon, **request):
    answer = daemon.post("/v1/execute", request)
    assert answer.status == 200, answer
    return answer.json


def test_everything_is_read_before_rights_are_given_up(closed_tree):
    with Daemon(binary=str(closed_tree / "build" / "cordon")) as daemon:
        for language, code in FORTY_TWO.items():
            for _ in range(3):  # cold, then in waiting cells: interpreters that were started and forked
                found = execute(daemon, language=language, code=code)
                assert found["status"] == "ok" and found["stdout"] == "42\n", found
        slip = execute(daemon, language="python", code="print(undefined)")
        assert slip["error"]["type"] == "NameError" and slip["error"]["hint"], slip
        tests = {"framework": "unittest", "files": {"test_a.py": "import unittest\nclass A(unittest.TestCase):\n"
                                                                  "    def test_one(self): self.assertEqual(1, 1)\n"}}
        judged = daemon.post("/v1/tests", {"language": "python", "code": "x = 1", "tests": tests})
        assert judged.status == 200 and judged.json["tests"]["passed"] == 1, judged
        # The library that interpreters load to be forked is a file of the tree, too.
        wait_for(lambda: execute(daemon, language="python", code=FORTY_TWO["python"])["enforced"]["shares_layout"], 20)
