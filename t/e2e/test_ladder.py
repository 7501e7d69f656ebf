#!/usr/bin/env python3
"""The way out of a shell that is stuck: flow, keys, a signal, and at last another shell; and who is told of it."""

import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.supervised import PATIENCE, ROOT, Server, marker, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

V1 = "/handrail/v1/"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
RESTARTED = "[The shell exited and has been restarted in "
# holds a process as a debugger does, and says when
TRACER = """
import ctypes, os, sys, time
c, pid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
open(sys.argv[3]).close()  # until the command that starts this has its answer
if c.ptrace(16, pid, 0, 0) != 0:
    sys.exit("ptrace: errno %d" % ctypes.get_errno())
os.waitpid(pid, 0x40000000)
open(sys.argv[2], "w").close()
time.sleep(1000)
"""


def post(s, what, **body):
    a = s.request("POST", V1 + what, json.dumps(body), {"Content-Type": "application/json"})
    return a.status, a.json()


def hold(s):
    """Stops the shell, as a debugger does. Returns the process that holds it."""
    script, sign = os.path.join(s.work_dir, "tracer.py"), os.path.join(s.work_dir, "held")
    with open(script, "w") as f:
        f.write(TRACER)
    open(sign + ".err", "w").close()
    os.chmod(sign + ".err", 0o666)
    go = os.path.join(s.work_dir, "go")
    if not os.path.exists(go):
        os.mkfifo(go)
        os.chmod(go, 0o666)
    a = s.action("(setsid %s %s $$ %s %s 2>>%s.err & echo $!; disown)" % (PYTHON, script, sign, go, sign))
    equal(a.status, 200, a)
    open(go, "w").close()
    s.until("it is traced", lambda: os.path.exists(sign) or os.path.getsize(sign + ".err") > 0)
    with open(sign + ".err") as f:
        equal(f.read(), "")
    return int(a.json()["content"])


def suffix(answer):
    equal(answer.status, 200, answer)
    return answer.json()["extras"]["metadata"]["suffix"]


def replaced():
    """As after a death: the directory and exported variables are kept, who waits is told, who queues is served."""
    with Server() as s:
        s.run("mkdir here; cd here; export KEPT=yes; lost=yes")
        began, wait = marker(s)
        stuck = s.in_background("trap '' HUP INT QUIT TERM; bash -c '%s; while :; do sleep 1; done'" % began,
                                blocking=True)
        wait()
        queued = s.in_background("echo ${KEPT-} ${lost-} ${PWD##*/}")
        equal(post(s, "signal", signal="INT")[0], 200)
        equal(post(s, "kill"), (200, {}))
        stuck.join(PATIENCE)
        equal((stuck.answer.json()["extras"]["metadata"]["exit_code"], RESTARTED in suffix(stuck.answer)), (137, True))
        equal(queued.content(), "yes here")
        commands = json.loads(s.get(V1 + "commands").body)["commands"]
        equal([c["state"] for c in commands[-2:]], ["shell ended", "completed"])
        # at rest, and once more
        for _ in range(3):
            equal(post(s, "kill"), (200, {}))
            equal(s.run("echo ${KEPT-} ${lost-} ${PWD##*/}"), "yes here")
        equal(s.get("/ready").status, 200)


def exports_are_kept():
    """Those of a command that was answered, however soon its shell is ended after that: the first of a shell,
    too."""
    with Server(env={"LONG%d" % i: "x y'z\"" * 30 for i in range(40)}) as s:
        for i in range(10):
            s.run("export KEPT=%d" % i)
            equal(post(s, "kill"), (200, {}))
            if i % 2:
                equal(s.run("echo $KEPT ${#LONG39}"), "%d 180" % i)


def the_shell_itself():
    """What bash runs without another process is in nobody's foreground."""
    with Server() as s:
        began, wait = marker(s)
        loop = s.in_background("%s; while :; do :; done" % began, blocking=True)
        wait()
        equal(post(s, "signal", signal="TERM")[0], 409)
        equal(post(s, "signal", signal="INT")[0], 200)
        loop.join(PATIENCE)
        equal(loop.answer.json()["extras"]["metadata"]["exit_code"], 130)
        began, wait = marker(s)
        loop = s.in_background("trap '' INT; %s; while :; do :; done" % began, blocking=True)
        wait()
        equal(post(s, "signal", signal="INT")[0], 200)
        equal(post(s, "signal", signal="KILL")[0], 200)
        loop.join(PATIENCE)
        equal(RESTARTED in suffix(loop.answer), True)
        equal(s.run("echo ok"), "ok")


def its_files_gone():
    """What the shell and its keeper share is in the shell's reach where both have one account, and its mode is
    where they have two: the next shell has all of it again."""
    with Server() as s:
        hook = "$(printf %s \"$PROMPT_COMMAND\" | sed \"s/.*'\\(.*\\)'.*/\\1/\")"
        shared = "s=%s; cd \"${s%%/*}\"; " % hook
        for harm in ("rm -f report.*", "rm -f ack.*", "rm -f vars.*", "rm -f line.*", "rm -f hook.*", "rm -f *.*",
                     "chmod 0 *.*", "chmod 0 .", "for f in *.*; do rm -f $f; mkfifo $f; done",
                     "for f in *.*; do rm -f $f; mkdir $f; done",
                     "for f in *.*; do rm -f $f; ln -s /dev/zero $f; done"):
            s.run("cd %s; export KEPT=%r" % (s.work_dir, harm))
            s.action("(%s%s)" % (shared, harm))
            equal(post(s, "kill"), (200, {}), harm)
            equal(s.run("echo \"$KEPT\""), harm)
            equal(s.action("(exit 3)").json()["extras"]["metadata"]["exit_code"], 3, harm)
            equal(s.get("/ready").status, 200, harm)


def mode_of_its_files():
    """Of what is given to the user, where the keeper is root's and the shell is not."""
    if not ROOT:
        raise Skip("the shell has an account of its own under root only: run the tests as root")
    with Server(name="nobody", env={"RUNTIME_USERNAME": "nobody"}) as s:
        s.run("export KEPT=yes")
        s.action("f=$(printf %s \"$PROMPT_COMMAND\" | sed \"s/.*'\\(.*\\)'.*/\\1/\"); "
                 "chmod 0 $(grep -o \"[^' ]*/ack[.][^' ]*\" $f)")
        equal(post(s, "kill"), (200, {}))
        equal(s.run("echo $KEPT; id -un"), "yes\nnobody")


def output_flows():
    """A request lets it: none of these has a prompt to do so."""
    with Server() as s:
        stop = "%s -c 'import termios; termios.tcflow(0, termios.TCOOFF)'" % PYTHON
        began, wait = marker(s)
        held = s.in_background("%s; %s; echo held" % (stop, began), blocking=True)
        wait()
        equal(post(s, "input", text="")[0] in (200, 409), True)
        equal(held.content(), "held")
        equal(s.run("echo ok"), "ok")


def before_it_is_taken():
    """A command that the shell was given, and cannot take yet, is ended all the same, and never run."""
    ways = [("signal", {"signal": name}, 128 + getattr(signal, "SIG" + name))
            for name in ("INT", "TERM", "HUP", "QUIT", "KILL")]
    for what, how, code in ways + [("keys", {"keys": ["C-c"]}, 130)]:
        with Server() as s:
            s.run("true")
            holder = hold(s)
            last = json.loads(s.get(V1 + "commands").body)["commands"][-1]["id"]
            given = s.in_background("echo >ran; sleep 1000", blocking=True)
            s.until("it is given", lambda: json.loads(s.get(V1 + "commands").body)["commands"][-1]["id"] > last)
            equal(post(s, what, **how)[0], 200)
            given.join(PATIENCE)
            equal(given.answer.json()["extras"]["metadata"]["exit_code"], code)
            os.kill(holder, signal.SIGKILL)
            equal(s.run("ls ran; echo ok"), "ls: cannot access 'ran': No such file or directory\nok")
            commands = json.loads(s.get(V1 + "commands").body)["commands"]
            equal([(c["state"], c["exit_code"]) for c in commands[-2:]], [("completed", code), ("completed", 0)])


def told():
    """/ready is 200 while a command runs for long, and says it where the shell is held."""
    with Server() as s:
        began, wait = marker(s)
        long = s.in_background("%s; sleep 1000" % began, blocking=True)
        wait()
        equal((s.get("/ready").status, json.loads(s.get(V1 + "session").body)["running"]), (200, True))
        equal(post(s, "kill"), (200, {}))
        long.join(PATIENCE)
        hold(s)
        a = s.get("/ready")
        equal((a.status, a.json()["status"], a.json()["components"]["session"]["state"]),
              (503, "not ready", "not answering"), a)
        equal("traces" in a.json()["reason"], True, a.json()["reason"])
        equal(json.loads(s.get(V1 + "session").body)["ready"], False)
        equal(post(s, "kill"), (200, {}))
        equal(s.get("/ready").status, 200)
        equal(s.run("echo ok"), "ok")


def output_elsewhere():
    """Nothing is shown, and the observation says why."""
    with Server() as s:
        def note(command):
            a = s.action(command)
            return a.json()["content"], suffix(a).split("\n")[2:]

        equal(note("echo ok"), ("ok", []))
        for where, what, back in ((">/dev/null", "output does", ">/dev/tty"),
                                  ("2>/dev/null", "error does", "2>/dev/tty"),
                                  (">o.txt 2>&1", "output and error do", ">/dev/tty 2>&1"),
                                  ("1>&-", "output does", ">/dev/tty")):
            s.run("exec " + where)
            content, notes = note("true")
            equal((content, len(notes)), ("", 1), (where, notes))
            equal(("standard %s not go to its terminal" % what in notes[0], notes[0].endswith("exec %s]" % back)),
                  (True, True), (where, notes))
            s.run("exec " + back)
            equal(note("echo ok; ls >/dev/null 2>&1"), ("ok", []), where)
        s.run("exec >/dev/null")
        equal(RESTARTED in suffix(s.action("kill -9 $$")), True)
        equal(note("echo ok"), ("ok", []), "another shell")


if __name__ == "__main__":
    run_tests([replaced, exports_are_kept, the_shell_itself, its_files_gone, mode_of_its_files, output_flows,
               before_it_is_taken, told, output_elsewhere])
