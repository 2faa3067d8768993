"""What a program was denied is named in the result; asking too often disturbs nobody."""
import os
import textwrap
import time

import pytest

from helpers import FLAGS, as_result, cordon, has_cgroup, ok, result, start

# Numbers by machine: (x86_64, aarch64).
CALLS = {
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "bpf": (321, 280), "keyctl": (250, 219),
    "add_key": (248, 217), "io_uring_setup": (425, 425), "pivot_root": (155, 41), "setns": (308, 268), "init_module": (175, 105),
    "reboot": (169, 142), "swapon": (167, 224), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kexec_load": (246, 104),
    "process_vm_readv": (310, 270), "fsopen": (430, 430), "open_tree": (428, 428), "pidfd_getfd": (438, 438), "sethostname": (170, 161),
}
MACHINE = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)


def call(name, arguments="0, 0, 0, 0, 0", times=1):
    if MACHINE is None:
        pytest.skip(f"no call numbers for {os.uname().machine}")
    return textwrap.dedent(f"""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for _ in range({times}):
            returned = libc.syscall({CALLS[name][MACHINE]}, {arguments})
        print(returned, ctypes.get_errno())
    """)


def denial(found, what):
    rows = [row for row in found["denials"] if row["what"] == what]
    assert len(rows) == 1, found["denials"]
    return rows[0]


def check_shape(row):
    assert set(row) == {"kind", "what", "count", "hint"}
    assert row["kind"] in ("syscall", "network", "module")
    assert isinstance(row["count"], int) and row["count"] >= 1
    assert isinstance(row["hint"], str) and row["hint"] and "\n" not in row["hint"]


@pytest.mark.parametrize("name", CALLS)
def test_denied_call_is_named(name):
    arguments = "0x10000000, 0, 0, 0, 0" if name == "unshare" else "0, 0, 0, 0, 0"
    found = result("python", call(name, arguments))
    assert found["status"] == "ok", found
    returned, error = found["stdout"].split()
    assert returned == "-1" and error in ("1", "38"), found["stdout"]
    row = denial(found, name)
    check_shape(row)
    assert row["kind"] == "syscall" and row["count"] == 1
    if name == "io_uring_setup":
        assert error == "38", "programs fall back only when told that the call does not exist"


def test_calls_are_counted():
    assert denial(result("python", call("mount", times=7)), "mount")["count"] == 7


def test_several_calls_in_one_run():
    found = result("python", call("mount") + call("bpf") + call("ptrace"))
    assert [row["what"] for row in found["denials"]] == ["mount", "bpf", "ptrace"] or \
        {row["what"] for row in found["denials"]} == {"mount", "bpf", "ptrace"}


def test_no_denials_without_an_attempt():
    assert result("python", "print(1)")["denials"] == []


def test_new_namespaces_by_clone():
    found = result("bash", "unshare -Ur true 2>/dev/null; unshare -m true 2>/dev/null; exit 0")
    assert denial(found, "unshare")["count"] == 2


def test_a_program_that_fails_for_it_is_told():
    found = result("bash", "mount -t tmpfs none /tmp")
    assert found["status"] == "nonzero_exit", found
    assert {row["what"] for row in found["denials"]} & {"mount", "fsopen", "open_tree"}, found


def test_strace_is_denied_by_name():
    found = result("python", call("ptrace", "16, 1, 0, 0, 0"))
    assert denial(found, "ptrace")


# Network


CONNECT = "import socket\ns = socket.socket({family}, {kind})\ns.settimeout(2)\ntry: {action}\nexcept OSError as e: print(e.errno)"


@pytest.mark.parametrize("family, action, what", [
    ("socket.AF_INET", "s.connect(('203.0.113.1', 80))", "connect(203.0.113.1:80)"),
    ("socket.AF_INET6", "s.connect(('2001:db8::1', 443))", "connect([2001:db8::1]:443)"),
])
def test_connect_is_named(family, action, what):
    found = result("python", CONNECT.format(family=family, kind="socket.SOCK_STREAM", action=action))
    assert found["stdout"] in ("101\n", "1\n", "13\n", "99\n"), found
    row = denial(found, what)
    check_shape(row)
    assert row["kind"] == "network" and "network" in row["hint"].lower()


def test_datagram_is_named():
    found = result("python", CONNECT.format(family="socket.AF_INET", kind="socket.SOCK_DGRAM", action="s.sendto(b'x', ('203.0.113.1', 53))"))
    rows = [row for row in found["denials"] if row["kind"] == "network" and "203.0.113.1:53" in row["what"]]
    assert len(rows) == 1, found["denials"]


LOOK_UP = "import socket\ntry: socket.getaddrinfo('{name}', 80)\nexcept OSError as e: print(e)"


def test_a_failed_name_look_up_is_named():
    row = denial(result("python", LOOK_UP.format(name="example.com")), "name look-up")
    check_shape(row)
    assert row["kind"] == "network" and "network" in row["hint"].lower()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_a_name_that_needs_no_server_is_not_denied(name):
    found = result("python", LOOK_UP.format(name=name))
    assert found["denials"] == [] and found["stdout"] == "", found


@pytest.mark.parametrize("family, address", [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def test_only_a_name_server_is_a_look_up(family, address):
    code = "import socket\nfor port in (52, 53, 54): socket.socket(socket.{}, socket.SOCK_DGRAM).connect(('{}', port))"
    found = result("python", code.format(family, address))
    assert found["status"] == "ok" and [(row["what"], row["count"]) for row in found["denials"]] == [("name look-up", 1)], found


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_STREAM"])
def test_no_program_can_be_a_name_server(kind):
    """Which is why a question to one is a look-up that failed."""
    code = f"import socket\ntry: socket.socket(socket.AF_INET, socket.{kind}).bind(('127.0.0.1', 53))\nexcept OSError as e: print(e.errno)"
    assert result("python", code)["stdout"] == "13\n"


def test_loopback_is_not_denied():
    code = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname())\nprint('fine')"
    found = result("python", code)
    assert found["stdout"] == "fine\n" and found["denials"] == [], found


def test_unix_sockets_are_not_denied():
    code = "import socket\ns = socket.socket(socket.AF_UNIX); s.bind('x'); s.listen()\nc = socket.socket(socket.AF_UNIX); c.connect('x')\nprint('fine')"
    found = result("python", code)
    assert found["stdout"] == "fine\n" and found["denials"] == [], found


def test_url_of_an_ordinary_program():
    found = result("python", "import urllib.request\nurllib.request.urlopen('http://203.0.113.1/', timeout=3)")
    assert found["status"] == "nonzero_exit"
    assert denial(found, "connect(203.0.113.1:80)")
    assert found["error"]["category"] == "network", found["error"]


# Floods


def flood(threads, times):
    return textwrap.dedent(f"""
        import ctypes, threading
        libc = ctypes.CDLL(None)
        def ask():
            for _ in range({times}): libc.syscall({CALLS['mount'][MACHINE or 0]}, 0, 0, 0, 0, 0)
        threads = [threading.Thread(target=ask) for _ in range({threads})]
        [t.start() for t in threads]; [t.join() for t in threads]
        print("asked")
    """)


@pytest.mark.parametrize("threads, times", [(1, 100_000), (50, 100_000)], ids=["one thread", "50 threads"])
def test_a_flood_ends_on_time(threads, times, mark):
    found = result("python", flood(threads, times), "--wall", "1s", "--cpu", "10s", args=[mark])
    assert found["status"] in ("ok", "wall_limit"), found
    row = denial(found, "mount")
    check_shape(row)
    print(f"{row['count']} counted, {found.seconds:.2f} s from outside")
    assert found.seconds < 3


def test_a_flood_of_different_hosts_is_bounded():
    code = textwrap.dedent("""
        import socket
        for n in range(2000):
            s = socket.socket(); s.setblocking(False)
            try: s.connect((f"203.0.113.{n % 256}", 1 + n))
            except OSError: pass
            s.close()
        print("asked")
    """)
    found = result("python", code, "--wall", "4s")
    assert found["status"] in ("ok", "wall_limit"), found
    assert 0 < len(found["denials"]) < 2000
    assert found.seconds < 6


def test_a_flood_does_not_disturb_others():
    floods = [start("python", flood(50, 10**9), "--wall", "4s", "--cpu", "20s") for _ in range(2)]
    try:
        time.sleep(0.5)
        for _ in range(3):
            found = as_result(cordon("run", *FLAGS, "--json", "-l", "bash", "-c", "mount -t tmpfs none /tmp 2>/dev/null; echo fine", timeout=20))
            assert (found["status"], found["stdout"]) == ("ok", "fine\n"), found
            assert found.seconds < 3, f"{found.seconds:.2f} s beside two floods"
    finally:
        for process in floods:
            process.kill()
            process.communicate()


def test_killed_while_asking(mark):
    """The limit ends a program whose calls are still waiting for their answer."""
    if not has_cgroup():
        pytest.skip("needs the CPU limit of a group")
    found = result("python", flood(20, 10**9), "--cpu", "300ms", "--wall", "2s", args=[mark])
    assert found["status"] in ("cpu_limit", "wall_limit"), found
    assert found.seconds < 4


def test_answers_cannot_be_given_from_inside():
    """No descriptor of the listener is left in the cell."""
    out = ok("bash", "ls -l /proc/*/fd 2>/dev/null | grep -c seccomp; true")
    assert out == "0\n"
