"""Runs the commands that README.md and docs/ show, and compares what they print with what is shown there.

A block fenced as ```console holds commands after `$ ` (continued after `> `) and what they print, both streams together.
`…` stands for anything within a line, and on a line of its own for any number of lines. A command that fails is followed
by `$ echo $?`. ```console cgroup needs a control group. The blocks of a document run in order, in one scratch directory.
"""
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


def with_flags(command):
    flags = "".join(f" {shlex.quote(flag)}" for flag in FLAGS)
    return command.replace("build/cordon run", f"build/cordon run{flags}")


def check(where, steps, directory):
    code = 0
    for number, (command, shown) in enumerate(steps):
        if command.split()[0] in NOT_HERE:
            continue
        asks = number + 1 < len(steps) and steps[number + 1][0] == "echo $?"
        done = subprocess.run(["bash", "-c", f"(exit {code})\n{with_flags(command)}"], cwd=directory, timeout=60, check=False,
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
