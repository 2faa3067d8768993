"""The C library from an outside program (api/api_test.c, built by meson)."""
import os
import pathlib
import re
import subprocess

import pytest

from helpers import CORDON, FLAGS, REPOSITORY, skip

TESTS = ["one", "limits", "callbacks", "threads", "cancel", "loop", "json", "bad_json", "errors", "guest", "reaping_host", "close_kills",
         "cache", "filter", "offer", "prebuild", "quiet", "getters", "null", "tests_json", "tests_setters", "tests_errors"]
PROGRAM = pathlib.Path(os.environ.get("CORDON_API_TEST") or pathlib.Path(CORDON).parent / "tests" / "e2e" / "api" / "api_test")

# What AddressSanitizer says of a helper that ends on a stack of its own.
HELPERS_STACK = re.compile(rb"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return.*\nFalse positive.*\nFor details see.*\n")


def api(*arguments):
    if not os.access(PROGRAM, os.X_OK):
        skip(f"{PROGRAM} was not built")
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=60, check=False)


def test_every_test_is_listed():
    assert api().stdout.decode().split() == TESTS


def test_every_function_is_called_with_null():
    """The test "null" knows each function of the public headers."""
    headers = "".join(path.read_text() for path in (REPOSITORY / "include/cordon").glob("*.h"))
    functions = set(re.findall(r"^[a-z][^/*#\n]*?\b(cordon_\w+)\(", headers, re.MULTILINE)) - {"cordon_emit"}
    called = (REPOSITORY / "tests/e2e/api/api_null.c").read_text()
    assert len(functions) > 60 and not [name for name in functions if not re.search(rf"\b{name}\b", called)]


@pytest.mark.parametrize("name", TESTS)
def test_api(name):
    optional = [FLAGS[n + 1] for n, flag in enumerate(FLAGS) if flag == "--optional"]
    done = api(name, REPOSITORY / "languages", pathlib.Path(CORDON).parent / "cordon-warden", *optional)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"" and HELPERS_STACK.sub(b"", done.stderr) == b"", "the library prints nothing"
