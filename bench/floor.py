#!/usr/bin/python3
"""The least that a machine allows: a Python that was forked ahead, in no cell at all, waits for a program, runs it and ends.
What a waiting cell of Cordon takes can be held against it; both contain the same work of the interpreter.

usage: floor.py [RUNS] [GAP_MS]"""
import gc
import os
import select
import sys
import time

import collections, datetime, json, math, random, re, statistics  # noqa: E401, F401 (as a waiting cell has them)

PROGRAM = b"print('hello')\n"
EXPECTED = b"hello\n"


def wait_for_program(programs, output, ready):
    os.dup2(output, 1)
    exec(compile("x = [1]\ns = f'{x}'\n", "warm", "exec"), {})  # so that its memory is its own
    os.write(ready, b"r")
    program = os.read(programs, 1 << 16)
    exec(compile(program, "main.py", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    os._exit(0)


class Copy:
    """A forked interpreter that is ready for its program."""

    def __init__(self):
        program_there, self.program = os.pipe()
        self.output, output_there = os.pipe()
        ready, ready_there = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            wait_for_program(program_there, output_there, ready_there)
        for fd in (program_there, output_there, ready_there):
            os.close(fd)
        os.read(ready, 1)
        os.close(ready)
        self.end = os.pidfd_open(self.pid)

    def run(self):
        """Milliseconds until the output was there, and until the end was."""
        began = time.perf_counter()
        os.write(self.program, PROGRAM)
        printed = b""
        while len(printed) < len(EXPECTED):
            printed += os.read(self.output, 100)
        came = time.perf_counter()
        select.select([self.end], [], [])
        ended = time.perf_counter()
        assert printed == EXPECTED, printed
        self.close()
        return (came - began) * 1000, (ended - began) * 1000

    def close(self):
        os.waitpid(self.pid, 0)
        for fd in (self.program, self.output, self.end):
            os.close(fd)


def measure(runs, gap_ms):
    times = []
    for _ in range(runs):
        copy = Copy()
        time.sleep(gap_ms / 1000)
        times.append(copy.run())
    rows = [sorted(column) for column in zip(*times)]
    return [(row[len(row) // 2], row[len(row) * 99 // 100]) for row in rows]


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    gap_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 50
    gc.collect()
    gc.freeze()
    for gap in (3, gap_ms):
        output, end = measure(runs, gap)
        print(f"python forked ahead, no isolation, {gap:g} ms between runs: output after {output[0]:.2f} ms (p99 {output[1]:.2f}), "
              f"end after {end[0]:.2f} ms (p99 {end[1]:.2f})")


if __name__ == "__main__":
    main()
