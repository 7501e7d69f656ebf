"""A cell of run_ipython, beside the same cell over bare ZeroMQ sockets."""

import os
import shutil
import statistics
import subprocess
import tempfile

from . import latency, procs
from .report import number, ratios
from .tools import Failed, Request

PYTHON = "/usr/bin/python3"
COUNT = 200


def floor(bench, code):
    """One measurement: a kernel of its own, warmed up."""
    directory = tempfile.mkdtemp(prefix="bench-kernel-")
    try:
        out = subprocess.run([bench.tools.path("bench_jupyter"), PYTHON, directory, code, str(COUNT)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
        times = [float(line) for line in out.stdout.split()]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if len(times) != COUNT:
        raise Failed("no kernel: is python3-ipykernel installed?")
    return {"p50": statistics.median(times), "p99": times[COUNT * 99 // 100]}


def request(bench, server, code):
    body = bench.tools.action_file({"action": "run_ipython", "timeout": 60, "args": {"code": code}})
    return Request("/execute_action", body, '"success":true', server.headers)


def cells(bench, server):
    """server: with the plugin jupyter, not started yet."""
    report = bench.report
    if not os.access(bench.tools.path("bench_jupyter"), os.X_OK):
        report.text("cells: bench_jupyter is not built (libzmq3-dev)")
        return
    bench.pin(False)
    report.section("Cells in a kernel", "one client, kept connection, all cores")
    rows = {"floor": [], "handrail": []}
    server.start()
    try:
        one = request(bench, server, "1")
        bench.tools.load(server.address, one, seconds=0.1)  # starts the kernel
        procs.pin(server.pids(), bench.cores)
        for _ in range(bench.rounds):
            rows["floor"].append(floor(bench, "1"))
            rows["handrail"].append(latency.http(bench, server, one, seconds=bench.seconds))
    except (Failed, subprocess.TimeoutExpired) as e:
        report.failure("cells", e)
        return
    finally:
        server.stop()
    bench.cell = ratios(rows["handrail"], [rows["floor"]])
    table = []
    for who, found in rows.items():
        p50, p99 = (statistics.median(r[key] for r in found) for key in ("p50", "p99"))
        table.append([who, number(p50), number(p99)])
        report.record(section="cells", row="1", who=who, p50_us=p50, p99_us=p99)
    report.table(["cell `1`", "p50 us", "p99 us"], table)
