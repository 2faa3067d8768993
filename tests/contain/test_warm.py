"""Waiting cells: many runs on one engine, and nothing of one in another.

A cell that waits was made, and its interpreter started or forked, before the run that it serves was known. So what a run
could find of an earlier one, or share with one beside it, is looked for from inside: in memory, files, networks, ids.
"""
import os
import re
import secrets
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from engine import OPTIONAL, PROGRAM, ROOT, Engine, children, read, wait_for  # noqa: E402
from warm_programs import (  # noqa: E402
    ATTACK_BESIDE, CLOCK_SEEDED, COOKIE, DESCRIPTORS, IDENTITY, IPC_LEFT, IPC_UNUSED, LOOK, MEMORY, NETWORK_FILES, PLANT, PLANT_HIDDEN, PLANT_IPC,
    PLANT_NETWORK, PRELOADED, RANDOM, REFUSED, SET_UP, STARTED_WITH, USED_BEFORE, NotSetUp, installed)

LATER = 50  # more runs than there are recycled identities
MARK = re.compile("MARK[0-9a-f]{60}")


@pytest.fixture(scope="module")
def engine():
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip(f"{PROGRAM} was not built")
    with Engine() as engine:
        engine.run_warm("python", "print()")
        yield engine


@pytest.fixture(scope="module")
def alone():
    """One run at a time keeps the pools small, so that networks are used again soon."""
    with Engine(threads=1) as engine:
        engine.run_warm("python", "print()")
        yield engine


def waits(language):
    """Whether interpreters of the language wait for their programs."""
    return "\nwarm:" in (ROOT / "languages" / f"{language}.yaml").read_text()


def new_mark():
    return "MARK" + secrets.token_hex(30)


def need(language):
    if not installed(language):
        raise (pytest.skip.Exception if language in SET_UP else NotSetUp)(f"{language} is not installed")


# Randomness


def count_warm(results):
    return sum(result["enforced"]["warm"] for result in results)


@pytest.mark.parametrize("language", RANDOM)
def test_no_random_number_comes_twice(language):
    need(language)
    runs = 6 if not waits(language) else 16 if language == "r" else 40
    with Engine() as engine:
        results = engine.many(runs, language, RANDOM[language]) + engine.many(4, language, RANDOM[language], warm=False)
        deadline = time.monotonic() + 60
        while waits(language) and count_warm(results) < 8 and time.monotonic() < deadline:
            results += engine.many(4, language, RANDOM[language])
    assert {result["status"] for result in results} == {"ok"}, [result for result in results if result["status"] != "ok"][0]
    rows = [dict(line.split(" ", 1) for line in result["stdout"].splitlines()) for result in results]
    assert len(rows[0]) > 1
    for source in rows[0]:
        values = [row[source] for row in rows]
        again = len(values) - len(set(values))
        assert again <= (source in CLOCK_SEEDED), f"{source}: {sorted(values)}"
    if waits(language):
        assert count_warm(results) >= 8


# Leftovers


def look_for_marks(result):
    assert result["status"] == "ok", result
    assert not MARK.search(result["stdout"]), result["stdout"]
    assert "looked" in result["stdout"], result


@pytest.mark.parametrize("language", PLANT)
def test_nothing_of_a_run_is_in_the_next(engine, language):
    """A mark that came as code, argument, variable and input, and went into files and shared memory."""
    need(language)
    mark = new_mark()
    done = engine.run(language, PLANT[language].replace("@MARK@", mark), args=[mark, "in " + mark], env={"LEFT": mark},
                      stdin=mark * 100)
    assert done["status"] == "ok" and done["stdout"].count("planted") == 1, done
    for result in engine.many(16 if waits(language) else 4, language, MEMORY[language]) + engine.many(24, "python", LOOK):
        look_for_marks(result)


def test_the_look_finds_what_is_there(engine):
    """The same search with a mark in reach: it proves nothing unless it would find one."""
    mark = new_mark()
    for how in ({"args": [mark]}, {"env": {"LEFT": mark}}, {"stdin": mark}):
        code = "import sys; kept = sys.stdin.read()\n" + LOOK
        assert mark in engine.run("python", code, **how)["stdout"], how
    for language in MEMORY:
        if installed(language):
            assert mark in engine.run(language, MEMORY[language], args=[mark])["stdout"], language


def cookies(engine, count):
    results = engine.many(count, "python", COOKIE)
    assert {result["status"] for result in results} == {"ok"}
    return [int(result["stdout"]) for result in results]


def test_clean_networks_are_used_again(alone):
    """Otherwise the tests after this one would prove nothing."""
    seen = cookies(alone, LATER)
    assert len(set(seen)) < len(seen) / 2, seen


@pytest.mark.parametrize("what", PLANT_NETWORK)
def test_what_was_left_in_a_network_is_seen_by_nobody(alone, what):
    done = alone.run("python", COOKIE + PLANT_NETWORK[what])
    assert done["status"] == "ok" and "planted" in done["stdout"], done
    dirty = int(done["stdout"].split()[0])
    results = alone.many(LATER, "python", COOKIE + USED_BEFORE)
    for result in results:
        assert result["status"] == "ok" and "clean" in result["stdout"], result
        assert int(result["stdout"].split()[0]) != dirty, f"the network of a run that left {what} was used again"


def test_a_hidden_listener_is_found_by_nobody(engine):
    """Nothing but messages on their way to themselves holds it: the kernel may need a while to see that it is gone."""
    numbers = []
    for _ in range(10):
        numbers.append(engine.start("python", PLANT_HIDDEN))
        numbers += [engine.start("python", COOKIE + USED_BEFORE) for _ in range(8)]
    for number in numbers:
        result = engine.finish(number)
        assert result["status"] == "ok" and re.search("clean|planted", result["stdout"]), result


def test_networks_tell_nothing_of_their_past(alone):
    """Whatever /proc/net counts in a network whose run met with refusals, it may count in one that is new."""
    def count():
        results = alone.many(LATER, "python", COOKIE + NETWORK_FILES)
        return {result["stdout"].split("\n", 1)[1] for result in results}, [int(result["stdout"].split()[0]) for result in results]

    new = count()[0] | count()[0]
    alone.many(LATER, "python", REFUSED)
    later, seen = count()
    assert later <= new, "\n".join(line for text in later - new for line in text.splitlines() if line not in next(iter(new)))
    assert len(set(seen)) < len(seen), "no network was used again"


@pytest.mark.parametrize("what", PLANT_IPC)
def test_what_was_made_in_an_ipc_namespace_is_found_by_nobody(alone, what):
    for _ in range(3):
        done = alone.run("python", PLANT_IPC[what])
        assert done["status"] == "ok" and "planted" in done["stdout"], done
    later = alone.many(2 * LATER, "python", IPC_UNUSED)
    for result in later + alone.many(LATER, "python", IPC_LEFT):
        assert result["status"] == "ok" and "clean" in result["stdout"], result
    spaces = [result["stdout"].split()[0] for result in later]
    assert len(set(spaces)) < 0.8 * len(spaces), "hardly any namespace was used again, so nothing is proven"


# Runs beside each other


def test_no_two_runs_share_an_identity(engine):
    results = engine.many(40, "python", IDENTITY)
    spans = []
    for result in results:
        assert result["status"] == "ok", result
        begin, end, namespace, outer = result["stdout"].split()
        spans.append((float(begin), float(end), namespace, outer))
    beside = 0
    for number, (begin, end, namespace, outer) in enumerate(spans):
        for other_begin, other_end, other_namespace, other_outer in spans[:number]:
            if begin < other_end and other_begin < end:
                beside += 1
                assert namespace != other_namespace, "two runs at once in one user namespace"
                assert outer != other_outer or os.getuid() != 0, "two runs at once with one id on the host"
    assert beside > 20


@pytest.mark.parametrize("language", DESCRIPTORS)
def test_descriptors_are_those_of_a_fresh_start(engine, language):
    need(language)
    fresh = engine.out(language, DESCRIPTORS[language], warm=False).splitlines()
    run = engine.run_warm if waits(language) else engine.run
    for _ in range(3):
        result = run(language, DESCRIPTORS[language])
        # PHP keeps the text it was started with open, as it does with any script.
        kinds = [kind for kind in result["stdout"].splitlines() if not kind.startswith("/tmp/.warm")]
        assert sorted(kinds) == sorted(fresh), result
        assert not [kind for kind in kinds if "seccomp" in kind or "socket" in kind or kind.startswith("/proc")]
        assert len([kind for kind in kinds if kind == "pipe"]) >= 3, kinds


@pytest.mark.parametrize("language", PRELOADED)
def test_what_a_copy_was_forked_by_is_out_of_its_way(engine, language):
    need(language)
    result = engine.run_warm(language, PRELOADED[language])
    assert (result["status"], result["stderr"]) == ("ok", ""), result
    assert result["stdout"].splitlines() == ["forked", "forked", "mapped", "[]", "0"], result


@pytest.mark.parametrize("language", STARTED_WITH)
def test_the_environment_shows_nothing_of_the_zygote(engine, language):
    need(language)
    fresh = engine.out(language, STARTED_WITH[language], warm=False)
    result = engine.run_warm(language, STARTED_WITH[language])
    assert (result["stdout"], result["stderr"]) == (fresh, ""), result


def test_a_copy_ends_only_when_its_program_does(engine):
    """It leaves as soon as Node takes itself apart; an exit that is called off is not that."""
    need("javascript")
    code = """process.once('exit', () => { throw new Error('not yet'); });
try { process.exit(5); } catch (error) { console.log(error.message); }
process.on('exit', (code) => console.log('exit', code));
setTimeout(() => { console.log('later'); process.exitCode = 6; }, 50);"""
    result = engine.run_warm("javascript", code)
    assert (result["stdout"].splitlines(), result["exit_code"]) == (["not yet", "later", "exit 6"], 6), result


ENDS = {
    "nothing more": ("console.log('x')", 0, "x\n"),
    "a code": ("process.exitCode = 4", 4, ""),
    "set by the last listener": ("process.on('exit', () => {}); process.on('exit', () => { process.exitCode = 9; });", 9, ""),
    "more work before the exit": ("process.once('beforeExit', () => setTimeout(() => console.log('more'), 5))", 0, "more\n"),
    "a listener that throws": ("process.on('exit', () => { throw new Error('late'); })", 1, ""),
    "the end of a worker is not the program's": (
        "const { Worker } = require('worker_threads');\n"
        "new Worker('process.exitCode = 3', { eval: true }).on('exit', (c) => setTimeout(() => console.log('worker', c), 20))", 0, "worker 3\n"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_copy_of_node_ends_as_a_fresh_one(engine, name):
    need("javascript")
    code, exit_code, stdout = ENDS[name]
    for warm in (True, False):
        result = engine.run("javascript", code, warm=warm)
        assert (result["exit_code"], result["stdout"]) == (exit_code, stdout), (warm, result)


@pytest.mark.needs("cgroup")
def test_slots_are_known_to_be_small():
    """Once one has been looked at, room for two of unknown size is room for a pool of them."""
    with Engine("--warm-bytes", str(36 << 20)) as engine:
        for _ in range(3):
            engine.many(4, "bash", "sleep 0.1", warm=False)
        assert engine.settled(), engine.pools()
        assert engine.pools()[("bash", "slots")]["ready"] >= 4


def restrictions_of_who_waits(engine):
    """Of each program of a cell, as the host sees it; what ends meanwhile is left out."""
    found = []
    zygotes = engine.zygotes()
    for pid, (_, name) in children(engine.warden).items():
        lines = read(f"/proc/{pid}/status").splitlines()
        if lines and name not in ("cordon-init", "cordon-maker", "cordon-scout") and pid not in zygotes:
            status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            found.append({name: status[name] for name in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")})
    return found


@pytest.mark.parametrize("language, warm", [("bash", False), ("bash", True), ("python", True)])
def test_who_waits_is_restricted_already(language, warm):
    """Whoever waits for a request has nothing left to give up but its code."""
    wanted = {"CapPrm": "0" * 16, "CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    with Engine(threads=1) as engine:
        engine.run(language, "", warm=warm)
        assert engine.settled()

        def restricted():  # a slot counts as ready while it still gives up its rights
            found = restrictions_of_who_waits(engine)
            return len(found) >= 2 and all(each == wanted for each in found)
        assert wait_for(restricted), restrictions_of_who_waits(engine)


def test_nothing_beside_the_program_can_be_reached(engine):
    """Init and zygote, with every call that might get at them; a forged word to the warden; then an ordinary end."""
    result = engine.run_warm("python", ATTACK_BESIDE)
    assert "PWNED" not in result["stdout"] and "held" in result["stdout"], result
    assert (result["status"], result["exit_code"]) == ("nonzero_exit", 7), result


@pytest.mark.parametrize("code,status", [
    ("import os\nwhile True:\n    try:\n        if os.fork() == 0: import time; time.sleep(60)\n    except OSError: os._exit(3)", "process_limit"),
    ("a = []\nwhile True: a.append(bytearray(1 << 24))", "memory_limit"),
    ("import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(60)\nos._exit(0)", "ok"),
    ("import os\nos.kill(os.getpid(), 9)", "signaled"),
    ("import os\nfor fd in range(3, 1024):\n    try: os.write(fd, b'r' * 64)\n    except OSError: pass\nos._exit(5)", "nonzero_exit"),
    ("import os\nfor fd in range(1024):\n    try: os.close(fd)\n    except OSError: pass\nos._exit(0)", "ok"),
], ids=["processes", "memory", "daemons", "kill", "forge", "close"])
def test_a_hostile_end_spoils_nothing(engine, code, status):
    limits = {"memory_bytes": 512 << 20, "processes": 60}
    if OPTIONAL and status == "process_limit":
        status = "nonzero_exit"  # only a control group tells
    assert engine.run_warm("python", code, limits=limits)["status"] == status
    for result in engine.many(8, "python", "print('well')"):
        assert (result["status"], result["stdout"]) == ("ok", "well\n")
    assert engine.run_warm("python", "print()")["status"] == "ok"
