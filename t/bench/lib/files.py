"""Row 9: files: the actions that workers do by themselves, beside the empty FastCGI answer, quiet and
while a command prints as fast as it can; and what the parts cost without a server."""

import json
import os
import signal
import subprocess

from .latency import Section, http
from .procs import tree
from .report import number, ratio, ratios
from .servers import settle
from .tools import Failed, Request

PARTS = ("verdict", "read", "view", "create", "str_replace", "diff")


def put(server, name, text):
    path = os.path.join(server.work_dir, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def edit(tools, server, want, **args):
    action = {"action": "edit", "args": args}
    return Request("/execute_action", tools.action_file(action), want, server.headers)


def requests(bench, server):
    tools = bench.tools
    small = put(server, "1k.txt", ("x" * 63 + "\n") * 16)
    big = put(server, "1m.txt", "<needle>\n" + "".join("line %d of a big file\n" % n
                                                     for n in range(42000)))
    write = {"action": "write", "args": {"path": small + ".w", "content": "x" * 1023}}
    relative = tools.read_request("1k.txt", server.headers)
    return [
        ("read 1 KB", tools.read_request(small, server.headers)),
        ("read 1 KB, relative", relative),
        ("view 1 KB", edit(tools, server, "cat -n", command="view", path=small)),
        ("write 1 KB", Request("/execute_action", tools.action_file(write), '"observation":"write"',
                               server.headers)),
        # the text is found again in what replaces it
        ("str_replace in 1 MB", edit(tools, server, "has been edited", command="str_replace", path=big,
                                     old_str="<needle>", new_str="<needle>.")),
    ]


class Printing:
    """A command that prints as fast as it can, until it is stopped."""

    def __init__(self, bench):
        self.server = bench.server
        request = bench.tools.run_request("yes 'a line of some length, as programs print them'",
                                          self.server.headers, timeout=600, blocking=True)
        self.client = subprocess.Popen(
            bench.tools.load_args(self.server.address, request, connections=1, requests=1, warm=0),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settle(self.server)

    def stop(self):
        for root in self.server.pids():
            for pid in tree(root):
                try:
                    with open("/proc/%d/comm" % pid) as f:
                        if f.read() == "yes\n":
                            os.kill(pid, signal.SIGKILL)
                except (OSError, ProcessLookupError):
                    pass
        self.client.wait(timeout=60)


def parts(bench):
    rows = []
    for name in PARTS:
        out = subprocess.run([bench.tools.path("bench_files"), name, "%g" % bench.seconds],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        found = json.loads(out)
        rows.append([name, number(found["p50"]), number(found["p99"]), str(found["n"])])
        bench.report.record(section="files", row="part " + name, **found)
        bench.parts[name] = found["p50"]
    bench.report.table(["without a server", "p50 us", "p99 us", "n"], rows)


def files(bench):
    server, report = bench.server, bench.report
    if not server.work_dir:
        return
    bench.pin(True)
    report.section("9. Files", "one client; x floor: of the empty FastCGI answer to the same kind of "
                   "request, on one core; printing: while `yes` runs in the shell, on all cores: its "
                   "ratio to the floor, against that ratio without `yes`")
    body = bench.tools.read_request("/etc/hostname").body_file
    asked = requests(bench, server)
    quiet, calm, busy = Section(bench, "quiet"), Section(bench, "all cores"), Section(bench, "printing")
    floor = ("floor", "FastCGI POST")
    for section in (quiet, calm, busy):
        section.row(*floor, lambda: http(bench, bench.floors, Request("/fcgi", body, "ok"),
                                         seconds=bench.seconds))
        for name, request in asked if section is quiet else asked[:2]:
            section.row("handrail", name,
                        lambda r=request: http(bench, server, r, seconds=bench.seconds))
    quiet.run(bench.rounds)
    bench.pin(False)
    for _ in range(bench.rounds):
        calm.run(1)
        printing = Printing(bench)
        busy.run(1)
        printing.stop()
    rows = []
    for name, _ in asked:
        to_floor = ratios(quiet.get("handrail", name), [quiet.get(*floor)])
        # a command takes a core from the floor as well
        calm_ratio = ratios(calm.get("handrail", name), [calm.get(*floor)])
        slower = ratio(ratios(busy.get("handrail", name), [busy.get(*floor)]), calm_ratio)
        p50, p99 = quiet.value("handrail", name, "p50"), quiet.value("handrail", name, "p99")
        printing = busy.value("handrail", name, "p50")
        rows.append([name, number(p50), number(p99), number(to_floor), number(printing),
                     number(slower)])
        report.record(section="files", row=name, p50_us=p50, p99_us=p99, floor_ratio=to_floor,
                      p50_printing_us=printing, printing_ratio=slower)
        bench.files[name] = (to_floor, slower)
    report.table(["", "p50 us", "p99 us", "x floor (%s us)" % number(quiet.value(*floor, "p50")),
                  "printing p50 us", "x floor, printing / quiet"], rows)
    try:
        parts(bench)
    except (OSError, subprocess.CalledProcessError) as e:
        raise Failed("bench_files: %s" % e)
