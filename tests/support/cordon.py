"""Calls the cordon under test.

CORDON_BIN names the binary (default: build/cordon of this repository); CORDON_TEST_FLAGS are flags added to every
`cordon run`, such as `--optional cgroup` where no control group can be had.
"""
import json
import os
import shlex
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("CORDON_BIN") or os.path.join(ROOT, "build", "cordon")
FLAGS = shlex.split(os.environ.get("CORDON_TEST_FLAGS", ""))
OPTIONAL = ",".join(FLAGS[i + 1] for i, flag in enumerate(FLAGS) if flag == "--optional")


def command(*args):
    """argv of `cordon ARGS`, with the flags of this test run when it is a `run`."""
    args = [str(arg) for arg in args]
    return [BIN, *args[:1], *(FLAGS if args[:1] == ["run"] else []), *args[1:]]


def cordon(*args, input=b"", timeout=120, **popen):
    """Runs it to the end; stdout and stderr as bytes. Commands that make runs and take no flags for them (replay, batch) are
    told by the environment what may be missing."""
    if isinstance(input, str):
        input = input.encode()
    if OPTIONAL and args[:1] != ("run",):
        popen["env"] = {"CORDON_OPTIONAL": OPTIONAL, **(popen.get("env") or os.environ)}
    return subprocess.run(command(*args), input=input, capture_output=True, timeout=timeout, check=False, **popen)


def run(args, input=b"", timeout=120, **popen):
    """`cordon run --json ARGS`: the result object."""
    done = cordon("run", "--json", *args, input=input, timeout=timeout, **popen)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"no result: exit {done.returncode}: {done.stderr.decode(errors='replace')}") from None
