"""The failures of hints.yaml, run on warm engines shared by all of them. Used by test_hints.py and by `make hints`."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

from helpers import CORDON, FLAGS, REPOSITORY, cordon

CASES = yaml.safe_load((pathlib.Path(__file__).parent / "hints.yaml").read_text())
HINT_ROWS = os.path.join(os.path.dirname(CORDON), "tests", "hint_rows")
OPTIONAL = [FLAGS[i + 1] for i, flag in enumerate(FLAGS) if flag == "--optional"]


def name(case):
    return f"{case['language']}: {case['cause']}"


def installed():
    return {row["id"] for row in json.loads(cordon("languages", "--json").out)["items"] if row["installed"]}


def can_run(case, languages):
    if case["language"] not in languages:
        return False
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({case.get('module', 'sys')!r}) is None)"
    return "module" not in case or subprocess.run(["/usr/bin/python3", "-I", "-c", find], check=False).returncode == 0


def request(index, case):
    found = {"id": str(index), "language": case["language"], "code": case["code"], "optional": OPTIONAL}
    found.update({key: case[key] for key in ("stdin", "limits", "on_output_limit") if key in case})
    if "files" in case:
        found["files"] = case["files"]
    return found


def run_recorded(case):
    done = subprocess.run([HINT_ROWS, REPOSITORY / "languages", case["language"]], input=case["code"], text=True,
                          stdout=subprocess.PIPE, check=True)
    category, message, hint = done.stdout.rstrip("\n").split("\t")
    return {"status": "nonzero_exit", "reason": None, "stderr": case["code"], "denials": [],
            "error": {"category": category, "message": message, "hint": hint, "type": None}}


def run_all(cases):
    """{index: result} of the cases whose language, and module, are installed."""
    here = installed()
    results = {i: run_recorded(case) for i, case in enumerate(cases) if case.get("recorded")}
    lines = [json.dumps(request(i, case)) for i, case in enumerate(cases) if not case.get("recorded") and can_run(case, here)]
    with tempfile.TemporaryDirectory() as folder:
        requests, output = pathlib.Path(folder, "requests.jsonl"), pathlib.Path(folder, "results.jsonl")
        requests.write_text("\n".join(lines) + "\n")
        done = cordon("batch", requests, "-o", output, "--quiet", timeout=180)
        assert done.code == 1, done
        results.update({int(each["id"]): each for each in map(json.loads, output.read_text().splitlines())})
    return results


def complaints(case, result):
    """What the result lacks of what the case expects."""
    error = result["error"] or {}
    expected = (("hint", error.get("hint")), ("message", error.get("message")), ("reason", result["reason"]))
    found = [f"{key} is {text!r}, expected /{case[key]}/" for key, text in expected
             if key in case and not re.search(case[key], text or "")]
    if result["status"] != case.get("status", "nonzero_exit"):
        found.append(f"status is {result['status']}")
    if "category" in case and error.get("category") != case["category"]:
        found.append(f"category is {error.get('category')}")
    if "denial" in case and case["denial"] not in [row["what"] for row in result["denials"]]:
        found.append(f"denials are {result['denials']}")
    return found
