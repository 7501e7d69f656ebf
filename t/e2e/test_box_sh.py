#!/usr/bin/env python3
"""A terminal in a box, by "handrail sh" and "handrail exec -it": keys, sizes and statuses pass, the program is as
isolated as any other, and nothing is left of it. As root each case is done twice, by root and by another account."""

import fcntl
import json
import os
import signal
import struct
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.hostbox import run  # noqa: E402
from lib.seat import Seat  # noqa: E402
from lib.tap import equal  # noqa: E402


BOUND = 20  # s; less than a request waits for the server


def sessions(h):
    got = h.ok("run", "curl -s --unix-socket /run/handrail/edge/http.sock -H 'X-Session-API-Key: %s' "
               "http://localhost/handrail/v1/sessions" % h.box()["key"])
    return [s["name"] for s in json.loads(got)["sessions"]]


def up(h):
    """With root in the box, since only root enters the directory of the socket."""
    if h.uid == 0:
        h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-q")


def shell(h):
    """It has a prompt, the size of this terminal, and all keys; it ends with its status, and its session with it."""
    up(h)
    seat = Seat(h, "sh", TERM="xterm-test").until("# ").type("stty size; pwd; echo $TERM:$PS1:\r")
    seat.until("33 77\r\n/workspace\r\nxterm-test:").until("# ")
    for byte in "printf %s né€😀 | od -An -tx1\r".encode():
        os.write(seat.master, bytes([byte]))
    seat.until("6e c3 a9 e2 82 ac f0 9f 98 80\r\n")
    seat.type("sh -c 'echo re''ady; exec cat'\r").until("ready\r\n").type("line\r").until("line\r\nline\r\n")
    seat.type("\x04")
    seat.type("trap 'echo re''sized $(stty size)' WINCH; echo tr''apped\r").until("trapped\r\n")
    fcntl.ioctl(seat.master, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    os.killpg(seat.p.pid, signal.SIGWINCH)
    seat.type("\r").until("resized 20 60\r\n")
    seat.type("sh -c 'echo beg''un; exec sleep 1000'; echo af''ter\r").until("begun\r\n").interrupt().until("^C")
    seat.type("exit 7\r").end(7)
    equal("after" in seat.seen, False)
    equal(sessions(h), ["default"])


def programs(h):
    """Arguments, variables, directories and statuses are those of the program."""
    up(h)
    equal(Seat(h, "sh", "sh", "-c", "echo \"$0:$1\"; stty size; exit 5", "a b", "it's").end(5), "a b:it's\r\n33 77\r\n")
    equal(Seat(h, "exec", "-it", "-w", "/tmp", "-e", "A=b  c", "default", "sh", "-c", "pwd; echo \"$A\"").end(0),
          "/tmp\r\nb  c\r\n")
    equal("nosuch" in Seat(h, "sh", "nosuch").end(127), True)
    equal(Seat(h, "sh", "seq", "20000").end(0).split(), [str(i) for i in range(1, 20001)])
    h.fails(2, "a terminal of the back-end box needs one here", "sh")
    h.fails(2, "a terminal of the back-end box needs one here", "exec", "-i", "default", "cat", input="x")
    equal(sessions(h), ["default"])


def isolated(h):
    """The program has the fence, the groups and the account of the box's other programs, and not this terminal."""
    h.ok("up", "-q")
    about = ("grep -E '^(Seccomp|NoNewPrivs|Cap|Uid|Groups)' /proc/self/status; cat /proc/self/cgroup; "
             "ls -l /proc/self/ns")
    want = h.ok("run", about).split()
    got = Seat(h, "sh", "sh", "-c", about).end(0).split()
    keep = [w for w in want if ":" not in w or "[" in w or w.endswith(":")]
    equal([w for w in keep if w not in got], [])
    equal(Seat(h, "sh", "sh", "-c", "ls /dev/pts | wc -l; tty; ls -d /proc/%d 2>&1 | grep -c 'No such'" %
               os.getpid()).end(0).split()[1:], ["/dev/pts/1", "1"])


def leaving(h):
    """A closed terminal or a signal ends the session with all that runs in it, and the terminal is as before."""
    up(h)
    for number in (signal.SIGTERM, signal.SIGHUP):
        seat = Seat(h, "sh", "sh", "-c", "echo here; exec sleep 1000").until("here\r\n")
        equal(termios.tcgetattr(seat.master)[3] & termios.ICANON, 0, "raw")
        os.kill(seat.p.pid, number)
        equal(seat.p.wait(PATIENCE), 1)
        equal(termios.tcgetattr(seat.master)[3] & termios.ICANON, termios.ICANON)
        os.close(seat.master)
        equal((sessions(h), h.ok("run", "pgrep -f 'sleep 100[0]' | wc -l")), (["default"], "0\n"))
    seat = Seat(h, "sh").until("# ")
    os.close(seat.master)
    equal(seat.p.wait(PATIENCE), 1)
    equal(sessions(h), ["default"])


def unanswered(h):
    """While a request has no answer, a signal ends it at once, and so does Ctrl-C that the server does not take."""
    up(h)
    for number in (signal.SIGTERM, signal.SIGINT):
        seat = Seat(h, "sh", "sh", "-c", "echo here; exec cat").until("here\r\n")
        stopped = [p for p in process.descendants(h.box()["pid"]) if process.command_line(p).startswith("nginx")]
        equal(len(stopped) > 1, True)
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            seat.type("x\r")
            seat.until_mode(termios.ISIG)
            if number == signal.SIGTERM:
                os.kill(seat.p.pid, number)
            else:
                seat.interrupt()
            equal(seat.p.wait(BOUND), 1)
            equal(termios.tcgetattr(seat.master)[3] & termios.ICANON, termios.ICANON)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        os.close(seat.master)


def ended(h):
    """If the box is killed, the terminal is given back with a reason."""
    up(h)
    seat = Seat(h, "sh").until("# ")
    pid = h.box()["pid"]
    os.kill(pid, signal.SIGKILL)
    equal(process.wait_gone(pid, PATIENCE), True)
    while seat.read():
        pass
    equal((seat.p.wait(PATIENCE) != 0, "handrail: " in seat.seen), (True, True), seat.seen)
    os.close(seat.master)


sys.exit(run([shell, programs, isolated, leaving, unanswered, ended]))
