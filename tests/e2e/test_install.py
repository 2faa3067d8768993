"""What `make install` leaves: a tree that works where it lies, and a library that programs can link in both ways."""
import os
import pathlib
import shutil
import subprocess

import pytest

from helpers import CORDON, REPOSITORY, has_cgroup, skip

BUILD = pathlib.Path(CORDON).parent
HELLO = REPOSITORY / "docs" / "examples" / "hello.c"
SANITIZED = bool(os.environ.get("CORDON_TEST_SANITIZED"))
OTHER_USER = 12345


@pytest.fixture(scope="module", name="tree")
def installed_tree(tmp_path_factory):
    """The prefix of an installation with DESTDIR."""
    for tool in ("meson", "cc", "pkg-config"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    if not os.access(BUILD / "meson-logs", os.W_OK):
        skip("only who may write the build directory can install from it", expected=False)
    destination = tmp_path_factory.mktemp("destination")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], env={**os.environ, "DESTDIR": str(destination)},
                   check=True, capture_output=True, timeout=120)
    prefix = next(path.parent for path in destination.rglob("bin") if (path / "cordon").exists())
    return destination, prefix


def flags(tree, *options):
    destination, _ = tree
    pc = next(destination.rglob("cordon.pc"))
    told = subprocess.run(["pkg-config", *options, "--cflags", "--libs", "cordon"], check=True, capture_output=True, text=True,
                          env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(destination)})
    return told.stdout.split()


def compile_hello(tree, output, *options, before=()):
    done = subprocess.run(["cc", *before, "-o", output, HELLO, *flags(tree, *options)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


def library_directory(tree):
    return str(next(tree[0].rglob("libcordon.so")).parent)


def runs(program, **environment):
    if not has_cgroup():
        skip("hello.c asks for every control, and there is no control group", expected=False)
    done = subprocess.run([program], capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok: 42\n", ""), done.stderr
    return True


def test_hello_runs_with_the_shared_library(tree, tmp_path):
    if SANITIZED:
        skip("a sanitized library is not for other programs", expected=False)
    program = compile_hello(tree, tmp_path / "hello")
    assert runs(program, LD_LIBRARY_PATH=library_directory(tree))


def test_hello_runs_with_an_rpath(tree, tmp_path):
    if SANITIZED:
        skip("a sanitized library is not for other programs", expected=False)
    assert runs(compile_hello(tree, tmp_path / "hello", before=[f"-Wl,-rpath,{library_directory(tree)}"]))


def test_hello_runs_when_it_is_static(tree, tmp_path):
    if SANITIZED:
        skip("a sanitized library cannot be linked statically", expected=False)
    place = tree[1] / "bin" / "hello"  # a static program looks from where it lies itself
    program = compile_hello(tree, place, "--static", before=["-static"])
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    assert "statically linked" in told.stdout or "not a dynamic" in told.stderr, told
    assert runs(program)


def test_static_library_shows_only_public_names(tree):
    archive = next(tree[0].rglob("libcordon.a"))
    told = subprocess.run(["nm", "--defined-only", "--extern-only", archive], capture_output=True, text=True, check=True)
    names = [line.split()[2] for line in told.stdout.splitlines() if len(line.split()) == 3]
    assert "cordon_execute" in names
    assert [name for name in names if not name.startswith("cordon_")] == []


def test_a_warden_that_somebody_else_put_there_is_not_started(tree, tmp_path):
    """As with a static program in /tmp, where anybody may put a file called cordon-warden beside it."""
    if SANITIZED:
        skip("a sanitized library cannot be linked statically", expected=False)
    if os.getuid() != 0:
        skip("only root can give a file away", expected=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "languages").symlink_to(REPOSITORY / "languages")
    program = compile_hello(tree, tmp_path / "bin" / "hello", "--static", before=["-static"])
    warden, marker = tmp_path / "bin" / "cordon-warden", tmp_path / "started"
    warden.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
    warden.chmod(0o755)
    subprocess.run([program], capture_output=True, check=False, timeout=60)
    assert marker.exists(), "one that belongs to the superuser is used"
    marker.unlink()
    os.chown(warden, OTHER_USER, OTHER_USER)
    subprocess.run([program], capture_output=True, check=False, timeout=60)
    assert not marker.exists()


def ordinary_user(argv, **how):
    """As a user who owns nothing, wherever the tests are run as root."""
    if os.getuid() == 0:
        how.update(user=OTHER_USER, group=OTHER_USER, extra_groups=[])
        if any(not directory.stat().st_mode & 0o005 for directory in [REPOSITORY, *REPOSITORY.parents]):
            skip("another user cannot read the repository", expected=False)
    return subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60, **how)


def test_install_without_rights_says_what_to_do():
    before = sorted(BUILD.iterdir())
    done = ordinary_user(["make", "install", "PREFIX=/usr/lib/cordon-is-not-installed-here"])
    assert done.returncode != 0
    assert ": user " in done.stderr and "may not write /usr/lib.\n" in done.stderr and "'sudo make install'" in done.stderr, done.stderr
    assert "make install PREFIX=~/.local" in done.stderr, done.stderr
    assert (done.stdout, sorted(BUILD.iterdir())) == ("", before), "nothing is begun"


def test_install_wants_an_absolute_prefix():
    done = ordinary_user(["tools/install", "check", "local"])
    assert done.returncode == 1 and "'local' is not absolute" in done.stderr, done.stderr


def test_install_tells_how_programs_find_it(tree, tmp_path):
    """With a prefix that neither PATH nor the linker's cache covers. What changes the machine is replaced by a stub."""
    for name, prints in (("meson", ""), ("ldconfig", "libc.so.6 (libc6,x86-64) => /lib/libc.so.6")):
        stub = tmp_path / name
        stub.write_text(f"#!/bin/sh\necho '{prints}'\n", encoding="utf-8")
        stub.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([REPOSITORY / "tools" / "install", str(tree[1]), BUILD], capture_output=True, text=True, check=True,
                          env={**os.environ, "PATH": path})
    assert f"installed Cordon into {tree[1]}\n" in done.stdout
    assert f"add {tree[1]}/bin to PATH" in done.stdout
    assert f"-Wl,-rpath,{library_directory(tree)}; see libcordon(3)" in done.stdout
    quiet = subprocess.run([REPOSITORY / "tools" / "install", str(tree[1]), BUILD], capture_output=True, text=True, check=True,
                           env={**os.environ, "PATH": f"{path}:{tree[1]}/bin", "DESTDIR": str(tree[0])})
    assert "PATH" not in quiet.stdout and "rpath" not in quiet.stdout, "who packages needs no advice"


def test_moved_tree_runs_a_program(tree):
    if not has_cgroup():
        skip("there is no control group", expected=False)
    done = subprocess.run([tree[1] / "bin" / "cordon", "run", "-l", "python", "-c", "print(6*7)"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


@pytest.mark.parametrize("compiler", [["cc", "-x", "c", "-std=c99", "-pedantic"], ["c++", "-x", "c++", "-std=c++11"]], ids=["c99", "c++11"])
def test_public_headers_are_clean(compiler, tmp_path):
    if not shutil.which(compiler[0]):
        skip(f"{compiler[0]} is not installed")
    for header in sorted((REPOSITORY / "include" / "cordon").glob("*.h")):
        source = tmp_path / "one.c"
        source.write_text(f"#include <cordon/{header.name}>\nint unused;\n", encoding="utf-8")
        done = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", REPOSITORY / "include", source],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{header.name}: {done.stderr}"


def test_structures_begin_with_their_macros(tmp_path):
    """Each CORDON_…_INIT sets every member, in C and in C++."""
    source = tmp_path / "all.c"
    names = ["ENGINE_OPTIONS", "RUN_OPTIONS", "JUDGE_OPTIONS", "USAGE", "DENIAL", "REDACTION", "FILE", "SKIPPED_FILE", "FAULT", "TEST_COUNTS", "TEST"]
    body = "".join(f"    cordon_{name.lower()} {name.lower()} = CORDON_{name}_INIT;\n" for name in names)
    body += "".join(f"    if ({name.lower()}.struct_size != sizeof {name.lower()}) return 1;\n" for name in names)
    source.write_text(f"#include <cordon/cordon.h>\nint main(void)\n{{\n{body}    return 0;\n}}\n", encoding="utf-8")
    for compiler in (["cc", "-std=c99", "-pedantic"], ["c++", "-x", "c++"]):
        if not shutil.which(compiler[0]):
            skip(f"{compiler[0]} is not installed")
        done = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-I", REPOSITORY / "include", "-o", tmp_path / "all", source],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert subprocess.run([tmp_path / "all"], check=False).returncode == 0
