#!/usr/bin/env python3
"""Plugins as handrail-plugin(5) describes them, with the example of t/example-plugin and with broken
ones made here."""

import contextlib
import json
import os
import re
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (  # noqa: E402
    PATIENCE, SRCDIR, Server, kill_wait, need_entrance, need_root, run_tests)
from lib.tap import Skip, equal  # noqa: E402

EXAMPLES = os.path.join(SRCDIR, "t", "example-plugin")
KEY = {"X-Session-API-Key": "k1"}


class Plugins(Server):
    """A server with plugins made of {name: (manifest, program text)} beside the example."""

    def __init__(self, *names, made=None, env=None, args=(), start=True, **kw):
        self.made = made or {}
        super().__init__(args=["--plugins", *names, *args] if names else list(args), ready=None,
                         env=dict({"HANDRAIL_PLUGIN_PATH": "@:" + EXAMPLES}, **(env or {})), **kw)
        self.plugin_dir = os.path.join(self.top, "plugins")
        self.env["HANDRAIL_PLUGIN_PATH"] = self.env["HANDRAIL_PLUGIN_PATH"].replace(
            "@", self.plugin_dir)
        for name, (manifest, text) in self.made.items():
            self.make(name, manifest, text)
        if start:
            self.start()

    def make(self, name, manifest, text):
        top = os.path.join(self.plugin_dir, name)
        os.makedirs(top, exist_ok=True)
        with open(os.path.join(top, "plugin.json"), "w") as f:
            json.dump(dict({"api": 1, "name": name}, **manifest), f)
        if text is not None:
            path = os.path.join(top, "run")
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o755)

    def act(self, kind, headers=None, **args):
        return self.request("POST", "/execute_action",
                            json.dumps({"action": {"action": kind, "args": args}}),
                            dict({"Content-Type": "application/json"}, **(headers or {})))

    def state(self, name):
        return self.get("/ready").json()["components"]["plugins"][name]

    def plugin_pids(self, program):
        """What was just forked and is handraild still is none of them, though it names them."""
        own = process.command_line(self.pid)
        lines = [(p, process.command_line(p)) for p in process.children(self.pid)]
        return [p for p, line in lines if program in line and "handrail-" not in line and line != own]


def need_python():
    if shutil.which("python3") is None:
        raise Skip("there is no python3 on PATH: apt-get install python3")


SHELL = {"exec": ["${plugin_dir}/run"], "actions": ["odd"], "on_failure": "disable"}


def failed_when_used(s, state):
    """It is called so for a second, then it may be tried again."""
    def look():
        equal(s.act("odd").status, 500)
        return state() == "failed"
    s.until("it has failed", look)


def first_use_starts_it():
    need_python()
    with Plugins("greeter", env={"GREETER_WORD": "Moin"}) as s:
        equal(s.state("greeter"), {"state": "not started"})
        equal(s.plugin_pids("greeter"), [])
        s.run("cd /usr")
        a = s.act("greet", name="you")
        equal((a.status, a.json()["content"]), (200, "Moin, you!"))
        extras = a.json()["extras"]
        equal((extras["directory"], extras["home"]), ("/usr", os.path.join(EXAMPLES, "greeter")))
        s.until("it is ready", lambda: s.state("greeter") == {"state": "ready"})
        equal(s.act("greet").json()["extras"]["pid"], extras["pid"], "the same process")


def http_starts_it_and_passes_no_key():
    need_python()
    with Plugins("greeter", env={"SESSION_API_KEY": "k1"}, args=["--listen", "127.0.0.1"]) as s:
        for path in ("/plugins/greeter/a", "/plugins/greeter-bearer"):
            a = s.request("GET", path)
            equal((a.status, a.json()), (403, {"detail": "Invalid API Key"}), path)
        equal(s.plugin_pids("greeter"), [], "refused, so not started")
        a = s.request("GET", "/plugins/greeter/a?b=%20c", headers=dict(KEY, **{"X-API-Key": "k1", "X-Other": "kept"}))
        equal((a.status, a.json()["path"]), (200, "/plugins/greeter/a?b=%20c"))
        names = [h.lower() for h in a.json()["headers"]]
        equal([h for h in names if h in ("x-session-api-key", "x-api-key", "authorization", "x-other")], ["x-other"])
        a = s.request("GET", "/plugins/greeter-bearer", headers=KEY)
        equal((a.status, a.headers["Content-Type"], a.headers["WWW-Authenticate"], a.json()),
              (401, "application/json",
               'Bearer error="invalid_token", error_description="Authentication required"',
               {"error": "invalid_token", "error_description": "Authentication required"}))
        for value, status in (("bearer k1", 200), ("Bearer k2", 401), ("Basic k1", 401)):
            a = s.request("GET", "/plugins/greeter-bearer", headers=dict(KEY, Authorization=value))
            equal(a.status, status, value)
        equal(s.request("GET", "/plugins/greeter-open").status, 200)
        for path in ("/-/bearer", "/plugins/", "/plugins/greeter-open/x"):
            equal(s.request("GET", path, headers=KEY).status, 404, path)


def the_secret_is_nowhere():
    need_python()
    with Plugins("greeter", env={"SESSION_API_KEY": "k1secret"},
                 args=["--listen", "127.0.0.1"]) as s:
        key = {"X-Session-API-Key": "k1secret"}
        equal(s.act("greet", headers=key).status, 200)
        (pid,) = s.plugin_pids("greeter")
        with open("/proc/%d/environ" % pid, "rb") as f:
            environ = f.read()
        equal(b"k1secret" in environ, False)
        equal(b"HANDRAIL_PLUGIN_NAME=greeter" in environ, True)
        equal("k1secret" in s.log(), False)


def runs_as_the_user():
    need_root()
    need_entrance()
    need_python()
    s = Plugins("greeter", name="nobody", start=False, env={"RUNTIME_USERNAME": "nobody"})
    with s:
        s.env["USER"] = "root"  # else it would be somebody's own account
        s.start()
        uid = int(s.run("id -u"))
        extras = s.act("greet").json()["extras"]
        equal((extras["user"], uid != 0), (uid, True))
        equal(os.stat(os.path.join(s.run_dir, "plugin", "greeter")).st_uid, uid)
        equal(os.stat(os.path.join(s.run_dir, "plugin", "greeter.sock")).st_uid, 0)
        # and a command cannot reach its socket
        equal(s.run("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"%s\")' 2>&1"
                    " | tail -n 1" % os.path.join(s.run_dir, "action", "greet")),
              "PermissionError: [Errno 13] Permission denied")


def a_killed_plugin_harms_nothing():
    need_python()
    with Plugins("greeter") as s:
        first = s.act("greet").json()["extras"]["pid"]
        s.run("X=kept")
        kill_wait(first)
        again = s.act("greet")
        equal((again.status, again.json().get("content")), (200, "Hello, world!"), "%r\n%s" % (again, s.log()))
        equal(again.json()["extras"]["pid"] != first, True)
        equal(s.run("echo $X"), "kept")


def seen_in_metrics():
    """State, ends, actions and memory of each."""
    need_python()

    def of(name):
        text = s.get("/metrics").body.decode()
        return {m[0]: m[2] or int(m[3]) for m in re.findall(
            r'^handrail_plugin_([a-z_]+){plugin="(%s)"(?:,state="([a-z ]+)")?} ([0-9]+)$' % name, text, re.M)}

    made = {"odd": (SHELL, "#!/bin/sh\nprintf 'failed no luck\\n' >&3\n")}
    with Plugins("greeter", "odd", made=made) as s:
        pid = s.act("greet").json()["extras"]["pid"]
        equal(s.act("greet").status, 200)
        equal(s.act("odd").status, 500)
        s.until("its end", lambda: of("odd")["ends_total"] > 0)
        seen = of("odd")
        equal((seen["actions_total"], seen["failures_total"]), (1, 1), seen)
        failed_when_used(s, lambda: of("odd")["info"])
        seen = of("greeter")
        memory = seen.pop("resident_memory_bytes")
        equal(seen, {"info": "ready", "ends_total": 0, "actions_total": 2, "failures_total": 0})
        equal(1 << 20 < memory < 1 << 30, True, memory)
        kill_wait(pid)
        a = s.act("greet")
        equal((a.status, of("greeter")["ends_total"], of("greeter")["actions_total"]), (200, 1, 3))


def ends_during_its_action():
    need_python()
    with Plugins("greeter") as s:
        a = s.act("greet", name="the end")
        equal((a.status, a.json()["observation"], a.json()["content"]),
              (200, "error", "the plugin ended while it performed the action"))
        again = s.act("greet")
        equal((again.status, again.json().get("content")), (200, "Hello, world!"), "%r\n%s" % (again, s.log()))


def says_why_it_fails():
    made = {"odd": (SHELL, "#!/bin/sh\nprintf 'failed no luck\\n' >&3\n")}
    with Plugins("odd", made=made) as s:
        a = s.act("odd")
        equal((a.status, a.json()), (500, {"detail": "Internal server error: plugin odd is not "
                                                     "available: no luck"}))
        failed_when_used(s, lambda: s.state("odd")["state"])
        equal(s.state("odd")["reason"], "no luck")
        equal(s.act("odd").status, 500)
        equal(s.get("/alive").status, 200)


def browsing_without_a_browser():
    """To a client one that does not start is none, and one that is switched off is not even asked."""
    text = "Browser functionality is not supported or disabled."
    manifest = dict(SHELL, actions=["browse", "browse_interactive"])
    made = {"odd": (manifest, "#!/bin/sh\nprintf 'failed no luck\\n' >&3\n")}
    for args, asked in (([], True), (["--no-enable-browser"], False)):
        with Plugins("odd", made=made, args=args) as s:
            for a in (s.act("browse", url="x"), s.act("browse_interactive", browser_actions="noop()")):
                equal((a.status, a.json()), (200, {"message": text, "observation": "error",
                                                   "content": text, "extras": {"error_id": ""}}))
            if asked:
                equal(s.wait_log("plugin odd did not start: no luck") is not None, True)
            else:
                equal(s.state("odd"), {"state": "not started"})


BROWSER = """#!/usr/bin/env python3
import os, socket, struct
os.write(3, b"ready\\n")
os.close(3)
listener = socket.socket(fileno=4)
while True:
    sock, _ = listener.accept()
    length = struct.unpack("=III", sock.recv(12, socket.MSG_WAITALL))[2]
    sock.recv(length, socket.MSG_WAITALL)
    body = b'{"detail": "the page crashed"}'
    fields = struct.pack("=IIqII", 66, 8, 500, 67, len(body)) + body
    sock.sendall(struct.pack("=III", 0x48523031, 17, len(fields)) + fields)
    sock.close()
"""


def a_browser_tells_its_own_error():
    need_python()
    with Plugins("odd", made={"odd": (dict(SHELL, actions=["browse"]), BROWSER)}) as s:
        a = s.act("browse", url="x")
        equal((a.status, a.json()), (500, {"detail": "the page crashed"}))


def ends_before_it_is_ready():
    made = {"odd": (SHELL, "#!/bin/sh\nexit 7\n")}
    with Plugins("odd", made=made) as s:
        equal(s.act("odd").json()["detail"],
              "Internal server error: plugin odd is not available: it ended before it was ready "
              "(exit 7)")
        # mended: the next use after its pause finds it whole
        s.make("odd", SHELL, "#!/bin/sh\necho ready >&3; exec sleep 1000\n")
        s.until("it is tried again", lambda: s.state("odd")["state"] == "not started")
        other = s.in_background("true")
        equal(other.content(), "")


def never_ready_is_reported_in_time():
    made = {"odd": (dict(SHELL, ready_timeout=1), "#!/bin/sh\nexec sleep 1000\n")}
    with Plugins("odd", made=made) as s:
        equal(s.act("odd").json()["detail"],
              "Internal server error: plugin odd is not available: it was not ready after 1 s")
        equal(s.plugin_pids("sleep"), [])


def what_is_missing_is_named():
    made = {"odd": (dict(SHELL, needs=["no-such-program"]), "#!/bin/sh\n"),
            "gone": ({"exec": ["${plugin_dir}/nothing"], "actions": ["gone"]}, None)}
    with Plugins("odd", "gone", made=made) as s:
        equal(s.state("odd"), {"state": "unavailable",
                               "reason": "no-such-program is not installed"})
        equal(s.act("odd").json()["detail"], "Internal server error: plugin odd is not available: "
                                             "no-such-program is not installed")
        equal(s.state("gone")["reason"],
              "the program %s/gone/nothing does not exist" % s.plugin_dir)


def many_are_told_of():
    """What is wrong with each of them fits into the answer, and the server is ready all the same."""
    names = ["none-of-these-is-installed-%d" % i for i in range(60)]
    made = {n: ({"unavailable": "on this machine there is nothing of what %s needs" % n}, None) for n in names}
    with Plugins(*names, made=made) as s:
        answer = s.get("/ready")
        equal(answer.status, 200)
        equal(set(names) - set(answer.json()["components"]["plugins"]), set())


def a_failure_may_end_the_start():
    made = {"odd": (dict(SHELL, start="at-start", on_failure="abort"), "#!/bin/sh\nexit 1\n")}
    s = Plugins("odd", made=made, start=False)
    with s:
        s.start(ready=False)
        equal(s.wait(), 3)
        equal("it ended before it was ready (exit 1)" in s.log(), True)


def the_start_waits_for_them():
    order = "#!/bin/sh\necho $HANDRAIL_PLUGIN_NAME >>%s/order\necho ready >&3\nexec sleep 1000\n"
    manifest = {"exec": ["${plugin_dir}/run"], "start": "at-start"}
    s = Plugins("c", "b", "a", start=False)
    with s:
        text = order % s.work_dir
        s.make("a", manifest, text)
        s.make("b", dict(manifest, requires=["a"]), text)
        s.make("c", dict(manifest, after=["b", "not there"[:3]]), text)
        s.start()
        equal([s.state(n)["state"] for n in "abc"], ["ready"] * 3)
        with open(os.path.join(s.work_dir, "order")) as f:
            equal(f.read().split(), ["a", "b", "c"])
        # at-start ones come back by themselves
        s.until("each is past its word", lambda: len(s.plugin_pids("sleep")) == 3)
        first = s.plugin_pids("sleep")[0]
        kill_wait(first)
        s.until("it is back", lambda: len(s.plugin_pids("sleep")) == 3)


def an_upgrade_ends_what_they_started():
    manifest = {"exec": ["${plugin_dir}/run"], "start": "at-start"}
    quits = "#!/bin/sh\ntrap 'exit 0' TERM\nsleep 1000 &\necho ready >&3\nwait\n"
    stubborn = "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho ready >&3\nwait\n"
    with Plugins("a", "b", made={"a": (manifest, stubborn), "b": (manifest, quits)}) as s:
        leaders = s.plugin_pids("/plugins/")
        old = [pid for leader in leaders for pid in process.children(leader)]
        equal([len(leaders), len(old)], [2, 2])
        s.upgrade()
        equal([process.wait_gone(pid, PATIENCE) for pid in leaders + old], [True] * 4)
        equal(len([l for l in s.log().split("\n") if "a plugin of the previous handraild" in l]), 1, s.log())
        equal([s.state(n)["state"] for n in "ab"], ["ready"] * 2)


def what_one_requires_is_started_too():
    need_python()
    say = ("#!/bin/sh\n[ -n \"$GREETER_IS_HERE\" ] && [ \"$(cat %s/a)\" = up ] || "
           "{ echo failed out of order >&3; exit; }\necho ready >&3\nexec sleep 1000\n")
    s = Plugins("greeter", "b", "a", start=False)
    with s:
        s.make("a", {"exec": ["${plugin_dir}/run"]},
               "#!/bin/sh\necho up >%s/a\necho ready >&3\nexec sleep 1000\n" % s.work_dir)
        s.make("b", {"exec": ["${plugin_dir}/run"], "requires": ["a"],
                     "http": [{"prefix": "/b"}]}, say % s.work_dir)
        s.start()
        with socket_to(s) as c:
            c.sendall(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
            s.until("both run", lambda: s.state("b")["state"] == "ready")
            equal(s.state("a")["state"], "ready")
            for pid in s.plugin_pids("sleep"):
                os.kill(pid, signal.SIGKILL)


def socket_to(s):
    import socket
    return socket.create_connection(("127.0.0.1", s.port), PATIENCE)


KEYLESS_MAX = 256  # as in src/supervisor/edge/nginxplugins.c


def those_without_a_key_leave_room():
    """Whoever needs no key may hold so many requests, to all such plugins, and no more; the rest go on."""
    import select
    made = {"odd": ({"exec": ["${plugin_dir}/run"], "http": [{"prefix": "/odd", "auth": "none"}]},
                    "#!/bin/sh\necho ready >&3\nexec sleep 1000\n")}
    with Plugins("odd", made=made) as s, contextlib.ExitStack() as stack:
        more, refused = 20, []
        held = [stack.enter_context(socket_to(s)) for _ in range(KEYLESS_MAX + more)]
        for c in held:
            c.sendall(b"GET /odd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while len(refused) < more:
            told, _, _ = select.select(held, [], [], PATIENCE)
            equal(bool(told), True, "%d are refused" % len(refused))
            for c in told:
                held.remove(c)
                refused.append(c.recv(100).split(b" ")[1])
        equal(refused, [b"429"] * more)
        equal(select.select(held, [], [], 0)[0], [], "those that were let in wait")
        equal(s.get("/alive").status, 200)
        equal(s.run("echo here"), "here")
        for pid in s.plugin_pids("sleep"):
            os.kill(pid, signal.SIGKILL)


def a_missing_requirement_is_told():
    made = {"odd": (dict(SHELL, requires=["nobody"]), "#!/bin/sh\n")}
    with Plugins("odd", made=made) as s:
        equal(s.act("odd").json()["detail"], "Internal server error: plugin odd is not available: "
                                             "it requires plugin nobody, which was not named")


def refuses(status, text, names, made):
    s = Plugins(*names, made=made, start=False)
    with s:
        s.start(ready=False)
        equal(s.wait(), status)
        equal(text in s.log(), True, s.log())


def what_is_refused_at_start():
    refuses(1, "Plugin nope not found; there are a, agent-server, agent_skills, ", ["nope"], {"a": ({}, None)})
    refuses(1, "Plugin ../greeter not found", ["../greeter"], {})
    refuses(1, "requires itself, by way of others", ["a", "b"],
            {"a": ({"requires": ["b"]}, None), "b": ({"after": ["a"]}, None)})
    refuses(1, "api: must be 1", ["a"], {"a": ({"api": 2}, None)})
    refuses(1, 'unknown variable in "${nope}"', ["a"], {"a": ({"exec": ["${nope}"]}, None)})
    refuses(1, "must be the directory's name", ["a"], {"a": ({"name": "b"}, None)})


def implied_without_being_named():
    made = {"odd": (dict(SHELL, implied=True), "#!/bin/sh\necho failed here >&3\n")}
    with Plugins(made=made) as s:
        equal(s.state("odd")["state"], "not started")
        equal("here" in s.act("odd").json()["detail"], True)


def a_stream_does_not_hold_up_the_end():
    need_python()
    with Plugins("greeter") as s:
        with socket_to(s) as c:  # kept alive beyond its answer
            c.sendall(b"GET /plugins/greeter/x HTTP/1.1\r\nHost: x\r\n\r\n")
            c.recv(100)
            (pid,) = s.plugin_pids("greeter")
            s.stop()
            equal(process.wait_gone(pid, 0), True, "plugin")


def what_it_prints_is_logged():
    made = {"odd": (SHELL, "#!/bin/sh\necho told you >&2\necho '<3>badly' >&2\nexit 1\n")}
    with Plugins("odd", made=made) as s:
        s.act("odd")
        equal(s.wait_log("odd.*told you") is not None, True)
        equal(s.wait_log("error.*odd.*badly") is not None or
              s.wait_log("odd.*badly") is not None, True)


if __name__ == "__main__":
    sys.exit(run_tests([
        first_use_starts_it, http_starts_it_and_passes_no_key, the_secret_is_nowhere,
        runs_as_the_user, a_killed_plugin_harms_nothing, seen_in_metrics, ends_during_its_action,
        says_why_it_fails, browsing_without_a_browser, a_browser_tells_its_own_error,
        ends_before_it_is_ready, never_ready_is_reported_in_time, what_is_missing_is_named,
        many_are_told_of, a_failure_may_end_the_start, the_start_waits_for_them, an_upgrade_ends_what_they_started,
        what_one_requires_is_started_too,
        those_without_a_key_leave_room, a_missing_requirement_is_told, what_is_refused_at_start,
        implied_without_being_named, a_stream_does_not_hold_up_the_end, what_it_prints_is_logged]))
