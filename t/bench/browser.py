#!/usr/bin/env python3
"""What the browser costs, in one run, by hand in the build directory, with Debian's chromium:

    ../t/bench/browser.py [ROUNDS]

From the request to its answer: the first one, which starts Chromium; then, turn by turn, noop(0) (aim: 100 ms), a
click that changes nothing (aim: 150 ms), goto and browse of a small page. Memory of the plugin itself (aim: 8 MB),
and what of a processor it takes while it is idle."""

import os
import re
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
from lib.browsing import Browsing, Site, missing  # noqa: E402

IDLE_S = 10


def timed(f, *args, **kw):
    began = time.perf_counter()
    a = f(*args, **kw)
    took = time.perf_counter() - began
    if isinstance(a, dict) and a["extras"]["last_browser_action_error"] != "":
        raise AssertionError(a["extras"]["last_browser_action_error"])
    return took * 1000


def ticks(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def anonymous(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        (kb,) = [int(line.split()[1]) for line in f if line.startswith("Anonymous:")]
    return kb / 1024


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    if missing() is not None:
        sys.exit(missing())
    print("load %.2f" % os.getloadavg()[0])
    with Site() as site, Browsing() as s:
        page = site.url("two.html")
        print("first answer: %.0f ms" % timed(s.act, "noop(0)"))
        button = 'goto("data:text/html,<button>b</button>")'
        click = 'click("%s")' % re.search(r"\[(\w+)\] button 'b'", s.act(button)["content"]).group(1)
        took = {"noop(0)": [], click: [], 'goto("%s")' % page: []}
        for _ in range(rounds):
            s.act(button)
            for program, times in took.items():
                times.append(timed(s.act, program))
        browse = [timed(s.ask, "browse", url=page) for _ in range(rounds)]
        for name, times in list(took.items()) + [("browse", browse)]:
            print("%s: median %.0f ms, least %.0f, 9 of 10 within %.0f" % (
                re.sub("http.*\"", "...\"", name), statistics.median(times), min(times),
                statistics.quantiles(times, n=10)[8]))
        plugin = s.plugin()
        print("memory of the plugin itself: %.1f MB anonymous" % anonymous(plugin))
        before = ticks(plugin)
        threading.Event().wait(IDLE_S)  # what is measured is that nothing happens
        print("idle: %.2f %% of a processor" % (
            100 * (ticks(plugin) - before) / os.sysconf("SC_CLK_TCK") / IDLE_S))


if __name__ == "__main__":
    main()
