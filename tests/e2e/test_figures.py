"""Figures in the documents are those of the source: constants, the table of limits, the commands that there are."""
import json
import re

import pytest

from helpers import REPOSITORY, cordon, result

MS, KIB, MIB, GIB = 1000, 1 << 10, 1 << 20, 1 << 30

# Document, what stands there with {} for the figure, the source file, its constant, and the unit of the figure.
FIGURES = [
    ("THREAT-MODEL.md", "look at the whole cell every {} ms", "src/warden/cell.c", "SAMPLE_ALONE_US", MS),
    ("THREAT-MODEL.md", "at most {} different things", "src/warden/protocol.h", "DENIALS_MAX", 1),
    ("THREAT-MODEL.md", "(the limit and {} GiB)", "src/cell/rlimits.c", "DATA_ROOM", GIB),
    ("THREAT-MODEL.md", "ten minutes or {} forks", "src/warden/zygote.c", "FORKS_MAX", 1),
    ("docs/SPECIFICATION.md", "without a cgroup, memory and CPU are looked at every {} ms", "src/warden/cell.c", "SAMPLE_ALONE_US", MS),
    ("docs/SPECIFICATION.md", "at most {} different denials in a result", "src/warden/protocol.h", "DENIALS_MAX", 1),
    ("docs/SPECIFICATION.md", "at most {} files and 8 MiB of them in a result", "src/output/collect.h", "COLLECT_FILES_MAX", 1),
    ("docs/SPECIFICATION.md", "1024 files and {} MiB of them in a result", "src/output/collect.h", "COLLECT_RESULT_BYTES_MAX", MIB),
    ("docs/SPECIFICATION.md", "{} directories deep", "src/output/collect.h", "COLLECT_DEPTH_MAX", 1),
    ("docs/SPECIFICATION.md", "{} entries looked at", "src/output/collect.h", "COLLECT_ENTRIES_MAX", 1),
    ("docs/SPECIFICATION.md", "compiled programs: at most {} MiB", "src/engine/compile_cache.h", "COMPILE_CACHE_BYTES", MIB),
    ("docs/SPECIFICATION.md", "entries of at most {} MiB", "src/engine/compile_entry.h", "COMPILE_ENTRY_BYTES_MAX", MIB),
    ("docs/SPECIFICATION.md", "half of the room, {} of them", "src/engine/compile_cache.h", "COMPILE_CACHE_ENTRIES_MAX", 1),
    ("docs/SPECIFICATION.md", "prebuilt for compilers: at most {} of them", "src/engine/prebuild.c", "KEPT_MAX", 1),
    ("docs/SPECIFICATION.md", "request: {} MiB", "src/plan/request.h", "REQUEST_BYTES_MAX", MIB),
    ("docs/SPECIFICATION.md", "JSON {} levels", "src/plan/request_json.c", "JSON_DEPTH_MAX", 1),
    ("docs/SPECIFICATION.md", "levels and {} values", "src/plan/request_json.c", "JSON_VALUES_MAX", 1),
    ("docs/CONTRACT.md", "At most {} MiB of code, files and stdin together", "src/plan/request.h", "REQUEST_BYTES_MAX", MIB),
    ("docs/CONTRACT.md", "{} files; 8192 arguments", "src/plan/plan.h", "PLAN_FILE_MAX", 1),
    ("docs/CONTRACT.md", "{} arguments; 4096 variables", "src/plan/request.h", "REQUEST_ARGS_MAX", 1),
    ("docs/CONTRACT.md", "{} variables; 1 MiB", "src/plan/request.h", "REQUEST_ENV_MAX", 1),
    ("docs/CONTRACT.md", "{} MiB of arguments and variables", "src/plan/request.h", "REQUEST_STRINGS_MAX", MIB),
    ("docs/CONTRACT.md", "{} mounts; 64 globs", "src/plan/plan.h", "PLAN_MOUNT_MAX", 1),
    ("docs/CONTRACT.md", "{} globs; 64 rules", "src/plan/request.h", "REQUEST_COLLECT_MAX", 1),
    ("docs/CONTRACT.md", "globs; {} rules", "src/plan/request.h", "REQUEST_RULES_MAX", 1),
    ("docs/CONTRACT.md", "user's cache directory (`$XDG_CACHE_HOME` or `~/.cache`); at most {} MiB", "src/engine/compile_cache.h", "COMPILE_CACHE_BYTES", MIB),
    ("docs/CONTRACT.md", "reads it {} ms after the start", "src/warden/cell.c", "SAMPLE_US", MS),
    ("docs/CONTRACT.md", "sums over the processes, sampled every {} ms", "src/warden/cell.c", "SAMPLE_ALONE_US", MS),
    ("docs/INSTALL.md", "a look at all of them every {} ms", "src/warden/cell.c", "SAMPLE_ALONE_US", MS),
    ("docs/HTTP.md", "then drops up to {} MiB more", "src/http/linger.c", "DROP_BYTES", MIB),
    ("docs/HTTP.md", "up to {}, run as there is room", "src/api/batches.c", "REQUESTS_MAX", 1),
    ("docs/HTTP.md", "every {} s. `offset`", "src/api/kept.c", "PING_SECS", 1),
    ("docs/WARM.md", "At most {} pools are made", "src/engine/warm.c", "POOLS_MAX", 1),
    ("docs/WARM.md", "ten minutes or {} forks", "src/warden/zygote.c", "FORKS_MAX", 1),
    ("docs/REDACTION.md", "fewer than {} bytes is in too much ordinary text", "src/output/redact_literals.h", "LITERAL_MIN", 1),
    ("docs/REDACTION.md", "at most {} bytes from the `BEGIN` line on", "src/output/redact_rules.h", "REDACT_BLOCK_MAX", 1),
    ("docs/REDACTION.md", "{} KiB of secret values", "src/output/redact_rules.h", "REQUEST_SECRETS_MAX", KIB),
    ("docs/REDACTION.md", "the operator's files {} KiB", "src/output/redact_rules.h", "REDACT_SECRETS_MAX", KIB),
    ("docs/REDACTION.md", "{} rules at most, with the built-in ones", "src/output/redact_rules.h", "REDACT_RULES_MAX", 1),
    ("include/cordon/engine.h", "for ten minutes", "src/engine/prebuild.c", "FAILED_AGE", 1),
    ("include/cordon/engine.h", "0 means {} MiB, SIZE_MAX", "src/engine/compile_cache.h", "COMPILE_CACHE_BYTES", MIB),
    ("include/cordon/judge.h", "More than {} are treated as", "src/judge/cases.h", "CASES_PARALLEL_MAX", 1),
    ("include/cordon/result.h", "only the first {} are described", "src/output/collect.h", "COLLECT_SKIPPED_MAX", 1),
    ("man/cordon.1", "left: at most {} MiB", "src/engine/compile_cache.h", "COMPILE_CACHE_BYTES", MIB),
]
IN_WORDS = {"ten minutes": 600}


def constant(file, name):
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    found = re.search(rf"^#define {name}\s+(.+?)(?:\s*/\*.*)?$", text, re.M)
    assert found, f"{file}: no {name}"
    expression = re.sub(r"\((?:size_t|uint\d+_t|int\d+_t|rlim_t)\)|U?INT64_C|(?<=\d)[UL]+\b", "", found[1])
    assert re.fullmatch(r"[\d\s()*+<-]+", expression), f"{file}: {name} is {found[1]}"
    return eval(expression)  # numbers and operators only


def words(document):
    return " ".join(re.sub(r"^ \* ?", "", (REPOSITORY / document).read_text(encoding="utf-8"), flags=re.M).split())


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: f"{row[0]}:{row[3]}")
def test_a_stated_constant_is_that_of_the_source(row):
    document, phrase, file, name, unit = row
    value = constant(file, name)
    assert value % unit == 0
    figures = {str(value // unit), f"{value // unit:,}"}
    if "{}" not in phrase:
        spoken = next(spoken for spoken in IN_WORDS if spoken in phrase)
        assert IN_WORDS[spoken] == value // unit and phrase in words(document), f"{document}: {phrase}, but {name} is {value}"
    else:
        assert any(phrase.format(figure) in words(document) for figure in figures), \
            f"{document} does not say {phrase.format(value // unit)!r}, but {name} in {file} is {value}"


def table_after(text, heading):
    rows = text.split(heading)[1].split("\n\n")[1].splitlines()
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows if not row.startswith("|---")]


def in_base_units(cell):
    number, _, unit = cell.partition(" ")
    return float(number) * {"": 1, "s": 1000, "MiB": MIB, "GiB": GIB}[unit]


@pytest.mark.parametrize("profile", ["lightweight", "standard", "heavy"])
def test_the_table_of_limits_is_what_a_run_gets(profile):
    head, *rows = table_after((REPOSITORY / "docs" / "CONTRACT.md").read_text(encoding="utf-8"), "### Limits")
    limits = result("bash", ":", "--profile", profile)["limits"]
    shown = {row[0]: row[head.index(profile)] for row in rows}
    assert shown.keys() == limits.keys()
    for name, cell in shown.items():
        expected = limits["disk_bytes"] if cell == "as disk" else in_base_units(cell)
        assert limits[name] == expected, f"{name}: {cell}"


SHARES = {"half": 500, "three quarters": 750, "a quarter": 250}


def test_the_table_of_budgets_is_that_of_the_source():
    source = (REPOSITORY / "src" / "api" / "budget.c").read_text(encoding="utf-8")
    known = {name: (int(part), int(each)) for name, part, each in re.findall(r'\[BUDGET_\w+\] = \{"([a-z ]+)", (\d+), (\d+)', source)}
    rows = table_after((REPOSITORY / "docs" / "CONFIG.md").read_text(encoding="utf-8"), "name of the `budget`. `/metrics`")
    shown = {row[0]: (1000 if row[1].startswith("all") else int(row[1].split()[0]) * 10, SHARES[row[2]]) for row in rows[1:]}
    assert shown == known


def test_no_command_is_listed_twice():
    rows = table_after((REPOSITORY / "docs" / "CONTRACT.md").read_text(encoding="utf-8"), "## Command line")
    listed = [command for row in rows for command in re.findall(r"cordon ([a-z-]+)", row[0])]
    assert [command for command in set(listed) if command != "run" and listed.count(command) > 1] == []
    known = re.findall(r"^  ([a-z-]+)  ", cordon("help").text, re.M)
    assert known and [command for command in known if command not in listed] == []


def test_the_table_of_languages_is_that_of_the_manifests():
    rows = table_after((REPOSITORY / "docs" / "INSTALL.md").read_text(encoding="utf-8"), "## Languages\n\n")
    shown = {row[0]: sorted(row[1].replace("`", "").split()) for row in rows[1:]}
    known = {one["id"]: sorted(one["aliases"]) for one in json.loads(cordon("languages", "--json").out)["items"]}
    assert shown == known


def test_readme_is_short():
    """Depth is for docs/: a reader decides on the first screens."""
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
