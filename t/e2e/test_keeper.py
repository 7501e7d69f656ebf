#!/usr/bin/env python3
"""handrail-session alone: what becomes of answers that nobody takes, and of a bad start."""

import fcntl
import os
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import keeper, process, shells, supervised  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

PROGRAM = os.path.join(supervised.BUILDDIR, "handrail-session")


class Started(keeper.Keeper):
    def __init__(self, **more):
        super().__init__(PROGRAM, env=shells.environment(), **more)

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


def signals_at_rest():
    """A trap is run at once, not with the next command; an interrupt takes no command with it."""
    with Started() as k:
        shell = int(k.run("mkfifo told; trap 'echo got >told' USR1; echo $$").content)
        os.kill(shell, signal.SIGUSR1)
        with open(os.path.join(k.work_dir, "told"), encoding="ascii") as f:
            equal(f.read(), "got\n")
        for i in range(50):
            os.kill(shell, signal.SIGINT)
            equal(k.run("echo %d" % i).content, str(i))
        equal(k.run("echo $$").content, str(shell))


def set_v():
    """Bash shows what it reads: none of what is run at a prompt."""
    with Started() as k:
        k.run("set -v")
        for command in ("export A=1", "cd /", "true"):
            equal(k.run(command).content, command)
        equal(k.run("echo a").content, "echo a\na")


def small_pipes():
    """As the system gives them to a user who has very many."""
    with Started() as k:
        k.run("true")
        name, = (name for name in os.listdir(k.state) if name.startswith("line."))
        fd = os.open(os.path.join(k.state, name), os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
        os.close(fd)
        for n in (4095, 4096, 9000, 32768, 33000):
            end = "; echo ${#x}"
            command = "x=".ljust(n - len(end), "x") + end
            equal(k.run(command).content, str(n - len(end) - 2), "%d bytes" % n)
            equal(k.run("echo ok").content, "ok", "after %d bytes" % n)


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


STAYING = 8  # connections, see client.c


def ask(sock, command, **more):
    """On a connection that stays."""
    sock.sendall(keeper.run_frame(command, stays=True, **more))
    return keeper.decode(keeper.read_one(sock))[1]["content"]


def connect(k):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(supervised.PATIENCE)
    sock.connect(k.address)
    return sock


def is_closed(sock):
    """Nothing can be sent, and nothing comes."""
    try:
        sock.sendall(keeper.run_frame(COUNT))
    except BrokenPipeError:
        return sock.recv(1) == b""
    return False


def connections_that_stay():
    with Started() as k:
        socks = [connect(k) for _ in range(STAYING)]
        for turn in range(3):
            for i, sock in enumerate(socks):
                equal(ask(sock, "echo %d.%d" % (turn, i)), "%d.%d" % (turn, i), "the answer")
        late = connect(k)
        equal(ask(late, "echo late"), "late", "of one too many")
        equal(is_closed(late), True, "to it, at once")
        late.close()
        socks.pop().close()
        k.until_idle()
        late = connect(k)
        for i in range(3):
            equal(ask(late, "echo %d" % i), str(i), "in the place of one that left")
        equal(k.run("ls").content, "", "what was refused")
        late.sendall(keeper.run_frame("echo last"))
        equal(keeper.decode(keeper.read_all(late))[1]["content"], "last", "of one that does not stay")
        late.close()
        for sock in socks:
            sock.sendall(keeper.frame(keeper.STATUS, b""))
            equal(keeper.decode(keeper.read_one(sock))[0], keeper.STATE, "another question")
            equal(ask(sock, "echo x"), "x", "after it")
            sock.close()


def in_the_order_in_which_they_come():
    with Started() as k:
        os.mkfifo(os.path.join(k.work_dir, "go"), 0o666)
        old = connect(k)
        ask(old, ":")
        first = k.send("cat go")
        k.status()  # it was asked after it, so that was seen
        second = k.send("echo new >> order")
        k.status()
        old.sendall(keeper.run_frame("echo old >> order"))
        k.status()
        with open(os.path.join(k.work_dir, "go"), "w"):
            pass
        for sock in (first, second, old):
            keeper.read_all(sock)
            sock.close()
        equal(k.run("cat order").content, "new\nold", "the order")


def lost_on_one_that_stays():
    with Started() as k:
        sock = connect(k)
        ask(sock, "true")
        os.kill(k.process.pid, signal.SIGSTOP)
        sock.sendall(keeper.run_frame(COUNT, key="k1", stays=True))
        sock.close()
        os.kill(k.process.pid, signal.SIGCONT)
        k.until_idle()
        sock = connect(k)
        for what in ("the same request again", "and again"):
            equal(ask(sock, COUNT, key="k1"), "1", what)
        equal(ask(sock, "cat count"), "x", "executed")
        sock.close()


def the_end_of_a_static_one():
    with Started(is_static=True) as k:
        k.peer.settimeout(supervised.PATIENCE)
        equal(ask(k.peer, "echo x"), "x", "the answer")
        equal(k.peer.recv(1), b"", "behind it")
        k.peer.close()
        k.process.wait(supervised.PATIENCE)  # by itself; a signal could come behind its last look at them


LOOKED_UP = (  # what is done, and where the shell is then; and which python it has
    ("PATH=$PWD/none:$PWD/bin/", "", ""),
    ("/bin/mkdir bin other; echo : > bin/python", "", "/bin/python"),  # at least a file
    ("echo : > other/python; /bin/chmod +x other/python; PATH+=:$PWD/other", "", "/other/python"),
    ("cd other; /bin/chmod +x ../bin/python", "/other", "/bin/python"),
    ("/bin/mv ../other ../moved", "/moved", "/bin/python"),
    ("PATH=$PWD/../moved:$PATH", "/moved", "/bin/python"),
    ("PATH=${PATH//other/moved}", "/moved", "/moved/../moved/python"),
    ("PATH=:$PATH", "/moved", "./python"),
    ("PATH=../moved", "/moved", "../moved/python"),
    ("PATH=", "/moved", "/moved/python"),
    ("unset PATH", "/moved", "/moved/python"),
    ("cd ..; /bin/rm bin/python; /bin/mkdir bin/python; PATH=$PWD/bin", "", ""),
    ("PATH+=:$PWD/moved", "", "/moved/python"),
    ("/bin/ln -s moved link; cd link; /bin/ln -sf /nonexistent python", "/link", ""),
    ("PWD=/nowhere", "/moved", ""),
    ("PWD=; cd ..", "", ""),
    ("cd moved; /bin/rm python; /bin/rmdir ../moved", "/moved", ""),
    ("cd /", "/", ""),
    ("PWD=/bin", "/", ""),
)


def what_the_shell_looks_up():
    """The same, whoever looks: the builtin, or the keeper."""
    for typed in (False, True):
        with Started(typed=typed) as k:
            for command, working_dir, python in LOOKED_UP:
                o = k.run(command)
                dirs = [d.replace(k.work_dir, "", 1) for d in (o.working_dir, o.py_path)]
                equal(dirs, [working_dir, python], "%s after %r" % (["given", "typed"][typed], command))


def bash_is_removed():
    """A bash whose file an upgrade has removed meanwhile is still found to wait for a command."""
    with tempfile.TemporaryDirectory(prefix="e2e-bash-") as d:
        bash = shutil.copy(shutil.which("bash"), d)
        with Started(typed=True, more=("--shell", bash)) as k:
            os.unlink(bash)
            equal(k.run("unset PROMPT_COMMAND; (exit 3)").exit_code, 3)
            equal(k.run("echo ok").content, "ok")


def pipes_are_removed():
    """The next shell gets pipes again that a command has removed."""
    with Started() as k:
        pipes = [path for path in (os.path.join(k.state, name) for name in os.listdir(k.state))
                 if stat.S_ISFIFO(os.stat(path).st_mode)]
        equal(len(pipes), 4, pipes)
        k.run("rm %s; exit" % " ".join(pipes))
        equal(k.run("echo ok").content, "ok")
        equal([stat.S_ISFIFO(os.stat(path).st_mode) for path in pipes], [True] * 4, pipes)


def output_elsewhere():
    """The shell's own report of its descriptors counts; the keeper looks at those of a shell that reports none."""
    for typed, command in ((False, "true exec"), (True, "true")):
        with Started(typed=typed) as k:
            k.run("exec >/dev/null")
            o = k.run(command)
            equal("standard output does not go to its terminal" in o.suffix, True, (typed, o.suffix))


def follow(k, command, offset):
    """A connection, and (offset, text) of each frame of the command's output from there on."""
    sock = connect(k)
    sock.sendall(keeper.follow_frame(command, offset))

    def pieces():
        with sock, sock.makefile("rb") as f:
            head = f.read(12)
            while head:
                fields = keeper.decode(head + f.read(struct.unpack_from("=I", head, 8)[0]))[1]
                yield fields["offset"], fields["content"]
                head = f.read(12)
    return pieces()


def a_reader_at_the_end_loses_nothing():
    """A command waits for its client, also for one that comes again after a cut and has read all that there is."""
    lines = 30000
    with Started(more=["--output-log", "65536"]) as k:
        os.mkfifo(os.path.join(k.work_dir, "go"), 0o666)
        run = k.send("echo 'be'gun; cat go; seq -f %%099.0f %d" % lines, blocking=True, whole=True)
        with open(os.path.join(k.work_dir, "go"), "w"):  # cat has opened it, and waits until it is closed
            with connect(k) as sock:
                sock.sendall(keeper.frame(keeper.COMMANDS, b""))
                command = keeper.decode(keeper.read_one(sock))[1]["id"]
            first, text, at = follow(k, command, 0), "", 0
            while "begun\r\n" not in text:
                at, more = next(first)
                at, text = at + len(more), text + more
            first.close()
            second = follow(k, command, at)
            k.status()  # was asked after it: the second one has been seen
        text = ""
        for offset, more in second:
            equal(offset, at, "the next byte")
            at, text = at + len(more), text + more
            with connect(k) as sock:  # the command prints faster than this is read; typing looks at its output, too
                sock.sendall(keeper.press_frame(""))
                keeper.read_one(sock)
        equal(text.split()[:lines], ["%099d" % (i + 1) for i in range(lines)], "the lines")
        keeper.read_all(run)
        run.close()


def main():
    if not os.access(PROGRAM, os.X_OK):
        from lib.tap import skip_all
        skip_all("handrail-session is not built: run make")
    process.become_subreaper()
    tap = Tap()
    for test in (background_output, signals_at_rest, set_v, small_pipes, lost_once, lost_twice,
                 lost_by_all_who_joined,
                 other_keys_are_other_requests, a_failed_start_is_one_line, nobody_reads_the_answer,
                 somebody_reads_the_answer, connections_that_stay,
                 in_the_order_in_which_they_come, lost_on_one_that_stays, the_end_of_a_static_one,
                 what_the_shell_looks_up, bash_is_removed, pipes_are_removed,
                 output_elsewhere, a_reader_at_the_end_loses_nothing):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
