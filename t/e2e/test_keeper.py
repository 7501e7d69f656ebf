#!/usr/bin/env python3
"""handrail-session alone: what becomes of answers that nobody takes, and of a bad start."""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import keeper, process, shells, supervised  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

PROGRAM = os.path.join(supervised.BUILDDIR, "handrail-session")


class Started(keeper.Keeper):
    def __init__(self):
        super().__init__(PROGRAM, env=shells.environment())

    def __enter__(self):
        equal(self.ready, b"ready\n", "readiness")
        return self

    def __exit__(self, kind, value, trace):
        wrong = self.stop()
        if kind is None:
            equal(wrong, [], "the end")

    def ask_and_leave(self, command, key):
        """The request is there as a whole when the keeper looks at it, and the peer gone."""
        os.kill(self.process.pid, signal.SIGSTOP)
        self.send(command, key=key).close()
        os.kill(self.process.pid, signal.SIGCONT)

    def until_idle(self):
        """What was asked before is answered when this is."""
        return self.run("true")


COUNT = "echo x >> count; echo $(wc -l < count)"


def background_output():
    """What a background job prints belongs to no command, but it is not lost either: not where it
    comes between the prompt and the command, nor into the line editor's echo."""
    with Started() as k:
        out = k.run("p() { for ((i = 0; i < 1500; i++)); do echo L$i; read -rt 0.0005 <>gap; done; }; "
                    "mkfifo gap; p &").content
        for _ in range(200):
            out += "\n" + k.run(": one\n").content
        out += "\n" + k.run("wait; rm gap").content
        lines = [line for line in out.split("\n") if line.startswith("L")]
        equal(lines, ["L%d" % i for i in range(1500)], "lines")


def lost_once():
    with Started() as k:
        k.ask_and_leave(COUNT, "k1")
        k.until_idle()
        equal(k.run(COUNT, key="k1").content, "1", "the same request again")
        equal(k.run("cat count").content, "x", "executed")


def lost_twice():
    with Started() as k:
        k.ask_and_leave(COUNT, "k1")
        k.until_idle()
        k.ask_and_leave(COUNT, "k1")
        k.until_idle()
        equal(k.run(COUNT, key="k1").content, "1", "the same request for the third time")
        equal(k.run("cat count").content, "x", "executed")


def lost_by_all_who_joined():
    with Started() as k:
        os.mkfifo(os.path.join(k.work_dir, "go"), 0o666)
        command = "cat go; " + COUNT
        k.send(command, key="k1").close()
        k.ask_and_leave(command, "k1")  # joins the first one: it waits for the fifo
        k.status()  # it was asked after both, so both were seen
        with open(os.path.join(k.work_dir, "go"), "w"):
            pass
        k.until_idle()
        equal(k.run(command, key="k1").content, "1", "the same request for the third time")
        equal(k.run("cat count").content, "x", "executed")


def other_keys_are_other_requests():
    with Started() as k:
        k.ask_and_leave(COUNT, "k1")
        k.until_idle()
        equal(k.run(COUNT, key="k2").content, "2", "another key")
        equal(k.run(COUNT).content, "3", "no key")
        equal(k.run(COUNT, key="k1").content, "1", "the first key")


def a_failed_start_is_one_line():
    k = keeper.Keeper(PROGRAM, env=shells.environment(), init=["printf 'a\\nb\\n'; (exit 7)"])
    k.stop()
    equal(k.ready, b"failed printf 'a\\nb\\n'; (exit 7): a b\n", "what the supervisor reads")


def ask_the_terminal(k, last):
    """The shell asks the terminal, does what comes last, and blocks; the keeper sees all at once."""
    shell = k.shell_pid()
    go, done = (os.path.join(k.work_dir, name) for name in ("go", "done"))
    os.mkfifo(go, 0o666)
    sock = k.send("cat go; printf '\\e[6n\\e[c'; : > done; " + last)
    with open(go, "w"):  # when cat has opened it, too
        os.kill(k.process.pid, signal.SIGSTOP)
    until(lambda: os.path.exists(done) and process.stat_fields(shell)[0] == b"S")
    os.kill(k.process.pid, signal.SIGCONT)
    with sock:
        fields = keeper.decode(keeper.read_all(sock))[1]
    os.unlink(go)
    os.unlink(done)
    return fields


def until(test):
    end = time.monotonic() + supervised.PATIENCE
    while not test():  # each question is a system call
        equal(time.monotonic() < end, True, "in time")


def nobody_reads_the_answer():
    with Started() as k:
        for _ in range(20):
            equal(ask_the_terminal(k, ":")["content"], "", "of who asked and left")
            equal(k.run("echo ok").content, "ok", "of the next command")


def somebody_reads_the_answer():
    with Started() as k:
        got = ask_the_terminal(k, "read -srdc a; declare -p a")
        equal(got["content"], 'declare -- a=$\'\\E[1;1R\\E[?1;2\'', "the answer")
        equal(k.run("echo ok").content, "ok", "of the next command")


def main():
    if not os.access(PROGRAM, os.X_OK):
        from lib.tap import skip_all
        skip_all("handrail-session is not built: run make")
    process.become_subreaper()
    tap = Tap()
    for test in (background_output, lost_once, lost_twice, lost_by_all_who_joined,
                 other_keys_are_other_requests, a_failed_start_is_one_line, nobody_reads_the_answer,
                 somebody_reads_the_answer):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
