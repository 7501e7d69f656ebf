"""What the journal and the log add to each action: servers that differ in one setting, in turn."""

import json
import os

from . import latency
from .report import median, number

VARIANTS = (
    ("neither", {"journal_entries": 0}),
    ("journal", {}),
    ("access log", {"journal_entries": 0, "access_log": "@dir@/access.log"}),
    ("both", {"access_log": "@dir@/access.log"}),
)


def _start(bench, name, settings):
    directory = bench.tools.scratch
    path = os.path.join(directory, "costs-%s.json" % name.replace(" ", "-"))
    with open(path, "w") as f:
        f.write(json.dumps(settings).replace("@dir@", directory))
    server = bench.new_server(["--config", path])
    server.start()
    return server


def table(bench):
    """Milliseconds that each adds: the median of the rounds' differences to "neither"."""
    if bench.new_server is None:
        return
    bench.pin(True)
    bench.report.section("7. What the journal and the access log add to an action",
                         "one client, kept connection, on one core; the run directory is below "
                         + os.path.dirname(bench.tools.scratch))
    started = []
    try:
        for name, settings in VARIANTS:
            started.append((name, _start(bench, name, settings)))
        for _, server in started:
            latency.settle(server)
        section = latency.Section(bench, "costs")
        for name, server in started:
            request = bench.tools.run_request("true", server.headers)
            section.row("handrail", "run true, " + name,
                        lambda s=server, r=request: latency.http(bench, s, r, seconds=bench.seconds))
        section.run(bench.rounds)
    finally:
        for _, server in started:
            server.stop()
    base = section.get("handrail", "run true, neither")
    rows = []
    for name, _ in VARIANTS:
        found = section.get("handrail", "run true, " + name)
        more = {}
        for key in ("p50", "cpu"):
            pairs = [(a[key], b[key]) for a, b in zip(found, base) if a and b and a[key] and b[key]]
            more[key] = median([a - b for a, b in pairs]) if pairs else None
        rows.append([name, number(section.value("handrail", "run true, " + name, "p50")),
                     number(more["p50"]), number(more["cpu"])])
        bench.report.record(section="costs", row=name, p50_more=more["p50"], cpu_more=more["cpu"])
        if name == "both" and more["p50"] is not None:
            bench.costs = more["p50"] / 1000
    bench.report.table(["run true with", "p50 us", "+ p50 us", "+ CPU us"], rows)
