#!/usr/bin/env python3
"""Tasks that several parts do together: shell, kernel and files; a server under stress; its figures."""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import BUILDDIR, Server, find_program, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

PYTHON = "/usr/bin/python3"


def act(s, kind, timeout=60, **args):
    a = s.request("POST", "/execute_action",
                  json.dumps({"action": {"action": kind, "args": args, "timeout": timeout}}),
                  {"Content-Type": "application/json"})
    if a.status != 200:
        raise AssertionError("%s: %r\n%s" % (kind, a, s.log()))
    return a.json()


def simple_cmd_ipython_and_fileop():
    if not os.access(os.path.join(BUILDDIR, "handrail-jupyter"), os.X_OK):
        raise Skip("handrail-jupyter is not built: apt-get install libzmq3-dev libssl-dev")
    if subprocess.run([PYTHON, "-c", "import ipykernel"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("there is no kernel for %s: apt-get install python3-ipykernel" % PYTHON)
    with Server(args=["--plugins", "agent_skills", "jupyter"]) as s:
        a = act(s, "run", command="ls -l")
        equal((a["extras"]["metadata"]["exit_code"], a["content"]), (0, "total 0"))
        a = act(s, "run_ipython", code="print('Hello, `World`!\\n')")
        equal((a["observation"], a["content"]), (
            "run_ipython", "Hello, `World`!\n[Jupyter current working directory: %s]\n"
                           "[Jupyter Python interpreter: %s]" % (s.work_dir, PYTHON)))
        a = act(s, "read", path="hello.sh")
        equal((a["observation"], "File not found" in a["content"]), ("error", True), a)
        path = os.path.join(s.work_dir, "hello.sh")
        a = act(s, "write", path="hello.sh", content='echo "Hello, World!"')
        equal((a["observation"], a["content"], a["extras"]["path"]), ("write", "", path))
        a = act(s, "read", path="hello.sh")
        equal((a["observation"], a["content"], a["extras"]["path"]),
              ("read", 'echo "Hello, World!"\n', path))
        a = act(s, "run", command="rm -rf hello.sh")
        equal((a["extras"]["metadata"]["exit_code"], os.path.exists(path)), (0, False))


def browser_disabled():
    """Switched off, or wanted and not there: to a client it is the same."""
    text = "Browser functionality is not supported or disabled."
    want = {"message": text, "observation": "error", "content": text, "extras": {"error_id": ""}}
    for args in ([], ["--enable-browser"], ["--no-enable-browser"]):
        with Server(args=args, env={"HANDRAIL_BROWSER_CHROMIUM": "/nonexistent"}) as s:
            equal(act(s, "browse", url="http://127.0.0.1:%d/" % s.port), want, repr(args))
            equal(act(s, "browse_interactive", browser_actions="noop(1)"), want, repr(args))


def stress():
    """Half a minute of load on the one processor that the sandbox has. Nice, as other tests run beside."""
    stress, taskset = find_program("stress-ng"), find_program("taskset")
    if stress is None or taskset is None:
        raise Skip("there is no stress-ng, or no taskset: apt-get install stress-ng util-linux")
    one = str(min(os.sched_getaffinity(0)))
    with Server(prefix=[taskset, "-c", one], settings={"max_memory_gb": 4}) as s:
        b = s.in_background("nice -n 19 %s --cpu 2 --vm 1 --vm-bytes 256M --fork 1 --pipe 1 --temp-path . "
                            "--timeout 30s" % stress, timeout=240)
        rounds = 0
        while b.is_alive():
            equal(s.get("/alive").json(), {"status": "ok"})
            equal(s.get("/server_info").status, 200)
            act(s, "write", path="note", content="%d" % rounds)
            equal(act(s, "read", path="note")["content"], "%d\n" % rounds)
            rounds += 1
            b.join(0.2)
        equal("successful run completed" in b.content(), True, b.content())
        equal(b.answer.json()["extras"]["metadata"]["exit_code"], 0)
        equal((rounds > 1, b.seconds > 29), (True, True), "%d in %s s" % (rounds, b.seconds))
        equal(s.run("echo on"), "on")


def whole(text):
    return type(text) is int and text >= 0


def percent(text):
    return type(text) is float and 0.0 <= text <= 100.0


def figures(s):
    info = s.get("/server_info").json()
    equal(list(info), ["uptime", "idle_time", "resources"])
    equal([type(info[k]) for k in ("uptime", "idle_time")], [float, float])
    r = info["resources"]
    equal([sorted(r), sorted(r["memory"]), sorted(r["disk"]), sorted(r["io"])],
          [["cpu_percent", "disk", "io", "memory"], ["percent", "rss", "vms"],
           ["free", "percent", "total", "used"], ["read_bytes", "write_bytes"]])
    # of all our processes: more than one core is more than 100
    equal((type(r["cpu_percent"]), r["cpu_percent"] >= 0), (float, True), r)
    m, d = r["memory"], r["disk"]
    equal((whole(m["rss"]), whole(m["vms"]), percent(m["percent"]), 0 < m["rss"] <= m["vms"]),
          (True, True, True, True), r)
    equal(([whole(d[k]) for k in ("total", "used", "free")], percent(d["percent"]),
           d["total"] > 0, d["used"] + d["free"] <= d["total"]), ([True] * 3, True, True, True), r)
    equal([whole(r["io"][k]) for k in ("read_bytes", "write_bytes")], [True, True], r)
    return info


def statistics():
    with Server() as s:
        first, second, third = [figures(s) for _ in range(3)]
        equal(0 < first["uptime"] < second["uptime"] < third["uptime"], True)
        equal(0 < first["idle_time"] < second["idle_time"] < third["idle_time"], True, "it grows")
        began = time.monotonic()
        act(s, "run", command="true")
        after = figures(s)
        most = time.monotonic() - began + 0.1
        equal(0 <= after["idle_time"] < most, True, "%r of %r" % (after["idle_time"], most))
        equal(after["uptime"] > third["uptime"], True, "that of the server goes on")
        equal(figures(s)["idle_time"] > after["idle_time"], True, "and grows again")


if __name__ == "__main__":
    sys.exit(run_tests([
        simple_cmd_ipython_and_fileop, browser_disabled, stress,
        statistics]))
