"""The E2B API of a fleet: commands, creates, uploads and open streams, beside what the machine allows."""

import json
import os
import subprocess
import sys

from .report import median, number, quartiles
from .tools import Failed

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2b")
BASH, TRUE = "bash -l -c true", "true"
WAYS = (("spawn", "spawned in the box"), ("sandbox", "by the sandbox's nginx"), ("edge", "by the service"))
ENVD = "a real envd, measured idle on a machine of the same kind in another run: bash -l -c true 3.8 ms, true 2.1 ms"
BYTES, STREAMS, FEW = 100e6, 1000, 20


def measured(bench, build):
    """The figures that the program prints; it runs a fleet of its own."""
    streams = STREAMS if bench.scale >= 1 else FEW
    words = [sys.executable, PROGRAM, build, bench.nginx, str(bench.rounds), str(bench.seconds),
             str(int(BYTES * min(bench.scale, 1))), str(streams)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode or not done.stdout.startswith("{"):
        raise Failed((done.stderr or done.stdout).strip() or "exit status %d" % done.returncode)
    return json.loads(done.stdout)


def starts(report, found, figures):
    """A line for each command and way, and for GET /health; more than the spawn takes in the same turn."""
    lines, turns = [], found["starts"]
    for what in (BASH, TRUE, "health"):
        for way, title in WAYS:
            if what not in turns[0][way]:
                continue
            values = [turn[way][what] for turn in turns]
            more = median([turn[way][what] - turn["spawn"][what] for turn in turns]) if what != "health" else None
            figures[what, way] = median(values)
            lines.append(["%s, %s" % ("GET /health" if what == "health" else what, title)] +
                         [number(v) for v in quartiles(values)] + [number(more)])
            report.record(section="e2b", row=what, way=way, ms=median(values), more_ms=more, rounds_ms=values)
    report.table(["p50, ms", "q1", "median", "q3", "more"], lines)
    report.text("  " + ENVD)


def rest(report, found, figures):
    """Creates and uploads."""
    lines = []
    for name, key in (("create, cold", "cold"), ("create from the pool", "pool")):
        values = [turn[key] for turn in found["creates"]]
        figures[key] = median(values)
        lines.append([name] + [number(v) for v in quartiles(values)])
        report.record(section="e2b", row=name, ms=median(values), rounds_ms=values)
    report.table(["POST /v2/sandboxes, ms", "q1", "median", "q3"], lines)
    lines, mb = [], found["bytes"] / 1e6
    for name, key in (("PUT to nginx", "plain"), ("POST /files", "files")):
        rates = [mb / turn[key] for turn in found["uploads"]]
        lines.append([name] + [number(v) for v in quartiles(rates)])
        report.record(section="e2b", row=name, mb=mb, mb_s=median(rates), rounds_mb_s=rates)
    figures["upload"] = median([turn["plain"] / turn["files"] for turn in found["uploads"]])
    report.record(section="e2b", row="upload", ratio=figures["upload"])
    report.table(["upload of %s MB, MB/s" % number(mb), "q1", "median", "q3"], lines)


def memory(report, found, figures):
    """Anonymous memory and PSS of each part without streams and with them; the sum is that of all processes."""
    lines, streams = [], found["streams"]
    before, after, none = streams["before"], streams["open"], [0, 0]
    report.text("  handrail-envd (keeper and server) after one command: anonymous %s MB, PSS %s MB" % tuple(
        number(v) for v in found["idle"]))
    report.record(section="e2b", row="envd idle", anonymous_mb=found["idle"][0], pss_mb=found["idle"][1])
    for part in sorted(set(before) | set(after)):
        one, other = before.get(part, none), after.get(part, none)
        lines.append([part] + [number(v) for v in (one[0], other[0], one[1], other[1])])
        report.record(section="e2b", row="streams", part=part, streams=streams["n"], anonymous_mb=[one[0], other[0]],
                      pss_mb=[one[1], other[1]])
    sums = [sum(v[1] for v in state.values()) for state in (before, after)]
    figures["streams"], figures["n"] = sums[1] - sums[0], streams["n"]
    report.record(section="e2b", row="streams", part="all", streams=streams["n"], more_pss_mb=figures["streams"],
                  refused=streams["refused"])
    report.table(["%d streams, MB" % streams["n"], "anonymous, none", "open", "PSS, none", "open"], lines)
    report.text("  all of them: %s MB more (PSS)" % number(figures["streams"]))
    report.text("  refused before nginx of the sandbox had connections for all: %d" % streams["refused"])


def e2b(bench, build):
    """Sets bench.e2b: name -> figure, for the aims."""
    report, figures = bench.report, {}
    report.section("E2B", "all cores, a new connection for each request, since the edge keeps none; %d turns" %
                   bench.rounds)
    if not os.access(os.path.join(build, "handrail-box"), os.X_OK):
        report.text("  not measured: handrail-box is not built (libseccomp-dev)")
        return
    bench.pin(False)
    try:
        found = measured(bench, build)
        if "skip" in found:
            report.text("  not measured: %s" % found["skip"])
            return
        starts(report, found, figures)
        rest(report, found, figures)
        memory(report, found, figures)
    except (Failed, OSError) as e:
        report.failure("e2b", e)
    bench.e2b = figures
