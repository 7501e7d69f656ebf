#!/usr/bin/env python3
"""At most once: what a repeated request gets, whatever died in between, and what the journal keeps."""

import concurrent.futures
import fcntl
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.forms import BOUNDARY, archive, part, upload  # noqa: E402
from lib.supervised import (  # noqa: E402
    ONE_WORKER_EACH, PATIENCE, Server, gate, has_given_up_rights, kill_keeper, kill_keeper_and_shell, kill_together,
    kill_wait, marker, need, need_root, run_tests)
from lib.tap import Skip, equal  # noqa: E402
from test_plugins import EXAMPLES, Plugins, need_python  # noqa: E402

REPLAYED = "Idempotent-Replayed"


def times(s, name="count"):
    try:
        with open(os.path.join(s.work_dir, name)) as f:
            return f.read().count("x\n")
    except FileNotFoundError:
        return 0


def keys(s):
    """Of the files of the journal."""
    top, found = os.path.join(s.run_dir, "journal"), []
    for name in os.listdir(top):
        try:
            with open(os.path.join(top, name), "rb") as f:
                head = f.read(32)
                found.append(f.read(int.from_bytes(head[12:16], sys.byteorder)))
        except FileNotFoundError:
            pass  # it was dropped meanwhile
    return found


def entries(s):
    """Those that are kept: where the client gave no name, the next action takes their place."""
    return len([k for k in keys(s) if not k.startswith(b"n:")])


def named(name):
    return {"X-Request-ID": name}


def held(s, extra="", **kw):
    """A command that has begun and waits: (the request under way, function that lets it go on)."""
    began, wait = marker(s)
    hold, go = gate(s)
    b = s.in_background("echo x >>count; %s; %s; %secho result" % (began, hold, extra), **kw)
    wait()
    return b, go


def again(s, b):
    """The very request of b once more."""
    return s.in_background(*b.args, **b.kw)


# ---- names ----

def repeated():
    with Server() as s:
        for header in ("X-Request-ID", "Idempotency-Key"):
            before = times(s)
            first = s.action("echo x >>count; echo $RANDOM$RANDOM", headers={header: "one"})
            second = s.action("echo x >>count; echo $RANDOM$RANDOM", headers={header: "one"})
            equal((first.status, REPLAYED in first.headers), (200, False))
            equal((second.status, second.headers.get(REPLAYED)), (200, "true"))
            equal(second.body, first.body, header)
            equal(second.headers["Content-Type"], first.headers["Content-Type"])
            equal(times(s), before + 1, header)
        # the same name for something else is something else
        equal(s.run("echo x >>count; echo other", headers=named("one")), "other")
        equal(times(s), 3)
        # X-Request-ID comes first
        both = dict(named("two"), **{"Idempotency-Key": "one"})
        equal(s.run("echo x >>count; echo other", headers=both), "other")
        equal(times(s), 4)


def event():
    def send(s, **more):
        body = {"action": dict({"action": "run", "args": {"command": "echo x >>count; echo $RANDOM"}}, **more)}
        return s.request("POST", "/execute_action", json.dumps(body), {"Content-Type": "application/json"})
    with Server() as s:
        first = send(s, id=7, timestamp="2026-01-01T00:00:00")
        equal(send(s, id=7, timestamp="2026-01-01T00:00:00").body, first.body)
        equal(times(s), 1)
        send(s, id=8, timestamp="2026-01-01T00:00:00")
        send(s, id=7, timestamp="2026-01-01T00:00:01")
        equal(times(s), 3)
        send(s, id=7)
        send(s, id=7)
        equal(times(s), 5, "an id alone is no name")


def nameless():
    """Two equal requests are two actions, and leave nothing behind."""
    for alone in (True, False):
        with Server(settings={"action_workers": 1, "action_workers_max": 1} if alone else {}) as s:
            for _ in range(10):
                s.run("echo x >>count")
            equal(times(s), 10)
            equal(len(s.run("seq 2000").split()), 2000)
            equal(entries(s), 0)
            # a client that closes its connection with the answer in hand, and sends the same at once
            for _ in range(500):
                with s.connect() as c:
                    body = json.dumps({"action": {"action": "run", "args": {"command": "echo x >>count"}}}).encode()
                    c.sendall(b"POST /execute_action HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                              b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                    answer = c.recv(65536)
                    while b"\r\n\r\n" not in answer or answer.split(b"\r\n\r\n", 1)[1].count(b"}") < 2:
                        more = c.recv(65536)
                        if not more:
                            break
                        answer += more
                equal(answer[:12], b"HTTP/1.1 200")
            equal(times(s), 510)
            # each worker keeps one file for its next action
            equal(0 < len(keys(s)) <= s.pool("action")["workers"], True)


def nameless_worker_dies():
    """nginx asks the next one, which waits for what the first began, or does what that did not begin."""
    with Server(settings={"action_workers": 2, "action_workers_max": 2}) as s:
        for more, result in (("", ["result"]), ("seq 2000; ", [str(n + 1) for n in range(2000)] + ["result"])):
            before = times(s)
            b, go = held(s, more)
            behind = s.in_background("echo x >>behind; echo behind")
            s.until("it waits", lambda: s.pool("action")["busy"] == 2)
            kill_together(s.workers("action"))
            go()
            equal(b.content().split(), result)
            equal(behind.content(), "behind")
            equal(times(s), before + 1)
        equal(times(s, "behind"), 2)


class Nameless:
    """A request without a name on a connection of its own: other ones of the same text are the same bytes."""

    def __init__(self, s, command):
        body = json.dumps({"action": {"action": "run", "args": {"command": command}}}).encode()
        self.socket = s.connect()
        self.socket.sendall(b"POST /execute_action HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def answer(self):
        """(content, whether it is that of another request)"""
        a = http.client.HTTPResponse(self.socket)
        a.begin()
        with self.socket, a:
            return json.load(a).get("content"), REPLAYED in a.headers


def seems_to_stand():
    """An equal request waits while the first one's client seems to be there, and is joined to it if that has left by
    the end: the kernel may close the connections of a killed process late."""
    with Server() as s:
        for name in ("began", "gate"):
            os.mkfifo(os.path.join(s.work_dir, name))
        command = "echo x >>count; echo >began; cat gate; echo result"

        def wait():
            with open(os.path.join(s.work_dir, "began")) as f:
                f.read()

        def go():
            with open(os.path.join(s.work_dir, "gate"), "w"):
                pass

        def two():
            first = Nameless(s, command)
            wait()
            second = Nameless(s, command)
            s.until("it waits", lambda: len(waiting(s, "action")) == 1)
            return first, second

        first, second = two()
        first.socket.close()
        go()
        equal(second.answer(), ("result", True), "the first one's client had left")
        equal(times(s), 1)

        first, second = two()
        go()
        equal(first.answer(), ("result", False))
        wait()
        go()
        equal(second.answer(), ("result", False), "an action of its own")
        equal(times(s), 3)

        first, second = two()
        second.socket.close()
        go()
        equal(first.answer(), ("result", False))
        s.until("the second one is over", lambda: s.pool("action")["busy"] == 0)
        equal(times(s), 4, "nothing is done for a client that left while it waited")

        first, second = two()
        kill_together(waited_for(s, "action"))
        go()
        equal(first.answer(), ("result", False))
        wait()
        go()
        equal(second.answer(), ("result", False))
        equal(times(s), 6)


def nameless_everything_dies():
    with Server(settings={"action_workers": 1, "action_workers_max": 1}) as s:
        b, _ = held(s)
        worker = s.workers("action")[0]
        os.kill(worker, signal.SIGSTOP)  # it must not see the keeper's end
        kill_keeper_and_shell(s)
        kill_wait(worker)
        b.join(PATIENCE)
        equal(b.answer.status, 500)
        equal("not run a second time" in b.answer.json()["detail"], True, b.answer)
        equal(times(s), 1)
        s.until("a shell is there again", lambda: s.action("true").status == 200)
        equal(s.run("echo next"), "next")


def nameless_after_a_killed_server():
    """The keeper that outlived it and the new workers have the same journal."""
    with Server() as s:
        for n in range(2):
            b, go = held(s)
            kill_wait(s.pid)
            s.wait()
            go()
            equal(b.content(), "result")
            s.start()
            equal(s.run("echo x >>count; echo again"), "again")
            equal(times(s), 2 * (n + 1))


def errors_are_answers_too():
    with Server() as s:
        body = json.dumps({"action": {"action": "run", "args": {"command": 5}}})
        head = dict(named("e"), **{"Content-Type": "application/json"})
        first = s.request("POST", "/execute_action", body, head)
        second = s.request("POST", "/execute_action", body, head)
        equal(first.json()["observation"], "error")
        equal((second.body, second.headers.get(REPLAYED)), (first.body, "true"))


# ---- meanwhile ----

def waits_for_the_first():
    with Server() as s:
        b, go = held(s, headers=named("w"))
        others = [again(s, b) for _ in range(3)]
        s.until("they wait", lambda: s.pool("action")["busy"] == 4)
        go()
        answers = [x.content() for x in [b] + others]
        equal(answers, ["result"] * 4)
        equal(times(s), 1)


def client_left():
    """A client that goes and comes again finds its command, or its result."""
    with Server() as s:
        began, wait = marker(s)
        hold, go = gate(s)
        body = json.dumps({"action": {"action": "run", "args": {
            "command": "echo x >>count; %s; %s; echo result" % (began, hold)}}})
        head = dict(named("c"), **{"Content-Type": "application/json"})
        c = s.connection()
        c.request("POST", "/execute_action", body, head)
        wait()
        c.close()
        go()
        for _ in range(2):
            equal(s.request("POST", "/execute_action", body, head).json()["content"], "result")
        equal(times(s), 1)


# ---- deaths ----

def worker_dies():
    with Server(settings={"action_workers": 1}) as s:
        workers = s.workers("action")
        b, go = held(s, headers=named("d"))
        kill_together(workers)
        go()
        equal(b.content(), "result")
        a = s.action(*b.args, **b.kw)
        equal((a.json()["content"], a.headers.get(REPLAYED)), ("result", "true"))
        equal(times(s), 1)


def all_workers_die_twice():
    """Both tries of nginx are killed: 503, and the next request gets the result."""
    with Server(settings={"action_workers": 1, "action_workers_max": 2}) as s:
        b, go = held(s, headers=named("t"))
        while b.is_alive():
            # one that is killed before it has the request is no try of nginx: that goes on waiting
            s.until("a worker has it", lambda: s.pool("action")["busy"] > 0 or not b.is_alive())
            kill_together(s.workers("action"))
        equal(b.error, None)
        equal((b.answer.status, b.answer.headers["Retry-After"]), (503, "1"))
        equal(b.answer.json(), {"detail": "Service Unavailable"})
        c = again(s, b)
        go()
        equal(c.content(), "result")
        equal(times(s), 1)


def nginx_dies():
    with Server() as s:
        b, go = held(s, headers=named("n"))
        master = s.pids("nginx")[0]
        for pid in process.children(master) + [master]:
            kill_wait(pid)
        b.join(PATIENCE)
        equal(b.error is not None, True, "its connection was cut")
        s.until("it answers again", lambda: not s.refused())
        c = again(s, b)
        go()
        equal(c.content(), "result")
        equal(times(s), 1)


def supervisor_dies():
    with Server() as s:
        b, go = held(s, headers=named("s"))
        kill_wait(s.pid)
        s.wait()
        go()
        equal(b.content(), "result")
        s.start()
        a = s.action(*b.args, **b.kw)
        equal((a.json()["content"], a.headers.get(REPLAYED)), ("result", "true"))
        equal(times(s), 1)


def keeper_dies():
    """The next one goes on with the shell: whoever asked gets the answer, or who asks again."""
    with Server(settings={"action_workers": 2, "action_workers_max": 4}) as s:
        b, go = held(s, headers=named("k"))
        waiting = s.in_background("echo x >>behind; echo behind", headers=named("k2"))
        s.until("it waits", lambda: s.pool("action")["busy"] == 2)
        kill_keeper(s)
        second = again(s, b)
        kill_together(s.workers("action"))
        kill_keeper(s)
        go()
        equal((b.content(), second.content(), waiting.content()), ("result", "result", "behind"))
        equal((times(s), times(s, "behind")), (1, 1))


def keeper_and_shell_die():
    """What had begun is told so; what waited behind it runs in the next shell."""
    with Server() as s:
        b, _ = held(s, headers=named("k"))
        waiting = s.in_background("echo x >>behind; echo behind", headers=named("k2"))
        s.until("it waits", lambda: s.pool("action")["busy"] == 2)
        kill_keeper_and_shell(s)
        b.join(PATIENCE)
        equal((b.answer.status, b.answer.json()["observation"]), (200, "error"))
        equal(waiting.content(), "behind")
        equal(times(s, "behind"), 1)
        a = s.action(*b.args, **b.kw)
        equal((a.body, a.headers.get(REPLAYED)), (b.answer.body, "true"))
        equal(times(s), 1)


def everything_dies():
    """Keeper, shell and worker, so that nobody knows: the answer says so, and nothing is repeated."""
    with Server(settings={"action_workers": 1, "action_workers_max": 1}) as s:
        b, _ = held(s, headers=named("a"))
        worker = s.workers("action")[0]
        os.kill(worker, signal.SIGSTOP)  # it must not see the keeper's end
        kill_keeper_and_shell(s)
        kill_wait(worker)
        b.join(PATIENCE)
        equal(b.answer.status, 500)
        equal("not run a second time" in b.answer.json()["detail"], True, b.answer)
        equal(s.action(*b.args, **b.kw).body, b.answer.body)
        equal(times(s), 1)


def static_session():
    with Server(settings={"action_workers": 1}) as s:
        workers = s.workers("action")
        b, go = held(s, headers=named("z"), is_static=True)
        kill_together(workers)
        go()
        b.join(PATIENCE)
        equal(b.answer.status, 500)
        equal("not run a second time" in b.answer.json()["detail"], True, b.answer)
        equal(times(s), 1)


# ---- files ----

def act(s, kind, headers, **args):
    return s.request("POST", "/execute_action", json.dumps({"action": {"action": kind, "args": args}}),
                     dict({"Content-Type": "application/json"}, **headers))


def contents(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def locks():
    """[(number, whether it is waited for, process)]: who waits has the number of who has it."""
    with open("/proc/locks") as f:
        lines = [line.replace("-> ", "", 1).split() + ["-> " in line] for line in f]
    return [(line[0], line[-1], int(line[4])) for line in lines]


def waiting(s, pool):
    """The workers that wait for a lock."""
    pids = [pid for _, waits, pid in locks() if waits]
    return [pid for pid in s.workers(pool) if pid in pids]


def waited_for(s, pool):
    """The workers that have a lock another process waits for."""
    all_of_them = locks()
    numbers = [number for number, waits, _ in all_of_them if waits]
    pids = [pid for number, waits, pid in all_of_them if not waits and number in numbers]
    return [pid for pid in s.workers(pool) if pid in pids]


BEGUN, STATE_AT = 2, 4


def forget_the_end(s):
    """The only entry is as a worker leaves it that is killed between the change and the answer."""
    (name,) = [n for n in os.listdir(os.path.join(s.run_dir, "journal")) if n[0] != "."]
    with open(os.path.join(s.run_dir, "journal", name), "r+b") as f:
        f.seek(STATE_AT)
        f.write(struct.pack("=I", BEGUN))


def killed_before_a_change():
    """What was not changed yet is changed once, by the next worker; the client sees one answer."""
    old, new = "one\ntwo\n", "one\nTWO\n"
    edit = {"impl_source": "oh_aci"}
    with Server(settings={"action_workers": 1}) as s, concurrent.futures.ThreadPoolExecutor() as pool:
        def path(name):
            return os.path.join(s.work_dir, name)
        for name in ("part", "replace", "insert", "undo", "hard"):
            with open(path(name), "w") as f:
                f.write(old)
        os.link(path("hard"), path("hard2"))
        equal(act(s, "edit", {}, command="str_replace", path=path("undo"), old_str="two",
                  new_str="2", **edit).status, 200)
        cases = [
            ("new", "write", {"content": "text"}, "text\n"),
            ("part", "write", {"content": "TWO", "start": 1, "end": 2}, new),
            ("hard", "write", {"content": "TWO", "start": 1, "end": 2}, new),
            ("create", "edit", dict(edit, command="create", file_text="text"), "text"),
            ("replace", "edit", dict(edit, command="str_replace", old_str="two", new_str="TWO"), new),
            ("insert", "edit", dict(edit, command="insert", insert_line=1, new_str="x"),
             "one\nx\ntwo\n"),
            ("undo", "edit", dict(edit, command="undo_edit"), old),
        ]
        for name, kind, args, text in cases:
            args["path"] = path(name)
            with open(os.path.join(s.run_dir, "undo", "lock"), "rb") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                first = pool.submit(act, s, kind, named(name), **args)
                s.until("it waits for its turn", lambda: waiting(s, "action"))
                (killed,) = waiting(s, "action")
                kill_wait(killed)
                s.until("the next one does", lambda: waiting(s, "action"))
            a = first.result(PATIENCE)
            equal((a.status, a.json()["observation"], REPLAYED in a.headers), (200, kind, False), name)
            equal(contents(path(name)), text, name)
            b = act(s, kind, named(name), **args)
            equal((b.body, b.headers.get(REPLAYED)), (a.body, "true"), name)
            equal(contents(path(name)), text, name)


def killed_after_a_change():
    with Server() as s:
        path = os.path.join(s.work_dir, "f")
        with open(path, "w") as f:
            f.write("a\n")
        args = {"path": path, "content": "x", "start": 0, "end": 0}
        equal(act(s, "write", named("w"), **args).status, 200)
        forget_the_end(s)
        before = contents(path)
        a = act(s, "write", named("w"), **args)
        equal((a.status, "not done a second time" in a.json()["detail"]), (500, True), a)
        equal(contents(path), before)


class Stuck:
    """The pool's workers; the one that makes a system call is held at its end."""

    def __init__(self, s, pool, call, when=1):
        s.until("all have begun", lambda: s.workers(pool) and all(has_given_up_rights(p) for p in s.workers(pool)))
        self.pids, self.held, self.said = s.workers(pool), [], b""
        # the environment is for sanitizers, which cannot look for leaks below strace
        self.strace = subprocess.Popen(
            ["strace", "-e", "trace=" + call, "-e", "signal=none",
             "-e", "inject=%s:delay_exit=3600000000:when=%d" % (call, when)] +
            ["--attach=%d" % pid for pid in self.pids],
            stderr=subprocess.PIPE, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        try:
            # strace is their tracer before it stops them, and calls in between are not held
            self.wait(lambda: self.said.count(b" attached\n") == len(self.pids))
        except BaseException:
            self.kill()
            raise

    def wait(self, done):
        while not done():
            if not select.select([self.strace.stderr], [], [], PATIENCE)[0]:
                raise AssertionError("strace prints no more than %r" % self.said)
            more = os.read(self.strace.stderr.fileno(), 4096)
            equal(more != b"", True, self.said)
            self.said += more

    def hold(self):
        """strace reports the delay when it begins, and names the worker if there are several."""
        held = re.compile(rb"^(?:\[pid +(\d+)\] )?.*\(DELAYED\)$", re.MULTILINE)
        self.wait(lambda: held.search(self.said))
        self.held = [int(held.search(self.said).group(1) or self.pids[0])]

    def kill(self):
        for pid in self.held:
            os.kill(pid, signal.SIGKILL)
        with self.strace:
            self.strace.kill()  # nobody else learns of the death before
        equal([process.wait_gone(pid, PATIENCE) for pid in self.held], [True] * len(self.held))


def add(s, name, data):
    """The status and the body. In one piece: nginx tries again what came to it so."""
    body = part("file", data, name) + b"--%s--\r\n" % BOUNDARY.encode()
    head = ("POST /handrail/v1/upload?unpack=false&replace=false&destination=%s HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Length: %d\r\nContent-Type: multipart/form-data; boundary=%s\r\n\r\n"
            % (s.work_dir, len(body), BOUNDARY))
    with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
        c.sendall(head.encode() + body)
        with http.client.HTTPResponse(c) as r:
            r.begin()
            return r.status, json.loads(r.read())


def changes_that_are_no_actions():
    """The worker dies after it has done its part and before the answer: nothing is done twice, and what is known of
    it is answered."""
    need_root()  # the workers are not to be traced by others
    need("strace")
    unknown = "The action was started, but its result is not known"
    with Server(settings=ONE_WORKER_EACH) as s, concurrent.futures.ThreadPoolExecutor() as threads:
        def post(what, **body):
            return s.request("POST", "/handrail/v1/" + what, json.dumps(body))

        def cut(pool, call, done, what, when=1, **body):
            held_ = Stuck(s, pool, call, when)
            try:
                answer = threads.submit(post, what, **body)
                held_.hold()
                s.until(what + " is done", done)
            finally:
                held_.kill()
            return answer.result(PATIENCE)

        def there():
            return sorted(os.listdir(s.work_dir))

        def names():
            return [e["name"] for e in s.get("/handrail/v1/sessions").json()["sessions"]]

        a, b, tree = (os.path.join(s.work_dir, name) for name in ("a", "b", "tree"))
        with open(a, "w") as f:
            f.write("text")
        got = cut("files", "renameat2", lambda: there() == ["b"], "rename", path=a, to=b)
        equal((got.status, got.body, there()), (200, b"{}", ["b"]))
        os.mkdir(tree)
        for name in ("one", "two", "three"):
            open(os.path.join(tree, name), "w").close()
        got = cut("files", "unlinkat", lambda: len(os.listdir(tree)) == 1, "remove", when=2, path=tree)
        equal((got.status, got.body, there()), (200, b"{}", ["b"]))
        got = cut("files", "unlinkat", lambda: there() == [], "remove", path=b)
        equal((got.status, got.body), (200, b"{}"))
        # an upload that replaces nothing finds its own file
        held_ = Stuck(s, "files", "linkat")
        try:
            answer = threads.submit(add, s, "new", b"text")
            held_.hold()
            s.until("the file is there", lambda: there() == ["new"])
        finally:
            held_.kill()
        got = answer.result(PATIENCE)
        equal((got[0], got[1].get("filename"), contents(s.work_dir, "new")), (200, "new", "text"), got)
        equal([add(s, "new", text)[0] for text in (b"text", b"TEXT", b"longer")], [409] * 3)
        equal((contents(s.work_dir, "new"), post("remove", path=os.path.join(s.work_dir, "new")).status), ("text", 200))
        # nobody asks for these again: what is not there is not, and stays an error
        equal([post("rename", path=a, to=b).status, post("remove", path=b).status], [404, 404])
        got = cut("action", "sendmsg", lambda: "one" in names(), "create", name="one")
        equal((got.status, got.json()["detail"][:len(unknown)]), (500, unknown))
        got = cut("action", "sendmsg", lambda: "one" not in names(), "kill?session=one")
        equal((got.status, got.body), (200, b"{}"))
        equal(post("kill?session=one").status, 404)
        took = os.path.join(s.work_dir, "took")
        reader = s.in_background("read -r x; echo $x >>took; read -r x; echo $x >>took")
        s.until("it reads", lambda: s.get("/handrail/v1/session").json()["running"])
        got = cut("control", "write", lambda: os.path.exists(took), "input", text="typed\n")
        equal((got.status, got.json()["detail"][:len(unknown)]), (500, unknown))
        equal(post("input", text="second\n").status, 200)
        reader.join(PATIENCE)
        equal(contents(took), "typed\nsecond\n")
        shell = s.outside(int(s.action("echo $$").json()["content"]))
        got = cut("action", "write", lambda: not os.path.exists("/proc/%d" % shell), "kill")
        equal((got.status, got.json()["detail"][:len(unknown)]), (500, unknown), "the shell of now lives on")


def uploads():
    with Server() as s:
        w = s.work_dir
        zipped = archive(("z", "new"))
        for header in ("X-Request-ID", "Idempotency-Key"):
            name = {header: "one"}
            for file, data in (("f", b"new"), ("z.zip", zipped)):
                first = upload(s, w, file, data, headers=name)
                equal((first.status, REPLAYED in first.headers), (200, False), first)
                with open(os.path.join(w, file[0]), "a") as f:
                    f.write("er")
                # with another boundary, as a client makes it that sends again
                other = BOUNDARY + "2"
                body = part("file", data, file) + b"--%s--\r\n" % BOUNDARY.encode()
                again = s.request("POST", "/upload_file?destination=" + w,
                                  body.replace(BOUNDARY.encode(), other.encode()),
                                  dict(name, **{"Content-Type": "multipart/form-data; boundary=" + other}))
                equal((again.status, again.body, again.headers.get(REPLAYED)),
                      (200, first.body, "true"), header)
                equal(contents(w, file[0]), "newer")
        # the same name for something else is something else
        for destination, file, data in ((w, "f", b"abc"), (w, "g", b"abc"), (w + "/d", "g", b"abc")):
            a = upload(s, destination, file, data, headers=named("one"))
            equal((a.status, REPLAYED in a.headers), (200, False))
            equal(contents(destination, file), "abc")
        # without a name each is one of its own
        count = entries(s)
        for _ in range(2):
            equal(REPLAYED in upload(s, w, "f", b"plain").headers, False)
            equal(contents(w, "f"), "plain")
            with open(os.path.join(w, "f"), "w") as f:
                f.write("changed")
        equal(entries(s), count)


def upload_is_cut():
    """A worker that dies, or a client that leaves, in the middle of it: nothing was done."""
    with Server() as s:
        w = s.work_dir
        body = part("file", b"x" * 3000000, "f") + b"--%s--\r\n" % BOUNDARY.encode()
        head = (b"POST /upload_file?destination=%s HTTP/1.1\r\nHost: a\r\nX-Request-ID: cut\r\n"
                b"Content-Length: %d\r\nContent-Type: multipart/form-data; boundary=%s\r\n\r\n"
                % (w.encode(), len(body), BOUNDARY.encode()))
        for kill in (True, False):
            with s.connect() as c:
                c.sendall(head + body[:2000000])
                s.until("it is being received", lambda: s.pool("files")["busy"] == 1)
                if kill:
                    kill_together(s.workers("files"))
            s.until("nobody is at it", lambda: s.pool("files")["busy"] == 0)
            equal((os.path.exists(os.path.join(w, "f")), entries(s)), (False, 0))
        a = upload(s, w, "f", b"x" * 3000000, headers=named("cut"))
        equal((a.status, REPLAYED in a.headers), (200, False), a)
        equal(os.stat(os.path.join(w, "f")).st_size, 3000000)


def upload_end_not_known():
    with Server() as s:
        equal(upload(s, s.work_dir, "f", b"new", headers=named("u")).status, 200)
        forget_the_end(s)
        with open(os.path.join(s.work_dir, "f"), "a") as f:
            f.write("er")
        a = upload(s, s.work_dir, "f", b"new", headers=named("u"))
        equal((a.status, "not done a second time" in a.json()["detail"]), (500, True), a)
        equal(contents(s.work_dir, "f"), "newer")


# ---- actions of plugins ----

COUNTER = """#!/usr/bin/env python3
# the example, with an action that counts how often it is done, and may take long
import json, os
with open(%r) as f:
    exec(f.read().rsplit("main()", 1)[0])

def greet(fields):
    args = json.loads(fields[ACTION])["args"]
    with open(args["count"], "a") as f:
        f.write("x\\n")
    if "hold" in args:
        open(args["began"], "w").close()
        open(args["hold"]).read()
    return {"status": args.get("status"), "observation": "odd", "content": str(os.urandom(8)),
            "extras": {}, "message": ""}

plainly = send_answer

def send_answer(sock, status, value):
    plainly(sock, value.pop("status", None) or status, value)

os.write(READY, b"ready\\n")
serve_actions()
"""


def plugin_action():
    need_python()
    made = {"odd": ({"exec": ["${plugin_dir}/run"], "actions": ["odd"], "on_failure": "disable"},
                    COUNTER % os.path.join(EXAMPLES, "greeter", "greeter"))}
    with Plugins("odd", made=made, settings={"action_workers": 1}) as s, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        count = os.path.join(s.work_dir, "count")
        a = act(s, "odd", named("one"), count=count)
        equal((a.status, a.json()["observation"], REPLAYED in a.headers), (200, "odd", False), a)
        b = act(s, "odd", named("one"), count=count)
        equal((b.status, b.body, b.headers.get(REPLAYED)), (200, a.body, "true"))
        equal(times(s), 1)
        act(s, "odd", named("two"), count=count)
        act(s, "odd", {}, count=count)
        act(s, "odd", {}, count=count)
        equal(times(s), 4, "other names, and none")
        a = act(s, "odd", named("busy"), count=count, status=503)
        b = act(s, "odd", named("busy"), count=count, status=503)
        equal((a.status, b.status, b.body, b.headers.get(REPLAYED)), (503, 503, a.body, "true"))
        equal(times(s), 5)
        # nginx must not have it done again
        began, hold = os.path.join(s.work_dir, "began"), os.path.join(s.work_dir, "hold")
        for path in (began, hold):
            os.mkfifo(path)
        args = {"count": count, "began": began, "hold": hold}
        first = pool.submit(act, s, "odd", named("three"), **args)
        with open(began):
            pass
        second = pool.submit(act, s, "odd", named("three"), **args)
        s.until("it waits for the first", lambda: waiting(s, "action"))
        (pid,) = waited_for(s, "action")
        kill_wait(pid)
        for answer in (first.result(PATIENCE), second.result(PATIENCE)):
            equal((answer.status, "not done a second time" in answer.json()["detail"]), (500, True),
                  answer)
        with open(hold, "w"):
            pass
        equal(times(s), 6)


# ---- what is kept ----

def survives_a_restart():
    top = tempfile.mkdtemp(prefix="e2e-once-")
    try:
        with Server(args=["--state-dir", top], shown=[top]) as s:
            first = s.action("echo x >>count; echo $RANDOM", headers=named("r"))
            equal(s.stop(), -signal.SIGTERM)
            equal(os.stat(os.path.join(top, "journal", str(s.port))).st_mode & 0o777, 0o700)
            s.start()
            second = s.action("echo x >>count; echo $RANDOM", headers=named("r"))
            equal((second.body, second.headers.get(REPLAYED)), (first.body, "true"))
            equal(times(s), 1)
    finally:
        shutil.rmtree(top)


def ends_with_the_server():
    with Server() as s:
        s.run("echo x >>count", headers=named("r"))
        s.stop()
        s.start()
        s.run("echo x >>count", headers=named("r"))
        equal(times(s), 2)


def bounded():
    with Server(settings={"journal_entries": 8}) as s:
        for n in range(50):
            s.run("echo x >>count", headers=named("b%d" % n))
        equal(times(s), 50)
        s.until("old ones go", lambda: entries(s) <= 8)
        a = s.action("echo x >>count", headers=named("b49"))
        equal(a.headers.get(REPLAYED), "true")


def too_long_to_keep():
    with Server(settings={"journal_bytes": 65536}) as s:
        a = s.action("echo x >>count; seq 5000", headers=named("l"))
        equal(a.status, 200)
        a = s.action("echo x >>count; seq 5000", headers=named("l"))
        equal((a.status, "too long" in a.json()["detail"]), (500, True))
        equal(times(s), 1)


def switched_off():
    with Server(settings={"journal_entries": 0}) as s:
        s.run("echo x >>count", headers=named("o"))
        equal(entries(s), 0)


def damaged():
    """A command that empties, overwrites or removes the journal's files, its own too, is done once and answered."""
    for damage in ("truncate -s 0 $f", "echo x >$f", "head -c 40000 /dev/zero >$f", "rm $f"):
        for size in ("true", "seq 2000"):
            with Server(settings={"action_workers": 1, "action_workers_max": 1}) as s:
                command = "echo x >>count; for f in %s/journal/*; do %s; done; %s; echo $RANDOM" % (
                    s.run_dir, damage, size)
                s.run("true")
                for header in ({}, named("one")):
                    before, first = times(s), s.action(command, headers=header)
                    equal((first.status, times(s)), (200, before + 1), first)
                    again = s.action(command, headers=header)
                    # where the file is gone the keeper knows
                    equal((again.status, times(s)), (200, before + (1 if header else 2)), again)
                    equal(again.body == first.body, bool(header), command)
                s.run("echo x >>after", headers=named("two"))
                s.run("echo x >>after", headers=named("two"))
                equal(times(s, "after"), 1)
                equal([line for line in s.lines if line and "done without it" in line], [])


def disk_full():
    """By default nothing stops; where the journal is required nothing is done."""
    need_root()
    mount = need("mount")
    for required in (False, True):
        top = tempfile.mkdtemp(prefix="e2e-once-")
        if subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "none", top],
                          stderr=subprocess.DEVNULL).returncode != 0:
            os.rmdir(top)
            raise Skip("no tmpfs can be mounted here")
        try:
            # one worker: each says once that it cannot write
            with Server(args=["--state-dir", top], shown=[top],
                        settings={"journal_required": required, "action_workers": 1, "action_workers_max": 1}) as s:
                with open(os.path.join(top, "filler"), "wb", 0) as f:
                    try:
                        while True:
                            f.write(bytes(512))
                    except OSError:
                        pass
                a = s.action("echo x >>count", headers=named("full"))
                if required:
                    equal((a.status, a.headers["Retry-After"], times(s)), (503, "1", 0))
                    equal("nothing was done" in a.json()["detail"], True, a)
                    with open(os.path.join(s.work_dir, "large"), "w"):
                        pass
                    path = json.dumps({"path": os.path.join(s.work_dir, "large")})
                    equal((s.request("POST", "/handrail/v1/remove", path).status, os.listdir(s.work_dir)), (200, []),
                          "room can be made")
                else:
                    equal((a.status, times(s)), (200, 1))
                    # the worker\'s line goes by way of handraild
                    equal(s.wait_log("actions are done without it") is not None, True)
                    equal(s.action("true", headers=named("full2")).status, 200)
                    equal(len([l for l in s.lines if "actions are done without it" in l]), 1)
                os.unlink(os.path.join(top, "filler"))
                # old answers make room for new ones
                for n in range(40):
                    equal(s.action("seq 800", headers=named("f%d" % n)).status, 200)
                equal(s.action("seq 800", headers=named("f39")).headers.get(REPLAYED), "true")
        finally:
            subprocess.run(["umount", top], check=True)
            os.rmdir(top)


def not_for_the_sandbox():
    need_root()
    with Server(name="nobody", env={"RUNTIME_USERNAME": "nobody", "USER": "root"}) as s:
        s.run("echo secret", headers=named("p"))
        equal(entries(s), 1)
        where = os.path.join(s.run_dir, "journal")
        equal(s.run("id -un"), "nobody")
        equal(s.run("ls %s; cat %s/*; touch %s/x; rm -rf %s" % ((where,) * 4)).count("denied"), 4)
        equal(entries(s), 1)


TESTS = [repeated, event, nameless, nameless_worker_dies, seems_to_stand, nameless_everything_dies,
         nameless_after_a_killed_server, errors_are_answers_too, waits_for_the_first, client_left,
         worker_dies, all_workers_die_twice, nginx_dies, supervisor_dies, keeper_dies, keeper_and_shell_die,
         everything_dies, static_session, killed_before_a_change, killed_after_a_change,
         changes_that_are_no_actions, uploads, upload_is_cut, upload_end_not_known, plugin_action,
         survives_a_restart, ends_with_the_server, bounded,
         too_long_to_keep, switched_off, damaged, disk_full, not_for_the_sandbox]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
