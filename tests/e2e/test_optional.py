"""Going without a control for every run: CORDON_OPTIONAL, and `optional` in the configuration, for each command alike."""
import json

from helpers import cordon
from ordinary import ordinary  # noqa: F401

RUN = ("run", "-l", "bash", "-c", "echo 42")
TOLERANT = {"CORDON_OPTIONAL": "cgroup"}


def test_the_error_names_the_control_and_the_commands_that_help(ordinary):
    done = ordinary.cordon(*RUN)
    assert done.code == 125 and not done.out, done
    for word in ("cgroup", "sudo systemd-run --uid=", "-p Delegate=yes", "--optional cgroup", "CORDON_OPTIONAL=cgroup"):
        assert word in done.errors, done


def test_the_environment_is_for_every_run(ordinary):
    assert ordinary.cordon(*RUN, env=TOLERANT).text == "42\n"


def test_the_result_says_what_was_in_force(ordinary):
    done = ordinary.cordon("run", "--json", *RUN[1:], env=TOLERANT)
    assert json.loads(done.out)["enforced"]["controls"]["cgroup"] == "none", done


def test_a_user_has_a_configuration(ordinary):
    (ordinary.home / ".config" / "cordon").mkdir(parents=True)
    (ordinary.home / ".config" / "cordon" / "cordon.yaml").write_text("optional: [cgroup]\n")
    assert ordinary.cordon(*RUN).text == "42\n"
    assert ordinary.cordon(*RUN, env={"CORDON_OPTIONAL": ""}).code == 125, "the environment goes over the file"


def test_a_configuration_that_is_named(ordinary):
    (ordinary.home / "c.yaml").write_text("optional: [cgroup]\n")
    assert ordinary.cordon(*RUN, env={"CORDON_CONFIG": str(ordinary.home / "c.yaml")}).text == "42\n"
    done = ordinary.cordon(*RUN, env={"CORDON_CONFIG": str(ordinary.home / "missing.yaml")})
    assert done.code == 125 and "missing.yaml" in done.errors, done


def test_an_unknown_control_is_an_error():
    done = cordon(*RUN, env={"PATH": "/usr/bin:/bin", "CORDON_OPTIONAL": "cgrup"})
    assert done.code in (2, 125) and "CORDON_OPTIONAL" in done.errors and "cgrup" in done.errors, done


def test_tests_and_batches_and_replays(ordinary):
    (ordinary.home / "cases.json").write_text('[{"expected": "42\\n"}]')
    done = ordinary.cordon("test", "--tests", "cases.json", *RUN[1:], env=TOLERANT)
    assert done.code == 0 and "1 of 1 passed" in done.text, done
    (ordinary.home / "in.jsonl").write_text('{"id": "a", "language": "bash", "code": "echo 42"}\n')
    done = ordinary.cordon("batch", "in.jsonl", "-o", "out.jsonl", env=TOLERANT)
    assert done.code == 0 and '"stdout":"42\\n"' in (ordinary.home / "out.jsonl").read_text(), done
    done = ordinary.cordon("run", "--json", "--data-dir", "data", *RUN[1:], env=TOLERANT)
    assert done.code == 0, done
    done = ordinary.cordon("replay", "--data-dir", "data", json.loads(done.out)["id"], env=TOLERANT)
    assert done.code == 0, done
