#!/usr/bin/env python3
"""Forks and snapshots of the E2B API. As root each case is done twice, by root and by another account."""

import contextlib
import http.client
import json
import os
import signal
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.e2bfleet import E2b, metadata  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.hostbox import copier, run  # noqa: E402
from lib.tap import equal  # noqa: E402

NOWHERE = "0" * 32
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def read(f, o, name):
    """The content of a file, by the API for files."""
    status, text = f.edge("GET", "/files?path=" + urllib.parse.quote(name), o, X_Access_Token=o["envdAccessToken"])
    return text if status == 200 else status


def write(f, o, name, text):
    status, answer = f.edge("POST", "/files?path=" + urllib.parse.quote(name), o, body=text.encode(),
                            Content_Type="application/octet-stream", X_Access_Token=o["envdAccessToken"])
    equal(status, 200, answer)


def forks(uid):
    """Branches have the files, tokens and ends of their own, and the rest of their parent."""
    with E2b(uid, "--e2b-file-forks") as f:
        o = f.create(metadata={"a": "1"}, envVars={"X": "y"}, timeout=600)
        path = "/sandboxes/%s/fork" % o["sandboxID"]
        write(f, o, "file", "first")
        f.run({"runtime_id": o["sandboxID"], "session_api_key": o["envdAccessToken"]}, "sleep 1000 &")
        status, made = f.api("POST", path, {"count": 2, "timeout": 100})
        equal((status, [sorted(m) for m in made]), (201, [["sandbox"], ["sandbox"]]), made)
        one, two = (m["sandbox"] for m in made)
        f.secrets += [one["envdAccessToken"], two["envdAccessToken"]]
        equal(len({x["envdAccessToken"] for x in (o, one, two)}), 3)
        write(f, one, "file", "second")
        equal([read(f, x, "file") for x in (o, one, two)], ["first", "second", "first"])
        equal(f.edge("GET", "/envs", one, X_Access_Token=one["envdAccessToken"])[1]["X"], "y")
        info = f.info(two)[1]
        equal((info["metadata"], info["templateID"], info["state"], info["endAt"] < f.info(o)[1]["endAt"]),
              ({"a": "1"}, "base", "running", True), info)
        equal(len(f.api("GET", "/v2/sandboxes?" + metadata(a="1"))[1]), 3)
        # a snapshot that names no mode, as the SDKs for npm send it
        snapshot = "/sandboxes/%s/snapshots" % one["sandboxID"]
        equal(f.api("POST", snapshot, {"memory": True})[0], 501)
        status, answer = f.api("POST", snapshot, {})
        equal((status, read(f, f.create(templateID=answer.get("snapshotID")), "file")), (201, "second"), answer)
        # the default is one, for 15 seconds
        status, made = f.api("POST", "/sandboxes/%s/fork" % one["sandboxID"])
        equal((status, len(made)), (201, 1), made)
        f.secrets.append(made[0]["sandbox"]["envdAccessToken"])
        equal(read(f, made[0]["sandbox"], "file"), "second")
        f.gone(made[0]["sandbox"])
        for body in ({"count": 0}, {"count": 101}, {"count": "1"}, {"timeout": 0}, {"timeout": "1"},
                     {"timeout": 25 * 3600}):
            equal(f.api("POST", path, body)[0], 400, body)
        other = f.make_key("other")
        equal((f.api("POST", path, key=other)[0], f.api("POST", "/sandboxes/%s/fork" % NOWHERE)[0]), (404, 404))
        small = f.make_key("small", sandboxes=2)
        p = f.api("POST", "/v2/sandboxes", {"templateID": "base"}, key=small)[1]
        f.secrets.append(p["envdAccessToken"])
        equal((f.api("POST", "/sandboxes/%s/fork" % p["sandboxID"], {"count": 2}, key=small)[0],
               f.head["Should-Retry"]), (429, "false"))
        equal(f.api("DELETE", "/sandboxes/" + two["sandboxID"])[0], 204)


def leaves(uid):
    """A service that leaves during a fork answers with the branches, whose starts the next process continues."""
    with E2b(uid, "--e2b-file-forks") as f:
        o = f.create(timeout=600)
        write(f, o, "file", "first")
        f.run({"runtime_id": o["sandboxID"], "session_api_key": o["envdAccessToken"]},
              "mkdir many; for i in {1..3000}; do echo $i >many/$i; done; sleep 1000 &")  # a process there: a copy
        got = []
        t = threading.Thread(target=lambda: got.append(
            f.api("POST", "/sandboxes/%s/fork" % o["sandboxID"], {"count": 2, "timeout": 600})))
        t.start()
        pid = copier(f.process, t.is_alive)
        equal(pid is not None, True, "the copy is seen")
        os.kill(pid, signal.SIGSTOP)
        f.process.send_signal(signal.SIGHUP)
        f.until(lambda: any("continuing as" in line for line in f.log), lambda found: found)
        os.kill(pid, signal.SIGCONT)
        t.join()
        status, made = got[0]
        equal((status, [sorted(m) for m in made]), (201, [["sandbox"], ["sandbox"]]), made)
        for b in (m["sandbox"] for m in made):
            f.secrets.append(b["envdAccessToken"])
            equal(f.info(b)[1]["state"], "running")
            equal(read(f, b, "file"), "first")
        equal(len(f.api("GET", "/v2/sandboxes")[1]), 3)


def snapshots(uid):
    """A snapshot is a template for its key, with the user and the directory of the sandbox's template."""
    with E2b(uid) as f:
        other = f.make_key("other")
        o = f.create()
        path = "/sandboxes/%s/snapshots" % o["sandboxID"]

        def make(of=path, **body):
            status, answer = f.api("POST", of, dict({"memory": False}, **body))
            equal((status, answer.get("names")), (201, [answer.get("snapshotID")]), answer)
            return answer["snapshotID"]

        def found(query="", key=None):
            status, answer = f.api("GET", "/snapshots" + query, key=key)
            equal(status, 200, answer)
            return [s["snapshotID"] for s in answer]

        write(f, o, "file", "first")
        equal(make(name="my-tools"), "my-tools.base")
        write(f, o, "file", "second")
        unnamed = make()
        equal(sorted(found()), sorted(["my-tools.base", unnamed]))
        p, q = f.create(templateID="my-tools"), f.create(templateID=unnamed)
        equal((read(f, p, "file"), read(f, q, "file"), f.info(p)[1]["templateID"]),
              ("first", "second", "my-tools.base"))
        if uid == 0:  # which makes the account
            equal(f.edge("POST", "/filesystem.Filesystem/Stat", p, body=json.dumps({"path": ""}),
                         Content_Type="application/json", X_Access_Token=p["envdAccessToken"])[1]["entry"]["path"],
                  "/home/user")
        # one of a sandbox that came from one
        deep = make("/sandboxes/%s/snapshots" % p["sandboxID"], name="deep")
        equal(deep, "deep.base")
        equal(read(f, f.create(templateID=deep), "file"), "first")
        # the same name again: its new files, while sandboxes that came from the old ones keep theirs
        write(f, o, "file", "third")
        equal((make(name="my-tools"), len(found()), len(os.listdir(f.path("fleet", "sandboxes", "snapshots")))),
              ("my-tools.base", 3, 3))
        r = f.create(templateID="my-tools")
        equal((read(f, r, "file"), read(f, p, "file")), ("third", "first"))
        # pages, filters
        names = sorted(found())
        pages, token = [], ""
        for more in (True, True, False):
            pages += found("?limit=1&nextToken=" + token)
            token = f.head["X-Next-Token"]
            equal(token is not None, more)
        equal(pages, names)
        equal((found("?sandboxID=" + p["sandboxID"]), found("?name=my-tools"), found("?name=my")),
              ([deep], ["my-tools.base"], []))
        equal([f.api("GET", "/snapshots?limit=" + n)[0] for n in ("0", "101", "x", "-1")], [400] * 4)
        # the Runtime API has the same ones
        equal(sorted(s["name"] for s in f.call("GET", "/handrail/v1/snapshots")[1]["snapshots"]), names)
        equal(f.call("POST", "/handrail/v1/snapshots", {"runtime_id": p["sandboxID"], "name": "plain"})[0], 200)
        equal(read(f, f.create(templateID="plain"), "file"), "first")
        equal(f.call("POST", "/handrail/v1/snapshots/remove", {"name": "plain"})[0], 200)
        # refused
        for body, status in (({}, 501), ({"memory": True}, 501), ({"memory": 0}, 400),
                             ({"memory": False, "name": 1}, 400),
                             ({"memory": False, "name": "a/b"}, 400), ({"memory": False, "name": "x" * 97}, 400)):
            equal(f.api("POST", path, body)[0], status, body)
        equal(f.api("POST", path, {"memory": False}, key=other)[0], 404)
        equal((found("", other), f.api("DELETE", "/templates/my-tools.base", key=other)[0]), ([], 404))
        equal(f.api("POST", "/v2/sandboxes", {"templateID": "my-tools"}, key=other)[0], 404)
        alias = "/templates/aliases/my-tools"
        equal((f.api("GET", alias)[1], f.api("GET", alias, key=other)[0]),
              ({"templateID": "my-tools.base", "public": False}, 404))
        for name in names:
            equal(f.api("DELETE", "/templates/" + urllib.parse.quote(name, safe="")), (204, None))
            equal(f.api("DELETE", "/templates/" + name)[0], 404)
        equal((found(), f.api("POST", "/v2/sandboxes", {"templateID": "my-tools"})[0]), ([], 404))


def pauses(uid):
    """Without the memory a box keeps its files and variables, also across a kill of the service; processes end."""
    with E2b(uid) as f:
        o = f.create(timeout=600, envVars={"X": "y"})
        path, token = "/sandboxes/" + o["sandboxID"], {"X_Access_Token": o["envdAccessToken"]}
        shell = {"runtime_id": o["sandboxID"], "session_api_key": o["envdAccessToken"]}
        pid = f.box(shell)["pid"]
        write(f, o, "file", "first")
        booted = read(f, o, BOOT_ID)
        f.run(shell, "GOAL=gone; sleep 1000 &")
        equal(f.api("POST", path + "/pause", {"memory": 0})[0], 400)
        equal(f.api("POST", path + "/pause", {"memory": False}), (204, None))
        equal(process.wait_gone(pid, PATIENCE), True)
        equal(f.api("POST", path + "/pause", {"memory": False})[0], 409)
        for _ in range(2):
            info = f.info(o)[1]
            equal((info["state"], info["pauseMode"]), ("paused", "filesystem"), info)
            equal(f.edge("GET", "/health", o, **token)[0], 502, "no request wakes it")
            f.kill()
            f.start()
        status, again = f.api("POST", "/v2" + path + "/connect", {"timeout": 300})
        equal(os.stat(f.socket(shell) + ".envd").st_ino, os.stat(f.box(shell)["edge"] + "/http.sock.envd").st_ino)
        equal((status, again["envdAccessToken"], f.info(o)[1]["state"]), (201, o["envdAccessToken"], "running"))
        equal((read(f, o, "file"), f.edge("GET", "/envs", o, **token)[1]["X"]), ("first", "y"))
        again = read(f, o, BOOT_ID)
        equal((len(again), again != booted), (len(booted), True), "it is started again")
        equal(f.run(shell, "echo \"<$GOAL>\"; cat /proc/[0-9]*/comm | grep -c sleep").splitlines(), ["<>", "0"])
        # a request wakes one that asked for that
        p = f.create(timeout=600, autoPause=True, autoResume={"enabled": True})
        write(f, p, "file", "second")
        equal(f.api("POST", "/sandboxes/%s/pause" % p["sandboxID"], {"memory": False})[0], 204)
        equal(read(f, p, "file"), "second")
        # the end of the time pauses without memory, too
        q = f.create(timeout=3, autoPause=True, autoPauseMemory=False)
        write(f, q, "file", "third")
        # it counts as paused when its pause begins, and has a mode when that has ended
        info = f.until(lambda: f.info(q)[1], lambda info: "pauseMode" in info)
        equal((info["state"], info["pauseMode"], f.edge("GET", "/health", q, X_Access_Token=q["envdAccessToken"])[0]),
              ("paused", "filesystem", 502))
        equal(f.api("POST", "/v2/sandboxes/%s/connect" % q["sandboxID"], {"timeout": 300})[0], 201)
        equal(read(f, q, "file"), "third")
        # the service is killed at any moment of a pause: the files stay
        for _ in range(3):
            t = threading.Thread(target=quietly, args=(f, path + "/pause", {"memory": False}))
            t.start()
            f.until(f.sandboxes, lambda all: any(s["state"] in ("pausing", "paused") for s in all))
            f.kill()
            t.join()
            f.start()
            f.until(lambda: f.info(o)[1]["state"], lambda state: state in ("running", "paused"))
            equal(f.api("POST", "/v2" + path + "/connect", {"timeout": 300})[0] in (200, 201), True)
            equal(read(f, o, "file"), "first")
        equal(f.api("POST", path + "/pause", {"memory": False})[0], 204)
        equal(f.api("DELETE", path)[0], 204)


def quietly(f, path, body):
    """A request whose service may be killed."""
    with contextlib.suppress(OSError, ValueError, AssertionError, http.client.HTTPException):
        f.api("POST", path, body)


if __name__ == "__main__":
    sys.exit(run([forks, leaves, snapshots, pauses], made=contextlib.nullcontext))
