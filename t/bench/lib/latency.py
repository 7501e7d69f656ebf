"""Rows 1 and 6: how long a request takes, beside what it cannot be shorter than.

In every round all rows are measured one after the other, and a ratio is formed within its round:
the machine is shared, and a neighbour who comes and goes must not fall on one side alone."""

import os
import subprocess

from . import procs
from .report import median, number, ratio, ratios
from .servers import settle
from .tools import Failed, Request

COMMANDS = ("true", "echo hi", "ls /usr/bin")
WAITING = 64


def http(bench, server, request, **more):
    """One measurement: what bench_load says, and CPU microseconds per request by process name."""
    pids = server.pids()
    before = procs.cpu_us(pids)
    result = bench.tools.load(server.address, request, **more)
    after = procs.cpu_us(server.pids())
    result["cpu_by"] = {}
    for pid, used in procs.spent(before, after).items():
        name = procs.name(pid)
        result["cpu_by"][name] = result["cpu_by"].get(name, 0) + used / result["sent"]
    result["cpu"] = sum(result["cpu_by"].values()) if pids else None
    result["each"] = 1e6 * result["seconds"] / result["n"]
    return result


def typed(pty, command, seconds):
    pids = procs.tree(pty.process.pid)
    before = procs.cpu_us(pids)
    result = pty.loop(command, seconds)
    used = procs.spent(before, procs.cpu_us(procs.tree(pty.process.pid)))
    result["cpu"] = sum(used.values()) / (result["n"] + 10)  # and its ten to find the rate
    result["each"] = 1e6 * result["seconds"] / result["n"]
    return result


def framed(bench, server, command, seconds):
    pids = [p for p in server.pids() if procs.name(p) in ("handrail-session", "bash")]
    before = procs.cpu_us(pids)
    result = bench.tools.frame(server.session_socket(), command, seconds)
    used = procs.spent(before, procs.cpu_us(pids))
    result["cpu"] = sum(used.values()) / (result["n"] + 5)
    result["each"] = 1e6 * result["seconds"] / result["n"]
    return result


class Section:
    """Rows measured in turn. name -> one result a round (None where it failed)."""

    def __init__(self, bench, key):
        self.bench, self.key = bench, key
        self.rows, self.rounds, self.dead = [], {}, set()

    def row(self, who, name, measure):
        if self.bench.only and not any(text in name for text in self.bench.only):
            return
        self.rows.append((who, name, measure))
        self.rounds[who, name] = []

    def run(self, rounds):
        for _ in range(rounds):
            for who, name, measure in self.rows:
                result = None
                if (who, name) not in self.dead:
                    try:
                        result = measure()
                    except Failed as e:
                        self.dead.add((who, name))
                        self.bench.report.failure("%s: %s %s" % (self.key, who, name), e)
                self.rounds[who, name].append(result)

    def get(self, who, name):
        return self.rounds.get((who, name), [])

    def value(self, who, name, key):
        return median([r[key] for r in self.get(who, name) if r])

    def ratio(self, who, name, *floors, key="p50"):
        found = [self.get(*f) for f in floors]
        return ratios(self.get(who, name), found, key) if all(found) else None


FLOORS = {
    "alive": [("floor", "FastCGI GET")],
    "server_info": [("floor", "FastCGI GET")],
}
for _command in COMMANDS:
    FLOORS["run " + _command] = [("floor", "FastCGI POST"), ("floor", "PTY readline " + _command)]


def requests(bench, server):
    tools, headers = bench.tools, server.headers
    found = [("alive", Request("/alive", None, '"status":"ok"', headers)),
             ("server_info", Request("/server_info", None, '"uptime":', headers))]
    return found + [("run " + c, tools.run_request(c, headers)) for c in COMMANDS]


def add_floors(section, seconds, ptys=None, **more):
    bench, floors = section.bench, section.bench.floors
    body = bench.tools.run_request("true").body_file
    for name, request in (("return 200", Request("/return", None, "ok")),
                          ("FastCGI GET", Request("/fcgi", None, "ok")),
                          ("FastCGI POST", Request("/fcgi", body, "ok"))):
        section.row("floor", name,
                    lambda r=request: http(bench, floors, r, seconds=seconds, **more))
    for kind, pty in (ptys or {}).items():
        for command in COMMANDS:
            section.row("floor", "PTY %s %s" % (kind, command),
                        lambda p=pty, c=command: typed(p, c, seconds))


def add_server(section, server, seconds, **more):
    bench = section.bench
    for name, request in requests(bench, server):
        section.row(server.who, name,
                    lambda r=request: http(bench, server, r, seconds=seconds, **more))


def show(section, throughput=False):
    """The table of a section; each row's ratio is to the sum of its floors."""
    report, rows = section.bench.report, []
    key = "each" if throughput else "p50"
    for who, name, _ in section.rows:
        good = [r for r in section.get(who, name) if r]
        if not good:
            continue
        floors = FLOORS.get(name, [])
        p50, p99 = (section.value(who, name, k) for k in ("p50", "p99"))
        cpu, each = (median([r.get(k) for r in good]) for k in ("cpu", "each"))
        to_floor = section.ratio(who, name, *floors, key=key) if floors else None
        cpu_to_floor = section.ratio(who, name, *floors, key="cpu") if floors and cpu else None
        beside = None
        if who == "handrail" and section.get("reference", name):
            beside = ratio(1, section.ratio(who, name, ("reference", name), key=key))
        rows.append([who + "  " + name, number(p50), number(p99),
                     number(ratio(p99, p50), 2), number(1e6 / each, 4), number(cpu),
                     number(to_floor), number(cpu_to_floor), number(beside)])
        report.record(section=section.key, row=name, who=who, p50_us=p50, p99_us=p99,
                      per_second=1e6 / each, cpu_us=cpu, ratio_to_floor=to_floor,
                      cpu_ratio_to_floor=cpu_to_floor,
                      reference_over_handrail=beside, floors=[" ".join(f) for f in floors],
                      requests=sum(r["n"] for r in good), rounds=len(good),
                      rounds_p50_us=[r["p50"] for r in good],
                      cpu_by={n: median([r["cpu_by"].get(n, 0) for r in good])
                              for n in good[0].get("cpu_by", {})})
    report.table(["", "p50 us", "p99 us", "p99/p50", "per s", "CPU us", "x floor", "x CPU",
                  "ref/this"], rows)
    for name in ("alive", "run true"):
        parts = [r["cpu_by"] for r in section.get("handrail", name) if r]
        if parts:
            names = sorted({n for p in parts for n in p})
            means = [(n, median([p.get(n, 0) for p in parts])) for n in names]
            report.text("  CPU us of %s: %s" % (name, ", ".join(
                "%s %s" % (n, number(v)) for n, v in means if v >= 0.05)))


def one_client(bench):
    """Section 1 with one client: the aims are about this one."""
    bench.pin(True)
    bench.report.section(
        "1. One client, kept connection",
        "everything on one core; floors: run = FastCGI POST + PTY readline, else FastCGI GET")
    section = Section(bench, "kept, 1 client")
    add_floors(section, bench.seconds, ptys=bench.ptys)
    if bench.server.session_socket():
        section.row("handrail", "keeper alone true",
                    lambda: framed(bench, bench.server, "true", bench.seconds))
    add_server(section, bench.server, bench.seconds)
    if bench.reference:
        if bench.reference.session_socket():
            section.row("reference", "keeper alone true",
                        lambda: framed(bench, bench.reference, "true", bench.seconds))
        add_server(section, bench.reference, bench.seconds)
    section.run(bench.rounds)
    show(section)
    bench.kept = section

    bench.report.section("1b. One client, a new connection for each request", "on one core")
    new = Section(bench, "new, 1 client")
    add_floors(new, bench.seconds, ptys=bench.ptys, new=True)
    add_server(new, bench.server, bench.seconds, new=True)
    if bench.reference:
        add_server(new, bench.reference, bench.seconds, new=True)
    new.run(bench.rounds)
    show(new)


def many_clients(bench, connections=16):
    """Throughput: on all cores, and the ratio is of the time per request."""
    bench.pin(False)
    for new in (False, True):
        bench.report.section(
            "1%s. %d clients, %s" % ("d" if new else "c", connections,
                                     "new connections" if new else "kept connections"),
            "on all cores; `x floor` is of the time per request; a shell runs one at a time")
        section = Section(bench, "%s, %d clients" % ("new" if new else "kept", connections))
        add_floors(section, bench.seconds, ptys=bench.ptys, connections=connections, new=new)
        add_server(section, bench.server, bench.seconds, connections=connections, new=new)
        if bench.reference:
            add_server(section, bench.reference, bench.seconds, connections=connections, new=new)
        section.run(max(3, bench.rounds // 2))
        show(section, throughput=True)


# ---- row 6 ----

class Blocked:
    """WAITING commands on their way, the first of them until the FIFO is opened and closed."""

    def __init__(self, bench):
        server, tools = bench.server, bench.tools
        self.fifo = os.path.join(server.work_dir, "gate")
        os.mkfifo(self.fifo)
        os.chmod(self.fifo, 0o666)
        self.clients = []
        self._start(tools, server, "cat '%s'" % self.fifo, 1)
        self._start(tools, server, "true", WAITING - 1)
        settle(server)

    def _start(self, tools, server, command, connections):
        request = tools.run_request(command, server.headers, timeout=600, blocking=True)
        self.clients.append(subprocess.Popen(
            tools.load_args(server.address, request, connections=connections,
                            requests=connections, warm=0),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        settle(server)

    def release(self):
        fd = os.open(self.fifo, os.O_WRONLY)
        os.close(fd)
        for client in self.clients:
            out, err = client.communicate(timeout=120)
            if client.returncode != 0:
                raise Failed("a waiting command failed: %s%s" % (out, err))
        os.unlink(self.fifo)


def waiting(bench):
    server, report = bench.server, bench.report
    if not server.work_dir:
        return
    bench.pin(True)
    report.section("6. While %d commands wait behind one" % WAITING,
                   "quiet and waiting in turn, on one core")
    path = os.path.join(server.work_dir, "1k.txt")
    with open(path, "w") as f:
        f.write(("x" * 63 + "\n") * 16)
    os.chmod(path, 0o644)
    asked = [("alive", Request("/alive", None, '"status":"ok"', server.headers)),
             ("server_info", Request("/server_info", None, '"uptime":', server.headers)),
             ("read 1 KB", bench.tools.read_request(path, server.headers))]
    quiet, busy = Section(bench, "quiet"), Section(bench, "waiting")
    for section in (quiet, busy):
        for name, request in asked:
            section.row("handrail", name,
                        lambda r=request: http(bench, server, r, seconds=bench.seconds))
    try:
        for _ in range(bench.rounds):
            quiet.run(1)
            blocked = Blocked(bench)
            busy.run(1)
            blocked.release()
    except (Failed, subprocess.TimeoutExpired) as e:
        report.failure("%d waiting commands" % WAITING, e)
    rows = []
    for name, _ in asked:
        found = ratios(busy.get("handrail", name), [quiet.get("handrail", name)])
        p50, p50_busy, p99 = (quiet.value("handrail", name, "p50"),
                              busy.value("handrail", name, "p50"),
                              busy.value("handrail", name, "p99"))
        rows.append([name, number(p50), number(p50_busy), number(p99), number(found)])
        report.record(section="waiting", row=name, p50_quiet_us=p50, p50_waiting_us=p50_busy,
                      p99_waiting_us=p99, ratio=found)
        bench.waiting[name] = found
    report.table(["", "quiet p50 us", "waiting p50 us", "p99 us", "ratio"], rows)


def floors_only(bench):
    bench.pin(True)
    bench.report.section("Floors, one client, kept connection", "everything on one core")
    section = Section(bench, "kept, 1 client")
    add_floors(section, bench.seconds, ptys=bench.ptys)
    if bench.reference:
        add_server(section, bench.reference, bench.seconds)
    section.run(bench.rounds)
    show(section)
