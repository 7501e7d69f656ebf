"""Rows 3 to 5: start, memory, idleness: what a sandbox costs before anything is asked of it."""

import os
import time

from . import procs, servers, volume
from .report import median, number
from .tools import Failed, Pty, Request

LARGE = 1000 * volume.MB


# ---- row 3 ----

def start_nginx(bench):
    floors = servers.Floors(bench.tools, bench.nginx)
    try:
        return bench.tools.start(floors.address, Request("/return", None, "ok"),
                                 floors.nginx_args(), dict(os.environ), floors.log)
    finally:
        floors.stop()


def start_handrail(bench):
    server = bench.new_server()
    try:
        request = bench.tools.run_request("true")
        return bench.tools.start(server.address, request, server.args(), server.env, server.log)
    except Failed as e:
        raise Failed("%s\n%s" % (e, server.log_tail()))
    finally:
        server.stop()


def start(bench):
    if not bench.new_server:
        return
    report = bench.report
    bench.pin(True)
    report.section("3. Start, without start-up files", "everything on one core, ms; n = %d" %
                   bench.start_rounds)
    bash = Pty(bench.tools)
    parts = {"bash to its first prompt": [], "nginx to its first answer": [],
             "handraild to an open port": [], "handraild to the first command's answer": [],
             "handraild, SIGTERM to its end": []}
    try:
        for _ in range(bench.start_rounds):
            parts["bash to its first prompt"].append(bash.order("start 1")["p50"] / 1000)
            parts["nginx to its first answer"].append(start_nginx(bench)["answer_ms"])
            one = start_handrail(bench)
            parts["handraild to an open port"].append(one["connect_ms"])
            parts["handraild to the first command's answer"].append(one["answer_ms"])
            parts["handraild, SIGTERM to its end"].append(one["stop_ms"])
    except Failed as e:
        report.failure("start", e)
    bash.stop()
    report.table(["", "median", "best", "worst"],
                 [[n, number(median(v)), number(min(v)), number(max(v))]
                  for n, v in parts.items() if v])
    for name, values in parts.items():
        report.record(section="start", row=name, ms=median(values), rounds_ms=values)
    bench.start_ms = median(parts["handraild to the first command's answer"])


# ---- row 4 ----

def look(bench, when):
    """Shows every process; (anonymous, PSS, in memory files) in MB."""
    server = bench.server
    pids = server.pids()
    rows = procs.memory(pids)
    anon, pss = sum(r[2] for r in rows) / 1000, sum(r[3] for r in rows) / 1000
    dirs = [server.run_dir] if server.run_dir else []
    files = procs.memory_files(pids, *dirs) / 1000
    names = {}
    for _, name, own, share in rows:
        count, a, p = names.get(name, (0, 0, 0))
        names[name] = (count + 1, a + own, p + share)
    bench.report.text("  " + when)
    bench.report.table(
        ["  process", "number", "anonymous kB", "PSS kB"],
        [["  " + n, c, a, p] for n, (c, a, p) in sorted(names.items())] +
        [["  sum", len(rows), "%.0f" % (1000 * anon), "%.0f" % (1000 * pss)],
         ["  files in memory, run directory", "", "%.0f" % (1000 * files), ""]])
    bench.report.record(section="memory", row=when, anonymous_mb=anon, pss_mb=pss, files_mb=files,
                        processes=[dict(name=r[1], anonymous_kb=r[2], pss_kb=r[3]) for r in rows])
    return anon, pss, files


def run_many(bench, command, count):
    request = bench.tools.run_request(command, bench.server.headers)
    return bench.tools.load(bench.server.address, request, requests=count)


def memory_idle(bench):
    if not bench.server.pids():
        return
    bench.report.section("4. Memory")
    bench.memory_idle = look(bench, "idle")


def memory_grown(bench):
    report, server = bench.report, bench.server
    if not server.pids() or not server.work_dir:
        return
    bench.pin(True)
    report.section("4b. Memory after work")
    try:
        run_many(bench, "true", 100)
        before = look(bench, "before")
        result = run_many(bench, "true", bench.commands)
        after = look(bench, "after %d commands" % bench.commands)
        bench.growth["commands"] = after[0] + after[2] - before[0] - before[2]
        bench.long_run = result
        report.text("  the commands: p50 %s us, p99 %s us, longest %s us" % (
            number(result["p50"]), number(result["p99"]), number(result["max"])))
        report.record(section="memory", row="latency of the commands", **result)
        path = os.path.join(server.work_dir, "growth.txt")
        size = volume.write_repeated(path, b"y" * 79 + b"\n", 10 * volume.MB)
        times = max(1, int(LARGE * bench.scale / size))
        seconds = volume.by_server(
            bench, server, "for i in $(seq %d); do cat '%s'; done" % (times, path))
        settled = look(bench, "after %s MB of output in %s s" % (
            number(times * size / volume.MB), number(seconds)))
        bench.growth["output"] = settled[0] + settled[2] - after[0] - after[2]
    except Failed as e:
        report.failure("memory", e)


# ---- row 5 ----

def idle(bench):
    report, server = bench.report, bench.server
    if not server.pids():
        return
    report.section("5. Idle for %g s" % bench.idle_seconds, "after 20 commands and 2 s of rest")
    try:
        run_many(bench, "true", 20)
    except Failed as e:
        report.failure("idle", e)
        return
    time.sleep(2)
    pids = server.pids()
    switches, cpu = procs.switches(pids), procs.cpu_us(pids)
    time.sleep(bench.idle_seconds)
    after = server.pids()
    woken = procs.spent(switches, procs.switches(after))
    used = procs.spent(cpu, procs.cpu_us(after))
    rows = [[procs.name(p), woken[p], number(used.get(p, 0))] for p in woken
            if woken[p] or used.get(p, 0) >= 1]
    total = sum(woken.values())
    report.table(["process", "switches", "CPU us"], rows + [
        ["sum of %d processes" % len(after), total, number(sum(used.values()))]])
    report.record(section="idle", row="idle", seconds=bench.idle_seconds, switches=total,
                  cpu_us=sum(used.values()), processes=len(after))
    bench.idle_switches = total
