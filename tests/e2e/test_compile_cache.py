"""What was compiled is kept: the same program is compiled once, and nothing else is ever taken for it."""
import os
import threading

import pytest

from helpers import FLAGS, SET_UP, as_result, cordon, need, run_arguments, skip, tool

HELLO = '#include <stdio.h>\nint main(void) { printf("hello %d\\n", 6 * 7); return 0; }\n'
PROGRAMS = {
    "c": ("gcc", HELLO, "hello 42\n"),
    "cpp": ("g++", '#include <iostream>\nint main() { std::cout << "hello " << 42 << std::endl; }\n', "hello 42\n"),
    "rust": ("rustc", 'fn main() { println!("hello {}", 6 * 7); }\n', "hello 42\n"),
    "go": ("go", 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello", 6*7) }\n', "hello 42\n"),
    "java": ("javac", 'record P(int x) {}\npublic class Hello { public static void main(String[] a) { '
             'System.out.println("hello " + new P(42).x()); } }\n', "hello 42\n"),
    "typescript": ("tsc", 'const x: number = 6 * 7;\nconsole.log(`hello ${x}`);\n', "hello 42\n"),
}


class Place:
    """A cache directory of the test's own, and runs that use it."""

    def __init__(self, home):
        self.home = home
        self.compiled = home / "cordon" / "compiled"

    def run(self, language, code, *flags, args=(), env=None):
        return as_result(cordon(*run_arguments(language, code, "--json", *flags, args=args), timeout=120,
                                env={**os.environ, "XDG_CACHE_HOME": str(self.home), **(env or {})}))

    def cached(self, language, code, *flags, expect="hello 42\n", **how):
        found = self.run(language, code, *flags, **how)
        assert (found["status"], found["stdout"]) == ("ok", expect), found
        return found["compile"]["cached"]

    def entries(self):
        return sorted(self.compiled.iterdir()) if self.compiled.exists() else []


@pytest.fixture
def place(tmp_path):
    need("c")
    return Place(tmp_path / "cache")


@pytest.mark.parametrize("language", PROGRAMS)
def test_every_compiled_language(language, tmp_path):
    compiler, code, expect = PROGRAMS[language]
    if not tool(compiler):
        skip(f"{compiler} is not installed", language in SET_UP)
    place = Place(tmp_path / "cache")
    first = place.run(language, code)
    again = place.run(language, code)
    assert (first["status"], first["stdout"]) == ("ok", expect), first
    assert (again["status"], again["stdout"]) == ("ok", expect), again
    assert (first["compile"]["cached"], again["compile"]["cached"]) == (False, True)
    assert not place.cached(language, code + "\n", expect=expect), "another source is another program"


def test_a_hit_tells_what_it_is(place):
    code = "int f(void) { int unused; return 0; }\n#warning careful\n" + HELLO
    first, again = place.run("c", code), place.run("c", code)
    before, after = first["compile"], again["compile"]
    assert "careful" in before["stderr"]
    same = set(before) - {"cached", "usage", "timing"}
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert set(before) == set(after)
    assert before["usage"]["wall_ms"] > 0 and before["timing"]["run_us"] > 0
    spent = {key: value for key, value in after["usage"].items() if key not in ("stdout_bytes", "stderr_bytes")}
    assert not any(spent.values()) and not any(after["timing"].values()), "nothing was spent this time"
    assert first["code_sha256"] == again["code_sha256"] and first["id"] != again["id"]


def test_run_time_inputs_do_not_matter(place):
    code = '#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) { int c = getchar(); printf("%s %s %c\\n", v[1], getenv("A"), c); }'
    assert not place.cached("c", code, "--env", "A=b", "--stdin", "x", args=["one"], expect="one b x\n")
    assert place.cached("c", code, "--env", "A=c", "--stdin", "y", "--memory", "64m", args=["two"], expect="two c y\n")


def test_files_and_their_names_matter(place, tmp_path):
    header = tmp_path / "h.h"
    code = '#include "h.h"\n#include <stdio.h>\nint main(void) { printf("hello %d\\n", N); }'
    header.write_text("#define N 42\n")
    assert not place.cached("c", code, "--file", header)
    assert place.cached("c", code, "--file", header)
    header.write_text("#define N 43\n")
    assert not place.cached("c", code, "--file", header, expect="hello 43\n")
    header.write_text("#define N 42\n")
    assert place.cached("c", code, "--file", header)
    assert not place.cached("c", code, "--file", header, "--file", f"unused.txt={header}"), "one more file"


def test_failed_compilations_are_not_kept(place):
    for _ in range(2):
        found = place.run("c", "int main(void) { return x; }")
        assert found["status"] == "compile_error" and found["compile"]["cached"] is False
    assert place.entries() == []


def test_no_cache(place):
    assert not place.cached("c", HELLO, "--no-cache")
    assert place.entries() == []
    assert not place.cached("c", HELLO)
    assert not place.cached("c", HELLO, "--no-cache")
    assert place.cached("c", HELLO)


def test_interpreted_languages_have_no_compile_step(place):
    assert place.run("bash", "echo hi", "--no-cache")["compile"] is None
    assert place.entries() == []


def test_the_place_is_private(place):
    place.cached("c", HELLO)
    assert [path.stat().st_mode & 0o7777 for path in (place.compiled.parent, place.compiled)] == [0o700, 0o700]
    (entry,) = place.entries()
    assert entry.stat().st_mode & 0o7777 == 0o600


def spoil_content(entry):
    data = bytearray(entry.read_bytes())
    at = data.index(b"hello %d")
    data[at:at + 5] = b"PWNED"
    entry.write_bytes(data)


def spoil_mode(entry):
    entry.chmod(0o622)


def spoil_head(entry):
    entry.write_bytes(b"not what it was" + entry.read_bytes()[15:])


def spoil_length(entry):
    entry.write_bytes(entry.read_bytes()[:-1])


def spoil_kind(entry):
    other = entry.parent / "other"
    entry.rename(other)
    entry.symlink_to(other)


@pytest.mark.parametrize("spoil", [spoil_content, spoil_mode, spoil_head, spoil_length, spoil_kind])
def test_a_spoiled_entry_is_compiled_again(place, spoil):
    place.cached("c", HELLO)
    (entry,) = place.entries()
    spoil(entry)
    assert not place.cached("c", HELLO)
    assert entry.is_file() and not entry.is_symlink()
    assert place.cached("c", HELLO), "and kept again"


def test_an_entry_of_another_program_is_not_taken(place):
    place.cached("c", HELLO)
    (wanted,) = place.entries()
    place.cached("c", HELLO.replace("hello", "wrong"), expect="wrong 42\n")
    (other,) = set(place.entries()) - {wanted}
    wanted.write_bytes(other.read_bytes())
    assert not place.cached("c", HELLO)


def test_a_directory_that_others_may_write_is_not_used(place):
    place.cached("c", HELLO)
    place.compiled.chmod(0o777)
    assert not place.cached("c", HELLO)
    place.compiled.chmod(0o700)
    assert place.cached("c", HELLO)


@pytest.mark.parametrize("home", ["/dev/null/nowhere", "/proc/sys", "relative"])
def test_without_a_place_everything_is_compiled(place, home):
    for _ in range(2):
        assert not place.cached("c", HELLO, env={"XDG_CACHE_HOME": home, "HOME": "/dev/null"})


@pytest.mark.parametrize("options", ["size=8k,mode=700", "ro,mode=700"], ids=["full", "read-only"])
def test_a_disk_that_takes_nothing_is_no_failure(place, options):
    if os.getuid():
        skip("only the superuser can mount a small disk", expected=False)
    place.compiled.mkdir(parents=True, mode=0o700)
    place.compiled.parent.chmod(0o700)
    script = f'mount -t tmpfs -o {options} tmpfs {place.compiled} && "$@" && ls -A {place.compiled} >&2'
    done = cordon(*run_arguments("c", HELLO), prefix=("unshare", "-m", "sh", "-c", script, "sh"),
                  env={**os.environ, "XDG_CACHE_HOME": str(place.home)})
    assert (done.text, done.errors, done.code) == ("hello 42\n", "", 0), done


def test_many_at_once(place):
    codes = [HELLO.replace("hello", f"hello{n}") for n in range(3)]
    wrong = []

    def work():
        for n, code in enumerate(codes):
            found = place.run("c", code)
            if found["stdout"] != f"hello{n} 42\n":
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(place.entries()) == 3
    assert place.cached("c", codes[0], expect="hello0 42\n")


def test_programs_cannot_see_it(place):
    place.cached("c", HELLO)
    code = f'#include <unistd.h>\n#include <stdio.h>\nint main(void) {{ printf("%d\\n", access("{place.compiled}", F_OK)); }}'
    place.cached("c", code, expect="-1\n")


def test_plain_output_is_the_programs(place):
    environment = {**os.environ, "XDG_CACHE_HOME": str(place.home)}
    runs = [cordon(*run_arguments("c", HELLO), env=environment) for _ in range(2)]
    assert [(done.text, done.errors, done.code) for done in runs] == [("hello 42\n", "", 0)] * 2


def test_a_file_is_found_as_well(place, tmp_path):
    source = tmp_path / "app.c"
    source.write_text(HELLO)
    environment = {**os.environ, "XDG_CACHE_HOME": str(place.home)}
    found = [as_result(cordon("run", *FLAGS, "--json", source, env=environment))["compile"]["cached"] for _ in range(2)]
    assert found == [False, True]
