"""What the daemon knows before it says that it serves: that it can read what it needs, and run what it offers."""
import os
import pathlib
import shutil
import signal

import pytest

from helpers import REPOSITORY, cordon, need, wait_for
from serve_fixtures import get_json, open_dir, problem  # noqa: F401
from daemon import OPTIONAL, Daemon  # isort: skip
from ordinary import copy_programs, ordinary  # noqa: F401

FORTY_TWO = {"python": "print(6*7)", "javascript": "console.log(6*7)", "bash": "echo $((6*7))", "ruby": "puts 6*7",
             "c": '#include <stdio.h>\nint main(void) { puts("42"); }'}


@pytest.fixture
def closed_tree(tmp_path):
    """The programs and manifests in a directory that only its owner may enter, as a clone beneath /root is."""
    tmp_path.chmod(0o700)
    copy_programs(tmp_path)
    return tmp_path


@pytest.fixture
def broken_language(open_dir):
    """Manifests of which one names a program that fails."""
    shutil.copytree(REPOSITORY / "languages", open_dir / "languages")
    (open_dir / "languages" / "cobbled.yaml").write_text(
        "id: cobbled\nname: Cobbled\nextensions: [cob]\nfile: main.cob\nversion: [bash, --version]\n"
        "run:\n  argv: [bash, -c, 'echo the heel came off >&2; exit 3']\n")
    (open_dir / "languages" / "notes" / "cobbled.yaml").write_text(
        "examples:\n  - name: shoe\n    code: x\n    output: \"42\\n\"\n")
    return open_dir / "languages"


def proven(daemon):
    """What /readyz says when nothing is unproven any more."""
    found = get_json(daemon, "/readyz")
    return None if "unproven" in found["languages"].values() else found


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


def test_every_installed_language_is_proven():
    with Daemon(prove=True) as daemon:
        found = wait_for(lambda: proven(daemon), 120)
        assert found["status"] == "ready" and found["isolation"] == {"container": "works"} and not found["failures"], found
        assert {"bash", "python", "javascript"} <= set(found["languages"]), found


def test_a_language_that_fails_is_named(broken_language):
    need("bash")
    with Daemon("--set", f"languages_dir={broken_language}", prove=True) as daemon:
        found = wait_for(lambda: proven(daemon), 120)
        assert found["status"] == "degraded" and found["languages"]["cobbled"] == "fails", found
        assert [each["language"] for each in found["failures"]] == ["cobbled"], found
        assert "the heel came off" in found["failures"][0]["cause"], found
        [told] = daemon.log("language_fails")
        assert "cobbled" in told["error"], told


def test_a_compiler_that_is_missing_behind_a_shell_is_named(broken_language):
    need("bash")
    (broken_language / "headless.yaml").write_text(
        "id: headless\nname: Headless\npackages: [headless-compiler]\nextensions: [hls]\nfile: main.hls\n"
        "version: [no-such-compiler, --version]\ncompile:\n  argv: [bash, -c, 'no-such-compiler main.hls']\n  outputs: [a.out]\n"
        "run:\n  argv: [bash, -c, ./a.out]\n")
    with Daemon("--set", f"languages_dir={broken_language}") as daemon:
        assert "headless" not in get_json(daemon, "/readyz")["languages"]
        answer = daemon.post("/v1/execute", {"language": "headless", "code": "x"})
        assert answer.status == 400, answer
        assert "no-such-compiler is not installed" in answer.json["detail"] and "headless-compiler" in answer.json["hint"], answer


def test_a_proof_under_way_does_not_delay_the_end():
    with Daemon(prove=True) as daemon:
        wait_for(lambda: "works" in get_json(daemon, "/readyz")["languages"].values(), 60)
        assert daemon.stop() == 0


def test_a_daemon_that_refuses_every_run_does_not_say_that_it_serves(ordinary):
    with Daemon(**ordinary.daemon()) as daemon:
        assert " but refuses runs: " in daemon.ready and " serves " not in daemon.ready, daemon.ready
        assert "cgroup" in daemon.ready and "systemd-run" in daemon.ready and "CORDON_OPTIONAL=cgroup" in daemon.ready
        found = problem(daemon.get("/readyz"), 503, "not_ready")
        assert "cgroup" in found["detail"] and "systemd-run" in found["hint"], found
        assert daemon.log("not_ready")
        assert daemon.post("/v1/execute", {"language": "bash", "code": "echo 42"}).status == 422
        assert execute(daemon, language="bash", code="echo 42", optional=["cgroup"])["stdout"] == "42\n"


def test_a_reload_proves_anew(ordinary):
    config = ordinary.home / "cordon.yaml"
    config.write_text("optional: []\n")
    with Daemon("--config", config, **ordinary.daemon()) as daemon:
        assert daemon.get("/readyz").status == 503
        config.write_text("optional: [cgroup]\n")
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: daemon.get("/readyz").status == 200, 20)
        assert execute(daemon, language="bash", code="echo 42")["stdout"] == "42\n"
        config.write_text("optional: []\n")
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: daemon.get("/readyz").status == 503, 20)


def test_the_environment_lets_a_daemon_go_without_a_control(ordinary):
    with Daemon(**ordinary.daemon(env={"CORDON_OPTIONAL": "cgroup"})) as daemon:
        assert " serves at " in daemon.ready and get_json(daemon, "/readyz")["status"] == "ready"
        assert execute(daemon, language="bash", code="echo 42")["stdout"] == "42\n"
        unittest = {"framework": "unittest", "files": {"test_a.py": "import unittest\nclass A(unittest.TestCase):\n"
                                                                     "    def test_one(self): self.assertEqual(1, 1)\n"}}
        for tests in (unittest, {"cases": [{"expected": "1"}]}):
            judged = daemon.post("/v1/tests", {"language": "python", "code": "print(1)", "tests": tests})
            assert judged.status == 200 and judged.json["tests"]["passed"] == 1, judged
        [told] = daemon.log("control_missing")
        assert told["control"] == "cgroup" and "systemd-run" in told["fix"], told


@pytest.fixture
def machine_with_a_user(tmp_path):
    """A prefix under which /etc/passwd also has the user cordon."""
    (tmp_path / "passwd").write_text(pathlib.Path("/etc/passwd").read_text() + "cordon:x:23456:23456::/:/usr/sbin/nologin\n")
    return ("unshare", "--mount", "sh", "-c", f"mount --bind {tmp_path}/passwd /etc/passwd && exec \"$@\"", "sh")


def ids(daemon):
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return {line.split(":")[0]: line.split()[1:] for line in status.splitlines() if line.startswith(("Uid", "Gid"))}


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser's daemon becomes somebody else")
def test_the_daemon_has_a_user_of_its_own(machine_with_a_user):
    with Daemon(prefix=machine_with_a_user) as daemon:
        assert ids(daemon) == {"Uid": ["23456"] * 4, "Gid": ["23456"] * 4}
        assert not daemon.log("shared_user")
        assert execute(daemon, language="bash", code="echo 42")["stdout"] == "42\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser's daemon becomes somebody else")
def test_the_shared_user_is_taken_with_a_warning(machine_with_a_user):
    with Daemon("--user", "nobody", prefix=machine_with_a_user) as daemon:
        assert ids(daemon)["Uid"] == ["65534"] * 4
        [told] = daemon.log("shared_user")
        assert told["user"] == "nobody" and "cordon" in told["fix"], told
