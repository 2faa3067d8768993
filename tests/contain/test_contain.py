"""Every hostile program in a cell, judged from outside; and the same attacks without a cell, to see that they are real."""
import os

import pytest

from judge import Judge
from corpus import load

PROGRAMS = load()


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


def parameters(programs):
    return [pytest.param(p, id=p.name, marks=[pytest.mark.needs(*p.needs)] if p.needs else []) for p in programs]


@pytest.mark.parametrize("program", parameters(PROGRAMS))
def test_contained(judge, program):
    if "cgroup" in program.needs and not judge.has_cgroup:
        pytest.skip("the bound is a control group, and there is none here")
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
