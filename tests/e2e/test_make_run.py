"""tools/serve, which `make run` starts: what it says, that it serves, and that Ctrl-C and a busy port end it plainly."""
import json
import os
import re
import shlex
import signal
import socket
import subprocess

import pytest

from helpers import CORDON, REPOSITORY, wait_for
from serve_fixtures import open_dir  # noqa: F401

BUILD = os.path.dirname(CORDON)


@pytest.fixture
def address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def start(address, log, home):
    env = {name: value for name, value in os.environ.items() if not name.startswith("CORDON_")}
    with open(log, "wb") as file:
        return subprocess.Popen([REPOSITORY / "tools" / "serve", BUILD, "--data-dir", home / "data"], stdout=file,
                                stderr=subprocess.STDOUT, env={**env, "CORDON_LISTEN": address}, start_new_session=True)


@pytest.fixture
def home(open_dir):  # noqa: F811
    return open_dir


def test_it_says_how_to_try_it_and_how_to_end_it(address, home, tmp_path):
    process = start(address, tmp_path / "log", home)
    try:
        text = wait_for(lambda: (found := (tmp_path / "log").read_text()) and " serves at " in found and found, 60)
        assert "Ctrl-C ends it" in text
        curl = shlex.split(re.search(r"^  (curl .*)$", text, re.M)[1])
        done = subprocess.run(curl, stdout=subprocess.PIPE, timeout=60, check=True)
        assert json.loads(done.stdout)["stdout"] == "42\n", done
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_busy_port_is_named(address, home, tmp_path):
    host, port = address.split(":")
    with socket.create_server((host, int(port))):
        process = start(address, tmp_path / "log", home)
        assert process.wait(30) == 125
    text = (tmp_path / "log").read_text()
    assert f"cannot listen at {address}: Address already in use" in text and "CORDON_LISTEN" in text, text
