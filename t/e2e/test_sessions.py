#!/usr/bin/env python3
"""Shells beside the default one: made, used, listed and ended under /handrail/v1/ (doc/live.md)."""

import http.client
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, kill_wait, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402

V1 = "/handrail/v1/"
JSON = {"Content-Type": "application/json"}


def post(s, what, body=None, headers=None):
    a = s.request("POST", V1 + what, json.dumps(body if body is not None else {}), dict(JSON, **(headers or {})))
    return a.status, a.json()


def create(s, name, **more):
    status, state = post(s, "create", dict(more, name=name))
    equal((status, state.get("name"), state.get("ready")), (201, name, True), state)
    return state


def action(s, name, command, headers=None, **args):
    body = {"action": {"action": "run", "args": dict(args, command=command)}}
    return s.request("POST", "%srun?session=%s" % (V1, name), json.dumps(body), dict(JSON, **(headers or {})))


def run(s, name, command, **args):
    """The output, whose last line has an end."""
    a = action(s, name, command, **args)
    equal(a.status, 200, a)
    content = a.json()["content"]
    equal(content[-1:] in ("", "\n"), True, a)
    return content[:-1]


def names(s):
    a = s.get(V1 + "sessions")
    equal(a.status, 200, a)
    return sorted(one["name"] for one in a.json()["sessions"] if one["ready"])


def keeper_of(s, name):
    found = [p for p in s.pids("handrail-session") if " --name %s " % name in process.command_line(p)]
    equal(len(found), 1, found)
    return found[0]


def made_used_and_ended():
    with Server() as s:
        equal(names(s), ["default"])
        other = os.path.join(s.work_dir, "other")
        os.mkdir(other, 0o777)
        equal(create(s, "build.1")["working_dir"], s.work_dir)
        equal(create(s, "watch", working_dir=other)["working_dir"], other)
        equal(names(s), ["build.1", "default", "watch"])
        equal(s.get("/ready").json()["components"]["named_sessions"], {"count": 2})
        equal('handrail_sessions{kind="named"} 2' in s.get("/metrics").body.decode(), True)
        # each is a shell of its own, all at the same time
        s.run("X=d")
        equal((run(s, "build.1", "X=b"), run(s, "watch", "X=w")), ("", ""))
        equal((s.run("echo $X"), run(s, "build.1", "echo $X"), run(s, "watch", "echo $X; pwd")),
              ("d", "b", "w\n" + other))
        equal(run(s, "default", "echo $X"), "d")
        began, wait = marker(s)
        door, open_it = gate(s)
        b = s.in_background("%s; %s; echo first" % (began, door))
        wait()
        equal(run(s, "watch", "echo elsewhere"), "elsewhere", "while the other one runs")
        open_it()
        equal(b.content(), "first")
        # looking on is about the one that is named
        commands = s.get(V1 + "commands?session=watch").json()["commands"]
        equal(([c["command"] for c in commands], commands[0]["session"]),
              (["X=w", "echo $X; pwd", "echo elsewhere"], "watch"))
        equal(b"elsewhere" in s.get(V1 + "output?session=watch").body, True)
        equal(b"elsewhere" in s.get(V1 + "output").body, False)
        equal(s.get(V1 + "session?session=watch").json()["name"], "watch")
        # what an action named twice does is done once, in each of them
        count = "echo x >>count; wc -l <count"
        same = {"X-Request-ID": "count"}
        equal([action(s, n, "cd %s; %s" % (s.work_dir, count), same).json()["content"]
               for n in ("watch", "watch", "build.1", "watch")], ["1\n", "1\n", "2\n", "1\n"])
        # ended with all that is in it
        began, wait = marker(s)
        run(s, "watch", "sleep 1000 & echo $! >pid")
        with open(os.path.join(s.work_dir, "pid")) as f:
            pid = int(f.read())
        equal(post(s, "kill?session=watch"), (200, {}))
        equal(process.wait_gone(pid, PATIENCE), True, "a background job")
        equal((names(s), action(s, "watch", "true").status), (["build.1", "default"], 404))
        equal(create(s, "watch")["working_dir"], s.work_dir)
        equal(run(s, "watch", "echo [$X]"), "[]")
        equal(sorted(os.listdir(os.path.join(s.run_dir, "session"))),
              ["%s.%s" % (n, e) for n in ("build.1", "watch") for e in ("dir", "keeper", "sock")])


def keys_and_input():
    with Server() as s:
        create(s, "a")
        began, wait = marker(s)
        done = []
        t = threading.Thread(target=lambda: done.append(run(s, "a", "%s; IFS= read -r x; echo got-$x" % began)))
        t.start()
        wait()
        equal(post(s, "input", {"text": "no\n"})[0], 409, "the default one runs nothing")
        equal(post(s, "input?session=a", {"text": "yes\n"})[0], 200)
        t.join(PATIENCE)
        equal("got-yes" in done[0], True, done)
        began, wait = marker(s)
        t = threading.Thread(target=lambda: done.append(action(s, "a", "%s; sleep 1000" % began).json()))
        t.start()
        wait()
        # one between two programs may be for neither of them
        s.until("the end", lambda: post(s, "keys?session=a", {"keys": ["C-c"]})[0] == 409)
        t.join(PATIENCE)
        equal(done[1]["extras"]["metadata"]["exit_code"], 130)


def refused():
    with Server(settings={"named_sessions_max": 2}) as s:
        for bad in ("", "default", "static-1", "statics", "a b", "a/b", "../a", ".a", "-a", "x" * 33, 7, None, "ä",
                    "a\0"):
            equal(post(s, "create", {"name": bad})[0], 400, bad)
        for bad in ("relative", 7, "/x\0y", "/" + "x" * 5000):
            equal(post(s, "create", {"name": "a", "working_dir": bad})[0], 400, bad)
        for bad in ("/nonexistent", "/etc/passwd", "/etc/passwd/x", "/tmp\nx", "/\x7f", "/tmp\t"):
            status, answer = post(s, "create", {"name": "a", "working_dir": bad})
            equal((status, answer["detail"].startswith("working_dir")), (400, True), (bad, answer))
        equal((names(s), os.listdir(os.path.join(s.run_dir, "session"))), (["default"], []))
        equal(s.request("POST", V1 + "create", "[", JSON).status, 400)
        create(s, "a")
        create(s, "x" * 32)
        equal(post(s, "create", {"name": "a"}), (409, {"detail": "there is a session of that name"}))
        equal(post(s, "create", {"name": "b"}), (409, {"detail": "too many sessions: named_sessions_max is reached"}))
        equal(post(s, "kill?session=nobody"), (404, {"detail": "there is no session of that name"}))
        for unknown in ("nobody", "..%2Fx", "a%00"):
            for method, what in (("GET", "session"), ("GET", "commands"), ("GET", "output"), ("POST", "input"),
                                 ("POST", "kill"), ("POST", "run")):
                a = s.request(method, "%s%s?session=%s" % (V1, what, unknown), '{"text":"x"}', JSON)
                equal(a.status, 404, (what, unknown))
        equal(post(s, "kill"), (200, {}), "the default one gets another shell")
        # only commands, and none that wants a shell of its own
        for act in ({"action": "read", "args": {"path": "/etc/passwd"}},
                    {"action": "run", "args": {"command": "true", "is_static": True}}):
            equal(post(s, "run?session=a", {"action": act})[0], 400, act)
        equal(names(s), ["a", "default", "x" * 32])
        equal(s.run("echo on"), "on")


def keeper_dies():
    with Server() as s:
        create(s, "a")
        run(s, "a", "X=1; cd /usr")
        default = keeper_of(s, "default")
        kill_wait(keeper_of(s, "a"))
        equal(run(s, "a", "echo [$X]; pwd"), "[1]\n/usr", "the same shell")
        equal(keeper_of(s, "default"), default)
        equal(names(s), ["a", "default"])
        equal(post(s, "kill?session=a")[0], 200)


def supervisor_dies():
    with Server() as s:
        create(s, "a", working_dir="/usr")
        create(s, "b")
        run(s, "a", "X=kept; cd /tmp")
        run(s, "b", "Y=kept")
        began, wait = marker(s)
        door, open_it = gate(s)
        done = []

        def ask():
            try:
                done.append(action(s, "a", "%s; %s; echo result" % (began, door)).json()["content"])
            except (OSError, http.client.HTTPException) as e:
                done.append(e)
        t = threading.Thread(target=ask)
        t.start()
        wait()
        a, b = keeper_of(s, "a"), keeper_of(s, "b")
        kill_wait(s.pid)
        s.wait()
        open_it()
        t.join(PATIENCE)
        equal(done, ["result\n"], "the request under way")
        kill_wait(b)
        s.start()
        equal(run(s, "a", "echo $X; pwd"), "kept\n/tmp")
        equal(run(s, "b", "echo \"[$Y]\""), "[]", "its keeper was killed, too")
        equal(names(s), ["a", "b", "default"])
        kill_wait(a)  # the adopted one
        equal(run(s, "a", "echo \"[$X]\"; pwd"), "[kept]\n/tmp")
        equal(post(s, "kill?session=a")[0], 200)
        equal(names(s), ["b", "default"])


def unusable_ones():
    """What a predecessor left that cannot be used does not keep the server from starting."""
    with Server(settings={"named_sessions_max": 2}) as s:
        create(s, "a")
        create(s, "b")
        run(s, "a", "X=kept")
        b = keeper_of(s, "b")
        kill_wait(s.pid)
        s.wait()
        folder = os.path.join(s.run_dir, "session")
        os.truncate(os.path.join(folder, "b.dir"), 0)  # as if its creation had been cut off
        os.mkdir(os.path.join(folder, "c.dir"))
        s.start()
        equal(process.wait_gone(b, PATIENCE), True)
        equal((run(s, "a", "echo $X"), s.run("echo on")), ("kept", "on"))
        equal(names(s), ["a", "default"])
        equal(sorted(os.listdir(folder)), ["a.dir", "a.keeper", "a.sock"])
        for name in ("b", "c"):
            equal("session %s of a predecessor is given up: " % name in s.log(), True, s.log())
        create(s, "c")  # there is a place
        with open(os.path.join(folder, "c.dir")) as f:
            equal(f.read(), s.work_dir)


def upgrade():
    with Server() as s:
        create(s, "a")
        run(s, "a", "X=kept")
        a = keeper_of(s, "a")
        for turn in range(1, 4):
            s.send(signal.SIGUSR2)
            if not s.wait_log(" ready: ", count=turn + 1):
                raise AssertionError(s.log())
            equal(run(s, "a", "echo $X"), "kept")
        equal(keeper_of(s, "a"), a)
        equal(post(s, "kill?session=a")[0], 200)
        equal(process.wait_gone(a, PATIENCE), True)


def end_of_the_server():
    with Server() as s:
        create(s, "a")
        run(s, "a", "sleep 1000 &")
        create(s, "b")
        equal(s.stop(), -signal.SIGTERM)  # and nothing is left, which leaving the block asks for


def many():
    """Made and ended, again and again: nothing is left, and the default one is not disturbed."""
    with Server() as s:
        s.run("X=kept")
        for i in range(10):
            create(s, "s%d" % i)
            equal(run(s, "s%d" % i, "echo %d" % i), str(i))
            equal(post(s, "kill?session=s%d" % i), (200, {}))
        equal(os.listdir(os.path.join(s.run_dir, "session")), [])
        equal(os.listdir(os.path.join(s.run_dir, "shell")), ["default"])
        equal(len(s.pids("handrail-session")), 1)
        equal(s.run("echo $X"), "kept")


def key_is_needed():
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        for method, path in (("GET", "sessions"), ("POST", "create"), ("POST", "kill?session=a"),
                             ("POST", "run?session=a")):
            equal(s.request(method, V1 + path, '{"name":"a"}', JSON).status, 403, path)
        equal(s.get(V1 + "sessions", X_Session_API_Key="k").json()["sessions"][0]["name"], "default")


TESTS = [made_used_and_ended, keys_and_input, refused, keeper_dies, supervisor_dies, unusable_ones, upgrade,
         end_of_the_server, many, key_is_needed]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
