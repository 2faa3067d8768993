"""The manual pages: one for each public function, well formed, with examples that are what they say, for this prefix."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from helpers import CORDON, REPOSITORY, skip

BUILD = pathlib.Path(CORDON).parent
SOURCES = sorted((REPOSITORY / "man").glob("*.[1-8]"))
BUILT = BUILD / "man"


def built_pages():
    """Pages as they are installed: those that the build makes, and the others from the sources."""
    made = {path.name: path for path in BUILT.glob("*.[1-8]")}
    return [*made.values(), *(path for path in SOURCES if path.name not in made)]


def public_functions():
    told = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libcordon.so"], capture_output=True, text=True, check=True)
    return sorted(re.findall(r" T (cordon_\w+)", told.stdout))


def test_every_public_function_has_a_page():
    pages = sorted(path.stem for path in BUILT.glob("cordon_*.3"))
    assert len(public_functions()) > 50
    assert pages == public_functions()


def test_every_page_says_something():
    for name in public_functions():
        text = (BUILT / f"{name}.3").read_text(encoding="utf-8")
        description = text.split(".Sh DESCRIPTION\n")[1].split("\n.S")[0]
        assert re.search(r"^\.Nd \w", text, re.M) and len(description) > 20, f"{name}: {description}"


def test_mandoc_finds_nothing():
    if not shutil.which("mandoc"):
        skip("mandoc is not installed")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *built_pages()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_pages_name_the_places_of_this_prefix():
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True, check=True).stdout) \
        if shutil.which("meson") else skip("meson is not installed")
    option = {one["name"]: one["value"] for one in options}
    page = (BUILT / "cordon.1").read_text(encoding="utf-8")
    assert f"{option['prefix']}/{option['datadir']}/cordon/languages" in page
    assert f"{option['prefix']}/{option['libexecdir']}/cordon/cordon-warden" in page
    for path in built_pages():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@\w+@", text), f"{path.name}: a place that was not filled in"
        for place in re.findall(r"/usr(?:/local)?/(?:share|lib|libexec)/cordon\S*", text):
            assert place.startswith(option["prefix"] + "/"), f"{path.name}: {place}"




def test_references_lead_to_pages():
    known = {tuple(path.name.rsplit(".", 1)) for path in built_pages()}
    for path in built_pages():
        for name, section in re.findall(r"^\.Xr (\S+) ([1-8])", path.read_text(encoding="utf-8"), re.M):
            if name.startswith(("cordon", "libcordon")):
                assert (name, section) in known, f"{path.name}: no {name}({section})"


def examples_of(path):
    """(line, text) of what begins like JSON: literal blocks, `.Dl` lines, `.Li` words; in Markdown, fenced blocks and code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        found = [(match.start(), match[1]) for match in re.finditer(r"^```json\n(.*?)^```", text, re.M | re.S)]
        found += [(match.start(), match[1]) for match in re.finditer(r"(?<!`)`([{\[][^`\n]*[}\]])`", text)]
    else:
        found = [(match.start(), match[1]) for match in re.finditer(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", text, re.M | re.S)]
        found += [(match.start(), re.sub(r"(?: [.,;:)])+$", "", match[1])) for match in re.finditer(r"^\.(?:Dl|Li|Ql) (.*)", text, re.M)]
    return [(text.count("\n", 0, at) + 1, one.strip()) for at, one in found if re.match(r"\s*(\{\s*[\"}]|\[\s*[\[{\"\]])", one)]


def parses(text):
    """As one value or one value a line. `…` stands for any value, or within a string for any text."""
    inside = re.sub(r'("(?:[^"\\]|\\.)*")|…', lambda match: match[1] or "null", text.replace("\\&", "").replace("\\e", "\\"))
    inside = re.sub(r", null([}\]])", r"\1", inside)  # "and more"
    try:
        json.loads(inside)
        return True
    except ValueError:
        pass
    try:
        return all(json.loads(line) is not None for line in inside.splitlines())
    except ValueError:
        return False


@pytest.mark.parametrize("path", [*SOURCES, REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))], ids=lambda path: path.name)
def test_json_is_json(path):
    for line, text in examples_of(path):
        assert parses(text), f"{path.name}:{line}: this is no JSON: {text}"


def test_there_is_json_to_check():
    assert sum(len(examples_of(path)) for path in [*SOURCES, *(REPOSITORY / "docs").glob("*.md")]) > 10


def fenced(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (REPOSITORY / document).read_text(encoding="utf-8"), re.M | re.S)


def test_shown_files_are_the_files():
    for document, file in (("CONTRIBUTING.md", "languages/lua.yaml"), ("docs/REDACTION.md", "docs/examples/redaction.yaml")):
        lines = (REPOSITORY / file).read_text(encoding="utf-8").splitlines()
        shown = fenced(document, "yaml")[0].splitlines()
        assert shown == [line for line in lines if not line.startswith("#")], f"{document} and {file} differ"


def test_the_example_of_libcordon_compiles(tmp_path):
    if not shutil.which("cc"):
        skip("cc is not installed")
    page = (REPOSITORY / "man" / "libcordon.3").read_text(encoding="utf-8")
    (tmp_path / "example.c").write_text(page.split(".Bd -literal\n")[1].split(".Ed")[0].replace("\\e", "\\"), encoding="utf-8")
    done = subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", REPOSITORY / "include", tmp_path / "example.c"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
