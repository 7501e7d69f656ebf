#!/usr/bin/env python3
"""What a command printed, as each interface returns it: once, without the text of the command, and as it was printed.
V0's own rules hold for its wire alone (doc/architecture.md, "The rules of V0")."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.host import Host  # noqa: E402
from lib.supervised import Server, gate, marker, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_door import call, handle_in, structured, text  # noqa: E402


def output(s, command, **args):
    return structured(call(s, "run", command=command, **args))["output"]


def waited(s, answer, want):
    """The output of a command that goes on, until so much is there; and the last answer."""
    seen = structured(answer)["output"]
    while not seen.endswith(want):
        answer = call(s, "wait", handle=structured(answer)["handle"], wait_s=0.1)
        seen += structured(answer)["output"]
    return seen, answer


def returned_once():
    """In the next run, whose ever it is, nothing is repeated that wait has returned."""
    with Server() as s:
        number = 0
        for again in (lambda: output(s, "echo second"), lambda: s.run("echo second")):
            for how in ("wait", "input", "key", "parts"):
                number += 1
                door, open_it = gate(s, "g%d" % number)
                key = {"key": "k%d" % number} if how == "key" else {}
                command = "%s; echo first" % door
                if how == "input":
                    command += "; read x; echo $x"
                if how == "parts":
                    command = "echo zero; " + command
                r = call(s, "run", command=command, wait_s=0, **key)
                equal(structured(r)["running"], True, how)
                if how == "parts":
                    seen, r = waited(s, r, "zero\n")
                    equal(seen, "zero\n")
                open_it()
                if how == "input":
                    seen, r = waited(s, r, "first\n")
                    equal(seen, "first\n")
                    equal(call(s, "input", handle=handle_in(r), text="typed\n")["isError"], False)
                    equal("typed\ntyped\n" in structured(call(s, "wait", handle=handle_in(r)))["output"], True)
                elif how == "key":
                    r = call(s, "run", command=command, **key)
                    equal(structured(r)["output"], "first")
                else:
                    equal(structured(call(s, "wait", handle=handle_in(r)))["output"], "first\n")
                equal(again(), "second", how)
        s.stop()


def not_returned_is_not_lost():
    """No interface has returned it: the next run does, after what was returned."""
    with Server() as s:
        for number, again in enumerate((lambda: output(s, "echo next"), lambda: s.run("echo next"))):
            door, open_it = gate(s, "a%d" % number)
            ended, wait_ended = marker(s, "b%d" % number)
            r = call(s, "run", command="echo one; %s; seq 3000; %s" % (door, ended), wait_s=0)
            seen, r = waited(s, r, "one\n")
            equal(seen, "one\n")
            call(s, "wait", handle=structured(r)["handle"], after=1 << 50, wait_s=0)  # nothing stands there yet
            open_it()
            wait_ended()
            s.until("it has ended", lambda: not s.get("/handrail/v1/session").json()["running"])
            equal(again(), "\n".join(str(n) for n in range(1, 3001)) + "\nnext")
            equal(again(), "next")
        s.stop()


def long_command():
    """Longer than is kept for the next keeper: nothing is lost or repeated either."""
    with Server() as s:
        door, open_it = gate(s)
        ended, wait_ended = marker(s)
        r = call(s, "run", command="echo one; %s; seq 300; %s; : %s" % (door, ended, "x" * 40000), wait_s=0)
        equal(waited(s, r, "one\n")[0], "one\n")
        open_it()
        wait_ended()
        s.until("it has ended", lambda: not s.get("/handrail/v1/session").json()["running"])
        equal(s.run("echo next"), "\n".join([str(n) for n in range(1, 301)] + ["next"]))
        s.stop()


def attached_once():
    """The same of the command handrail: attach has shown it."""
    with Host() as h:
        h.ok("up", "-q")
        name = h.path("tmp", "gate")
        os.mkfifo(name)
        first = h("run", "-t", "0.2", "read x < %s; echo first" % name)
        equal((first.returncode, first.stdout), (124, ""))
        p = h.popen("attach")
        with open(name, "w") as f:
            f.write("x\n")
        equal((p.communicate()[0], p.returncode), ("first\n", 0))
        equal(h.ok("run", "echo second"), "second\n")


LONG = "".join("%05d a line of a here-document that is long\n" % i for i in range(1000))


def no_echo():
    """However long the command, however it came to the shell, whatever the terminal's mode: its text is no output."""
    with Server() as s:
        for number, prepare in enumerate(("true", "export E=1", "stty -echo", "stty raw", "set -o vi", "PS2='> '")):
            for size in (40, 500, 24000, len(LONG)):
                door, open_it = gate(s, "g%d-%d" % (number, size))
                s.run(prepare)
                body = LONG[:size].rpartition("\n")[0]
                command = "cat >/dev/null <<'END'\n%s\nEND\n%s; echo done" % (body, door)
                r = call(s, "run", command=command, wait_s=0.1, env={"SECRET": "s3cret" * 300})
                equal(structured(r)["output"], "", (prepare, size))
                open_it()
                r = structured(call(s, "wait", handle=handle_in(r)))
                equal((r["output"], r["exit_code"]), ("done\n", 0), (prepare, size))
                last = s.get("/handrail/v1/commands").json()["commands"][-1]
                log = s.get("/handrail/v1/output?offset=%d&command=%d" % (last["output"]["start"], last["id"])).body
                equal(re.sub(rb"\x1b\[\?2004l\r|\x1b\][^\a]*\a", b"", log), b"done\r\n", (prepare, size))
        # one line that the terminal wraps, and an output that begins as its command does
        command = "echo %s" % ("x" * 5000)
        equal(output(s, command), "x" * 5000)
        with open(s.work_dir + "/f", "w") as f:
            f.write("cat f\n")
        equal(output(s, "cat f", cwd=s.work_dir), "cat f")
        s.stop()


def as_it_was_printed():
    with Server() as s:
        with open(s.work_dir + "/f", "w") as f:
            f.write("one\n    two\n\tthree  \n\n   \n")
        s.run("cd " + s.work_dir)
        equal(output(s, "sed -n 2,3p f"), "    two\n        three  ")
        equal(output(s, "sed -n 3,9p f"), "        three  \n\n   ")
        equal(output(s, "printf '\\n\\n  a\\n\\n\\n'"), "\n\n  a\n\n")
        equal(output(s, "printf '  '"), "  ")
        s.run("git init -q && touch g && git add g && rm g")
        equal(output(s, "git status -s").split("\n")[0], "AD g")
        s.run("git -c user.name=n -c user.email=e commit -qm x && touch g && git add g && git commit -qm y; rm -f g")
        equal(output(s, "git status -s g"), " D g")
        # by V0's rules
        equal(s.run("sed -n 2,3p f"), "two\n        three")
        equal(s.run("printf '\\n\\n  a\\n\\n\\n'"), "a")
        # what of a command that goes on is new begins a line
        door, open_it = gate(s)
        ended, wait_ended = marker(s)
        r = call(s, "run", command="printf '  one  '; %s; printf '  1\\n  two  '; %s" % (door, ended), wait_s=0)
        seen, r = waited(s, r, "one  ")
        open_it()
        wait_ended()
        equal(structured(call(s, "wait", handle=structured(r)["handle"]))["output"].endswith("  two  "), True, seen)
        equal("    x" in text(call(s, "run", command="echo '    x'")), True)
        s.stop()


def however_long_it_takes():
    """A command that the keeper waits for, and one whose output is followed, answer the same."""
    with Server() as s:
        for number, command in enumerate((
                "echo a", "true", "echo", "printf '  a  '", "printf '  '", "printf 'a\\n\\n'",
                "printf '\\n\\n  a\\n\\n\\n'",
                "printf 'a  \\n\\n   \\n'", "printf 'a  \\n b\\rc \\n\\td'", "printf '%0300d\\n' 1 2")):
            door, open_it = gate(s, "g%d" % number)
            slow = {"command": "%s; %s" % (door, command), "key": "k%d" % number}
            equal(structured(call(s, "run", wait_s=0, **slow))["running"], True)
            open_it()
            equal(output(s, **slow), output(s, command), command)
        s.stop()


LOOP = "for i in 1 2\r\ndo\r\n  echo $i\r\ndone"
DOCUMENT = "cat <<E\r\na $((1 + 1))\r\nE\r\n"


def line_ends():
    """CR LF at the ends of lines is what a terminal would make of it; a CR elsewhere stays."""
    with Server() as s:
        equal(output(s, LOOP), "1\n2")
        equal(output(s, DOCUMENT), "a 2")
        equal(output(s, "cd /usr\r\npwd\r\n"), "/usr")
        equal(output(s, DOCUMENT, session="other"), "a 2")
        equal(output(s, "printf %s 'a\rb' | od -An -c | tr -d ' '"), "a\\rb")
        equal(s.run("printf %s 'a\r\nb' | od -An -c | tr -d ' '"), "a\\r\\nb", "V0's wire")
        for prepare in ("true", "export E=1"):  # given to readline, and typed
            s.run(prepare)
            equal(output(s, "printf '%s\\n' a \\\r\n  b"), "a\nb", prepare)
            s.run(prepare)
            equal(output(s, "{ x=%s\r\necho ${#x}\r\n}" % ("y" * 40000)), "40000", prepare)
        s.stop()
    with Host() as h:
        h.ok("up", "-q")
        equal(h.ok("run", LOOP), "1\n2\n")
        equal(h.ok("run", DOCUMENT), "a 2\n")


def own_interfaces():
    """The page's way, the client's and contrib's: as of the tools for agents, and unlike V0's wire."""
    cases = (("sed -n 2,3p f", "  two\n        three\n"), (LOOP, "1\n2\n"), (DOCUMENT, "a 2\n"),
             ("printf '  a\\n'\necho b", "  a\nb\n"), ("printf '[%s]\\n' a\\ ", "[a ]\n"), ("echo b \\", "b\n"))

    def page(s, command, session=None):
        a = s.request("POST", "/handrail/v1/run" + ("?session=" + session if session else ""),
                      json.dumps({"action": {"action": "run", "args": {"command": command}}}))
        return json.loads(a.body)["content"]

    with Server() as s:
        text = "one\n  two\n        three\nfour\n"
        s.run("printf %s '" + text + "' >f")
        s.request("POST", "/handrail/v1/create", json.dumps({"name": "named"}))
        s.run("true")
        equal(page(s, "cd %s" % s.work_dir, "named"), "")
        for command, printed in cases:
            for session in (None, "named"):
                equal(page(s, command, session), printed, (command, session))
        for action in ({"action": "read", "args": {"path": "f"}},
                       {"action": "run", "args": {"command": "true", "is_static": True}}):
            equal(s.request("POST", "/handrail/v1/run", json.dumps({"action": action})).status, 400, action)
        equal(s.run("sed -n 2,3p f"), "two\n        three", "V0's wire")
        equal(s.run("echo a\necho b").startswith("ERROR: Cannot execute multiple commands"), True, "V0's wire")
        s.stop()
    with Host() as h:
        h.ok("up", "-q")
        h.ok("write", "f", input=text)
        for command, printed in cases:
            equal(h.ok("run", command), printed, command)
            equal(json.loads(h.ok("run", "-j", command))["content"], printed, command)
            equal(h.ok("run", "--cwd", ".", command), printed, command)
        h.ok("write", "f", input="a\r\nb\r\n")
        equal(json.loads(h.ok("read", "-j", "f"))["content"], "a\r\nb\r\n", "a file with its line ends")


if __name__ == "__main__":
    sys.exit(run_tests((returned_once, not_returned_is_not_lost, long_command, attached_once, no_echo,
                        as_it_was_printed, however_long_it_takes, line_ends, own_interfaces)))
