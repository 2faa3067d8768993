"""Host directories in a cell, and files out of it."""
import base64
import json
import os
import re
import textwrap

import pytest

from helpers import FLAGS, cordon, need, ok, result, run


@pytest.fixture
def shared(tmp_path):
    """A directory that only the caller may open, with a file and a nested directory."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    (folder / "file").write_text("content\n")
    (folder / "file").chmod(0o600)
    (folder / "nested").mkdir(mode=0o700)
    (folder / "nested" / "deep").write_text("deep\n")
    return folder


def refused(mount, *words):
    done = cordon("run", *FLAGS, "--mount", mount, "-l", "bash", "-c", "echo ran")
    assert done.code in (2, 125) and done.out == b"", done
    assert done.errors.startswith("cordon: "), done
    for word in words:
        assert re.search(word, done.errors), f"{word!r} is not in {done.errors!r}"


def test_read_only_is_the_default(shared):
    code = "cat /data/file /data/nested/deep; for f in /data/file /data/new /data/nested/new; do echo x 2>/dev/null > $f && echo wrote $f; done; rm -f /data/file 2>/dev/null; true"
    for suffix in ("", ":ro"):
        assert ok("bash", code, "--mount", f"{shared}:/data{suffix}") == "content\ndeep\n"
    assert (shared / "file").read_text() == "content\n"
    assert sorted(os.listdir(shared)) == ["file", "nested"]


def test_read_only_cannot_be_undone(shared):
    code = "mount -o remount,rw /data 2>/dev/null; umount /data 2>/dev/null; chmod 777 /data/file 2>/dev/null; touch /data/file 2>/dev/null; cat /data/file"
    before = os.stat(shared / "file")
    assert ok("bash", code, "--mount", f"{shared}:/data") == "content\n"
    after = os.stat(shared / "file")
    assert (before.st_mode, before.st_mtime_ns) == (after.st_mode, after.st_mtime_ns)


def test_writes_belong_to_the_caller(shared):
    code = "echo more >> /data/file; echo new > /data/new; mkdir /data/dir; echo x > /data/dir/x; mv /data/nested /data/moved; stat -c %u:%g /data/new"
    assert ok("bash", code, "--mount", f"{shared}:/data:rw") == "1000:1000\n"
    assert (shared / "file").read_text() == "content\nmore\n"
    assert (shared / "new").read_text() == "new\n"
    assert (shared / "moved" / "deep").read_text() == "deep\n"
    for name in ("new", "dir", "dir/x"):
        found = os.stat(shared / name)
        assert (found.st_uid, found.st_gid) == (os.getuid(), os.getgid()), name


FLUSHES = """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("fsync", "fdatasync", "syncfs"):
        print(name, getattr(libc, name)(999))
    print("sync_file_range", libc.sync_file_range(999, ctypes.c_long(0), ctypes.c_long(0), 2))
    print("msync", libc.msync(ctypes.c_void_p(1 << 46), ctypes.c_size_t(4096), 4))
    fd = os.open("/work/own", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"own")
    os.fsync(fd)
    os.sync()
"""


@pytest.mark.parametrize("how, reached", [((), False), (("--mount", "{shared}:/data"), False), (("--mount", "{shared}:/data:rw"), True)],
                         ids=["no mount", "read-only mount", "writable mount"])
def test_files_are_written_out_where_a_mount_is_writable(shared, how, reached):
    """A wrong descriptor tells whether the kernel was asked: without a writable mount there is nothing to write out."""
    code = textwrap.dedent(FLUSHES)
    if reached:
        code += "fd = os.open('/data/file', os.O_WRONLY)\nos.write(fd, b'CONTENT')\nos.fsync(fd)\n"
    lines = ok("python", code, *[word.format(shared=shared) for word in how]).split("\n")
    assert lines[:5] == [f"{name} {-1 if reached else 0}" for name in ("fsync", "fdatasync", "syncfs", "sync_file_range", "msync")]
    assert (shared / "file").read_text() == ("CONTENT\n" if reached else "content\n")


def test_the_callers_files_look_like_the_programs(shared):
    assert ok("bash", "stat -c %U /data /data/file", "--mount", f"{shared}:/data") == "cordon\ncordon\n"


def test_no_set_id_bits_that_work(shared):
    """A set-user-id file made in a writable mount gives nobody anything in a cell."""
    assert "Uid:\t1000\t1000\t1000\t1000" in ok("bash", "cp /bin/cat /data/cat; chmod 6755 /data/cat; /data/cat /proc/self/status",
                                                "--mount", f"{shared}:/data:rw")


def test_a_single_file(shared):
    assert ok("bash", "cat /conf/settings; echo x > /conf/settings || echo refused", "--mount", f"{shared}/file:/conf/settings") \
        == "content\nrefused\n"


def test_several_and_nested_mounts(shared, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "o").write_text("other\n")
    (shared / "inner").mkdir()
    out = ok("bash", "cat /a/file /a/inner/o /work/in/o; echo x > /a/inner/p && echo wrote; echo x 2>/dev/null > /a/q || echo refused",
             "--mount", f"{shared}:/a", "--mount", f"{other}:/a/inner:rw", "--mount", f"{other}:/work/in")
    assert out == "content\nother\nother\nwrote\nrefused\n"
    assert (other / "p").exists()


def test_a_mount_in_the_work_directory(shared):
    assert ok("bash", "ls data; echo mine > f; cat f", "--mount", f"{shared}:/work/data") == "file\nnested\nmine\n"


def test_links_inside_a_mount_do_not_lead_out(shared):
    (shared / "link").symlink_to("/etc/shadow")
    (shared / "up").symlink_to("../../../..")
    out = ok("bash", "cat /data/link 2>/dev/null; ls /data/up/ 2>/dev/null | grep -x work; true", "--mount", f"{shared}:/data")
    assert out in ("work\n", "")


def test_relative_source(shared):
    found = result("bash", "cat /data/file", "--mount", "shared:/data", cwd=shared.parent)
    assert found["stdout"] == "content\n", found


def test_a_symlink_as_source_is_refused(shared, tmp_path):
    (tmp_path / "link").symlink_to(shared)
    refused(f"{tmp_path}/link:/data", "link", "[Ss]ym(bolic )?link|symlink")


def test_a_symlink_on_the_way_is_refused(shared, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    refused(f"{tmp_path}/link/shared:/data", "[Ss]ym(bolic )?link|symlink")


def test_a_missing_source_is_refused(tmp_path):
    refused(f"{tmp_path}/none:/data", "none", "No such file")


@pytest.mark.parametrize("destination", ["data", "/", "../x", "/a/../b", "/proc", "/proc/self", "/dev", "/dev/null", "/work", "/usr", "/usr/lib", "/etc/passwd",
                                         "", "/sys", "/tmp/../etc"])
def test_bad_destinations(destination, shared):
    refused(f"{shared}:{destination}", "mount|destination|path")


@pytest.mark.parametrize("suffix", ["rx", "rw:rw", "RW"])
def test_bad_modes(suffix, shared):
    refused(f"{shared}:/data:{suffix}", "mount")


def test_a_source_the_caller_may_not_read():
    if os.getuid() == 0:
        pytest.skip("root may read everything")
    found = cordon("run", *FLAGS, "--mount", "/root:/data", "-l", "bash", "-c", "ls /data")
    assert found.code != 0 and found.out == b"", found


# Collecting


def paths(found):
    assert found["status"] == "ok", found
    return [file["path"] for file in found["files"]]


TREE = "mkdir -p a/b/c; for f in x.txt y.csv a/x.txt a/b/x.txt a/b/c/x.txt .hidden; do echo $f > $f; done; mkdir dir.txt"


@pytest.mark.parametrize("globs, expected", [
    (["*.txt"], ["x.txt"]),
    (["**/*.txt"], ["a/b/c/x.txt", "a/b/x.txt", "a/x.txt", "x.txt"]),
    (["a/*"], ["a/x.txt"]),
    (["a/**"], ["a/b/c/x.txt", "a/b/x.txt", "a/x.txt"]),
    (["x.txt", "y.*", "x.txt"], ["x.txt", "y.csv"]),
    (["[xy].???"], ["x.txt", "y.csv"]),
    (["nothing"], []),
])
def test_globs(globs, expected):
    flags = [flag for glob in globs for flag in ("--collect", glob)]
    assert paths(result("bash", TREE, *flags)) == expected


def test_hostile_files_are_passed_over(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    code = f"""
        ln -s /etc/passwd link.out; ln -s {secret} host.out; ln -s . loop; ln -s /proc/self/environ env.out; ln -s /dev/zero zero.out
        mkfifo fifo.out; mkdir dir.out; echo fine > fine.out; ln fine.out hard.out; echo no > closed.out; chmod 0 closed.out
        mkdir shut; echo in > shut/in.out; chmod 0 shut; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock.out')"
        true
    """
    found = result("bash", code, "--collect", "**")
    contents = {file["path"]: file.get("content") for file in found["files"]}
    assert contents["fine.out"] == "fine\n" and contents["hard.out"] == "fine\n"
    assert set(contents) <= {"fine.out", "hard.out", "closed.out", "shut/in.out", "main.sh", "main.bash"}, contents
    assert "host secret" not in str(found) and found.seconds < 5


def test_a_link_in_place_of_a_directory_is_not_followed():
    code = "mkdir d; echo x > d/f; mv d e; ln -s /etc d; ln -s / root"
    assert paths(result("bash", code, "--collect", "d/*", "--collect", "root/**")) == []


def test_strange_names():
    code = r"echo 1 > $'new\nline'; echo 2 > 'quote\"'; echo 3 > '-dash'; echo 4 > é; echo 5 > $'\xff'; echo 6 > '*'; rm main.*"
    found = result("bash", code, "--collect", "*")
    assert {"new\nline", '"', "-dash", "é", "*"} - set(paths(found)) <= {'"'}


def test_sparse_and_large_files_are_bounded():
    found = result("bash", "truncate -s 1T huge; echo x > small", "--collect", "*", "--file-size", "unlimited")
    assert found["status"] in ("ok", "nonzero_exit", "disk_limit"), found
    assert "huge" not in [file["path"] for file in found["files"]]
    assert "small" in [file["path"] for file in found["files"]]


def collected(language, code, *flags, collect="**", **request):
    """The result of a request given as JSON, run from the command line's batch: what the library reads and writes."""
    optional = [FLAGS[i + 1] for i, flag in enumerate(FLAGS) if flag == "--optional"]
    whole = {"language": language, "code": code, "collect": [collect], "optional": optional, **request}
    done = cordon("batch", "-", "-o", "-", "-q", stdin=json.dumps({key: value for key, value in whole.items() if value is not None}))
    return json.loads(done.out)


def test_what_was_given_is_not_collected():
    """Only what the program made or changed; whatever it does to times, names and inodes of the rest."""
    files = {"in.txt": "in", "kept.txt": "kept", "changed.txt": "one", "sub/deep.txt": "deep", "grown.txt": "x", "moved.txt": "moved"}
    code = """
        touch -d 2001-01-01 in.txt; cp kept.txt copy && mv copy kept.txt; printf two > changed.txt; printf y >> grown.txt
        touch -r in.txt changed.txt; mv moved.txt elsewhere.txt; echo new > new.txt; chmod +x in.txt
    """
    found = collected("bash", code, files=files)
    assert {file["path"]: file["content"] for file in found["files"]} == {
        "changed.txt": "two", "grown.txt": "xy", "elsewhere.txt": "moved", "new.txt": "new\n"}
    found = collected("bash", ":", files=files)
    assert found["files"] == [] and found["files_skipped"] == {"count": 0, "items": []}
    found = collected("bash", ":", files=files, collect_all=True)
    assert {file["path"] for file in found["files"]} == {*files, "main.sh"}


def test_what_was_compiled_is_not_collected():
    need("c")
    found = collected("c", "#include <stdio.h>\nint main(void) { fputs(\"x\", fopen(\"new\", \"w\")); return 0; }")
    assert [file["path"] for file in found["files"]] == ["new"]
    found = collected("c", "int main(void) { return 0; }", collect_all=True)
    assert len(found["files"]) > 1


def test_names_that_are_no_text():
    code = r"echo 1 > $'a\xff'; echo 2 > $'a\xfe'; echo 3 > 'a\xff'; echo 4 > é; echo 5 > $'b\xfe'"
    found = result("bash", code, "--collect", "*")
    files = {file["path"]: file for file in found["files"]}
    assert sorted(files) == ["a\\xfe", "a\\xff", "b\\xfe", "é"] and len(files) == len(found["files"])
    assert base64.b64decode(files["a\\xfe"]["path_base64"]) == b"a\xfe" and files["a\\xff"]["content"] == "3\n"
    assert found["files_skipped"]["count"] == 1 and "is shown like" in found["files_skipped"]["items"][0]["why"], found


def test_names_that_are_no_text_on_the_host(tmp_path):
    done = cordon("run", *FLAGS, "--collect", "*", "--output-dir", tmp_path, "-l", "bash", "-c", r"echo 1 > $'a\xff'; echo 2 > $'a\xfe'")
    assert done.code == 0 and sorted(os.listdir(os.fsencode(tmp_path))) == [b"a\xfe", b"a\xff"], done
    with open(os.fsencode(tmp_path) + b"/a\xfe", "rb") as file:
        assert file.read() == b"2\n"


def test_what_comes_back_can_be_sent():
    """`files` of one result are `files` of the next request: of any name and content, the program's own file with them."""
    code = r"mkdir -p d/e; printf '\x00\xff' > d/e/bytes; echo text > $'new\nline'; printf '' > empty; echo 1 > $'a\xff'; echo 2 > $'a\xfe'"
    first = collected("bash", code, collect_all=True)
    assert first["status"] == "ok" and len(first["files"]) == 6, first
    second = collected("bash", "for f in * d/e/*; do test -f \"$f\" && sha256sum < \"$f\"; done; :", files=first["files"], collect_all=True)
    assert second["status"] == "ok", second
    strip = [file for file in second["files"] if file["path"] != "main.sh"]
    assert strip == [file for file in first["files"] if file["path"] != "main.sh"]
    third = collected("bash", None, files=second["files"], entry="main.sh")
    assert third["status"] == "ok" and third["files"] == [] and third["stdout"] == second["stdout"], third


def test_what_is_left_out_is_named():
    code = "ln -s /etc/passwd link; mkfifo pipe; head -c 9000000 /dev/zero > big; echo small > small; for i in $(seq 200); do ln -s x l$i; done"
    found = result("bash", code, "--collect", "*")
    skipped = found["files_skipped"]
    whys = {item["path"]: (item["size"], item["why"]) for item in skipped["items"]}
    assert skipped["count"] == 203 and len(skipped["items"]) == 100 and [file["path"] for file in found["files"]] == ["small"]
    found = result("bash", code.split("; for")[0], "--collect", "*")
    whys = {item["path"]: (item["size"], item["why"]) for item in found["files_skipped"]["items"]}
    assert whys["link"] == (None, "it is a symbolic link") and whys["pipe"] == (None, "it is a named pipe")
    assert whys["big"][0] == 9000000 and "8 MiB" in whys["big"][1], whys


def test_what_is_left_out_is_told(tmp_path):
    code = "ln -s x link; for i in $(seq 30); do mkfifo p$i; done"
    done = cordon("run", *FLAGS, "--collect", "*", "--output-dir", tmp_path, "-l", "bash", "-c", code)
    lines = done.errors.splitlines()
    assert sum(line.startswith("cordon: not collected: ") for line in lines) == 11 and "not collected: 21 more" in done.errors, done
    done = cordon("run", *FLAGS, "--collect-all", "-l", "bash", "-c", ":")
    assert done.code == 2 and "--collect-all has nothing to collect" in done.errors


def test_many_files_are_bounded():
    found = result("python", "for n in range(3000): open(f'{n}', 'w').close()", "--collect", "*")
    assert found["status"] == "ok" and 0 < len(found["files"]) <= 1024
    assert found.seconds < 5


def test_deep_directories():
    code = "import os\nfor n in range(200):\n  os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()"
    found = result("python", code, "--collect", "**/f")
    assert found["status"] == "ok" and found["files"] == []


def test_collected_after_a_failure():
    found = result("bash", "echo partial > out.txt; exit 3", "--collect", "*.txt")
    assert found["status"] == "nonzero_exit" and found["files"][0]["content"] == "partial\n"


def test_collected_after_a_limit():
    found = result("bash", "echo partial > out.txt; sleep 20", "--collect", "*.txt", "--wall", "300ms")
    assert found["status"] == "wall_limit" and found["files"][0]["content"] == "partial\n"


def test_files_of_a_mount_are_not_collected(shared):
    found = result("bash", "ls data > list", "--mount", f"{shared}:/work/data", "--collect", "**")
    assert not [path for path in paths(found) if path.startswith("data/")]


def test_output_directory(tmp_path):
    target = tmp_path / "out"
    done = cordon("run", *FLAGS, "--collect", "**/*.txt", "--output-dir", target, "-l", "bash", "-c", TREE)
    assert done.code == 0, done
    assert (target / "a" / "b" / "c" / "x.txt").read_text() == "a/b/c/x.txt\n"
    assert (target / "x.txt").read_text() == "x.txt\n" and not (target / "y.csv").exists()
    assert os.stat(target / "x.txt").st_uid == os.getuid()


def test_output_directory_with_links_in_it(tmp_path):
    """What lies in the directory already cannot send the program's bytes elsewhere."""
    target, outside = tmp_path / "out", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    (target / "a").symlink_to(outside)
    (outside / "victim").write_text("kept")
    (target / "x.txt").symlink_to(outside / "victim")
    cordon("run", *FLAGS, "--collect", "**/*.txt", "--output-dir", target, "-l", "bash", "-c", TREE)
    assert os.listdir(outside) == ["victim"] and (outside / "victim").read_text() == "kept"


def test_no_set_id_file_is_left_on_the_host(tmp_path):
    """Written through a mount a file belongs to the caller, so a set-id bit would be the caller's rights for anyone."""
    need("python", "bash")
    share = tmp_path / "share"
    share.mkdir()
    code = """
import os, shutil
shutil.copy('/usr/bin/id', '/data/one')
for attempt in (lambda: os.chmod('/data/one', 0o6755), lambda: os.open('/data/two', os.O_CREAT | os.O_WRONLY, 0o6755),
                lambda: os.mknod('/data/three', 0o100000 | 0o6755), lambda: os.system('cp --preserve=mode /usr/bin/passwd /data/four')):
    try:
        attempt()
    except OSError as error:
        print(error)
"""
    done = run("python", code, "--mount", f"{share}:/data:rw")
    assert b"Operation not permitted" in done.out, done
    for path in share.iterdir():
        assert not path.stat().st_mode & 0o6000, path


def test_the_store_itself_is_out_of_reach():
    """It lies beneath /tmp, covered by its own part: no path leads to it, and nothing that is mounted there can be taken away."""
    done = result("python", textwrap.dedent("""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        held = os.open("/tmp", os.O_RDONLY)
        seen = [sorted(os.listdir(place)) for place in ("/tmp", "/dev/shm")]
        above = {place: sorted(os.listdir(os.open("..", os.O_RDONLY, dir_fd=os.open(place, os.O_RDONLY)))) for place in ("/tmp", "/work")}
        print(seen, above["/tmp"] == above["/work"] == sorted(os.listdir("/")), "shm" in above["/tmp"])
        for call in (lambda: libc.umount2(b"/tmp", 2), lambda: libc.syscall(428, held, b"", 0x1001), lambda: libc.syscall(304, held, b"", 0)):
            print(call())
        try:
            os.rename("/tmp/../work", "/tmp/moved")
        except OSError as error:
            print(error.errno in (16, 18, 30))
    """))
    assert done["stdout"].split("\n")[:5] == ["[[], []] True False", "-1", "-1", "-1", "True"], done
