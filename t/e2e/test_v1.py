#!/usr/bin/env python3
"""The door for workspaces of OpenHands V1 (doc/agents.md). With its own client: v1_sdk.py, by hand."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from urllib.parse import quote, urlencode

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import (BUILDDIR, PATIENCE, SRCDIR, Server, gate, kill_keeper, kill_together,  # noqa: E402
                            kill_wait, marker, run_tests)
from lib.tap import equal  # noqa: E402

KEY = "a-key-that-nobody-guesses"


class V1(Server):
    def __init__(self, libexec=None, env=None, **settings):
        super().__init__(env=dict({"SESSION_API_KEY": KEY}, **(env or {})), args=["--listen", "127.0.0.1"],
                         libexec=libexec, settings=dict({"openhands_v1": True}, **settings))

    def ask(self, method, path, body=None, type="application/json", key=KEY, **headers):
        h = {"Content-Type": type}
        if key:
            h["X-Session-API-Key"] = key
        h.update({k.replace("_", "-"): v for k, v in headers.items()})
        return self.request(method, path, body, h)

    def begin(self, command, **more):
        headers = more.pop("headers", {})
        return self.ask("POST", "/api/bash/start_bash_command", json.dumps(dict(more, command=command)), **headers)

    def search(self, id, **query):
        query = dict({"kind__eq": "BashOutput", "sort_order": "TIMESTAMP", "limit": 100}, **query)
        if id:
            query["command_id__eq"] = id
        a = self.ask("GET", "/api/bash/bash_events/search?" + urlencode(query))
        equal(a.status, 200, a)
        return a.json()["items"]

    def finish(self, id):
        """(code, stdout, stderr), by polling as the client does it."""
        out, err, seen, last = "", "", set(), {}
        while True:
            for e in self.search(id, **last):
                equal((e["id"] in seen, e["command_id"], e["order"]), (False, id, len(seen)))
                seen.add(e["id"])
                last = {"order__gt": e["order"]}
                out += e["stdout"] or ""
                err += e["stderr"] or ""
                if e["exit_code"] is not None:
                    return e["exit_code"], out, err

    def run(self, command, **more):
        a = self.begin(command, **more)
        equal((a.status, a.json()["kind"], a.json()["command"]), (200, "BashCommand", command), a)
        return self.finish(a.json()["id"])

    def execute(self, command, **more):
        return self.ask("POST", "/api/bash/execute_bash_command", json.dumps(dict(more, command=command)))

    def upload(self, target, data, name="f"):
        body = b'--B\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n' \
               b'Content-Type: application/octet-stream\r\n\r\n' % name.encode() + data + b"\r\n--B--\r\n"
        return self.ask("POST", target, body, "multipart/form-data; boundary=B")

    def shells(self):
        a = self.get("/handrail/v1/sessions", X_Session_API_Key=KEY)
        return [x["name"] for x in a.json()["sessions"] if x["name"] != "default"]


def door():
    with Server(env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"]) as s:  # closed unless asked for
        equal(s.get("/health").status, 403)
        equal(s.get("/health", X_Session_API_Key=KEY).status, 404)
        equal(s.request("POST", "/api/bash/start_bash_command", "{}", {"X-Session-API-Key": KEY}).status, 404)
    with V1() as s:
        equal(s.get("/health").json(), {"status": "ok"})
        for method, path in (("POST", "bash/start_bash_command"), ("GET", "bash/bash_events/search"),
                             ("POST", "file/upload?path=/tmp/x"), ("GET", "file/download?path=/etc/passwd"),
                             ("GET", "git/changes?path=/"), ("GET", "nothing")):
            for key in (None, "wrong"):
                a = s.ask(method, "/api/" + path, "{}" if method == "POST" else None, key=key)
                equal((a.status, a.json()), (401, {"detail": "Unauthorized"}), path)
        equal(s.ask("GET", "/api/nothing").status, 404)
        equal(s.ask("GET", "/api/bash/start_bash_command").status, 405)
        equal(s.begin("id", headers={"Origin": "http://evil.example"}).status, 403)
        for body in ({}, {"command": 1}, {"command": "a", "timeout": "soon"}, [], None):
            equal(s.ask("POST", "/api/bash/start_bash_command", json.dumps(body)).status, 422, body)
        equal(s.run("a\0b"), (-1, "", "Error executing command: embedded null byte"))
        equal(s.shells(), [])
        equal(KEY in s.log(), False)


def commands():
    with V1() as s:
        equal(s.run("echo out; echo err >&2; exit 3"), (3, "out\n", "err\n"))
        equal(s.run("pwd; cat <<'E'\na 'b' \"c\" $d\nE\ntest -t 1 || echo no", cwd="/tmp"),
              (0, "/tmp\na 'b' \"c\" $d\nno\n", ""))
        for directory in ("/nowhere", "none/at all", "it's"):
            equal(s.run("echo not", cwd=directory),
                  (-1, "", "Error executing command: [Errno 2] No such file or directory: %r" % directory))
        os.mkdir(s.work_dir + "/here")
        equal(s.run("pwd", cwd="here"), (0, s.work_dir + "/here\n", ""))
        a = s.begin("trap 'echo ended; exit 3' TERM; sleep 600", timeout=-5)
        equal((a.json()["timeout"], s.finish(a.json()["id"])[0]), (-5, -1), a)
        for text in ("for i in 1 2\r\ndo\r\n  echo $i\r\ndone\r\n", "cat <<E\r\n1\r\n2\r\nE\r\n"):
            equal(s.run(text), (0, "1\n2\n", ""), text)
            a = s.execute(text).json()
            equal((a["exit_code"], a["stdout"]), (0, "1\n2\n"), text)
        equal(s.run("printf %s 'a\rb' | od -An -c | tr -d ' '"), (0, "a\\rb\n", ""), "one that is no line end")
        equal(s.run("read x; echo $?"), (0, "1\n", ""))
        equal(s.run("printf '\\377a'"), (0, "\ufffda", ""))
        # characters of three bytes stand on the borders of the pieces
        equal(s.run("printf '\u20ac%.0s' $(seq 700000); printf 'ab\u20ac%.0s' $(seq 500000) >&2"),
              (0, "\u20ac" * 700000, "ab\u20ac" * 500000))
        equal(s.run("echo begun; sleep 600", timeout=1), (-1, "begun\n", ""))
        equal(s.run("trap '' TERM; echo deaf; while :; do sleep 600; done", timeout=1), (-1, "deaf\n", ""))
        for _ in range(10):  # a SIGTERM that is not the limit's leaves the exit code
            equal(s.execute("kill 0").json()["exit_code"], -15)
            equal(s.execute("trap 'exit 3' TERM; kill 0; sleep 600").json()["exit_code"], 3)
        a = s.execute("echo out; echo err >&2; exit 124").json()
        equal((a["exit_code"], a["stdout"], a["stderr"], a["kind"]), (124, "out\n", "err\n", "BashOutput"))
        a = s.execute("head -c 17000000 /dev/zero")
        equal((a.status, "16 MiB" in a.json()["detail"]), (500, True))
        equal(s.shells(), [])


def room():
    """Commands that have ended make room for others, the first ones first; one that runs is never ended."""
    with V1() as s:
        ids = []
        for i in range(65):
            ids.append(s.begin("echo %d" % i).json()["id"])
            equal(s.finish(ids[-1]), (0, "%d\n" % i, ""))
        equal([e["command"] for e in s.search(None, kind__eq="BashCommand")], ["echo %d" % i for i in range(1, 65)])
        equal(s.search(ids[0]), [])
        for _ in range(9):
            equal(s.execute("truncate -s 60M /proc/self/fd/1").status, 500)
        equal(s.run("echo last"), (0, "last\n", ""))
        equal([e["command"][:8] for e in s.search(None, kind__eq="BashCommand")], ["truncate"] * 8 + ["echo las"])
        waiting = [s.begin("sleep 600") for _ in range(16)]
        equal([a.status for a in waiting], [200] * 16)
        a = s.begin("echo none")
        equal((a.status, "too many commands" in a.json()["detail"], "Retry-After" in a.headers), (503, True, True), a)
        for a in waiting:
            equal(s.ask("POST", "/api/bash/bash_commands/%s/stop" % a.json()["id"]).json(), {"success": True})
        for a in waiting:
            equal(s.finish(a.json()["id"]), (-15, "", ""))
        equal(s.search(None, sort_order="TIMESTAMP_DESC", limit=1)[0]["exit_code"], -15)
        for id, status in (("00000000-0000-4000-8000-000000000000", 404), ("a/b", 404), ("x", 422), (ids[0], 404)):
            equal(s.ask("POST", "/api/bash/bash_commands/%s/stop" % id).status, status, id)


def beside_the_shell():
    """execute_bash_command is a process of its own: no shell is made for it, and none is needed."""
    with V1(named_sessions_max=0) as s:
        def done(command, **more):
            a = s.execute(command, **more)
            equal(a.status, 200, a)
            return tuple(a.json()[x] for x in ("exit_code", "stdout", "stderr"))
        path = s.work_dir + "/gate"
        os.mkfifo(path)
        os.chmod(path, 0o666)
        answers = []
        threads = [threading.Thread(target=lambda n=n: answers.append(done("cat %s; echo %d" % (path, n))))
                   for n in range(3)]
        for t in threads:
            t.start()
        s.until("all three read it", lambda: len([p for p in process.all_pids()
                                                  if process.command_line(p) == "cat " + path]) == 3)
        equal(s.shells(), [])
        with open(path, "w"):
            for t in threads:
                equal(t.is_alive(), True)
        for t in threads:
            t.join(PATIENCE)
        equal(sorted(answers), [(0, "%d\n" % n, None) for n in range(3)])
        equal(done("pwd; test -t 0 || echo none; read x; echo $?"), (0, s.work_dir + "\nnone\n1\n", None))
        equal(done("pwd", cwd="/usr"), (0, "/usr\n", None))
        code, out, err = done("echo not", cwd="/nowhere")
        equal((code, out, "/nowhere" in err), (-1, None, True), err)
        equal(done("kill -9 $$")[0], -9)
        equal(done("kill -HUP $$")[0], -1)
        equal(done("echo $LINENO ${!__h*}\necho $LINENO; exit 3 #" + "x" * 200000), (3, "1\n2\n", None))
        equal(done("trap 'wc -c' EXIT #" + "x" * 200000), (0, "0\n", None))
        equal(done("printf '\\377a'; printf '\\303' >&2"), (0, "\ufffda", "\ufffd"))
        code, out, err = done("seq 200000; seq 200000 >&2")
        equal((code, out == err, out), (0, True, "".join("%d\n" % i for i in range(1, 200001))))
        # what it leaves in the background holds up nothing, and lives on
        code, out, err = done("sleep 600 & echo $!")
        equal(code, 0)
        s.until("the shell's copy has become the program", lambda: process.command_line(int(out)) == "sleep 600")
        done("kill " + out)
        equal(s.run("yes & exit 3")[0], 3, "what prints on")
        # neither that it stops its parent holds it up
        code, out, err = done("echo begun; kill -STOP $PPID; sleep 600", timeout=1)
        equal((code, out), (-1, "begun\n"))
        # small pieces without end leave the keeper to others
        path = s.work_dir + "/endless"
        endless = threading.Thread(target=s.execute, args=("echo $$ >%s; while :; do echo; done" % path,))
        endless.start()
        s.until("it prints", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        equal(done("echo meanwhile; kill -9 $(cat %s)" % path), (0, "meanwhile\n", None))
        endless.join(PATIENCE)
        # a time-out, and too much, end it with what it has started
        for limit, command in ((1, "echo $$ >%s; sleep 600; :"), (300, "echo $$ >%s; yes; :")):
            a = s.execute(command % (s.work_dir + "/pid"), timeout=limit)
            equal((a.status, a.json().get("exit_code")), (200, -1) if limit == 1 else (500, None), a)
            with open(s.work_dir + "/pid") as f:
                equal(process.wait_gone(int(f.read()), PATIENCE), True, command)
        # the shell that all share knows nothing of it
        body = json.dumps({"action": {"action": "run", "args": {"command": "echo [$!]; jobs; wait; echo $?"}}})
        equal(s.ask("POST", "/execute_action", body).json()["content"], "[]\n0")


def not_started():
    """A command that was not run may be sent again, and leaves no event."""
    with V1() as s:
        keeper = s.keeper()[0]
        used = {int(fd) for fd in os.listdir("/proc/%d/fd" % keeper)}
        was = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
        # for the connection, a timer, and a half of the first pipe
        free = sorted(set(range(max(used) + 5)) - used)[:3]
        resource.prlimit(keeper, resource.RLIMIT_NOFILE, (free[-1] + 1, was[1]))
        a = s.execute("echo x >%s/ran" % s.work_dir)
        equal((a.status, "was not run" in a.json()["detail"], "Retry-After" in a.headers), (503, True, True), a)
        equal(os.path.exists(s.work_dir + "/ran"), False)
        resource.prlimit(keeper, resource.RLIMIT_NOFILE, was)
        equal(s.execute("echo x").json()["stdout"], "x\n")
        equal([e["command"] for e in s.search(None, kind__eq="BashCommand")], ["echo x"])
        # a keeper that does not answer in time starts nothing later
        os.kill(keeper, signal.SIGSTOP)
        a = s.begin("echo >%s/ran" % s.work_dir)
        os.kill(keeper, signal.SIGCONT)
        equal((a.status, "Retry-After" in a.headers), (503, True), a)
        equal(s.run("echo y"), (0, "y\n", ""))
        equal(os.path.exists(s.work_dir + "/ran"), False)


def output_is_bounded():
    """What prints without end is killed at 64 MiB; to this it keeps what it printed, and says why it ended."""
    most, said = 64 << 20, "\nhandrail: the command was ended: its output has more than 64 MiB\n"
    with V1() as s:
        for command, out, err in (("echo kept >&2; yes", most, "kept\n" + said),
                                  ("trap '' TERM HUP; (while :; do yes; done) & wait", most, said),
                                  ("yes >&2", 0, "y\n" * (most // 2) + said)):
            got = s.run(command)
            equal((got[0], len(got[1]), got[1] == "y\n" * (out // 2), got[2] == err), (-9, out, True, True),
                  (command, got[2][-200:]))
        got = s.run("head -c %d /dev/zero | tr '\\0' a" % most)
        equal((got[0], len(got[1]), got[2]), (0, most, ""))
        # so is what a command has left behind, which holds the FIFO until it is killed
        path = s.work_dir + "/held"
        os.mkfifo(path)
        os.chmod(path, 0o666)
        id = s.begin("(exec 7>%s; yes) & echo begun" % path).json()["id"]
        with open(path) as f:
            equal(f.read(), "")
        equal(s.finish(id)[0], 0)
        equal(s.search(id, sort_order="TIMESTAMP_DESC", limit=1)[0]["stderr"], said)


def minders(s):
    def is_one(pid):
        try:
            return (process.command_line(pid).startswith(BUILDDIR + "/handrail-bound ")
                    and os.readlink("/proc/%d/fd/1" % pid).startswith(s.run_dir))
        except FileNotFoundError:
            return False  # it ended meanwhile
    return [pid for pid in process.all_pids() if is_one(pid)]


def stopped_among_lost_events():
    """A command that writes more events than its minder's queue holds hides no stop."""
    with open("/proc/sys/fs/inotify/max_queued_events") as f:
        most = int(f.read())
    with V1() as s:
        (began, wait), (wrote, wait_for_all) = marker(s, "began"), marker(s, "wrote")
        stop, open_gate = gate(s, "gate")
        id = s.begin("%s; %s; for ((i = 0; i < %d; i++)); do echo a; echo b >&2; done; %s; sleep 1000"
                     % (began, stop, most, wrote)).json()["id"]
        wait()
        minder, = minders(s)
        os.kill(minder, signal.SIGSTOP)
        open_gate()
        wait_for_all()
        equal(s.ask("POST", "/api/bash/bash_commands/%s/stop" % id).json(), {"success": True})
        os.kill(minder, signal.SIGCONT)
        equal(s.finish(id), (-15, "a\n" * most, "b\n" * most))


def run_together(s):
    """Two commands that run, begun by both routes: (paths of their gates, function that gives their results)."""
    answers, opens = [], []
    for name in ("start", "execute"):
        began, wait = marker(s, name)
        stop, open_gate = gate(s, name + "-gate")
        command = "echo %s; echo x >>%s/count-%s; %s; %s; echo err >&2; exit 5" % (name, s.work_dir, name, began, stop)
        if name == "start":
            id = s.begin(command).json()["id"]
        else:
            thread = threading.Thread(target=lambda: answers.append(s.execute(command)))
            thread.start()
        wait()
        opens.append(open_gate)

    def results():
        for open_gate in opens:
            open_gate()
        equal(s.finish(id), (5, "start\n", "err\n"))
        thread.join(PATIENCE)
        done = {e["command_id"]: e["exit_code"] for e in s.search(None)}
        equal((sorted(done.values()), id in done), ([5, 5], True))
        for name in ("start", "execute"):
            with open("%s/count-%s" % (s.work_dir, name)) as f:
                equal(f.read(), "x\n", "nothing is doubled")
        s.until("nothing is left of them", lambda: minders(s) == [])
        return answers

    return results


def its_keeper_dies():
    with V1() as s:
        results = run_together(s)
        for _ in range(2):
            kill_keeper(s)
        a, = results()
        equal((a.status, [a.json()[x] for x in ("exit_code", "stdout", "stderr")]), (200, [5, "execute\n", "err\n"]), a)


def handraild_is_replaced():
    """An upgrade and a killed handraild end no command, and the next one knows those that have ended."""
    with V1() as s:
        equal(s.run("echo before"), (0, "before\n", ""))
        for n, replace in enumerate((s.upgrade, s.kill_and_start)):
            began, wait = marker(s, "began%d" % n)
            stop, open_gate = gate(s, "gate%d" % n)
            id = s.begin("echo one; %s; %s; echo two" % (began, stop)).json()["id"]
            wait()
            replace()
            open_gate()
            equal(s.finish(id), (0, "one\ntwo\n", ""))
            equal(len(s.search(None)), 2 + n)
        s.stop()
        s.start()
        equal(s.search(None), [], "a restart drops them")


def workers_die():
    """The next worker waits for the command that a killed one waited for."""
    with V1() as s:
        results = run_together(s)
        kill_together(s.workers("action"))
        a, = results()
        equal((a.status, [a.json()[x] for x in ("exit_code", "stdout", "stderr")]), (200, [5, "execute\n", "err\n"]), a)


def its_minder_dies():
    """A command ends with its minder, and its end stays the same."""
    with V1() as s:
        began, wait = marker(s)
        path = s.work_dir + "/pid"
        id = s.begin("echo $$ >%s; echo out; %s; sleep 600; :" % (path, began)).json()["id"]
        wait()
        for pid in minders(s):
            kill_wait(pid)
        equal(s.finish(id), (-1, "out\n", ""))
        equal([e["timestamp"] for e in s.search(id)], [e["timestamp"] for e in s.search(id)])
        with open(path) as f:
            equal(process.wait_gone(int(f.read()), PATIENCE), True)


def left_behind():
    """What a command leaves in the background lives on, and ends with its result or with the server."""
    with V1() as s:
        def leave(name):
            began, wait = marker(s, name)
            pid = "%s/%s-pid" % (s.work_dir, name)
            command = "setsid sh -c 'trap \"\" TERM HUP; echo $$ >%s; %s; sleep 600; :' & exit 4" % (pid, began)
            equal(s.run(command), (4, "", ""))
            wait()
            with open(pid) as f:
                return int(f.read())
        first = leave("first")
        equal(process.has_ended(first), False)
        equal(s.ask("DELETE", "/api/bash/bash_events").json(), {"cleared_count": 2})
        equal(process.wait_gone(first, PATIENCE), True)
        stopped = leave("stopped")
        id = s.search(None, kind__eq="BashCommand")[0]["id"]
        for _ in range(2):
            a = s.ask("POST", "/api/bash/bash_commands/%s/stop" % id)
            equal((a.status, a.json()), (200, {"success": True}), a)
            equal(process.wait_gone(stopped, PATIENCE), True)
        second = leave("second")
        s.stop()
        equal(process.has_ended(second), True)


def once():
    """A request that is sent again under its name begins nothing; workers may die meanwhile."""
    with V1() as s:
        path = s.work_dir + "/count"
        began, wait = marker(s)
        command = "echo x >>%s; %s; sleep 600" % (path, began)
        first = s.begin(command, headers={"X_Request_ID": "one"})
        wait()
        again = s.begin(command, headers={"X_Request_ID": "one"})
        equal(again.json()["id"], first.json()["id"])
        equal(len(s.search(None, kind__eq="BashCommand")), 1)
        kill_together(s.workers("action") + s.workers("files"))
        stop = "/api/bash/bash_commands/%s/stop" % first.json()["id"]
        s.until("there are workers again", lambda: s.ask("POST", stop).status == 200)
        s.until("there are workers again", lambda: s.ask("GET", "/api/file/download").status == 422)
        equal(s.finish(first.json()["id"]), (-15, "", ""))
        with open(path) as f:
            equal(f.read(), "x\n")


def pages():
    """From page to page by next_page_id, in both directions: every event once."""
    with V1() as s:
        id = s.begin("head -c %d /dev/zero | tr '\\0' a; echo err >&2; exit 5" % (10 << 20)).json()["id"]
        equal(s.finish(id)[0], 5)
        for order in ("TIMESTAMP", "TIMESTAMP_DESC"):
            seen, page, text = [], "", ""
            while page is not None:
                query = {"kind__eq": "BashOutput", "command_id__eq": id, "sort_order": order, "limit": 3}
                if page:
                    query["page_id"] = page
                a = s.ask("GET", "/api/bash/bash_events/search?" + urlencode(query)).json()
                equal(page in ("", a["items"][0]["id"]), True, a["next_page_id"])
                seen += [e["order"] for e in a["items"]]
                text += "".join(e["stdout"] for e in a["items"])
                page = a["next_page_id"]
            equal(seen, list(range(10)) if order == "TIMESTAMP" else list(range(9, -1, -1)))
            equal(text == "a" * (10 << 20), True, len(text))
        a = s.ask("GET", "/api/bash/bash_events/search?page_id=%s0003" % id[:-4]).json()
        equal([e["order"] for e in a["items"]], [2, 3, 4, 5, 6, 7, 8, 9], "the command of the page")
        other = "00000000-0000-4000-8000-000000000001"
        for page in ("x", id, other, id[:-4] + "zzzz"):  # the first page, as in the original
            query = {"command_id__eq": id, "page_id": page, "limit": 2}
            a = s.ask("GET", "/api/bash/bash_events/search?" + urlencode(query)).json()
            equal([e["order"] for e in a["items"]], [0, 1], (page, a))
        a = s.ask("GET", "/api/bash/bash_events/search?kind__eq=BashOutput&order__gt=%d" % (2**63 - 1)).json()
        equal(a, {"items": [], "next_page_id": None})


def files():
    with V1() as s:
        data, there = bytes(range(256)) * 5000, s.work_dir + "/new/p\u00e4th & +more.zip"
        for target in ("/api/file/upload?" + urlencode({"path": there}), "/api/file/upload/" + quote(there + "2")):
            a = s.upload(target, data, "other")
            equal((a.status, a.json()), (200, {"success": True, "file_size": len(data)}), a)
        for target in ("download?" + urlencode({"path": there}), "download/" + quote(there + "2")):
            a = s.ask("GET", "/api/file/" + target)
            equal((a.status, a.body == data), (200, True), target)
        for path, status in ((s.work_dir + "/none", 404), (s.work_dir, 400), ("relative", 400), ("/a\0b", 404)):
            equal(s.ask("GET", "/api/file/download?" + urlencode({"path": path})).status, status, path)
        equal(s.ask("GET", "/api/file/download").status, 422)
        equal(s.upload("/api/file/upload?path=relative", b"x").status, 400)
        equal(s.upload("/api/file/upload?path=%s/" % s.work_dir, b"x").status, 400)
        equal(s.ask("POST", "/api/file/upload?path=/tmp/x", "x", "text/plain").status, 422)


def git():
    with V1() as s:
        repo = s.work_dir + "/repo"  # the shell's history stands above it
        os.mkdir(repo)
        equal(s.ask("GET", "/api/git/changes?path=" + repo).json(), [])
        subprocess.run("git init -q . && echo a >f && git add f && "
                       "git -c user.name=a -c user.email=a@b commit -qm a && "
                       "echo b >>f && chown -R --reference=.. .", shell=True, cwd=repo, check=True)
        equal(s.ask("GET", "/api/git/changes?path=" + repo).json(), [{"status": "UPDATED", "path": "f"}])
        for target in ("diff?path=%s/f" % repo, "diff/%s/f" % repo):
            equal(s.ask("GET", "/api/git/" + target).json(), {"modified": "a\nb", "original": "a"})
        equal(s.ask("GET", "/api/git/diff?path=%s/none" % repo).status, 400)
        with open(s.work_dir + "/outside", "w") as f:
            f.write("x\n")
        for query in ("", "&ref=HEAD", "&commit=beef"):
            equal(s.ask("GET", "/api/git/diff?path=%s/outside%s" % (s.work_dir, query)).json(),
                  {"modified": None, "original": None}, query)
        equal(s.ask("GET", "/api/git/changes?ref=HEAD&path=" + repo).json(),
              [{"status": "UPDATED", "path": "f"}])
        equal(s.ask("GET", "/api/git/diff?ref=HEAD&path=%s/f" % repo).json(),
              {"modified": "a\nb", "original": "a"})
        os.unlink(repo + "/f")
        sha = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, stdout=subprocess.PIPE, check=True,
                             env=dict(os.environ, GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory",
                                      GIT_CONFIG_VALUE_0="*")).stdout.decode().strip()
        equal(s.ask("GET", "/api/git/diff?commit=%s&path=%s/f" % (sha, repo)).json(),
              {"modified": "a", "original": ""})
        for query, status in (("ref=none", 400), ("ref=-x", 400), ("ref=", 400), ("ref=HEAD&commit=" + sha, 400),
                              ("commit=beefbeef", 400), ("commit=HEAD", 422), ("commit=%s%%00" % sha, 422)):
            a = s.ask("GET", "/api/git/diff?%s&path=%s/f" % (query, repo))
            equal(a.status, status, (query, a))
        equal(s.ask("GET", "/api/git/changes?ref=none&path=" + repo).status, 400)
        equal(s.shells(), [])


WORDS = {"A": "ADDED", "D": "DELETED", "M": "UPDATED"}
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git_recorded():
    """What the original (1.58.2) answers for many states of a repository."""
    with open(os.path.join(SRCDIR, "t", "corpus", "v1", "git.jsonl")) as f:
        cases = [json.loads(line) for line in f]
    env = dict(os.environ, **IDENTITY)
    with V1() as s:
        asked = []
        for c in cases:
            if "script" in c:
                top = os.path.join(s.work_dir, c["state"])
                os.mkdir(top)
                subprocess.run(["bash", "-ec", c["script"]], cwd=top, env=env, check=True, stdout=subprocess.DEVNULL)
            directory = os.path.join(top, "r")
            path = os.path.join(directory, c["path"])
            argv = [os.path.join(BUILDDIR, "handrail-git"), "v1-" + c["ask"]]
            argv += ["--ref", c["query"][4:]] if c["query"] else []
            argv += [path] if c["ask"] == "diff" else []
            p = subprocess.run(argv, cwd=directory, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            got = json.loads(p.stdout) if p.returncode == 0 else None
            if got is not None and c["ask"] == "changes":
                got = [{"status": WORDS[x["status"]], "path": x["path"]} for x in got]
            equal((p.returncode == 0, got), (c["status"] == 200, c.get("answer")), c)
            if (c["ask"], c["query"]) == ("changes", "") or c["state"] in ("deleted", "no_repository"):
                asked.append((c, path.rstrip("/")))
        subprocess.run("chown -R --reference=. .", shell=True, cwd=s.work_dir, check=True)
        for c, path in asked:
            query = "&" + c["query"] if c["query"] else ""
            a = s.ask("GET", "/api/git/%s?path=%s%s" % (c["ask"], quote(path), query))
            equal((a.status, a.json() if a.status == 200 else None), (c["status"], c.get("answer")), c)
        equal(len(asked) > 30, True)


def events_are_cleared():
    """DELETE drops the results of commands that have ended, and counts what the original counts."""
    with V1() as s:
        clear = "/api/bash/bash_events"
        equal(s.ask("DELETE", clear).json(), {"cleared_count": 0})
        equal(s.run("echo a"), (0, "a\n", ""))
        id = s.begin("sleep 600").json()["id"]
        equal(s.ask("DELETE", clear).json(), {"cleared_count": 2})
        equal(s.search(None), [])
        equal(s.ask("DELETE", clear).json(), {"cleared_count": 0}, "what runs stays")
        equal(s.ask("POST", "/api/bash/bash_commands/%s/stop" % id).json(), {"success": True})
        equal(s.ask("PUT", clear).status, 405)
        equal(s.ask("DELETE", clear, key="wrong").status, 401)


if __name__ == "__main__":
    sys.exit(run_tests([door, commands, room, beside_the_shell, not_started, output_is_bounded, its_keeper_dies,
                        handraild_is_replaced, workers_die, its_minder_dies, stopped_among_lost_events, left_behind,
                        once, pages, files, git, git_recorded, events_are_cleared]))
