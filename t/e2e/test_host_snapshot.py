#!/usr/bin/env python3
"""Snapshots of boxes: what a box that starts from one has, and that nothing is left of killed and failed commands.
As root each case is done twice, by root and by another account."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE  # noqa: E402
from lib.hostbox import copier, end, run, stored  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402


def life(h):
    """A box starts with the files of another one, and neither changes the other's, nor the snapshot."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo first >/workspace/f; mkdir -p ~/d/e; echo deep >~/d/e/f; ln /workspace/f ~/d/link; "
         "ln -s /etc/passwd ~/d/to; mkfifo ~/d/pipe; touch -d @1000000000 ~/d/e/f; chmod 4711 ~/d/e/f; X=1")
    equal(h.ok("snapshot", "one"), "one-1\n")
    equal(h.ok("run", "-n", "one", "echo $X; echo second >/workspace/f; rm -r ~/d; ls ~"), "1\n", "it runs on")
    h.ok("up", "-q", "two", "--from", "one-1")
    equal(h.ok("run", "-n", "two", "cat /workspace/f ~/d/e/f; readlink ~/d/to; stat -c '%F %a %Y' ~/d/pipe ~/d/e/f | "
               "sed '1s/ [0-9]*$//'; stat -c %h ~/d/link; test /workspace/f -ef ~/d/link && echo same").splitlines(),
          ["first", "deep", "/etc/passwd", "fifo 644", "regular file 4711 1000000000", "2", "same"])
    equal(h.ok("run", "-n", "two", "echo $X; id -un; ls -d ~; test -w ~ && test -w /workspace && echo writable"),
          h.ok("run", "-n", "one", "echo; id -un; ls -d ~; test -w ~ && test -w /workspace && echo writable"))
    h.ok("run", "-n", "two", "echo third >/workspace/f; rm ~/d/e/f")
    h.ok("up", "-q", "three", "-s", "box.from=one-1")
    equal(h.ok("run", "-n", "three", "cat /workspace/f ~/d/e/f"), "first\ndeep\n")
    equal(h.ok("run", "-n", "one", "cat /workspace/f"), "second\n")
    equal(h.ok("snapshot", "two", "again"), "again\n", "of a box that came from one")
    h.ok("snapshot", "rm", "one-1")
    h.ok("up", "-q", "four", "--from", "again")
    equal(h.ok("run", "-n", "four", "cat /workspace/f; ls ~/d/e"), "third\n")
    end(h, "one", "two", "three", "four")
    equal(stored(h), ["again"])
    h.ok("snapshot", "rm", "again")
    equal(stored(h), [])


def layers(h):
    """Changes of the host's directories go along: files, removed files, and directories that replaced others."""
    h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "cd /usr/local && echo x >bin/own && cd / && "
         "(rm -r /usr/local/share; mkdir /usr/local/share; echo new >/usr/local/share/new; true); "
         "echo '127.0.0.1 more' >>/etc/hosts")
    see = "cat /usr/local/bin/own; ls /usr/local/share; cat /usr/local/share/new; tail -1 /etc/hosts; " \
          "ls /etc/shadow /etc/passwd 2>&1; true"
    before = h.ok("run", "-n", "one", see)
    equal(before.splitlines()[:3], ["x", "new", "new"])
    h.ok("snapshot", "one", "s")
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", see), before)
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")


def lists(h):
    """The list has what each one takes, and wrong names and other back-ends are refused."""
    equal(json.loads(h.ok("snapshot", "ls", "--json")), [])
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "head -c 3000000 /dev/urandom >~/large; truncate -s 1G ~/holes")
    before = json.loads(h.ok("snapshot", "one", "t.0", "--json"))
    h.ok("run", "-n", "one", "mkdir l; x=$(printf %0200d); for i in {1..200}; do ln -s $x l/$i; done")
    one = json.loads(h.ok("snapshot", "one", "t.1", "--json"))
    equal((one["tag"], one["sandbox"], 3000000 <= one["bytes"] < 50000000, one["files"] > 20),
          ("t.1", "one", True, True), one)
    below = h.path("state", "snapshots", "t.1", "storage", "below")
    newest = os.readlink(os.path.join(below, max(os.listdir(below))))
    links = h.path("state", "layers", newest, "files", "workspace", "l")
    taken = sum(os.lstat(os.path.join(links, n)).st_blocks for n in os.listdir(links))
    # an entry counts 512 bytes, also one without a block
    equal(one["bytes"] - before["bytes"] >= taken * 512 + 201 * 512, True, (before, one, taken))
    h.ok("snapshot", "rm", "t.0")
    listed = json.loads(h.ok("snapshot", "ls", "--json"))
    equal(listed, [one])
    equal(h.ok("snapshot", "ls", "-q"), "t.1\n")
    equal(h.ok("snapshot", "ls").splitlines()[1].split()[:2], ["t.1", "one"])
    h.fails(1, 'there is a snapshot "t.1" already', "snapshot", "one", "t.1")
    for name in ("", ".new", "../x", "a/b", "-", "Bad Tag"):
        h.fails(2, "invalid name of a snapshot", "snapshot", "one", "--", name)
        h.fails(2, "invalid name of a snapshot", "snapshot", "rm", "--", name)
        h.fails(2, "invalid name of a snapshot", "up", "-q", "two", "--from=" + name)
    h.fails(3, 'there is no snapshot "other"', "snapshot", "rm", "other")
    h.fails(3, 'there is no snapshot "other"', "up", "-q", "two", "--from", "other")
    h.fails(3, 'there is no sandbox "two"', "snapshot", "two")
    h.fails(1, "set box.root to the same", "up", "-q", "two", "--from", "t.1", "-s", "box.root=/usr")
    h.fails(2, "the back-end local has no snapshots", "up", "-q", "-r", "local", "two", "--from", "t.1")
    equal([n for n in os.listdir(h.path("state")) if n.startswith("two")], [])
    h.ok("run", "-n", "one", "sleep 1000 & for i in {1..260}; do mkdir d && cd d || break; done; cd /workspace")
    h.fails(1, "handrail: the box has directories deeper than 240 levels", "snapshot", "one", "deep")
    equal((stored(h), h.ok("run", "-n", "one", "echo on")), (["t.1"], "on\n"))
    if h.uid == 0:  # the other account has no name, which a local sandbox needs
        h.ok("up", "-q", "-r", "local", "here")
        h.fails(1, "has the back-end local, which makes no snapshots", "snapshot", "here")
        h.ok("down", "-q", "here")
    end(h, "one")
    h.ok("snapshot", "rm", "t.1")


def kept(h):
    """A box that has ended keeps its files when it starts again, and a running one is not started from a snapshot."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo old >/workspace/f")
    h.ok("snapshot", "one", "s")
    h.ok("run", "-n", "one", "echo new >/workspace/f")
    h.fails(1, "--from", "up", "-q", "one", "--from", "s")
    os.kill(h.box("one")["pid"], signal.SIGKILL)
    equal(process.wait_gone(h.box("one")["pid"], PATIENCE), True)
    h.ok("up", "one", "-s", "box.from=s")
    equal(h.ok("run", "-n", "one", "cat /workspace/f"), "new\n")
    end(h, "one")
    h.ok("snapshot", "rm", "s")


def paused(h):
    """A paused box stays paused, and one that is frozen for its snapshot runs afterwards."""
    h.ok("up", "-q", "one")
    if h("pause", "one").returncode:
        return
    h.ok("snapshot", "one", "s")
    equal([s["state"] for s in json.loads(h.ok("ps", "--json"))], ["paused"])
    h.ok("resume", "one")
    equal(json.loads(h.ok("snapshot", "one", "--json"))["still"], True)
    equal(h.ok("run", "-n", "one", "echo on"), "on\n")
    end(h, "one")
    h.ok("snapshot", "rm", "s", "one-1")


def ids(h):
    """Files of a user's subordinate ids keep their owners, also unreadable ones."""
    h.give_ids()
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo x >~/f; chown 100:100 ~/f; chmod 0 ~/f; mkdir -p ~/d/e; chown 7:7 ~/d/e; "
         "chmod 0 ~/d")
    h.ok("snapshot", "one", "s")
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", "stat -c '%u %g %a' ~/f ~/d ~/d/e; cat ~/f"), "100 100 0\n0 0 0\n7 7 755\nx\n")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")
    equal(stored(h), [])


def killed(h):
    """Whatever is killed while a snapshot is made, the box runs on, and only whole snapshots are listed."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir -p ~/many; cd ~/many; for i in {1..1500}; do echo $i >$i; done")
    done = []
    for i in range(24):
        command = h.popen("snapshot", "one", "k%d" % i)
        pid = copier(command)
        time.sleep(i // 3 * 0.01)  # the instant of the kill, not a wait for an event
        for victim in ([command.pid], [pid], [command.pid, pid])[i % 3]:
            if victim is not None:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        command.communicate(timeout=PATIENCE)
        if i % 3 == 2:
            h("resume", "one")  # both were killed
        equal(h.ok("run", "-n", "one", "echo on"), "on\n", i)
        if command.returncode == 0:
            done.append("k%d" % i)
        listed = h.ok("snapshot", "ls", "-q").split()
        if i % 3 and command.returncode != 0 and "k%d" % i in listed:
            done.append("k%d" % i)  # it was killed after its last step
        equal(set(listed) <= set(done) | {"k%d" % i}, True, (listed, done))
        done = listed
    h.ok("snapshot", "one", "last")
    equal(stored(h), sorted(done + ["last"]), "the next one removes what is left")
    h.ok("up", "-q", "two", "--from", "last")
    equal(h.ok("run", "-n", "two", "cat ~/many/* | wc -l"), "1500\n")
    for i in range(8):
        command = h.popen("up", "-q", "three", "--from", "last")
        copier(command)
        time.sleep(i * 0.01)  # as above
        command.kill()
        command.communicate(timeout=PATIENCE)
        h.ok("up", "-q", "three", "-s", "box.from=last")
        equal(h.ok("run", "-n", "three", "cat ~/many/* | wc -l"), "1500\n", i)
        end(h, "three")
    end(h, "one", "two")
    h.ok("snapshot", "rm", *stored(h))
    equal(stored(h), [])


def full(h):
    """A full disk leaves no snapshot and no sandbox, and the box runs on."""
    if os.geteuid() != 0:
        raise Skip("a small file system needs root")
    os.mkdir(h.path("state"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=9m,mode=0700,uid=%d,gid=%d" % (h.uid, h.uid), "small",
                    h.path("state")], check=True)
    h.env["RUN_AS_OPENHANDS"] = "false"
    try:
        h.ok("up", "-q", "one")
        h.ok("run", "-n", "one", "head -c 3500000 /dev/urandom >/usr/local/large")  # changes of /usr are copied
        h.ok("snapshot", "one", "s")
        h.fails(1, "No space left on device", "snapshot", "one", "t")
        equal(stored(h), ["s"])
        h.fails(1, "No space left on device", "up", "-q", "two", "--from", "s")
        equal([n for n in os.listdir(h.path("state")) if n.startswith("two")], [])
        equal(h.ok("run", "-n", "one", "wc -c </usr/local/large"), "3500000\n")
        h.ok("snapshot", "rm", "s")
        h.ok("snapshot", "one", "t")
        h.ok("down", "-q", "one")
        equal(sorted(os.listdir(h.path("state"))), ["layers", "snapshots"])
    finally:
        subprocess.run(["umount", "-l", h.path("state")], check=True)


def leftover(h):
    """A leftover that cannot be removed is reported, and keeps no command from its work."""
    if os.geteuid() != 0:
        raise Skip("a mount needs root")
    h.ok("up", "-q", "one")
    h.ok("snapshot", "one", "s")
    h.directory("state", "snapshots", ".newleft")
    mount = h.directory("state", "snapshots", ".newleft", "mount")
    subprocess.run(["mount", "-t", "tmpfs", "small", mount], check=True)
    try:
        done = h("snapshot", "one", "t")
        equal((done.returncode, done.stdout, ".newleft of a snapshot stays: " in done.stderr), (0, "t\n", True), done)
        h.ok("snapshot", "rm", "s")
        equal(stored(h), [".newleft", "t"])
    finally:
        subprocess.run(["umount", "-l", mount], check=True)
    h.ok("snapshot", "rm", "t")
    equal(stored(h), [])
    end(h, "one")


def twenty(h):
    """Twenty boxes start from one snapshot at once."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "seq 1000 >/workspace/f")
    h.ok("snapshot", "one", "s")
    names = ["n%d" % i for i in range(20)]
    started = [h.popen("up", "-q", name, "--from", "s", "--run", "wc -l </workspace/f; echo %s >/workspace/f" % name)
               for name in names]
    equal([p.communicate(timeout=PATIENCE)[0] for p in started], ["1000\n"] * 20)
    equal([h.ok("run", "-n", name, "cat /workspace/f") for name in names], ["%s\n" % name for name in names])
    end(h, "one", *names)
    h.ok("snapshot", "rm", "s")


SWAP = ("import os, sys\n"
        "os.chdir(sys.argv[1])\n"
        "print(flush=True)\n"
        "while True:\n"
        "    for name in 'dir', 'file':\n"
        "        there, to = 'old-' + name, 'to-' + name\n"
        "        for a, b in (name, there), (to, name), (name, to), (there, name):\n"
        "            os.rename(a, b)\n")


def raced(h):
    """The copy of a box that runs leads nowhere else, whatever becomes of its directories and files meanwhile."""
    secret, top, to = h.directory("secret"), h.directory("storage"), h.directory("copies")
    h.file("secret", "secret", "file")
    h.directory("storage", "root")
    h.directory("storage", "root", "dir")
    for i in range(50):
        h.file("own", "storage", "root", "dir", "f%d" % i)
    h.file("own", "storage", "root", "file")
    os.symlink(secret, h.path("storage/root/to-dir"))
    os.symlink(secret + "/file", h.path("storage/root/to-file"))
    os.chown(h.path("storage/root/to-dir"), h.uid, h.uid, follow_symlinks=False)
    swap = subprocess.Popen([sys.executable, "-c", SWAP, os.path.join(top, "root")], stdout=subprocess.PIPE)
    try:
        swap.stdout.readline()
        for i in range(60):
            copy = os.path.join(to, str(i))
            done = subprocess.run([os.path.join(BUILD, "handrail-box"), "--copy", top, copy], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, cwd="/", **h.change)
            equal((done.returncode, done.stderr), (0, b""), i)
        equal(swap.poll(), None)
    finally:
        swap.kill()
        swap.communicate()
    texts = set()
    for folder, _, files in os.walk(to):
        for path in (os.path.join(folder, name) for name in files):
            if not os.path.islink(path):
                with open(path) as f:
                    texts.add(f.read())
    equal(texts, {"own"})


def limited(h):
    """A copy that would take more than it may stops before it does, also if it consists of empty files."""
    top, to = h.directory("storage"), h.directory("copies")
    h.directory("storage", "root")
    for i in range(100):
        h.file("", "storage", "root", "empty%d" % i)

    def copy(most):
        path = os.path.join(to, str(most))
        done = subprocess.run([os.path.join(BUILD, "handrail-box"), "--copy", top, path, "--most", str(most)], cwd="/",
                              stderr=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, **h.change)
        files = sum((names for _, _, names in os.walk(path)), []) if os.path.exists(path) else []
        return done.returncode, "more than %s bytes" % most in done.stderr, len(files)

    equal(copy(101 * 512), (0, False, 100))
    equal(copy(51 * 512), (3, True, 50))
    h.file("x" * 300000, "storage", "root", "large")
    equal(copy(102 * 512 + 300000), (0, False, 101))
    status, said, _ = copy(102 * 512 + 299999)
    equal((status, said), (3, True))
    equal([copy(most)[0] for most in ("0", "-1", "1x", "")], [2] * 4)


def stopped(h, *argv):
    """A command whose launcher copies, and has been stopped; with the launcher's process."""
    command = h.popen(*argv)
    pid = copier(command)
    equal(pid is not None, True, command.args)
    os.kill(pid, signal.SIGSTOP)
    return command, pid


def waits(h):
    """What would change a box during its copy waits for the end of that, and says so; other snapshots do not."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir -p ~/many; cd ~/many; for i in {1..6000}; do echo $i >$i; done")
    h.ok("run", "-n", "one", "sleep 1000 &")  # a process there: the files are copied
    pauses = h("pause", "one").returncode == 0
    if pauses:
        h.ok("resume", "one")
    command, pid = stopped(h, "snapshot", "one", "s")
    # it may have been stopped before it froze the box
    equal([s["state"] in ("copying", "running") for s in json.loads(h.ok("ps", "--json"))], [True])
    others = [h.popen("snapshot", "one", "t")] + [h.popen("pause", "one") for _ in range(pauses)]
    said = [other.stderr.readline() for other in others]
    os.kill(pid, signal.SIGCONT)
    for other in [command] + others:
        other.communicate(timeout=PATIENCE)
        equal(other.returncode, 0, other.args)
    equal(["waiting for it" in line for line in said], [True] * len(others), said)
    if pauses:
        equal([s["state"] for s in json.loads(h.ok("ps", "--json"))], ["paused"])
        h.ok("resume", "one")
    command, pid = stopped(h, "snapshot", "one", "u")
    others = [h.popen("run", "-n", "one", "echo on")]
    os.kill(pid, signal.SIGCONT)
    for done in [command] + others:
        done.communicate(timeout=PATIENCE)
        equal(done.returncode, 0, done.args)
    h.ok("snapshot", "rm", "u")
    command, pid = stopped(h, "snapshot", "one", "v")
    box = h.box("one")
    export = h.popen("snapshot", "export", "t", "t.tar")
    h.ok("snapshot", "rm", "s")
    others = [h.popen("down", "one")]
    said = [other.stderr.readline() for other in others]
    equal(process.has_ended(box["pid"]), False)
    os.kill(pid, signal.SIGCONT)
    for done in [command, export] + others:
        done.communicate(timeout=PATIENCE)
        equal(done.returncode, 0, done.args)
    equal((["waiting for it" in line for line in said], h.left(box), stored(h)), ([True], [], ["t", "v"]), said)
    h.ok("up", "-q", "two", "--from", "v")
    equal(h.ok("run", "-n", "two", "cat ~/many/* | wc -l"), "6000\n")
    end(h, "two")
    h.ok("snapshot", "rm", "t", "v")


def replaced(h):
    """The lock that a command waits for is that of the directory that has the name then, and not of an earlier one."""
    h.ok("up", "-q", "one")
    box = h.box("one")
    kept = box["dir"] + ".kept"
    with contextlib.ExitStack() as locks:
        def lock():
            fd = os.open(box["dir"], os.O_RDONLY)
            locks.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
            return fd
        first = lock()
        command = h.popen("down", "one")
        said = [command.stderr.readline()]
        os.rename(box["dir"], kept)
        os.mkdir(box["dir"], 0o700)
        os.chown(box["dir"], os.stat(kept).st_uid, os.stat(kept).st_gid)
        second = lock()
        fcntl.flock(first, fcntl.LOCK_UN)
        said.append(command.stderr.readline())
        equal((["waiting for it" in line for line in said], process.has_ended(box["pid"])), ([True, True], False), said)
        os.rmdir(box["dir"])
        os.rename(kept, box["dir"])
        fcntl.flock(second, fcntl.LOCK_UN)
        command.communicate(timeout=PATIENCE)
    equal((command.returncode, h.left(box)), (0, []))


CASES = [life, layers, lists, kept, paused, ids, killed, waits, replaced, full, leftover, twenty, raced, limited]


if __name__ == "__main__":
    sys.exit(run(CASES, not_for_root=(ids,)))
