#!/usr/bin/env python3
"""Draws the result of t/bench/actions.py: the seconds that each server took for the actions, one after the other.

    t/bench/plot.py RESULT.jsonl PICTURE.svg

A line is the round whose sum is the median of that server's rounds, so its end is the figure that actions.py prints.
The picture names machine, cores, load and date."""

import itertools
import json
import statistics
import sys

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 215, 56, 64
COLOURS = ("#0b6e4f", "#b3541e", "#4b5fa8")


def nice(top):
    """Distance of lines such that there are four to eight."""
    step = 10 ** len(str(int(top)))
    for part in (1, 2, 4, 5, 10, 20, 40, 50, 100, 200):
        if top / (step / part) >= 4:
            return step / part
    return step / 400


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    machine = next(r for r in rows if r["section"] == "machine")
    took = {}
    for r in rows:
        if r["section"] == "actions":
            took.setdefault(r["who"], {}).setdefault(r["round"], {})[r["n"]] = r["ms"] / 1e3
    sums = {}
    for who, numbered in took.items():
        each = [[0, *itertools.accumulate(seconds for _, seconds in sorted(actions.items()))]
                for actions in numbered.values()]
        middle = statistics.median_low(s[-1] for s in each)
        sums[who] = next(s for s in each if s[-1] == middle)
    count, top = max(len(s) for s in sums.values()) - 1, max(s[-1] for s in sums.values())
    step = nice(top)

    def x(n):
        return LEFT + (WIDTH - LEFT - RIGHT) * n / count

    def y(seconds):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * seconds / top

    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">' % (
        WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="%d" y="24" font-size="16" font-weight="bold">' % LEFT,
           "Seconds for %d actions of an unmodified OpenHands client</text>" % count]
    line = 0
    while line * step <= top:
        at, label = y(line * step), "%g" % round(line * step, 6)
        svg.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>' % (
            LEFT, at, WIDTH - RIGHT, LEFT - 8, at + 4, label))
        line += 1
    for n in range(0, count + 1, 10):
        svg.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x(n), HEIGHT - BOTTOM + 20, n))
    for (who, seconds), colour in zip(sorted(sums.items(), key=lambda s: s[1][-1]), COLOURS):
        points = " ".join("%.1f,%.1f" % (x(n), y(s)) for n, s in enumerate(seconds))
        svg.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2.5"/>' % (points, colour))
        svg.append('<text x="%.1f" y="%.1f" fill="%s" font-weight="bold">%s</text>' % (
            x(count) + 8, y(seconds[-1]) + 4 - (6 if seconds[-1] < top / 30 else 0), colour,
            "%s: %.2f s" % (who, seconds[-1])))
    rounds = max(len(numbered) for numbered in took.values())
    svg.append('<text x="%d" y="%d" fill="#555" font-size="12">action; median of %d rounds, %s, %d cores, Linux %s, '
               "load %.1f at the start</text></svg>" % (LEFT, HEIGHT - 14, rounds, machine["date"], machine["cores"],
                                                   machine["kernel"].split("-")[0], machine["load"][0]))
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("\n".join(svg) + "\n")


if __name__ == "__main__":
    main()
