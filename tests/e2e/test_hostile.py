"""Attacks on what keeps the limits rather than on the walls: the warden, the caller, the verdict, the host's own counters."""
import os
import resource
import signal
import subprocess
import time

import pytest

from helpers import CORDON, FLAGS, need, result, run

STALL = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define SIZE (40l << 20)
static char *block;
static void pin(int cpu) { cpu_set_t set; CPU_ZERO(&set); CPU_SET(cpu, &set); sched_setaffinity(0, sizeof set, &set); }
static void *hold_the_map(void *unused)
{
    struct sched_param none = {0};
    pin(0);
    sched_setscheduler(0, SCHED_IDLE, &none);
    for (;;) {
        mprotect(block, SIZE, PROT_READ);
        mprotect(block, SIZE, PROT_READ | PROT_WRITE);
    }
    return unused;
}
int main(void)
{
    volatile int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 30; i++)
        if (!fork()) {
            pin(0);
            while (!*go)
                usleep(10000);
            for (;;)
                ;
        }
    block = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(block, SIZE, MADV_NOHUGEPAGE);
    memset(block, 1, SIZE);
    pthread_t thread;
    pthread_create(&thread, NULL, hold_the_map, NULL);
    usleep(200000);
    *go = 1;
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(0xcb007101)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (;;) {
        usleep(50000);
        connect(fd, (struct sockaddr *)&outside, sizeof outside);
    }
}
"""


def test_the_warden_does_not_wait_for_a_program():
    """Reading the address of a connect waits for a lock that the program's own starved thread holds."""
    need("c")
    started = time.monotonic()
    found = result("c", STALL, "--wall", "2s", "--memory", "256m", timeout=60)
    assert found["status"] == "wall_limit", found
    assert found["usage"]["wall_ms"] < 4000, found
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", ["SIGXCPU", "SIGXFSZ"])
def test_a_raised_signal_is_not_a_limit(name):
    number = int(getattr(signal, name))
    found = result("bash", f"kill -{number} $$")
    assert (found["status"], found["signal"]) == ("signaled", number), found


def test_a_link_in_a_mount_leads_nowhere(tmp_path):
    """An earlier run may have left it where the next run's mount is to be placed."""
    share, data, victim = tmp_path / "share", tmp_path / "data", tmp_path / "victim"
    for directory in (share, data, victim):
        directory.mkdir()
    (share / "x").symlink_to(victim)
    done = run("bash", ":", "--mount", f"{share}:/data:rw", "--mount", f"{data}:/data/x/planted")
    assert done.code == 2 and "/data/x/planted" in done.errors, done
    assert not list(victim.iterdir())


def test_counters_of_the_host_are_not_used_up():
    """inotify instances are counted for whoever owns the namespace, and terminals for the whole machine."""
    need("python")
    code = """
import ctypes, os
libc = ctypes.CDLL(None)
made = 0
while made < 500 and libc.inotify_init1(0) >= 0: made += 1
ptys = 0
try:
    while ptys < 500: os.openpty(); ptys += 1
except OSError: pass
print(made, ptys)
"""
    made, ptys = (int(each) for each in result("python", code)["stdout"].split())
    assert made <= 64 and ptys <= 64, (made, ptys)


def test_no_lease_on_a_file_of_the_host(tmp_path):
    need("python")
    (tmp_path / "file").write_text("x")
    code = "import fcntl\ntry: fcntl.fcntl(open('/data/file'), fcntl.F_SETLEASE, fcntl.F_RDLCK)\nexcept OSError as error: print(error.errno)"
    assert result("python", code, "--mount", f"{tmp_path}:/data")["stdout"] == "22\n"


def test_the_caller_sleeps_while_a_program_does_not_read():
    """A closed pipe with more than the program takes must not keep the caller busy."""
    need("python")
    feeder = subprocess.Popen(["head", "-c", "300000", "/dev/zero"], stdout=subprocess.PIPE)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([CORDON, "run", *FLAGS, "-q", "-l", "python", "-c", "import time; time.sleep(2)"], stdin=feeder.stdout, check=True)
    feeder.stdout.close()
    feeder.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_precedence_of_the_caller_is_not_the_programs():
    if os.geteuid() != 0:
        pytest.skip("only root may raise its own precedence")
    done = run("bash", "nice", preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
    assert done.text == "0\n", done


def test_precedence_of_the_warden_is_nobody_elses():
    """Neither the program's nor init's; and who steps back does so with his programs."""
    show = "nice; cut -d ' ' -f 19 /proc/1/stat /proc/self/stat"
    assert run("bash", show).text == "0\n0\n0\n"
    assert run("bash", show, preexec_fn=lambda: os.nice(5)).text == "5\n5\n5\n"
