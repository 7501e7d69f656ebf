#!/usr/bin/env python3
"""handrail-fleetd with branches and snapshots of boxes: whose they are, what counts them, and that nothing is left of a
killed fork. As root each case is done twice, by root and by another account."""

import contextlib
import http.client
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.hostbox import copier, run  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_fleet_box import BoxFleet, paused_here  # noqa: E402

FORK, SNAPSHOTS = "/handrail/v1/sandboxes/fork", "/handrail/v1/snapshots"


class Copies(BoxFleet):
    def settled_but(self, ids):
        """Waits until there are only these sandboxes, of which nothing but their records is left."""
        self.until(lambda: sorted(s["runtime_id"] for s in self.sandboxes()), lambda found: found == sorted(ids))
        self.until(lambda: sorted(n[:-5] for n in os.listdir(self.path("fleet", "sandboxes")) if n.endswith(".json")),
                   lambda found: found == sorted(ids))


def fork(f, o, session, key=None, **more):
    """The branches, which run, and the rest of the answer."""
    status, answer = f.call("POST", FORK, dict({"runtime_id": o["runtime_id"], "session_id": session}, **more), key=key)
    equal((status, [b["state"] for b in answer.get("branches", [])]),
          (200, ["running"] * more.get("count", 1)), answer)
    f.secrets += [b["session_api_key"] for b in answer["branches"]]
    return answer["branches"], answer


def quietly(f, body, key):
    """A fork whose service may be killed."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        f.call("POST", FORK, body, key=key)


def refused(f, o, status, words, key=None, **body):
    got, answer = f.call("POST", FORK, dict({"runtime_id": o["runtime_id"]}, **body), key=key)
    equal((got, words in answer["detail"]), (status, True), answer)


def names(f, key=None):
    status, answer = f.call("GET", SNAPSHOTS, key=key)
    equal((status, list(answer)), (200, ["snapshots"]), answer)
    return [s["name"] for s in answer["snapshots"]]


def branches(uid):
    """Branches have files and shells of their parent, and are sandboxes as any other, also after a restart."""
    with Copies(uid) as f:
        key, other = f.make_key("one"), f.make_key("other")
        o = f.up("s", key, environment={"X": "a b"})
        f.run(o, "cd /workspace; echo first >file; GOAL=fast")
        two, answer = fork(f, o, "way", key, count=2)
        equal(([b["session_id"] for b in two], answer["sessions"]), (["way-1", "way-2"], ["default"]))
        equal("journal of the actions: keys from before are unknown to a branch" in
              [lack["what"] for lack in answer["not_copied"]], True, answer)
        equal(answer["still"], paused_here(f, o), "whether it stood still")
        equal(len({b["session_api_key"] for b in two + [o]}), 3)
        equal(([b["fork_of"] for b in two], "fork_of" in o), ([o["runtime_id"]] * 2, False))
        equal({s.get("fork_of") for s in f.sandboxes()}, {None, o["runtime_id"]})
        equal(f.run(two[0], "pwd; echo $GOAL $X; echo second >>file; cat file"), "/workspace\nfast a b\nfirst\nsecond")
        equal((f.run(two[1], "cat file"), f.run(o, "cat file; echo $GOAL")), ("first", "first\nfast"))
        # they are known by their session and their id, to their key alone
        equal(f.call("GET", "/sessions/way-1", key=key)[1]["runtime_id"], two[0]["runtime_id"])
        equal(f.call("GET", "/sessions/way-1", key=other)[0], 404)
        listed = f.call("GET", "/list", key=key)[1]["runtimes"]
        equal(sorted(r["session_id"] for r in listed), ["s", "way-1", "way-2"])
        refused(f, o, 404, "not found", other, session_id="x")
        refused(f, o, 404, "not found", f.key, session_id="x")
        refused(f, o, 409, "has a sandbox already", key, session_id="way", count=3)
        for body, words in (({}, "session_id"), ({"session_id": "a/b"}, "session_id"),
                            ({"session_id": "x", "count": 0}, "count"), ({"session_id": "x", "count": 101}, "count"),
                            ({"session_id": "x", "count": "2"}, "count"), ({"session_id": "x", "freeze": 1}, "freeze"),
                            ({"session_id": "x" * 197, "count": 2}, "too long")):
            refused(f, o, 400, words, key, **body)
        equal(f.call("POST", FORK, {"session_id": "x"}, key=key)[0], 400)
        equal(f.call("POST", FORK, key=key)[0], 400)
        equal(f.call("POST", "/start", {"session_id": "x", "fork": o["runtime_id"]}, key=key)[0], 400)
        # a branch of a branch, after the end of the first parent, by another process of the service
        f.call("POST", "/stop", {"runtime_id": o["runtime_id"]}, key=key)
        f.kill()
        f.start()
        equal([f.state(b, key) for b in two], ["running", "running"])
        (deep,), _ = fork(f, two[0], "deep", key)
        equal(f.run(deep, "cat file; echo $GOAL"), "first\nsecond\nfast")
        refused(f, o, 409, "the sandbox is in the state stop", key, session_id="x")
        if paused_here(f, deep):
            f.pause(deep, key)
            refused(f, deep, 409, "the sandbox is in the state paused", key, session_id="x")
            equal(f.run(deep, "echo $GOAL"), "fast")


def at_work(uid):
    """A command that runs is no reason with "freeze"."""
    with Copies(uid) as f:
        o = f.up("s")
        f.run(o, "echo first >/workspace/file; (echo $BASHPID >/tmp/pid; exec sleep 1000 >/workspace/open) & "
                 "until [ -s /tmp/pid ]; do :; done")
        before = [s["runtime_id"] for s in f.sandboxes()]
        refused(f, o, 409, "end the process, or copy the files as they are", session_id="b")
        f.settled_but(before)
        (b,), answer = fork(f, o, "b", freeze=True)
        equal(f.run(b, "cat /workspace/file; kill -0 $(cat /tmp/pid) 2>&1 || echo none").splitlines()[0], "first")
        equal(any("sleep" in " ".join(lack.get("names", [])) for lack in answer["not_copied"]), True, answer)
        f.run(o, "kill $(cat /tmp/pid)")


def quotas(uid):
    """Branches count as sandboxes of their key: all of a fork have room, or none starts."""
    with Copies(uid) as f:
        key = f.make_key("small", sandboxes=3)
        o = f.up("s", key)
        refused(f, o, 429, "quota", key, session_id="w", count=3)
        f.settled_but([o["runtime_id"]])
        two, _ = fork(f, o, "w", key, count=2)
        refused(f, o, 429, "quota", key, session_id="x")
        f.call("POST", "/stop", {"runtime_id": two[0]["runtime_id"]}, key=key)
        f.settled_but([s["runtime_id"] for s in (o, two[1])])
        fork(f, o, "w-1", key)
        f.call("POST", "/handrail/v1/drain")
        f.call("POST", "/stop", {"runtime_id": two[1]["runtime_id"]}, key=key)
        refused(f, o, 503, "drained", key, session_id="x")
        f.call("POST", "/handrail/v1/drain", {"off": True})


def killed(uid):
    """The service is killed while a fork copies: the parent goes on, and nothing is left of the branches."""
    with Copies(uid) as f:
        o = f.up("s")
        # with a process there the files are copied, which takes long enough
        f.run(o, "mkdir /workspace/many; cd /workspace/many; for i in {1..3000}; do echo $i >$i; done; sleep 1000 &")

        def ask():
            try:
                f.call("POST", FORK, {"runtime_id": o["runtime_id"], "session_id": "w", "count": 2})
            except (OSError, http.client.HTTPException):
                pass  # the end of the service

        for _ in range(3):
            t = threading.Thread(target=ask)
            t.start()
            pid = copier(f.process, t.is_alive)
            equal(pid is not None, True, "the copy is seen")
            os.kill(pid, signal.SIGSTOP)
            # other requests are answered meanwhile
            equal(f.call("GET", "/sessions/s")[1]["runtime_id"], o["runtime_id"])
            equal([s["state"] for s in f.sandboxes()], ["running", "starting", "starting"])
            f.kill()
            if os.path.exists("/proc/%d" % pid):
                os.kill(pid, signal.SIGCONT)
            t.join()
            equal(process.wait_gone(pid, PATIENCE), True)
            f.start()
            f.settled_but([o["runtime_id"]])
            equal(f.call("GET", "/sessions/w-1")[1]["state"], "died")
            equal(f.run(o, "ls | wc -l"), "3000")
        fork(f, o, "w", count=2)


def whole(uid):
    """A service that is killed during a fork leaves all branches, which are listed and count, or none."""
    with Copies(uid) as f:
        key = f.make_key("one", sandboxes=7)
        o = f.up("s", key)
        for i in range(4):
            sessions = ["w%d-%d" % (i, n) for n in range(1, 7)]
            t = threading.Thread(target=quietly, args=(f, {"runtime_id": o["runtime_id"], "session_id": "w%d" % i,
                                                           "count": 6}, key))
            t.start()
            # the first branch is recorded, others are not yet
            f.until(lambda: [n for n in os.listdir(f.path("fleet", "sandboxes"))
                             if n.endswith(".json") and n[:-5] != o["runtime_id"]], lambda found: found)
            f.kill()
            t.join()
            f.start()
            f.until(f.sandboxes, lambda all: all and not any(s["state"] in ("starting", "stopping") for s in all))
            states = {f.call("GET", "/sessions/" + s, key=key)[1].get("state") for s in sessions}
            equal(len(states), 1, states)
            if states == {"running"}:
                refused(f, o, 429, "quota", key, session_id="x")
                for s in sessions:
                    b = f.call("GET", "/sessions/" + s, key=key)[1]
                    f.call("POST", "/stop", {"runtime_id": b["runtime_id"]}, key=key)
            f.settled_but([o["runtime_id"]])
        equal(f.run(o, "echo on"), "on")


def snapshots(uid):
    """Snapshots are their key's; a sandbox starts from one, also after the end of the first sandbox and a restart."""
    with Copies(uid) as f:
        key, other = f.make_key("one"), f.make_key("other")
        o = f.up("s", key)

        def make(name, by=key, status=200, of=o):
            body = {"runtime_id": of["runtime_id"], "name": name} if name else {"runtime_id": of["runtime_id"]}
            got, answer = f.call("POST", SNAPSHOTS, body, key=by)
            equal(got, status, answer)
            return answer

        def start(session, name, by=key):
            return f.call("POST", "/start?wait=ready", {"session_id": session, "from": name}, key=by)

        f.run(o, "echo first >/workspace/file")
        record = make("a.b-c_1")
        equal((record["name"], record["runtime_id"], record["still"], record["files"] > 0, sorted(record)),
              ("a.b-c_1", o["runtime_id"], paused_here(f, o), True,
               ["bytes", "created", "files", "name", "runtime_id", "still"]))
        f.run(o, "echo second >/workspace/file")
        unnamed = make(None)["name"]
        equal((names(f, key), names(f, other), names(f)), (sorted(["a.b-c_1", unnamed]), [], []))
        equal("already" in make("a.b-c_1", status=409)["detail"], True)
        for name in ("../x", ".x", "x" * 101, "a/b", " ", "-x"):
            equal("the name of a snapshot" in make(name, status=400)["detail"], True)
        make(5, status=400)
        make("x", other, 404)
        make("x", f.key, 404)
        # another key's are unknown, however they are spelled
        number = [k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"] if k["name"] == "one"][0]
        for name in ("a.b-c_1", "%d.a.b-c_1" % number):
            equal(start("x", name, other)[0], 404)
            equal(f.call("POST", SNAPSHOTS + "/remove", {"name": name}, key=other)[0], 404)
        for name, status in (("none", 404), ("../a", 400), (5, 400)):
            equal(start("x", name)[0], status)
        equal(f.call("POST", SNAPSHOTS + "/remove", {"name": "../" + str(number)}, key=key)[0], 400)
        equal(f.call("POST", SNAPSHOTS + "/remove", key=key)[0], 400)
        if paused_here(f, o):
            f.pause(o, key)
            make("paused")
            equal(f.state(o, key), "paused", "it wakes nothing")
            equal(f.call("POST", SNAPSHOTS + "/remove", {"name": "paused"}, key=key), (200, {}))
        f.call("POST", "/stop", {"runtime_id": o["runtime_id"]}, key=key)
        equal(make("x", status=409)["detail"].startswith("the sandbox is in the state stop"), True)
        f.kill()
        f.start()
        for session, name, content in (("p", "a.b-c_1", "first"), ("q", unnamed, "second")):
            status, p = start(session, name)
            equal((status, f.run(p, "cat /workspace/file"), p["snapshot"]), (200, content, name))
        # what a branch of it has goes along, too
        (b,), _ = fork(f, p, "r", key)
        equal(f.run(b, "cat /workspace/file"), "second")
        for name in (unnamed, "a.b-c_1"):
            equal(f.call("POST", SNAPSHOTS + "/remove", {"name": name}, key=key), (200, {}))
            equal(f.call("POST", SNAPSHOTS + "/remove", {"name": name}, key=key)[0], 404)
        equal((names(f, key), f.run(p, "cat /workspace/file")), ([], "second"))
        equal(os.listdir(f.path("fleet", "sandboxes", "snapshots")), [])


def revoked(uid):
    """The operator finds and removes snapshots of all keys, also of a revoked one; other keys cannot."""
    with Copies(uid) as f:
        key, other = f.make_key("one"), f.make_key("other")
        ids = {k["name"]: k["id"] for k in f.call("GET", "/handrail/v1/keys")[1]["keys"]}
        for name, by in (("kept", other), ("left", key)):
            o = f.up(name, by)
            equal(f.call("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"], "name": name}, key=by)[0], 200)
        equal(f.call("POST", "/handrail/v1/keys/revoke", {"id": ids["one"], "stop": True})[0], 200)
        removal = {"name": "left", "key": ids["one"]}
        equal([f.call("GET", SNAPSHOTS + "?keys=all", key=other)[0], f.call("GET", SNAPSHOTS, key=key)[0],
               f.call("POST", SNAPSHOTS + "/remove", removal, key=other)[0],
               f.call("GET", SNAPSHOTS + "?keys=some")[0],
               f.call("POST", SNAPSHOTS + "/remove", dict(removal, key="one"))[0],
               f.call("POST", SNAPSHOTS + "/remove", dict(removal, name="kept"))[0]],
              [403, 401, 403, 400, 400, 404])

        def left():
            status, answer = f.call("GET", SNAPSHOTS + "?keys=all")
            equal(status, 200, answer)
            return sorted((s["key"], s["name"]) for s in answer["snapshots"])

        equal(left(), sorted([(ids["one"], "left"), (ids["other"], "kept")]))
        f.env["RUNTIME"] = "remote"
        lines = [row.split()[:2] for row in f.ok("fleet", "snapshots").splitlines()]
        equal(sorted(lines[1:]), sorted([[str(ids["one"]), "left"], [str(ids["other"]), "kept"]]), lines)
        f.fails(2, "the key's ID must be a number", "fleet", "snapshots", "rm", "one", "left")
        f.fails(2, "usage", "fleet", "snapshots", "left")
        f.fails(3, "that key has no snapshot of that name", "fleet", "snapshots", "rm", str(ids["one"]), "kept")
        equal(f.ok("fleet", "snapshots", "rm", str(ids["one"]), "left"), "")
        equal((left(), names(f, other), names(f)), ([(ids["other"], "kept")], ["kept"], []))


def pages(uid):
    """The list of snapshots has pages, and the command prints all of them."""
    with Copies(uid) as f:
        key = f.make_key("one")
        o = f.up("s", key)
        equal(f.call("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"], "name": "s0000"}, key=key)[0], 200)
        (first,) = f.call("GET", SNAPSHOTS + "?keys=all")[1]["snapshots"]
        store = f.path("fleet", "sandboxes", "snapshots")
        called = ["s%04d" % n for n in range(1002)]
        with open(os.path.join(store, "%d.s0000" % first["key"], "snapshot.json")) as file:
            record = file.read()
        for name in called[1:]:
            directory = os.path.join(store, "%d.%s" % (first["key"], name))
            os.mkdir(directory, 0o700)
            with open(os.path.join(directory, "snapshot.json"), "w") as file:
                file.write(record.replace(".s0000\"", ".%s\"" % name))
            os.chown(directory, uid, uid)
            os.chown(os.path.join(directory, "snapshot.json"), uid, uid)
        for whose, by in (("", key), ("&keys=all", None)):
            got, after = [], ""
            while after is not None:
                answer = f.call("GET", SNAPSHOTS + "?limit=400%s%s" % (whose, after), key=by)[1]
                got.append([s["name"] for s in answer["snapshots"]])
                after = "&after=" + answer["next"] if "next" in answer else None
            equal(got, [called[:400], called[400:800], called[800:]])
            for bad in ("limit=0", "after=s0400"):
                equal(f.call("GET", "%s?%s%s" % (SNAPSHOTS, bad, whose), key=by)[0], 400)
        answer = f.call("GET", SNAPSHOTS + "?limit=2000", key=key)[1]
        equal((len(answer["snapshots"]), answer["next"]), (1000, "%d.s0999" % first["key"]))
        f.env["RUNTIME"] = "remote"
        equal([row.split()[1] for row in f.ok("fleet", "snapshots").splitlines()][1:], called)
        equal([s["name"] for s in json.loads(f.ok("fleet", "snapshots", "--json"))["snapshots"]], called)


def others(uid):
    """A copy for one key holds up no other one: its list, snapshots, removals and starts."""
    with Copies(uid) as f:
        one, other = f.make_key("one"), f.make_key("other")
        o, p = f.up("s", one), f.up("s", other)
        # the process in a directory of the root lets the files be copied, which takes longer than a layer
        f.run(o, "(cd /workspace && exec sleep 1000) & for i in {1..3000}; do echo $i >/workspace/$i; done")
        equal(f.call("POST", SNAPSHOTS, {"runtime_id": p["runtime_id"], "name": "a"}, key=other)[0], 200)
        got = []

        def ask():
            got.append(f.call("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"], "name": "long"}, key=one)[0])

        t = threading.Thread(target=ask)
        t.start()
        pid = copier(f.process, t.is_alive)
        equal(pid is not None, True, "the copy is seen")
        os.kill(pid, signal.SIGSTOP)
        equal(f.call("POST", SNAPSHOTS, {"runtime_id": p["runtime_id"], "name": "b"}, key=other)[0], 200)
        equal((names(f, other), names(f, one)), (["a", "b"], []))
        status, q = f.call("POST", "/start?wait=ready", {"session_id": "q", "from": "a"}, key=other)
        equal((status, q.get("status")), (200, "running"), q)
        equal(f.call("POST", SNAPSHOTS + "/remove", {"name": "a"}, key=other), (200, {}))
        equal((t.is_alive(), len(os.listdir(f.path("fleet", "sandboxes", "snapshots")))), (True, 2))
        os.kill(pid, signal.SIGCONT)
        t.join()
        equal((got, names(f, one), names(f, other)), ([200], ["long"], ["b"]))


def at_once(f, o, n):
    """How many of n snapshots that are asked for at the same time are made, and the other answers."""
    answers = []
    body = {"runtime_id": o["runtime_id"]}
    threads = [threading.Thread(target=lambda: answers.append(f.call("POST", SNAPSHOTS, body))) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [status for status, _ in answers].count(200), [a for a in answers if a[0] != 200]


def many(uid):
    """A key has at most 100 snapshots, also if some are asked for at the same time."""
    with Copies(uid) as f:
        o = f.up("s")
        record = f.call("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"], "name": "n"})[1]
        number = f.call("GET", "/handrail/v1/keys")[1]["keys"][0]["id"]
        top = f.path("fleet", "sandboxes", "snapshots")
        with open(os.path.join(top, "%d.n" % number, "snapshot.json")) as file:
            text = file.read()
        for i in range(97):
            f.directory("fleet", "sandboxes", "snapshots", "%d.n%d" % (number, i))
            f.file(text.replace('"%d.n"' % number, '"%d.n%d"' % (number, i)), top, "%d.n%d" % (number, i),
                   "snapshot.json")
        equal((record["name"], len(names(f))), ("n", 98))
        made, refusals = at_once(f, o, 6)
        equal((made, len(names(f))), (2, 100), refusals)
        for status, answer in refusals:
            equal((status, "this key has 100 snapshots" in answer["detail"]), (409, True), answer)
        for name in names(f):
            equal(f.call("POST", SNAPSHOTS + "/remove", {"name": name})[0], 200)


def bounded(uid):
    """The snapshots of a key have the megabytes of --snapshots-mb together."""
    with Copies(uid, "--snapshots-mb", "8") as f:
        other = f.make_key("other")
        o = f.up("s")
        f.run(o, "head -c 2600000 /dev/urandom >/workspace/file")
        made, refusals = at_once(f, o, 4)
        equal((made, len(names(f)), [status for status, _ in refusals]), (2, 2, [409, 409]), refusals)
        for _, answer in refusals:
            equal("more than the 8 MB" in answer["detail"], True, answer)
        equal(len(os.listdir(f.path("fleet", "sandboxes", "snapshots"))), 2)
        p = f.up("s", other)
        equal(f.call("POST", SNAPSHOTS, {"runtime_id": p["runtime_id"], "name": "n"}, key=other)[0], 200)
        f.call("POST", SNAPSHOTS + "/remove", {"name": names(f)[0]})
        equal(at_once(f, o, 1), (1, []))


def lost(uid):
    """A sandbox that the engine does not find is a conflict with the service's list, and no mistake of the client."""
    with Copies(uid) as f:
        o = f.up("s")
        record = f.path("fleet", "sandboxes", o["runtime_id"] + ".json")
        os.rename(record, record + ".kept")
        try:
            refused(f, o, 409, "no sandbox", f.key, session_id="x")
            equal(f.call("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"]})[0], 409)
        finally:
            os.rename(record + ".kept", record)
        equal(f.run(o, "echo on"), "on")


def elsewhere(uid):
    """Other back-ends copy no files, and say so."""
    if uid != os.geteuid():
        return  # the back-end local needs an account with a name
    with Fleet() as f:
        o = f.up("s")
        for method, path, body in (("POST", FORK, {"runtime_id": o["runtime_id"], "session_id": "x"}),
                                   ("POST", SNAPSHOTS, {"runtime_id": o["runtime_id"]}), ("GET", SNAPSHOTS, None),
                                   ("POST", SNAPSHOTS + "/remove", {"name": "x"}),
                                   ("POST", "/start", {"session_id": "x", "from": "y"})):
            status, answer = f.call(method, path, body)
            equal((status, "the back-end box" in answer["detail"]), (501, True), (path, answer))
        for method, path in (("POST", "/sandboxes/%s/fork"), ("POST", "/sandboxes/%s/snapshots"), ("GET", "/snapshots"),
                             ("DELETE", "/templates/x")):  # of the E2B API
            path = path % o["runtime_id"] if "%s" in path else path
            equal((f.call(method, path, {} if method == "POST" else None)[0]), 501, path)


if __name__ == "__main__":
    sys.exit(run([branches, at_work, quotas, killed, whole, snapshots, revoked, pages, others, many, bounded, lost,
                  elsewhere],
                 made=contextlib.nullcontext))
