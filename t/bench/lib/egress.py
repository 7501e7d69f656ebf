"""The network of a box with rules: a blind tunnel and the way through nginx, beside the loopback interface."""

import json
import os
import subprocess

from .report import median, number, quartiles
from .tools import Failed

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "egress")
WAYS = (("direct", "loopback"), ("tunnel", "tunnel"), ("nginx", "nginx, header"))


def measured(bench, build):
    """What the program prints: it has a network of its own."""
    words = [PROGRAM, build, bench.nginx, str(bench.rounds), str(bench.seconds), str(int(1e9 * bench.scale))]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode or not done.stdout.startswith("{"):
        raise Failed((done.stderr or done.stdout).strip() or "exit status %d" % done.returncode)
    return json.loads(done.stdout)


def requests(report, found, figures):
    """A line for each way and sort of connection; more than the loopback interface takes in the same turn."""
    lines = []
    for kind, title in (("kept", "kept connection"), ("new", "new connection")):
        for way, what in WAYS:
            values = [turn[kind][way] for turn in found["turns"]]
            more = median([turn[kind][way] - turn[kind]["direct"] for turn in found["turns"]])
            ratio = median([turn[kind][way] / turn[kind]["direct"] for turn in found["turns"]])
            lines.append(["%s, %s" % (title, what)] + [number(v) for v in quartiles(values)] +
                         [number(more), number(ratio)])
            figures[kind, way] = more
            report.record(section="egress", row=title, way=way, ms=median(values), more_ms=more, ratio=ratio,
                          rounds_ms=values)
    report.table(["HTTPS request, p50, ms", "q1", "median", "q3", "more", "x loopback"], lines)


def rates(report, found, figures):
    """Gbit/s of a download through one tunnel, and for each second of the broker's CPU."""
    gbit = found["bytes"] * 8 / 1e9
    rows = {name: [gbit / turn[key] for turn in found["turns"]] for name, key in (
        ("loopback", "direct_s"), ("tunnel", "tunnel_s"), ("tunnel, for a second of CPU", "cpu_s"))}
    for name, values in rows.items():
        figures[name] = median(values)
        report.record(section="egress", row="download", way=name, gbit_s=median(values), rounds_gbit_s=values)
    report.table(["download of %s Gbit" % number(gbit), "q1", "Gbit/s", "q3"],
                 [[name] + [number(v) for v in quartiles(values)] for name, values in rows.items()])


def egress(bench, build):
    """Sets bench.egress: name -> figure, for the aims."""
    report, figures = bench.report, {}
    report.section("Egress", "as %s, all cores; %d turns" % (
        "root" if os.geteuid() == 0 else "an ordinary user", bench.rounds))
    if not os.access(os.path.join(build, "handrail-egress"), os.X_OK):
        report.text("  not measured: handrail-egress is not built (libc-ares-dev, libssl-dev)")
        return
    bench.pin(False)
    try:
        found = measured(bench, build)
        requests(report, found, figures)
        rates(report, found, figures)
        figures["rules"] = median([turn["rules_1000"] / turn["rules_1"] for turn in found["turns"]])
        figures["memory"] = max(found["idle_mb"], found["used_mb"])
        report.text("  new connection, 1,000 rules / 1 rule: %s" % number(figures["rules"]))
        report.text("  anonymous memory of the broker: idle %s MB, used %s MB" % (
            number(found["idle_mb"]), number(found["used_mb"])))
        report.record(section="egress", row="broker", rules_ratio=figures["rules"], idle_mb=found["idle_mb"],
                      used_mb=found["used_mb"])
    except (Failed, OSError) as e:
        report.failure("egress", e)
    bench.egress = figures
