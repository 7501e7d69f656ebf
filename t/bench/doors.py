#!/usr/bin/env python3
"""What the door for agents costs, in one run, by hand in the build directory:

    ../t/bench/doors.py [ROUNDS]

`tools/call run true` beside /execute_action, turn by turn on two kept connections (aim: 30 us more); the tool `grep`
beside `git grep` on this repository (aim: 3 times); anonymous memory of an idle `handrail mcp` (aim: 3 MB)."""

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
from lib.host import Host  # noqa: E402
from lib.supervised import BUILDDIR, SRCDIR, Server  # noqa: E402


def call(tool, **arguments):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": tool, "arguments": arguments}})


class Line:
    """A kept connection; post() is the time of one request."""

    def __init__(self, s, path):
        self.path, self.c = path, http.client.HTTPConnection("127.0.0.1", s.port)

    def post(self, body):
        began = time.perf_counter()
        self.c.request("POST", self.path, body, {"Content-Type": "application/json", "Accept": "application/json",
                                                 "MCP-Protocol-Version": "2025-11-25"})
        a = self.c.getresponse()
        text = a.read()
        took = time.perf_counter() - began
        if a.status != 200 or b'"isError":true' in text:
            raise AssertionError(text)
        return took


def calls(s, rounds):
    tool, action = Line(s, "/handrail/mcp"), Line(s, "/execute_action")
    bodies = {tool: call("run", command="true"),
              action: json.dumps({"action": {"action": "run", "args": {"command": "true"}}})}
    took = {tool: [], action: []}
    for i in range(rounds + 50):
        for line in (tool, action) if i % 2 else (action, tool):
            t = line.post(bodies[line])
            if i >= 50:
                took[line].append(t * 1e6)
    # those of a busy machine say more at their low end
    for percent in (50, 20, 5):
        a, b = (statistics.quantiles(took[line], n=100)[percent - 1] for line in (tool, action))
        print("tools/call run true %.0f us, execute_action %.0f us: %+.0f us (aim: +30), percentile %d of %d" % (
            a, b, a - b, percent, rounds))


def grep(s):
    tree = os.path.join(s.work_dir, "tree")
    subprocess.run(["git", "clone", "-q", SRCDIR, tree], check=True)
    subprocess.run(["chmod", "-R", "a+rX", tree], check=True)
    line, rows = Line(s, "/handrail/mcp"), {"grep": [], "git grep": []}
    for i in range(21):
        rows["grep"].append(line.post(call("grep", pattern="hr_buf_[a-z]+\\(", path=tree, limit=100000)))
        began = time.perf_counter()
        subprocess.run(["git", "-C", tree, "grep", "-nP", "hr_buf_[a-z]+\\("], check=True, stdout=subprocess.DEVNULL)
        rows["git grep"].append(time.perf_counter() - began)
    a, b = (statistics.median(rows[name]) * 1e3 for name in ("grep", "git grep"))
    print("grep %.1f ms, git grep -P %.1f ms: %.2f times (aim: 3)" % (a, b, a / b))
    shutil.rmtree(tree)


def memory():
    with Host() as h:
        p = subprocess.Popen([os.path.join(BUILDDIR, "handrail"), "mcp", "--up", "--end", "-r", "local", "-n", "bench"],
                             env=h.env, cwd=h.path("cwd"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        p.stdin.write(call("run", command="true").encode() + b"\n")
        p.stdin.flush()
        p.stdout.readline()
        with open("/proc/%d/smaps_rollup" % p.pid) as f:
            kb = sum(int(x.split()[1]) for x in f if x.startswith("Anonymous:"))
        p.stdin.close()
        p.wait()
        print("handrail mcp, idle: %d kB anonymous (aim: 3072)" % kb)


def main():
    with Server(args=["--listen", "127.0.0.1"], settings={"mcp": "true"}) as s:
        calls(s, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
        grep(s)
    memory()


if __name__ == "__main__":
    main()
