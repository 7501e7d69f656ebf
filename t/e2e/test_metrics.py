#!/usr/bin/env python3
"""What an operator sees: /metrics, the access log, trace contexts."""

import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.metrics import samples  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, kill_wait, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402


def metrics(s, **headers):
    a = s.get("/metrics", **headers)
    equal((a.status, a.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    return samples(a.body.decode())


def value(m, name, **labels):
    return m.get(("handrail_" + name, tuple(sorted(labels.items()))))


def counters():
    with Server(env={"NO_CHANGE_TIMEOUT_SECONDS": "1"}) as s:
        before = metrics(s)
        equal(value(before, "actions_total", action="run", result="ok"), None)
        s.run("printf %01000d 0")
        s.run("(exit 3)")
        s.run("(exit 3)")
        s.run("kill -9 $BASHPID")
        s.run("echo fresh")
        s.run("true", is_static=True)
        s.run("read -r x")  # the no-output clock
        s.run("", is_input=True)
        s.run("C-c", is_input=True)
        a = s.request("POST", "/execute_action", json.dumps({"action": {
            "action": "run", "timeout": 0.3, "args": {"command": "sleep 20", "blocking": True}}}),
            {"Content-Type": "application/json"})
        equal("timed out" in a.body.decode(), True, a)
        s.run("C-c", is_input=True)
        s.request("POST", "/execute_action", b"{}", {"Content-Type": "application/json"})
        m = metrics(s)
        equal(value(m, "command_exits_total", code="3"), 2.0)
        equal(value(m, "clock_fired_total", clock="hard"), 1.0)
        equal(value(m, "clock_fired_total", clock="no_output") >= 1, True)
        equal(value(m, "command_still_running_total") >= 2, True)
        equal(value(m, "command_output_bytes_total") >= 1000, True)
        equal(value(m, "answers_total", status="4xx"), 1.0)
        count = value(m, "action_duration_seconds_count", action="run")
        equal(count, sum(v for k, v in m.items() if k[0] == "handrail_actions_total"), "all of them")
        equal(count >= 10, True, count)
        buckets = sorted((float(dict(k[1])["le"]), v) for k, v in m.items()
                         if k[0] == "handrail_action_duration_seconds_bucket")
        equal([v for _, v in buckets], sorted(v for _, v in buckets), "cumulative")
        equal(buckets[-1], (float("inf"), count))
        equal(value(m, "action_duration_seconds_sum", action="run") > 1.3, True)
        equal((value(m, "ready"), value(m, "sessions", kind="default")), (1.0, 1.0))
        equal(value(m, "resident_memory_bytes") > 1e6, True)
        for k, v in before.items():
            if k[0].endswith("_total"):
                equal(m[k] >= v, True, "a counter went down: %r" % (k,))


def restarts(m):
    return [value(m, "restarts_total", process=p) for p in ("worker", "session", "nginx")]


def gauges_and_restarts():
    with Server() as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("%s; %s" % (began, door), is_static=True)
        wait()
        s.workers("action")
        m = metrics(s)
        equal((value(m, "requests_in_flight", pool="action"), value(m, "sessions", kind="static")), (1.0, 1.0))
        equal(value(m, "workers", pool="action") >= 2, True)
        open_it()
        b.content()
        s.until("idle again", lambda: value(metrics(s), "requests_in_flight", pool="action") == 0 and
                value(metrics(s), "sessions", kind="static") == 0)
        kill_wait(s.workers("control")[0])
        kill_wait(s.keeper()[0])
        kill_wait(s.pids("nginx")[0])
        s.until("it answers", lambda: not s.refused())
        # the workers of a killed nginx still answer when handraild has not yet seen its death
        s.until("three deaths were seen", lambda: sum(restarts(metrics(s))) >= 3)
        s.until("ready", lambda: value(metrics(s), "ready") == 1)
        equal(restarts(metrics(s)), [1.0] * 3)
        s.send(signal.SIGHUP)
        s.wait_log(" reloaded$")
        equal(value(metrics(s), "restarts_total", process="worker"), 1.0, "a reload is no crash")


def key_is_needed():
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        equal(s.get("/metrics").status, 403)
        metrics(s, X_Session_API_Key="k")
        equal(s.request("POST", "/metrics", headers={"X-Session-API-Key": "k"}).status, 405)


def access_log():
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    s = Server(ready=None, env={"NO_CHANGE_TIMEOUT_SECONDS": "1"})
    with s:
        path = os.path.join(s.top, "access.log")
        s.write_settings({"access_log": path})
        s.args += ["--config", s.settings_file()]
        s.start()
        parent = "00-%s-%s-01" % (trace, span)
        first = s.action("(exit 7)", {"X-Request-ID": "my \"id\" \xe9", "traceparent": parent})
        second = s.action("read -r x", {"Idempotency-Key": "mine", "traceparent": "nonsense"})
        s.action("C-c", is_input=True)
        s.action("true", is_static=True)
        s.request("POST", "/execute_action", json.dumps({"action": {
            "action": "read", "args": {"path": "/nonexistent"}}}), {"Content-Type": "application/json"})
        s.get("/server_info")
        for a in (first, second):
            equal([k for k in a.headers if k.lower().startswith("x-handrail")], [], "not for the client")
        s.until("six lines", lambda: os.path.exists(path) and open(path, "rb").read().count(b"\n") >= 7)
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        lines = lines[1:]  # the server's own question
        equal(len(lines), 6)
        got = [tuple(l[k] for k in ("action", "key", "session", "exit_code", "clock", "status")) for l in lines]
        # a name and the body's length and digest
        digest = r":[0-9]+\.[0-9a-f]{16}$"
        equal([re.search(digest, got[n][1]) is not None for n in (0, 1)], [True, True], got)
        got[:2] = [(g[0], re.sub(digest, "", g[1])) + g[2:] for g in got[:2]]
        equal(got[0], ("run", 'x:my "id" ?', "default", "7", "none", 200))
        equal(got[1], ("run", "i:mine", "default", "-1", "no_output", 200))
        equal(got[3][2:], ("static", "0", "none", 200))
        equal(got[4][0], "read")
        equal(got[5], ("", "", "", "", "", 200))
        equal(lines[1]["seconds"] >= 1, True)
        # the trace goes on with a span of its own; nonsense begins a new one
        version, got_trace, got_span, flags = first.headers["traceparent"].split("-")
        equal((version, got_trace, flags, got_span != span, len(got_span)), ("00", trace, "01", True, 16))
        equal(first.headers["traceparent"], lines[0]["traceparent"])
        equal(lines[0]["request_id"][16:], got_span)
        equal(second.headers["traceparent"].split("-")[1], lines[1]["request_id"])
        os.rename(path, path + ".1")
        s.send(signal.SIGUSR1)
        s.until("the log is opened again", lambda: os.path.exists(path))
        s.until("nothing goes into the old one", lambda: s.get("/alive").status == 200 and
                os.path.getsize(path) > 0)


TESTS = [counters, gauges_and_restarts, key_is_needed, access_log]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
