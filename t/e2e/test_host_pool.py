#!/usr/bin/env python3
"""Sandboxes that wait for the next "handrail up"."""

import fcntl
import json
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import PATIENCE, Host, Written  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402


def waiting(h):
    """The processes of those that wait."""
    folder = h.path("state", "warm")
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".json"):
            with open(os.path.join(folder, name)) as f:
                found.append(json.load(f)["backend"]["pid"])
    return found


def fillers(h):
    """What fills the pool in the background."""
    def is_one(pid):
        return process.command_line(pid).startswith("handrail pool ") and (
            "HANDRAIL_STATE_DIR=" + h.path("state")).encode() in process.environment(pid)
    found = [p for p in process.all_pids() if is_one(p)]
    # what one of them has just forked looks like it until it is the server
    return [p for p in found if int((process.stat_fields(p) or [b"", b"0"])[1]) not in found]


def taken():
    with Host(SANDBOX_ENV_ONE="1") as h:
        equal(json.loads(h.ok("pool", "--json", "2")), {"waiting": 2})
        pids = waiting(h)
        equal(len(pids), 2, "two wait")
        equal(h.ok("pool", "2"), "waiting: 2\n", "that is enough")
        equal(waiting(h), pids, "no more were made")
        equal(json.loads(h.ok("ps", "--json")), [], "they are nobody's sandboxes")
        h.ok("up", "-n", "a", "-e", "TWO=it's")
        equal(h.record("a")["backend"]["pid"] in pids, True, "one of them")
        equal(len(waiting(h)), 1, "one is left")
        equal(h.ok("run", "-n", "a", "echo $ONE $TWO; git config --global user.name"), "1 it's\nopenhands\n", "set up")
        equal("ready: listening" in h.ok("logs", "-n", "a"), True, "its log came along")
        equal(sorted(os.listdir(h.path("state"))), ["a.json", "a.log", "warm"], "files")
        h.ok("up", "-n", "b")
        h.ok("up", "-n", "c")
        equal(h.record("c")["backend"]["pid"] in pids, False, "none was left: a new one")
        workspaces = [h.record(n)["backend"]["workspace"] for n in "abc"]
        equal(len(set(workspaces)), 3, "each has its own")
        h.ok("down", "a", "b", "c")
        equal([w for w in workspaces if os.path.exists(w)], [], "workspaces are gone")


def not_fitting():
    with Host() as h:
        h.ok("pool", "1")
        pid = waiting(h)[0]
        h.ok("up", "-n", "a", "-s", "sandbox.timeout=9")
        h.ok("up", "-n", "b", "-p", "agent_skills")
        h.ok("up", "-n", "g", "-s", "mcp.stdio_servers=[{'name': 'n', 'command': 'true', 'env': {'A': 'b'}}]")
        h.ok("up", "-n", "c", "-r", "cli")
        h.env["SESSION_API_KEY"] = "mine"
        h.ok("up", "-n", "d")
        equal(h.record("d")["backend"]["key"], "mine", "a key of one's own")
        equal(waiting(h), [pid], "it still waits")
        del h.env["SESSION_API_KEY"]
        h.env["WORKSPACE_BASE"] = h.path("mine")
        h.ok("up", "-n", "e")
        h.fails(1, "a pool cannot be used with core.workspace_base", "pool", "1")
        del h.env["WORKSPACE_BASE"]
        equal(waiting(h), [pid], "still")
        h.fails(1, "cli runtime does not support a pool", "pool", "-r", "cli", "1")
        h.fails(2, "pool: the number must be from 0 to 64", "pool", "many")
        h.ok("up", "-n", "f")
        equal(h.record("f")["backend"]["pid"], pid, "this one fits")


def dead_while_it_waited():
    with Host() as h:
        h.ok("pool", "2")
        pids = waiting(h)
        with open(h.path("state", "warm", sorted(os.listdir(h.path("state", "warm")))[1])) as f:
            first = json.load(f)["backend"]
        equal(first["pid"], pids[0], "the one that dies")
        os.kill(pids[0], signal.SIGKILL)
        equal(process.wait_gone(pids[0], PATIENCE), True, "it died")
        h.end_orphans(first["workspace"])
        h.ok("up")
        equal(h.record()["backend"]["pid"], pids[1], "the other one")
        h.ok("up", "-n", "b")  # whichever was looked at first: both were by now
        equal(records(h), [], "nothing is left of it")
        equal(os.path.exists(first["workspace"]), False, "nor its workspace")


def locked():
    """A process that takes one has its record locked: neither another "up" nor the end of the pool touches it."""
    with Host() as h:
        h.ok("pool", "2")
        pids = waiting(h)
        paths = [h.path("state", "warm", n) for n in sorted(records(h)) if n.endswith(".json")]
        with open(paths[1]) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            h.ok("up", "-n", "a")
            h.ok("up", "-n", "b")
            equal([h.record("a")["backend"]["pid"], h.record("b")["backend"]["pid"] in pids], [pids[0], False])
            h.ok("down", "b")
            h.ok("down", "a")
        equal(h.ok("pool", "2"), "waiting: 2\n", "as before")
        pids = waiting(h)
        paths = [h.path("state", "warm", n) for n in sorted(records(h)) if n.endswith(".json")]
        with open(paths[1]) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            equal(h.ok("pool", "0"), "ended: 1\n", "not the one that is being taken")
            equal([process.command_line(p) != "" for p in pids], [False, True], "which is left")
        equal(h.ok("pool", "0"), "ended: 1\n", "then that as well")
        equal(process.command_line(pids[1]), "", "it is gone")


def several_at_once():
    """Each of several processes has a sandbox of its own, and none of the pool's is lost."""
    with Host() as h:
        h.ok("pool", "3")
        pids = waiting(h)
        names = ["a", "b", "c", "d"]
        for up in [h.popen("up", "-n", n) for n in names]:
            up.communicate()
            equal(up.returncode, 0)
        used = [h.record(n)["backend"]["pid"] for n in names]
        equal(len(set(used)), 4, "four sandboxes")
        equal([h.record(n)["sid"] for n in names], names, "of these names")
        equal(sorted(waiting(h)), sorted(set(pids) - set(used)), "the others wait")
        h.ok("down", *names)


def records(h):
    return [n for n in os.listdir(h.path("state", "warm")) if not n.startswith(".")]


def taker_that_was_killed():
    """What "up" takes is known under its new name from the start, and no "up" uses it half set up."""
    for command in ("up", "down"):
        with Host() as h, socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE)
            h.ok("pool", "1")
            path = h.path("state", "warm", [n for n in records(h) if n.endswith(".json")][0])
            with open(path) as f:
                record = json.load(f)
            pid = record["backend"]["pid"]
            # its set-up is asked for here, and not answered
            record["backend"]["url"] = "http://127.0.0.1:%d" % server.getsockname()[1]
            with open(path, "w") as f:
                json.dump(record, f)
            up = h.popen("up", "-e", "X=1")
            with server.accept()[0]:
                equal(h.record()["sid"], record["sid"], "its record has moved")
                equal([s["sid"] for s in json.loads(h.ok("ps", "--json"))], ["default"], "under its new name")
                equal(records(h), [], "the pool does not have it any more")
                equal(h.ok("pool", "0"), "ended: 0\n", "nor ends it")
                h.fails(5, "is not ready yet, or its start was interrupted", "run", "true")
                h.fails(1, "another process is starting or ending sandbox", "up")
                up.kill()
                up.communicate()
            equal(process.command_line(pid) != "", True, "nobody has ended it")
            h.ok(command)
            equal(process.command_line(pid), "", "now it is gone")
            equal(records(h), [], "and its record")
            if command == "up":
                equal(h.record()["sid"], "default", "the new one is ready")
                equal(h.ok("run", "echo hi"), "hi\n", "and answers")
            else:
                equal(os.listdir(h.path("state")), ["warm"], "nothing is left")


def filler_that_was_killed():
    """What it had begun is in nobody's way: the next one ends it, as does the end of the pool."""
    for argv, said, left in ((("pool", "1"), "waiting: 1\n", 1), (("pool", "0"), "ended: 1\n", 0)):
        with Host() as h:
            server = h.env["HANDRAIL_SERVER"]
            os.mkfifo(h.path("never"))
            with open(h.path("slow"), "w") as f:
                f.write("#!/bin/sh\nread x <%s\n" % h.path("never"))
            os.chmod(h.path("slow"), 0o755)
            os.makedirs(h.path("state", "warm"), 0o700)
            written = Written(h.path("state", "warm"))
            h.env["HANDRAIL_SERVER"] = h.path("slow")
            p = h.popen("pool", "1")
            written.wait(".json")
            pid = waiting(h)[0]
            # until it has become another program it has the locks of who started it
            with open(h.path("never"), "w"):
                p.kill()
                p.communicate()
                equal(process.command_line(pid) != "", True, "it outlives who started it")
                h.env["HANDRAIL_SERVER"] = server
                h.ok("up")
                equal(h.record()["backend"]["pid"] != pid, True, "it is not taken")
                equal(h.ok(*argv), said)
                equal(process.wait_gone(pid, PATIENCE), True, "it was ended")
            equal((len(waiting(h)), len(records(h)) > 0), (left, left > 0), "what is there")


def killed_before_a_record():
    """Files of a start that was killed while it wrote its record go; those of one that lives stay."""
    with Host() as h:
        warm = h.path("state", "warm")
        os.makedirs(warm, 0o700)
        for name in ".warm-0123456789ab.lock", "warm-0123456789ab.json~", "warm-living.json~":
            with open(os.path.join(warm, name), "w"):
                pass
        with open(os.path.join(warm, ".warm-living.lock"), "w") as living, \
                open(os.path.join(warm, "warm-living.json~")) as record:
            fcntl.flock(living, fcntl.LOCK_EX)
            fcntl.flock(record, fcntl.LOCK_EX)
            equal(h.ok("pool", "1"), "waiting: 1\n")
            equal(sorted(n for n in os.listdir(warm) if not n.endswith((".json", ".log"))),
                  [".lock", ".warm-living.lock", "warm-living.json~"], "the dead one's are gone")
        equal(h.ok("pool", "0"), "ended: 1\n")
        equal(os.listdir(warm), [".lock"], "the other's, once it has ended")


def ended():
    with Host() as h:
        h.ok("pool", "1")
        first = waiting(h)[0]
        equal(h.ok("pool", "0"), "ended: 1\n", "by hand")
        equal(process.command_line(first), "", "it is gone")
        h.ok("up")
        h.ok("pool", "1")
        second = waiting(h)[0]
        h.ok("down")
        equal(process.command_line(second), "", "with the last sandbox")
        h.ok("pool", "1")
        third = waiting(h)[0]
        h.fails(3, "no sandbox", "rm", "-f", "job")
        equal(process.command_line(third) != "", True, "where nothing ended it waits on")
        second = third
        h.ok("down", "--all")
        equal(process.command_line(second), "", "with the last sandbox")
        equal(os.listdir(h.path("state")), ["warm"], "records")
        equal(records(h), [], "and of the pool")
        equal([n for n in os.listdir(h.path("tmp")) if n.startswith("openhands_workspace")], [], "workspaces")


def out_of_reach(h):
    """The first one that a look into the pool meets is of an Engine that does not answer; its record before."""
    path = h.path("state", "warm", [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")][0])
    h.env["DOCKER_HOST"] = "unix://" + h.path("nothing")
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        json.dump(dict(json.loads(text), runtime="docker", backend={
            "id": "0123abcd", "port": 1, "vscode_port": 2, "app_port_1": 0, "app_port_2": 0, "key": "k"}), f)
    return path, text


def one_that_cannot_be_reached():
    """It keeps no other one running, or from being made, and is named."""
    with Host() as h:
        h.ok("pool", "3")
        pids = waiting(h)
        path, text = out_of_reach(h)
        pids.remove(json.loads(text)["backend"]["pid"])
        done = h("pool", "0")
        with open(path, "w") as f:
            f.write(text)
        left = [p for p in pids if process.command_line(p) != ""]
        equal(h.ok("pool", "0"), "ended: 1\n", "now that as well")
        equal((left, done.returncode, "Docker" in done.stderr), ([], 1, True), "the others are gone")
    with Host() as h:
        h.ok("pool", "1")
        path, text = out_of_reach(h)
        with open(path) as f:
            begun = dict(json.load(f), begun=True)
        with open(path, "w") as f:
            json.dump(begun, f)
        done = h("pool", "1")
        with open(path, "w") as f:
            f.write(text)
        equal(h.ok("pool", "0"), "ended: 2\n", "one was made all the same")
        equal((done.returncode, "Docker" in done.stderr), (1, True), done.stderr)


def refilled():
    with Host(DESIRED_NUM_WARM_SERVERS="1") as h:
        h.ok("up", "-n", "a")
        for pid in fillers(h):
            equal(process.wait_gone(pid, PATIENCE), True, "it is done")
        pids = waiting(h)
        equal(len(pids), 1, "one waits, without anybody asking")
        h.ok("up", "-n", "b")
        equal(h.record("b")["backend"]["pid"], pids[0], "and is taken")
        for pid in fillers(h):
            equal(process.wait_gone(pid, PATIENCE), True, "it is done")


def down_while_filling():
    with Host(DESIRED_NUM_WARM_SERVERS="2") as h:
        h.ok("up")
        h.ok("down")
        for pid in fillers(h):
            equal(process.wait_gone(pid, PATIENCE), True, "it is done")
        equal(json.loads(h.ok("ps", "--json")), [], "sandboxes")
        equal(waiting(h), [], "none waits")
        equal([n for n in os.listdir(h.path("tmp")) if n.startswith("openhands_workspace")], [], "workspaces")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (taken, not_fitting, dead_while_it_waited, locked, several_at_once,
                 taker_that_was_killed, filler_that_was_killed, killed_before_a_record, ended,
                 one_that_cannot_be_reached, refilled, down_while_filling):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
