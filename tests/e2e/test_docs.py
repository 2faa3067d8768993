"""Runs the commands that README.md and docs/ show, and compares what they print with what is shown there.

A block fenced as ```console holds commands after `$ ` (continued after `> `) and what they print, both streams together.
`…` stands for anything within a line, and on a line of its own for any number of lines. A command that fails is followed
by `$ echo $?`. ```console cgroup needs a control group. The blocks of a document run in order, in one scratch directory,
and what one command exports or assigns the next ones have.
"""
import os
import re
import shlex
import subprocess

import pytest

from helpers import CORDON, FLAGS, REPOSITORY, has_cgroup

DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
NOT_HERE = ("make", "sudo", "apt", "apt-get", "git", "install")


def blocks(document):
    """(line number, words after `console`, [(command, output)]) of each block."""
    found, steps = [], None
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if steps is None:
            if line.startswith("```console"):
                steps = []
                found.append((number, line[len("```console"):].split(), steps))
        elif line.startswith("```"):
            steps = None
        elif line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> ") and steps and not steps[-1][1]:
            steps[-1][0] += "\n" + line[2:]
        else:
            assert steps, f"{document.name}:{number}: output without a command"
            steps[-1][1] += line + "\n"
    return found


def pattern(shown):
    text = "".join("(?:.*\n)*" if line.strip() == "…" else re.escape(line).replace("…", ".*") + "\n"
                   for line in shown.splitlines())
    return re.compile(text)


def workplace(directory):
    """The tree as the documents name it: what they write lands in the scratch directory."""
    (directory / "build").mkdir()
    (directory / "build" / "cordon").symlink_to(CORDON)
    for library in (REPOSITORY / "build").glob("libcordon.so*"):
        if not library.is_dir():
            (directory / "build" / library.name).symlink_to(library)
    for name in ("include", "docs", "languages"):
        (directory / name).symlink_to(REPOSITORY / name)


# Each command is a shell of its own, so that its exit code and its output are its own; this makes them one session.
SESSION = """
[ ! -e {state} ] || . {state}
set -a
(exit {code})
{command}
code=$?
export -p > {state}
exit $code
"""


# Of FLAGS, what the documents tell a reader to export first, and the rest.
OPTIONAL = [FLAGS[at + 1] for at, flag in enumerate(FLAGS) if flag == "--optional"]
OTHERS = [flag for at, flag in enumerate(FLAGS) if flag != "--optional" and (not at or FLAGS[at - 1] != "--optional")]


def with_flags(command):
    flags = "".join(f" {shlex.quote(flag)}" for flag in OTHERS)
    return command.replace("build/cordon run", f"build/cordon run{flags}")


def environment(directory):
    """A reader's: without what this machine sets, and with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CORDON_")}
    if OPTIONAL:
        kept["CORDON_OPTIONAL"] = ",".join(OPTIONAL)
    return {**kept, "HOME": str(directory), "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")}


def check(where, steps, directory):
    code = 0
    for number, (command, shown) in enumerate(steps):
        if command.split()[0] in NOT_HERE:
            continue
        asks = number + 1 < len(steps) and steps[number + 1][0] == "echo $?"
        script = SESSION.format(state=shlex.quote(str(directory.parent / (directory.name + ".state"))), code=code,
                                command=with_flags(command))
        done = subprocess.run(["bash", "-c", script], cwd=directory, env=environment(directory), timeout=60, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text, code = done.stdout.decode(errors="replace"), done.returncode
        assert pattern(shown).fullmatch(text), f"{where}: $ {command}\nprinted:\n{text}"
        assert asks or code == 0, f"{where}: $ {command}\nended with {code}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_document(document, tmp_path):
    workplace(tmp_path)
    for number, needs, steps in blocks(document):
        if "cgroup" in needs and not has_cgroup():
            continue
        check(f"{document.name}:{number}", steps, tmp_path)


def test_there_is_something_to_run():
    assert any(blocks(document) for document in DOCUMENTS)


def test_links_lead_somewhere():
    for document in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: no {target}"


def anchors(document):
    """Of the headings, as the sites that show Markdown make them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_to_headings():
    for document in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", document.read_text(encoding="utf-8")):
            there = document.parent / target if target else document
            assert anchor in anchors(there), f"{document.name}: no heading {target}#{anchor}"
