#!/usr/bin/env python3
"""Commands that the tool `run` of the door for agents starts in the background (doc/agents.md, "Tools")."""

import http.client
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import PATIENCE, Server, gate, kill_keeper, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_door import PATH, call, handle_in, head, killed, message, structured, text  # noqa: E402


def start(s, command, **more):
    """The handle of the output's start."""
    return structured(call(s, "run", command=command, background=True, **more))["handle"].rsplit("-", 1)[0] + "-0"


def finish(s, handle):
    """(exit code, output), by waiting until the end as an agent does it."""
    output, r = "", {"running": True}
    while r["running"] or r["handle"]:
        r = structured(call(s, "wait", handle=handle))
        output += r["output"]
        handle = r["handle"]
    return r["exit_code"], output


def count(s):
    with open(s.work_dir + "/count") as f:
        return f.read()


def commands():
    with Server() as s:
        equal(structured(call(s, "run", command="cd /usr; export X=1"))["exit_code"], 0)
        # at once, beside the shell, which is free, and beside each other
        began, wait = marker(s)
        door, open_it = gate(s)
        r = call(s, "run", background=True, command="echo out; echo err >&2; %s; %s; echo two; exit 3" % (began, door))
        got = structured(r)
        equal((got["running"], got["exit_code"], "input" in text(r)), (True, None, False), r)
        wait()
        other = start(s, "pwd; echo [$X] [$Y]; cat; tty", env={"Y": "a b'c"})
        equal(finish(s, other), (1, "/usr\n[] [a b'c]\nnot a tty\n"))
        equal(structured(call(s, "run", command="echo $X"))["output"], "1")
        # its output so far, each part once, and the same again with the same handle
        r = call(s, "wait", handle=got["handle"], wait_s=0)
        equal((structured(r)["output"], structured(r)["running"]), ("out\nerr\n"[len(got["output"]):], True), r)
        again = structured(call(s, "wait", handle=handle_in(r), wait_s=0))
        equal((again["output"], again["running"]), ("", True))
        equal(structured(call(s, "wait", handle=handle_in(r), after=4, wait_s=0))["output"], "err\n")
        open_it()
        equal(finish(s, handle_in(r)), (3, "two\n"))
        equal(finish(s, handle_in(r)), (3, "two\n"), "asking again is the same")
        # an early end is in the first answer, if its caller waits for it
        r = structured(call(s, "run", command="echo early; exit 4", background=True, wait_s=300))
        equal((r["output"], r["running"], r["exit_code"], finish(s, r["handle"])), ("early", False, 4, (4, "early\n")))
        for command, want in (("if", (2, "")), ("echo 'a\u20ac'; kill -9 $$", (137, "a\u20ac\n")),
                              ("kill -HUP $$", (129, "")),
                              ("for i in 1 2\r\ndo\r\n  echo $i\r\ndone\r\n", (0, "1\n2\n")),
                              ("cat <<E\n1\nE", (0, "1\n"))):
            code, output = finish(s, start(s, command))
            equal((code, output if want[1] else ""), want, command)
        equal(finish(s, start(s, "pwd", cwd="bin")), (0, "/usr/bin\n"))
        code, output = finish(s, start(s, "echo not", cwd="/nowhere"))
        equal((code, "/nowhere: No such file" in output, "not\n" in output), (1, True, False), output)
        # a text that is too long for an argument
        equal(finish(s, start(s, "true " + "x" * 200000 + "\necho a; cat; exit 3\n")), (3, "a\n"))
        lines = "echo $LINENO ${!__h*}\necho $LINENO #"
        equal(finish(s, start(s, lines + "x" * 200000)), finish(s, start(s, lines)))
        equal(finish(s, start(s, "(exit 7) # " + "x" * 200000)), (7, ""))
        # the directory of the named shell
        call(s, "run", command="cd /etc", session="two")
        equal(finish(s, start(s, "pwd", session="two")), (0, "/etc\n"))
        s.stop()


def refused():
    with Server() as s:
        for wrong in ({"background": "yes"}, {"background": 1}, {"background": True, "command": " \n"},
                      {"background": True, "env": {"a b": ""}}, {"background": True, "session": "../x"},
                      {"background": True, "cwd": "a\0b"}, {"background": True, "command": "a\0b"}):
            r = call(s, "run", **dict({"command": "echo x >>%s/count" % s.work_dir}, **wrong))
            equal((r["isError"], os.path.exists(s.work_dir + "/count")), (True, False), (wrong, r))
        handle = start(s, "true")
        equal(finish(s, handle), (0, ""))
        r = call(s, "interrupt", handle=handle)
        equal((r["isError"], "has left no process" in text(r)), (True, True), r)
        unknown = "b-%s-0" % "-".join("0" * n for n in (8, 4, 4, 4, 12))
        for bad, why in ((unknown, "no longer available"), ("b-" + "../" * 12 + "-0", "no longer available"),
                         (handle + "x", "no handle"), (handle[:-1], "no handle"), ("b-", "no handle"),
                         (handle[:-2], "no handle"), (handle.replace("-0", "--1"), "no handle")):
            for tool in ("wait", "interrupt"):
                r = call(s, tool, handle=bad)
                equal((r["isError"], why in text(r)), (True, True), (bad, r))
        r = call(s, "input", handle=handle, text="x\n")
        equal((r["isError"], "has no input" in text(r)), (True, True), r)
        running = [start(s, "sleep 600") for _ in range(16)]
        r = call(s, "run", command="true", background=True)
        equal((r["isError"], "too many commands run" in text(r)), (True, True), r)
        for h in running:
            equal(call(s, "interrupt", handle=h)["isError"], False)
        equal([finish(s, h) for h in running], [(143, "")] * 16)
        s.stop()


def interrupted():
    with Server() as s:
        began, wait = marker(s)
        h = start(s, "trap 'echo got; exit 5' TERM; %s; while :; do sleep 0.1; done" % began)
        wait()
        r = call(s, "interrupt", handle=h)
        equal(r["isError"], False, r)
        code, output = finish(s, h)
        equal((code, output.endswith("got\n")), (5, True), output)  # bash may report its child before
        began, wait = marker(s, "deaf")
        h = start(s, "trap '' TERM; echo $$ >%s/pid; %s; while :; do sleep 600; done" % (s.work_dir, began))
        wait()
        call(s, "interrupt", handle=h)
        equal(finish(s, h), (137, ""))
        with open(s.work_dir + "/pid") as f:
            equal(process.wait_gone(int(f.read()), PATIENCE), True)
        # a deaf member of the group, whose leader obeys; a daemon of another group lives on
        away, wait_away = marker(s, "away")
        began, wait = marker(s, "member")
        h = start(s, "setsid sh -c '%s; exec sleep 600' & echo 1 $!; (trap '' TERM; echo 2 $BASHPID; %s; "
                     "while :; do sleep 600; done) & wait" % (away, began))
        wait_away()
        wait()
        call(s, "interrupt", handle=h)
        code, output = finish(s, h)
        daemon, member = (int(line[2:]) for line in sorted(output.splitlines()))
        equal((code, process.wait_gone(member, PATIENCE), process.has_ended(daemon)), (143, True, False))
        # what an ended command has left, and the children of that, which get SIGTERM, too
        h = start(s, "cd %s; (trap 'exit 0' TERM; (trap 'echo >child; exit' TERM; echo >ready; "
                     "while :; do sleep 0.1; done) & wait) >/dev/null & until [ -e ready ]; do sleep 0.1; done"
                  % s.work_dir)
        equal(finish(s, h), (0, ""))
        call(s, "interrupt", handle=h)
        s.until("the child got SIGTERM", lambda: os.path.exists(s.work_dir + "/child"))
        for trap in ("true", "trap '' TERM"):
            h = start(s, "(%s; exec sleep 600) & echo $!" % trap)
            code, pid = finish(s, h)
            r = call(s, "interrupt", handle=h)
            equal((code, r["isError"], "that the command has left" in text(r)), (0, False, True), r)
            equal(process.wait_gone(int(pid), PATIENCE), True)
        s.stop()


def long_output():
    want = "".join("%d\n" % i for i in range(40000))
    with Server() as s:
        h = start(s, "seq 0 39999")
        equal(finish(s, h), (0, want), "nothing is lost or doubled")
        equal(finish(s, start(s, "printf '\u20ac%.0s' $(seq 40000)")), (0, "\u20ac" * 40000))
        r = call(s, "run", command="seq 0 39999", background=True, wait_s=300)
        got = structured(r)
        equal((got["exit_code"], got["output"].startswith("0\n1\n"), got["output"].endswith("39999"),
               "left out here; wait with after=" in got["output"], len(got["output"]) < 40000), (0,) + (True,) * 4)
        equal(finish(s, got["handle"]), (0, want), "all of it")
        # the bound of a command's output, and the line that says so
        h = start(s, "yes | head -c 70000000; sleep 600")
        r = {"running": True}
        while r["running"]:
            r = structured(call(s, "wait", handle=h, after=64 << 20, wait_s=300))
        equal((r["exit_code"], "more than 64 MiB" in r["output"]), (137, True), r)
        s.stop()


def once():
    """A repeated call starts nothing and leads to the same command."""
    with Server() as s:
        command = "echo x >>%s/count; echo done" % s.work_dir
        first = start(s, command, key="k")
        equal(finish(s, first), (0, "done\n"))
        again = call(s, "run", command=command, background=True, key="k", wait_s=300)
        equal((structured(again)["output"], count(s)), ("done", "x\n"))
        headers = {"X_Request_ID": "one"}
        handles = [start(s, command, headers=headers) for _ in range(3)]
        equal([finish(s, h) for h in handles], [(0, "done\n")] * 3)
        equal((len(set(handles)), count(s)), (1, "x\nx\n"))
        # in the shell it is another call
        equal(structured(call(s, "run", command=command, key="k"))["output"], "done")
        equal(count(s), "x\nx\nx\n")
        s.stop()


def waits_end():
    """A wait ends with the connection of its client, and when its worker is replaced."""
    with Server() as s:
        door, open_it = gate(s)
        h = start(s, door)
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        waiting = message("tools/call", {"name": "wait", "arguments": {"handle": h, "wait_s": 300}})
        c.request("POST", PATH, json.dumps(waiting), head())
        s.until("it waits", lambda: s.pool("action")["busy"] == 1)
        c.close()
        s.until("the wait has ended", lambda: s.pool("action")["busy"] == 0)
        answers = []
        t = threading.Thread(target=lambda: answers.append(call(s, "wait", handle=h, wait_s=300)))
        t.start()
        s.until("it waits", lambda: s.pool("action")["busy"] == 1)
        s.upgrade()
        t.join(PATIENCE)
        equal((structured(answers[0])["running"], "being replaced" in text(answers[0])), (True, True), answers)
        open_it()
        equal(finish(s, h), (0, ""))
        s.stop()


def workers_die():
    killed(background=True, wait_s=300)


def all_others_die():
    """The keeper is killed and handraild replaced: the command lives on."""
    with Server() as s:
        began, wait = marker(s)
        door, open_it = gate(s)
        h = start(s, "echo one; %s; %s; echo two; exit 6" % (began, door))
        wait()
        kill_keeper(s)
        s.upgrade()
        s.kill_and_start()
        equal(structured(call(s, "wait", handle=h, wait_s=0))["running"], True)
        open_it()
        equal(finish(s, h), (6, "one\ntwo\n"))
        s.stop()


if __name__ == "__main__":
    sys.exit(run_tests([commands, refused, interrupted, long_output, once, waits_end, workers_die, all_others_die]))
