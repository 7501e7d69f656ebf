"""What one request makes each process ask of the kernel: strace -c on all of them.

Counts are exact; times under strace mean nothing and are not shown."""

import os
import signal
import subprocess
import time

from . import procs
from .tools import Failed, Request

REQUESTS = 500


def _attached(pid):
    with open("/proc/%d/status" % pid) as f:
        return "TracerPid:\t0\n" not in f.read()


def _parse(path):
    counts = {}
    with open(path, errors="replace") as f:
        for line in f:
            words = line.split()
            # % time, seconds, usecs/call, calls, [errors,] syscall
            if len(words) in (5, 6) and words[3].isdigit() and words[-1] != "total":
                counts[words[-1]] = int(words[3])
    return counts


def count(bench, name, request):
    """{process name: {system call: calls for one request}}"""
    server, traces = bench.server, []
    for pid in server.pids():
        path = os.path.join(bench.tools.scratch, "strace.%d" % pid)
        traces.append((procs.name(pid), path, subprocess.Popen(
            ["strace", "-q", "-f", "-c", "-o", path, "-p", str(pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        end = time.monotonic() + 10
        while not _attached(pid):
            if traces[-1][2].poll() is not None or time.monotonic() > end:
                raise Failed("strace cannot attach to %s" % procs.name(pid))
            time.sleep(0.01)
    found = {}
    try:
        bench.tools.load(server.address, request, requests=REQUESTS, warm=0)
    finally:
        for who, path, process in traces:
            process.send_signal(signal.SIGINT)
            process.wait()
            for call, calls in _parse(path).items():
                mine = found.setdefault(who, {})
                mine[call] = mine.get(call, 0) + calls / REQUESTS
            os.unlink(path)
    return found


def table(bench):
    report, server = bench.report, bench.server
    for name, request in (("alive", Request("/alive", None, "ok", server.headers)),
                          ("run true", bench.tools.run_request("true", server.headers))):
        report.section("7. System calls for one `%s`" % name)
        try:
            found = count(bench, name, request)
        except (Failed, FileNotFoundError) as e:
            report.failure("system calls: " + name, e)
            continue
        for who in sorted(found):
            calls = sorted(found[who].items(), key=lambda c: -c[1])
            total = sum(n for _, n in calls)
            if total >= 0.5:
                report.text("  %-18s %5.1f  %s" % (who, total, " ".join(
                    "%s:%.3g" % (c, n) for c, n in calls if n >= 0.05)))
        report.record(section="syscalls", row=name, calls=found)
