#!/usr/bin/env python3
"""The root of all processes of a server is exchanged under them, as that of a box whose files become a layer:
each shell at its prompt enters its directory again before its next command."""

import functools
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.boxed import BOXED  # noqa: E402
from lib.supervised import Libexec, Server, gate, marker, need, need_root, run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402
from test_sessions import create, run  # noqa: E402
from test_succession import kill  # noqa: E402

HERE = "/exchanged/here"
# The layers are on a file system of the namespace: nothing is written to the machine's root. MORE has the
# lower layers of the root before, N is the number of the new one.
EXCHANGE = """
mkdir /mnt/u$N /mnt/w$N /mnt/r$N
mount -t overlay overlay -o "lowerdir=$MORE/mnt/host,upperdir=/mnt/u$N,workdir=/mnt/w$N" "/mnt/r$N"
for m in /proc /sys /dev "$TOP"; do mount --rbind "$m" "/mnt/r$N$m"; done
mount --bind /mnt "/mnt/r$N/mnt"
mount --bind /mnt/host "/mnt/r$N/mnt/host"
cd "/mnt/r$N"
mkdir -p .old
pivot_root . .old
umount -l /.old
"""
FIRST = """
mount --bind "$TOP" "$TOP"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/host
mount --bind / /mnt/host
""" + EXCHANGE + """
exec "$@"
"""


class Exchanged(Server):
    """A server with mounts of its own, whose root can be exchanged."""

    def __init__(self, libexec=None):
        need_root()
        need("unshare")
        if BOXED:
            raise Skip("a box may not change its mounts")
        super().__init__(libexec=libexec, ready=None)
        self.number = 0
        self.prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
                       "TOP=%s N=0 MORE=\n%s" % (self.top, FIRST), "sh"]
        self.start()
        self.run("mkdir -p %s && cd /usr && cd %s" % (HERE, HERE))

    def exchange(self):
        self.number += 1
        more = "".join("/mnt/u%d:" % n for n in reversed(range(self.number)))
        subprocess.run(["nsenter", "--mount", "--target", str(self.pid), "sh", "-ec",
                        "TOP=%s N=%d MORE=%s\n%s" % (self.top, self.number, more, EXCHANGE)], check=True)

    def has(self, path):
        """The present root has it, and its own layer: the former one has not."""
        top = "/proc/%d/root" % self.pid
        return os.path.exists(top + path) and os.path.exists("%s/mnt/u%d%s" % (top, self.number, path))


def is_there(s, name):
    """A command writes there, and sees it; so do the programs that it starts."""
    equal(s.run("touch %s; pwd; /bin/pwd; ls %s" % (name, name)), "%s\n%s\n%s" % (HERE, HERE, name))
    equal(s.has("%s/%s" % (HERE, name)), True, name)


def both(test):
    """With the builtin, and with a server that has none: what a bash of another version gets."""
    @functools.wraps(test)
    def case():
        with Exchanged() as s:
            test(s)
        with Libexec() as without, Exchanged(without) as s:
            test(s)
    return case


@both
def nothing_else_changes(s):
    """$?, $_, the directories, the history and the process are as before; nothing is printed."""
    shell = s.run("echo $$")
    for n in range(3):
        s.run("echo word; (exit 7)")
        s.exchange()
        equal(s.run('echo "$? $_ $PWD $OLDPWD" $(history | tail -2 | head -1 | cut -c8-)'),
              "7 word %s /usr echo word; (exit 7)" % HERE)
        is_there(s, "run-%d" % n)
    equal(s.run("echo $$"), shell)
    equal(s.run("ls -1"), "run-0\nrun-1\nrun-2")
    s.run("unset OLDPWD")
    s.exchange()
    equal(s.run('echo "${OLDPWD-none}"; pwd; cd - 2>&1 | cut -d: -f3-; declare -p OLDPWD 2>&1 | cut -d: -f3-'),
          "none\n%s\n OLDPWD not set\n OLDPWD: not found" % HERE)


@both
def by_other_names(s):
    """The directory is reached by a link, or is on another mount, which has a copy in the new root."""
    s.run("ln -s here /exchanged/link; cd /exchanged/link")
    s.exchange()
    equal(s.run("pwd; touch linked; /bin/pwd"), "/exchanged/link\n" + HERE)
    equal(s.has(HERE + "/linked"), True)
    s.run("cd /dev/shm")
    s.exchange()
    equal(s.run("pwd; /bin/pwd"), "/dev/shm\n/dev/shm")
    s.run("cd /")
    s.exchange()
    equal(s.run("pwd; /bin/pwd; touch top"), "/\n/")
    equal(s.has("/top"), True)


@both
def directory_is_gone(s):
    """The shell stays in the former one until it is told otherwise."""
    s.run("mkdir /exchanged/gone; cd /exchanged/gone; (exit 3)")
    s.exchange()
    os.rmdir("/proc/%d/root/exchanged/gone" % s.pid)
    equal(s.run("echo $?; pwd; touch old; ls"), "3\n/exchanged/gone\nold")
    equal(s.has("/exchanged/gone"), False)
    equal(s.run("pwd"), "/exchanged/gone")
    s.run("cd " + HERE)
    is_there(s, "back")
    # removed before: there is nothing to enter
    s.run("mkdir /exchanged/removed; cd /exchanged/removed; rmdir /exchanged/removed")
    s.exchange()
    equal(s.run("echo $?; pwd"), "0\n/exchanged/removed")


@both
def keeper_is_killed(s):
    """The next keeper goes on with the shell, whenever the root was exchanged."""
    shell = s.run("echo $$")
    s.exchange()
    kill(s)
    is_there(s, "after")
    kill(s)
    s.exchange()
    is_there(s, "before")
    s.exchange()
    kill(s)
    s.exchange()
    is_there(s, "between")
    equal(s.run("echo $$"), shell)


@both
def while_a_command_runs(s):
    """The shell itself is the command: it is in the new root at its next prompt."""
    began, wait = marker(s)
    door, open_it = gate(s)
    b = s.in_background("%s; %s; echo done" % (began, door))
    wait()
    s.exchange()
    open_it()
    equal(b.content(), "done")
    is_there(s, "later")


@both
def other_shells(s):
    """Each session has its own directory; a command of several lines is one command."""
    for name, status in (("a", 0), ("b", 130)):
        create(s, name)
        equal(run(s, name, "mkdir -p /exchanged/%s; cd /exchanged/%s; (exit %d)" % (name, name, status)), "")
    s.exchange()
    for name in ("b", "a"):
        equal(run(s, name, "touch of-%s\npwd\n/bin/pwd" % name),
              "/exchanged/%s\n/exchanged/%s" % (name, name))
        equal(s.has("/exchanged/%s/of-%s" % (name, name)), True)
    is_there(s, "of-default")


TESTS = [nothing_else_changes, by_other_names, directory_is_gone, keeper_is_killed, while_a_command_runs, other_shells]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
