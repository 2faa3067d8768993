#!/usr/bin/python3
"""Cold start of one program, from spawn to reaped, beside other runners: one interleaved run, so that a change in the
machine's load falls on all alike. A table on the screen, bench/results/cold.json and cold.svg. Never fails on a number.
"""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

import chart
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON_RUNS_SHARE = 0.5
BUSY_PERCENT = 10
WARM_UP = 3  # rounds that do not count


def spawn(peer, argv, filter_path, stdout):
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
    if peer.open_filter:
        actions.append((os.POSIX_SPAWN_OPEN, peers.FILTER_FD, filter_path, os.O_RDONLY, 0))
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)


def measure(peer, argv, filter_path, null):
    """Milliseconds from spawn to reaped. posix_spawn is vfork inside, so the size of this process does not count."""
    start = time.perf_counter_ns()
    os.waitpid(spawn(peer, argv, filter_path, null), 0)
    return (time.perf_counter_ns() - start) / 1e6


def works(peer, workload, filter_path):
    """One run that counts for nothing, to see that the runner does what it is timed for."""
    read, write = os.pipe()
    pid = spawn(peer, peer.argv(workload), filter_path, write)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        output = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 0 and output == peers.WORKLOADS[workload][2]:
        return True
    print(f"{peer.name}: left out of {workload}: exit {status}, printed {output[:60]!r}", file=sys.stderr)
    return False


def series(contenders, workload, runs, gap_ms, filter_path, null):
    """Samples per contender: each round runs every one once, in a shuffled order, because the kernel takes namespaces
    apart after the runner is gone and whoever comes next pays for it."""
    order, shuffle = list(contenders), random.Random(1).shuffle
    argvs = {peer.name: peer.argv(workload) for peer in contenders}
    samples = {peer.name: [] for peer in contenders}
    for turn in range(runs + WARM_UP):
        shuffle(order)
        for peer in order:
            if gap_ms:
                time.sleep(gap_ms / 1000)
            took = measure(peer, argvs[peer.name], filter_path, null)
            if turn >= WARM_UP:
                samples[peer.name].append(took)
    return samples


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def rows_of(samples, workload):
    base = statistics.median(samples["bubblewrap"]) if "bubblewrap" in samples else None
    return [{"name": name, "workload": workload, "p50_ms": round(statistics.median(values), 3),
             "p90_ms": round(percentile(values, 0.9), 3), "p99_ms": round(percentile(values, 0.99), 3),
             "runs": len(values), "to_bubblewrap": round(statistics.median(values) / base, 3) if base else None}
            for name, values in samples.items()]


def first_line(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return (done.stdout or done.stderr).splitlines()[0] if done.stdout or done.stderr else None


def busy_percent():
    """How much of all CPUs others use now; the load average lags by a minute."""
    def read():
        with open("/proc/stat", encoding="utf-8") as file:
            times = [int(word) for word in file.readline().split()[1:9]]
        return sum(times), times[3] + times[4]

    total, idle = read()
    time.sleep(1)
    total_after, idle_after = read()
    return round(100 * (1 - (idle_after - idle) / max(1, total_after - total)), 1)


def machine(binary, filter_path):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "cpu": model, "load_1min": round(os.getloadavg()[0], 2),
            "busy_before_percent": busy_percent(),
            "user": "root" if os.getuid() == 0 else "ordinary",
            "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
            "filter_instructions": os.path.getsize(filter_path) // 8, "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "cordon": first_line(binary, "version"), "bubblewrap": first_line("bwrap", "--version"),
            "bash": first_line("bash", "-c", "echo $BASH_VERSION"), "python": first_line("/usr/bin/python3", "--version")}


def show(rows):
    print(f"{'workload':<22}{'runner':<24}{'p50 ms':>9}{'p90 ms':>9}{'p99 ms':>9}{'x bubblewrap':>14}")
    last = None
    for row in rows:
        ratio = f"{row['to_bubblewrap']:.2f}" if row["to_bubblewrap"] else "-"
        print(f"{row['workload'] if row['workload'] != last else '':<22}{row['name']:<24}"
              f"{row['p50_ms']:>9.2f}{row['p90_ms']:>9.2f}{row['p99_ms']:>9.2f}{ratio:>14}", flush=True)
        last = row["workload"]


def options():
    parser = argparse.ArgumentParser(description="Cold start beside other runners.")
    parser.add_argument("--cordon", required=True, help="the cordon binary")
    parser.add_argument("--filter", required=True, help="raw BPF for bubblewrap")
    parser.add_argument("--work", required=True, help="directory for scratch files")
    parser.add_argument("-n", type=int, default=80, metavar="RUNS", help="runs of each (default 80; half for python)")
    parser.add_argument("--gap", type=int, default=100, metavar="MS", help="pause of the second series (default 100)")
    parser.add_argument("--only", action="append", metavar="NAME", help="only runners whose name starts so; repeatable")
    parser.add_argument("--out", default=os.path.join(HERE, "results"), metavar="DIR", help="where cold.json and .svg go")
    return parser.parse_args()


def main():
    args = options()
    facts = machine(args.cordon, args.filter)
    print(f"{facts['cpus']} CPUs ({facts['cpu']}), kernel {facts['kernel']}, {facts['busy_before_percent']} % busy, as {facts['user']}")
    null = os.open("/dev/null", os.O_WRONLY)
    contenders = peers.all_of(os.path.abspath(args.cordon), args.work)
    if args.only:
        contenders = [peer for peer in contenders if any(peer.name.startswith(name) for name in args.only)]
    rows = []
    for workload in peers.WORKLOADS:
        fit = [peer for peer in contenders if works(peer, workload, args.filter)]
        for gap_ms in (0, args.gap) if fit else ():
            runs = args.n if workload == "bash" else max(1, int(args.n * PYTHON_RUNS_SHARE))
            label = f"{workload}, {gap_ms} ms gaps" if gap_ms else workload
            rows += rows_of(series(fit, workload, runs, gap_ms, args.filter, null), label)
    show(rows)
    notes = [f"{peer.name}: {peer.note}" for peer in contenders if peer.note]
    facts["busy_after_percent"] = busy_percent()
    if max(facts["busy_before_percent"], facts["busy_after_percent"]) > BUSY_PERCENT:
        notes.append(f"other programs used {facts['busy_before_percent']} % of the CPUs before and "
                     f"{facts['busy_after_percent']} % after: the figures say little")
    for note in notes:
        print(note)
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "cold.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": facts, "notes": notes, "rows": rows}, file, indent=1)
        file.write("\n")
    with open(os.path.join(args.out, "cold.svg"), "w", encoding="utf-8") as file:
        file.write(chart.draw(rows, f"Cold start, spawn to reaped · {facts['cpus']} CPUs, kernel {facts['kernel']}"))


main()
