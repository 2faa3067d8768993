"""API keys from the command line: shown once, listed, removed, and refused when they make no sense."""
import json
import os
import re
import stat

import pytest

from helpers import cordon
from serve_fixtures import open_dir  # noqa: F401

TEXT = re.compile(r"cordon_([0-9a-f]{16})_[A-Za-z0-9_-]{43}\n")


@pytest.fixture
def data(open_dir):
    return open_dir / "data"


def key(data, action, *arguments, code=0):
    done = cordon("key", action, "--data-dir", data, *arguments)
    assert done.code == code, done
    return done


def listed(data):
    return json.loads(key(data, "ls", "--json").text)["items"]


def test_life_of_a_key(data):
    made = key(data, "new", "--name", "ci")
    text = TEXT.fullmatch(made.text)
    assert text, made
    assert made.errors == f"cordon: made key {text[1]} (ci); it is shown this once:\n"
    assert stat.S_IMODE(os.stat(data).st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in data.iterdir())
    secret = made.text.strip()[24:]
    assert not any(secret.encode() in file.read_bytes() for file in data.iterdir())
    found = listed(data)[0]
    assert (found["id"], found["name"], found["scopes"], found["expires_at"]) == (text[1], "ci", ["run", "read"], None)
    assert found["concurrent"] is None and found["ceilings"] == {} and found["fresh"] is False
    assert text[1] in key(data, "ls").text
    assert key(data, "rm", text[1]).errors == f"cordon: removed key {text[1]}\n"
    assert listed(data) == []
    assert "there is no key" in key(data, "rm", text[1], code=2).errors


def test_everything_a_key_has(data):
    key(data, "new", "--name", "all", "--scopes", "run,session,read,admin", "--concurrent", "4", "--per-minute", "60",
        "--cpu-per-day", "2h", "--ceiling", "memory_bytes=1g", "--ceiling", "cpus=0.5", "--ceiling", "wall_ms=30s",
        "--isolation", "container", "--network", "none", "--fresh", "--expires", "30d")
    found = listed(data)[0]
    assert found["scopes"] == ["run", "session", "read", "admin"]
    assert (found["concurrent"], found["per_minute"], found["cpu_s_per_day"]) == (4, 60, 7200)
    assert found["ceilings"] == {"memory_bytes": 1 << 30, "cpus": 0.5, "wall_ms": 30000}
    assert (found["isolation"], found["network"], found["fresh"]) == ("container", "none", True)
    assert found["expires_at"] > found["created_at"]
    shown = key(data, "ls").text
    assert "4 at a time, 60 a minute, 7200 s of processor time a day" in shown and "memory_bytes 1073741824" in shown


def test_keys_differ(data):
    texts = {key(data, "new", "--name", "same").text for _ in range(4)}
    assert len(texts) == 4 and len(listed(data)) == 4


@pytest.mark.parametrize("arguments, error", [
    ([], "what about keys? expected new, ls or rm"), (["old"], "'old' is not known; expected new, ls or rm"),
    (["new"], "a key needs a name"), (["new", "--name", ""], "expected 1 to 64"), (["new", "--name", "x" * 65], "expected 1 to 64"),
    (["new", "--name", "a\nb"], "control character"), (["new", "--name", "x", "more"], "unexpected argument 'more'"),
    (["new", "--name", "x", "--scopes", "run,fly"], "--scopes: 'fly' is no scope; expected run, session, read or admin"),
    (["new", "--name", "x", "--scopes", ""], "is no scope"),
    (["new", "--name", "x", "--ceiling", "memory_bytes"], "--ceiling: 'memory_bytes' has no value"),
    (["new", "--name", "x", "--ceiling", "wishes=3"], "there is no limit 'wishes'"),
    (["new", "--name", "x", "--ceiling", "memory_bytes=12q"], "unknown unit"),
    (["new", "--name", "x", "--ceiling", "wall_ms=unlimited"], "a ceiling cannot be unlimited"),
    (["new", "--name", "x", "--concurrent", "0"], "--concurrent: 0 is out of range"),
    (["new", "--name", "x", "--expires", "never"], "--expires: 'never'"), (["new", "--name", "x", "--expires", "5ms"], "less than a second"),
    (["rm"], "which key?"), (["ls", "x"], "unexpected argument 'x'")])
def test_usage(data, arguments, error):
    done = cordon("key", *arguments, env=os.environ | {"CORDON_DATA_DIR": str(data)})
    assert done.code == 2 and error in done.errors, done
    assert done.out == b"" and not data.exists()


@pytest.mark.parametrize("words", ["key", "key new", "key ls", "key rm", "history", "replay", "verify-ledger"])
def test_help(words):
    done = cordon(*words.split(), "--help")
    assert done.code == 0 and done.text.startswith(f"Usage: cordon {words}"), done
