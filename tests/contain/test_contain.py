"""Every hostile program in a cell, judged from outside; and the same attacks without a cell, to see that they are real."""
import os

import pytest

from host import landlock_abi
from judge import Judge
from corpus import load

PROGRAMS = load()


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


def parameters(programs, marks=lambda program: []):
    return [pytest.param(p, id=p.name, marks=[*marks(p), *([pytest.mark.needs(*p.needs)] if p.needs else [])]) for p in programs]


def undefended(program):
    """An attack that is known to work is kept as a strict expected failure: the day it fails, the claim can be made."""
    return [pytest.mark.xfail(reason=program.get("undefended"), strict=True)] if program.get("undefended") else []


@pytest.mark.parametrize("program", parameters(PROGRAMS, undefended))
def test_contained(judge, program):
    if "cgroup" in program.needs and not judge.has_cgroup:
        pytest.skip("the bound is a control group, and there is none here")
    if "signal-scope" in program.needs and not (judge.controls.get("landlock") and landlock_abi() >= 6):
        pytest.skip("this kernel's Landlock has no scope for signals")
    found = judge.check(program)
    assert not found, "\n".join([program.get("attack"), *found])


def real(program):
    words = program.get("bare").split()
    return bool(words) and words[0] not in ("no", "unsafe") and not (words[-1] == "root" and os.getuid() != 0)


@pytest.mark.parametrize("program", parameters([p for p in PROGRAMS if real(p)]))
def test_real(judge, program):
    """The attack succeeds where nothing contains it; one that cannot succeed anywhere proves nothing."""
    evidence, outcomes = judge.bare(program)
    kind = program.get("bare").split()[0]
    assert kind in evidence, f"evidence {evidence}, output {[(o.raw[-500:], o.errors[-500:]) for o in outcomes]}"
