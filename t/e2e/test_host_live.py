#!/usr/bin/env python3
"""handrail run and attach as a person has them, at a terminal: output as it comes, interrupts that are the command's,
and a way to leave it and to come back."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, Host  # noqa: E402
from lib.seat import Seat  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402


def gate(h):
    """A FIFO at which a command waits for the test."""
    os.mkfifo(h.path("gate"))
    return h.path("gate")


def opened(name):
    with open(name, "w") as f:
        f.write("go\n")


def as_it_comes():
    with Host() as h:
        h.ok("up", "-q")
        name = gate(h)
        line = "printf '\\033[31mred\\033[0m\\033]0;title\\a\\n'; read x < %s; stty size; (exit 7)" % name
        seat = Seat(h, "run", line).until("red\033[0m\r\n")
        opened(name)
        equal(seat.end(7), "\033[31mred\033[0m\r\n33 77\r\n", "as it came, without the command, colours alone")
        seat = Seat(h, "run", line, NO_COLOR="1").until("red")
        opened(name)
        equal(seat.end(7), "red\r\n33 77\r\n", "NO_COLOR")
        # what is over at once, and what others get, as ever
        equal(Seat(h, "run", "printf '\\033[32mg\\033[0m'").end(0), "\033[32mg\033[0m\r\n", "fast")
        equal(h.ok("run", "printf '\\033[32mg\\033[0m\\n'; stty size"), "g\n1000 1000\n", "no terminal")
        equal(Seat(h, "run", "echo 'a\nb'").end(0), "a\r\nb\r\n", "an echo of two lines")
        said = json.loads(Seat(h, "run", "-j", "echo x").end(0))
        equal(said["content"], "x\n", "--json")
        equal(Seat(h, "run", "echo a\necho b").end(0), "a\r\nb\r\n", "several commands")


def interrupted():
    with Host() as h:
        h.ok("up", "-q")
        pid = h.ok("run", "echo $$")
        seen = Seat(h, "run", "sh -c 'echo here; exec sleep 1000'").until("here").interrupt().end(130)
        equal(seen.startswith("here\r\n^C"), True, seen)
        # nobody's terminal
        name = gate(h)
        p = h.popen("run", "sh -c 'echo x > %s; exec sleep 1000'" % name)
        with open(name) as f:
            equal(f.read(), "x\n", "it runs")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        equal((p.returncode, out, err), (130, "", ""), "a signal")
        equal(h.ok("run", "echo $$"), pid, "the shell is the same")


def left_and_come_back_to():
    with Host() as h:
        h.ok("-n", "two", "up", "-q")
        h.fails(3, "no command was run", "-n", "two", "attach")
        name = gate(h)
        line = "trap 'echo no' INT; echo first; until read x < %s; do :; done; echo second; trap - INT; (exit 9)" % name
        seat = Seat(h, "-n", "two", "run", line).until("first\r\n").interrupt().until("no\r\n").interrupt()
        seen = seat.end(124)
        equal('"handrail attach -n two" returns to it' in seen, True, seen)
        seat = Seat(h, "-n", "two", "attach").until("first\r\n").until("no\r\n")
        opened(name)
        seen = seat.end(9)
        equal((seen.startswith("first\r\n"), seen.endswith("second\r\n")), (True, True), seen)
        # it has ended: the same once more, as text
        done = h("-n", "two", "attach")
        equal((done.returncode, done.stdout[:6], done.stdout[-8:]), (9, "first\n", "\nsecond\n"), done)
        equal(json.loads(h("-n", "two", "attach", "-j").stdout)["status"], "9", "--json")


def behind_another():
    """One that waits for its turn is shown from its beginning, and not interrupted in another's place."""
    with Host() as h:
        h.ok("up", "-q")
        name = gate(h)
        first = h.popen("run", "echo x > %s; read x < %s; echo one" % (name, name))
        with open(name) as f:
            equal(f.read(), "x\n", "the first one runs")
        seat = Seat(h, "run", "echo two; sleep 1000").until("another command runs").interrupt().until("has not started")
        opened(name)
        equal(first.communicate(timeout=PATIENCE)[0], "one\n", "which nobody interrupted")
        seat.until("two\r\n")
        seat.interrupt().end(124)
        seat = Seat(h, "attach").until("two\r\n")
        seat.interrupt().end(130)


def before_another():
    """What comes after it is another's: it is not shown, not waited for and not interrupted."""
    with Host() as h:
        h.ok("up", "-q")
        name = gate(h)
        os.mkfifo(h.path("next"))
        seat = Seat(h, "run", "echo one; read x < %s" % name).until("one\r\n")
        come_back = Seat(h, "attach").until("one\r\n")
        second = h.popen("run", "-t", "600", "echo two; echo x > %s; read x < %s; echo three" % (h.path("next"), name))
        opened(name)
        with open(h.path("next")) as f:
            equal(f.read(), "x\n", "the second one runs")
        equal(seat.end(0), "one\r\n", "run")
        equal(come_back.end(0), "one\r\n", "attach, which does not wait for the second one")
        opened(name)
        equal(second.communicate(timeout=PATIENCE)[0], "two\nthree\n", "which nobody interrupted")


def takes_nothing_from_others():
    """Who comes back looks on: what an agent has not been told yet of its command is still told to it."""
    with Host() as h:
        h.ok("up", "-q")
        name = gate(h)
        first = h("run", "-t", "0.5", "echo one; read x < %s; echo two; (exit 3)" % name)
        late = time.monotonic() + PATIENCE
        while (first.returncode, first.stdout) == (124, "") and time.monotonic() < late:  # a machine under load
            first = h("run", "-t", "0.5", "")
        equal((first.returncode, first.stdout), (124, "one\n"), "it goes on")
        p = h.popen("attach")
        equal(p.stdout.readline(), "one\n", "attach shows it")
        opened(name)
        out, err = p.communicate(timeout=PATIENCE)
        equal((p.returncode, out, err), (3, "two\n", ""), "to its end")
        told = json.loads(h("run", "-j", "").stdout)
        equal((told["content"], told["extras"]["metadata"]["exit_code"]), ("two\n", 3), "and so the agent")
        done = h("attach")
        equal((done.returncode, done.stdout), (3, "one\ntwo\n"), "it has ended")
        equal(done.stderr, "handrail: the command has ended, with status 3\n", "which is said")
        equal(h("attach", "-q").stderr, "", "unless nobody wants to know")


def nobody_reads():
    with Host() as h:
        h.ok("up", "-q")
        name = gate(h)
        first = h.popen("run", "-t", "600", "echo x > %s; echo one; read x < %s" % (name, name))
        with open(name) as f:
            equal(f.read(), "x\n", "it runs")
        p = h.popen("attach")
        equal(p.stdout.readline(), "one\n", "attach shows it")
        p.stdout.close()
        equal((p.wait(PATIENCE), p.stderr.read()), (1, ""), "and ends with its reader")
        p.stderr.close()
        opened(name)
        equal(first.communicate(timeout=PATIENCE)[0], "one\n", "the command does not")
        # with much more to say, with nothing, and with nothing for a long time
        for line, last in ((("logs",), ""), (("run", "seq 100000"), ""), (("logs", "-f"), "ready: listening"),
                           (("top", "-d", "80000"), "resources.io.write_bytes")):
            p = h.popen(*line)
            if last:
                next(row for row in p.stdout if last in row)
            p.stdout.close()
            p.wait(PATIENCE)
            equal(p.stderr.read(), "", line)
            p.stderr.close()
        with open("/dev/full", "w") as full:
            done = subprocess.run([os.path.join(BUILD, "handrail"), "logs"], env=h.env, stdout=full,
                                  stderr=subprocess.PIPE, timeout=PATIENCE)
        equal((done.returncode, b"No space left" in done.stderr), (1, True), "a line that cannot be printed")


def seq(last):
    return "".join("%d\n" % n for n in range(1, last + 1))


def requests():
    """A command that is over at once takes no request but its own, and one for its output, if it has printed any."""
    with Host() as h:
        log, settings, server = h.path("access.log"), h.path("settings"), h.path("server")
        with open(settings, "w") as f:
            json.dump({"access_log": log}, f)
        with open(server, "w") as f:
            f.write("#!/bin/sh\nexec %s --config %s \"$@\"\n" % (h.env["HANDRAIL_SERVER"], settings))
        os.chmod(server, 0o755)
        h.env["HANDRAIL_SERVER"] = server
        h.ok("up", "-q")
        equal([(p.returncode, p.stdout, p.stderr) for p in (h("run", line) for line in (
            "true", "(exit 3)", "printf '  x\\n\\n'", "printf '\\033[m'"))],
            [(0, "", ""), (3, "", ""), (0, "  x\n\n", ""), (0, "", "")])
        h.ok("down", "-q")
        with open(log) as f:
            paths = [json.loads(line)["path"] for line in f]
        equal([p for p in paths if p.startswith("/handrail/v1/")], ["/handrail/v1/output"] * 2, paths)


def whole_output():
    """On a pipe and in a file all of it, as it comes, however long it is and however slow its reader."""
    with Host() as h:
        h.ok("up", "-q")
        equal(h("run", "true").returncode, 0, "one whose output nobody follows")
        # the reader takes a little, and the rest when the shell has nothing more to say for now
        name = gate(h)
        p = h.popen("run", "echo first; read x < %s; seq 1 700000" % name)
        equal(p.stdout.readline(), "first\n", "as it comes")
        opened(name)
        # the shell has printed more than is kept, were it not for this reader
        equal(json.loads(h.ok("run", "--json", "--cwd", "/", "echo x"))["content"], "x\n", "meanwhile")
        out, err = p.stdout.read(), p.stderr.read()
        equal((p.wait(PATIENCE), err, out == seq(700000)), (0, "", True), (len(out), err))
        equal("too slowly" in h.ok("logs"), False, "the command waited for its own reader alone")
        p.stdout.close()
        p.stderr.close()
        done = h("run", "seq 1 700000; (exit 3)")
        equal((done.returncode, done.stderr, done.stdout == seq(700000)), (3, "", True), done.stdout[-200:])
        done = h("run", "-t", "60", "printf '  x\\n\\n'; seq 1 9000")
        equal((done.returncode, done.stdout == "  x\n\n" + seq(9000)), (0, True), "with a limit, and its blanks")
        # what comes without being followed says so where a part of it is missing
        done = h("run", "--cwd", "/", "seq 1 9000")
        equal((done.returncode, done.stdout == seq(9000)), (0, True), "--cwd")
        done = h("run", "--cwd", "/", "seq 1 100000")
        equal((done.returncode, "a part of the output is missing" in done.stderr), (1, True), done.stderr)
        said = json.loads(h("run", "--json", "seq 1 100000").stdout)
        equal((said["content"].endswith("\n99999\n100000\n"), "Observation truncated" in said["content"],
               "Previous command outputs are truncated" in said["extras"]["metadata"]["prefix"]),
              (True, False, True), "of an observation the beginning is left out, which it says")


def reader_that_stops():
    """A command does not wait for ever for a reader, nor does the shell once that has gone."""
    with Host() as h:
        h.ok("up", "-q")
        p = h.popen("run", "seq 1 3000000 | tee %s | tail -c 2000000; echo done" % h.path("seen"))
        equal(p.stdout.readline() != "", True, "it prints")
        p.stdout.close()
        equal(p.wait(PATIENCE), 1, "the reader is gone")
        p.stderr.close()
        equal(h.ok("attach", "-q")[-5:], "done\n", "the command is not")
        # the command needs no other reader to continue
        name = gate(h)
        p = h.popen("run", "seq 1 700000; echo x > %s" % name)
        equal(p.stdout.readline(), "1\n", "it prints")
        p.stdout.close()
        p.stderr.close()
        p.wait(PATIENCE)
        with open(name) as f:
            equal(f.read(), "x\n", "it reaches its end")
        equal("too slowly" in h.ok("logs"), False, "without a wait for a reader")


def standard_input():
    """What a command cannot be given is refused at once, and leaves no shell that waits for it."""
    with Host() as h:
        h.ok("up", "-q")
        with open(h.path("cwd", "list"), "w") as f:
            f.write("data\n")
        refused = "standard input is not passed to commands"
        for words in (("run", "cat"), ("run", "--cwd", "/", "cat"), ("up", "--run", "cat")):
            with open(h.path("cwd", "list")) as f:
                done = h(*words, stdin=f)
            equal((done.returncode, done.stdout, refused in done.stderr), (2, "", True), (words, done))
        # when it comes only after the command has begun
        name = gate(h)
        p = h.popen("run", "echo x > %s; cat" % name, stdin=subprocess.PIPE)
        with open(name) as f:
            equal(f.read(), "x\n", "it runs")
        out, err = p.communicate("data\n", timeout=PATIENCE)
        equal((p.returncode, refused in err), (130, True), (out, err))
        # one process: an interrupt between the fork and the start of a program would be lost
        program = ("import signal, sys; signal.signal(signal.SIGINT, lambda *unused: sys.exit(0)); "
                   "print('x', file=open('%s', 'w'), flush=True); sys.stdin.read()" % name)
        p = h.popen("run", "python3", "-c", program, stdin=subprocess.PIPE)
        with open(name) as f:
            equal(f.read(), "x\n", "it runs")
        out, err = p.communicate("data\n", timeout=PATIENCE)
        equal((p.returncode, refused in err), (1, True), (out, err))
        equal(h.ok("run", "echo free"), "free\n", "the shell")
        with open(h.path("cwd", "list")) as f:
            f.read()
            equal(h("run", "echo x", stdin=f).stdout, "x\n", "at its end")
        equal(h("run", "echo x", stdin=subprocess.DEVNULL).stdout, "x\n", "nothing")


def no_server():
    with Host(RUNTIME="cli") as h:
        h.ok("up", "-q")
        line = "printf '\\033[31mred\\033[0m\\033]0;title\\a'"
        equal(Seat(h, "run", line).end(0), "\033[31mred\033[0m\r\n", "colours alone")
        equal(Seat(h, "run", "echo x").end(0), "x\r\n", "run")
        h.fails(1, "no shell to return to", "attach")
        done = h("run", "seq 1 700000; (exit 3)")
        equal((done.returncode, done.stderr, done.stdout == seq(700000)), (3, "", True), "whole")
        name = gate(h)
        p = h.popen("run", "echo first; read x < %s" % name)
        equal(p.stdout.readline(), "first\n", "as it comes")
        opened(name)
        p.communicate(timeout=PATIENCE)
        equal(p.returncode, 0, "its end")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (as_it_comes, interrupted, left_and_come_back_to, behind_another, before_another,
                 takes_nothing_from_others, nobody_reads, requests, whole_output, reader_that_stops, standard_input,
                 no_server):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
