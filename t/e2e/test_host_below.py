#!/usr/bin/env python3
"""Layers that boxes and snapshots share: whose files change, what is copied, and that nothing is left of them.
As root each case is done twice, by root and by another account."""

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE  # noqa: E402
from lib.hostbox import Boxes, end, own_root_of, run, stored  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402


class Sharers(Boxes):
    def snapshot(self, name, tag):
        """Makes a snapshot; returns True if the box could share its files: its processes stood still."""
        return json.loads(self.ok("snapshot", name, tag, "--json"))["still"]

    def need_still(self, name="one"):
        if not self.snapshot(name, "still"):
            self.ok("snapshot", "rm", "still")
            self.ok("down", "-q", name)
            raise Skip("needs a kernel with control groups of version 2, and one for the account, to stop its boxes")
        self.ok("snapshot", "rm", "still")


def layers(h):
    """The ids of the layers that are there."""
    path = h.path("state", "layers")
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def below_paths(h, *names):
    path = h.path("state", *names, "storage", "below")
    return [os.path.join(path, n) for n in sorted(os.listdir(path))] if os.path.isdir(path) else []


def below(h, *names):
    """The layers on which a storage lies, the lowest first."""
    return [os.readlink(path) for path in below_paths(h, *names)]


def in_layer(h, id_, path):
    return h.path("state", "layers", id_, "files", path)


def shares(h):
    """The files of a snapshot are those of the box, not copies, and both go on by themselves."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir -p d/e; echo first >d/f; echo gone >d/gone; echo e >d/e/f; X=1; cd d")
    inode = os.stat(h.path("state", "one.own", "storage", "root", "workspace", "d", "f")).st_ino
    shared = h.snapshot("one", "s")
    made = layers(h)
    equal((len(made), below(h, "one.own"), below(h, "snapshots", "s")), (1, made if shared else [], made))
    equal(os.stat(in_layer(h, made[0], "workspace/d/f")).st_ino == inode, shared)
    equal(h.ok("run", "-n", "one", "echo $X $OLDPWD; pwd; cat f; echo second >f; rm gone; mv e new; ls -1A; cat new/f")
          .splitlines(), ["1 /workspace", "/workspace/d", "first", "f", "new", "e"])
    h.ok("up", "-q", "two", "--from", "s")
    h.ok("up", "-q", "three", "--from", "s")
    equal(h.ok("run", "-n", "two", "cd d; cat f gone e/f; echo third >f; rm -r e; mkdir e; ls -1A e"),
          "first\ngone\ne\n")
    equal(h.ok("run", "-n", "three", "cat d/f d/gone d/e/f"), "first\ngone\ne\n")
    equal(h.ok("run", "-n", "one", "cat f; ls -1A"), "second\nf\nnew\n")
    equal(h.ok("run", "-n", "two", "cat f; ls -1A"), "third\ne\nf\ngone\n")
    equal(layers(h), made, "a start makes none")
    h.ok("snapshot", "rm", "s")
    equal(layers(h), made, "boxes use it")
    h.ok("down", "-q", "one", "two")
    equal(h.ok("run", "-n", "three", "cat d/f"), "first\n")
    end(h, "three")
    equal(layers(h), [])


def again(h):
    """A box that lies on layers starts again with its files, and so do the snapshots of its snapshots."""
    h.ok("up", "-q", "one")
    h.need_still()
    for i in range(4):
        h.ok("run", "-n", "one", "mkdir -p d; echo %d >d/f%d; rm -f d/f%d; echo %d >d/same" % (i, i, i - 2, i))
        h.ok("snapshot", "one", "s%d" % i)
    equal(len(below(h, "one.own")), 5)
    pid = h.box("one")["pid"]
    os.kill(pid, signal.SIGKILL)
    equal(process.wait_gone(pid, PATIENCE), True)
    h.ok("up", "-q", "one")
    see = "cd /workspace/d; ls -1; cat same"
    equal(h.ok("run", "-n", "one", see), "f2\nf3\nsame\n3\n")
    h.ok("up", "-q", "two", "--from", "s1")
    equal(h.ok("run", "-n", "two", see), "f0\nf1\nsame\n1\n")
    h.ok("run", "-n", "two", "rm -r /workspace/d; mkdir /workspace/d; echo x >/workspace/d/same")
    h.ok("snapshot", "two", "t")
    h.ok("up", "-q", "three", "--from", "t")
    equal(h.ok("run", "-n", "three", see), "same\nx\n", "a directory that replaced another one hides its files")
    end(h, "one", "two", "three")
    equal(len(layers(h)), 6)
    h.ok("snapshot", "rm", "s0", "s1", "s2")
    equal(len(layers(h)), 6, "others lie on them")
    h.ok("snapshot", "rm", "s3")
    equal(len(layers(h)), 4)
    h.ok("snapshot", "rm", "t")
    equal(layers(h), [])


def many(h):
    """More snapshots than a box can have layers are made, too: the upper ones become one, from which a box that lies
    on them goes on, and the lower ones stay."""
    h.ok("up", "-q", "one")
    h.need_still()
    counts = []
    for i in range(50):
        h.ok("run", "-n", "one", "echo %d >>/workspace/f; touch n%d; rm -f n%d; rm -rf d; mkdir d; touch d/%d" % (
            i, i, i - 2, i))
        h.ok("snapshot", "one", "s%d" % i)
        counts.append(len(below(h, "one.own")))
    # a process that ends soon can keep the box from a new layer
    drops = [(a, b - a) for a, b in zip(counts, counts[1:]) if b < a]
    equal((max(counts), drops in ([(40, -18)], [(40, -19)])), (40, True), counts)
    equal(os.listdir(h.path("state", "one.own", "storage")).count("below.old"), 0)
    for i in (1, 20, 41, 49):
        h.ok("up", "-q", "two", "--from", "s%d" % i)
        equal(h.ok("run", "-n", "two", "tail -n 1 f; wc -l <f; ls -1d n* d/*"),
              "%d\n%d\nd/%d\n%s" % (i, i + 1, i, "".join(sorted("n%d\n" % k for k in (i - 1, i)))))
        h.ok("down", "-q", "two")
    equal(h.ok("run", "-n", "one", "wc -l <f; ls -A d"), "50\n49\n")
    h.ok("snapshot", "rm", *stored(h))
    equal(len(layers(h)), len(below(h, "one.own")), "the box keeps no other layer")
    end(h, "one")
    equal(layers(h), [])


def interrupted(h):
    """A box whose layers are joined keeps the former ones until it has another root, also if commands are killed."""
    h.ok("up", "-q", "one")
    h.need_still()
    i = 0
    while len(below(h, "one.own")) < 40 and i < 99:
        h.ok("run", "-n", "one", "touch f%d; rm -f f%d" % (i, i - 5))
        h.ok("snapshot", "one", "s")
        h.ok("snapshot", "rm", "s")
        i += 1
    former = below(h, "one.own")
    # a process with an open file keeps the box on its root
    h.ok("run", "-n", "one", "exec 7<f%d" % (i - 1))
    h.ok("snapshot", "one", "s")
    h.ok("snapshot", "rm", "s")
    h.ok("snapshot", "one", "s")
    joined = below(h, "one.own")
    equal((len(former), len(joined), joined[:20] == former[:20]), (40, 21, True))
    equal(sorted(set(former) - set(layers(h))), [])
    see = "echo f*"
    expected = " ".join("f%d" % k for k in range(i - 5, i)) + "\n"
    equal(h.ok("run", "-n", "one", see + "; cat f%d; exec 7<&-" % (i - 2)), expected)
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", see), expected)
    for i in range(9):
        if len(below(h, "one.own")) < 22:
            h.ok("snapshot", "one", "t%d" % i)
    equal(len(below(h, "one.own")), 22)
    equal(os.path.exists(h.path("state", "one.own", "storage", "below.old")), False)
    equal(h.ok("run", "-n", "one", see), expected)
    end(h, "one", "two")
    h.ok("snapshot", "rm", *stored(h))
    equal(layers(h), [])


def unjoined(h):
    """A box whose layers cannot be joined keeps them, says why, and is copied."""
    h.ok("up", "-q", "one")
    h.need_still()
    for i in range(99):
        if len(below(h, "one.own")) < 40:
            if i == 30:
                h.ok("run", "-n", "one", "for i in {1..260}; do mkdir d && cd d || break; done; cd /workspace")
            h.ok("snapshot", "one", "s%d" % i)
    former = below(h, "one.own")
    h.ok("run", "-n", "one", "echo x >f")
    done = h("snapshot", "one", "copied")
    equal((done.returncode, "keeps its layers: the box has directories deeper than" in done.stderr), (0, True), done)
    equal((len(former), below(h, "one.own") == former, below(h, "snapshots", "copied") == former), (40, True, True))
    h.ok("up", "-q", "two", "--from", "copied")
    equal(h.ok("run", "-n", "two", "cat f"), "x\n")
    h.ok("snapshot", "rm", *stored(h))
    equal(len(layers(h)), 40)
    end(h, "one", "two")
    equal(layers(h), [])


READY = "open(\"/dev/shm/ready\", \"w\").close(); time.sleep(1000)"
WATCH = "c = ctypes.CDLL(None); c.inotify_add_watch(c.inotify_init(), b\"/workspace\", 2)"
LISTEN = "s = socket.socket(socket.AF_UNIX); s.bind(\"/workspace/s\"); s.listen()"


def copied(h):
    """A process that would lose its files keeps them: then the snapshot is a copy, and the box stays as it is."""
    program = "mkfifo /dev/shm/ready; (cd /; exec python3 -c 'import ctypes, socket, time; %s; %s') & " \
              "cat /dev/shm/ready"
    for what, line in (("directory", "sleep 1000 &"), ("file", "exec 7<f; cd /"), ("watch", program % (WATCH, READY)),
                       ("socket", program % (LISTEN, READY))):
        h.ok("up", "-q", "one")
        h.ok("run", "-n", "one", "echo x >f; " + line)
        h.ok("snapshot", "one", what)
        equal(below(h, "one.own"), [], what)
        h.ok("up", "-q", "two", "--from", what)
        equal(h.ok("run", "-n", "two", "cat /workspace/f"), "x\n", what)
        end(h, "one", "two")
        h.ok("snapshot", "rm", what)
        equal(layers(h), [], what)


def branches(h):
    """Branches share the files of their parent, and those of a paused one share one copy."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir d; echo x >d/f; cd d; V=1")
    shared = json.loads(h.ok("fork", "one", "a", "--count", "3", "--json"))["still"]
    made = layers(h)
    own = made if shared else []
    equal((len(made), [below(h, n + ".own") for n in ("one", "a-1", "a-2", "a-3")]), (1, [own] + [made] * 3))
    for n in ("a-1", "a-2", "a-3"):
        equal(h.ok("run", "-n", n, "echo $V; pwd; cat f; echo %s >f" % n), "1\n/workspace/d\nx\n")
    equal(h.ok("run", "-n", "one", "pwd; cat f; echo y >f; cat f"), "/workspace/d\nx\ny\n")
    equal(h.ok("run", "-n", "a-2", "cat f"), "a-2\n")
    h.ok("fork", "a-2", "b")
    equal(h.ok("run", "-n", "b", "pwd; cat f"), "/workspace/d\na-2\n")
    h.ok("run", "-n", "one", "sleep 1000 &")
    h.ok("fork", "one", "c", "--count", "2")
    equal((below(h, "one.own"), len(below(h, "c-1.own")), below(h, "c-1.own") == below(h, "c-2.own")),
          (own, len(own) + 1, True))
    equal(h.ok("run", "-n", "c-2", "cat f"), "y\n")
    end(h, "one", "a-1", "a-2", "a-3", "b", "c-1", "c-2")
    equal(layers(h), [])


def killed(h):
    """Commands that are killed at any time leave a box that goes on with its files, and no layer."""
    h.ok("up", "-q", "one")
    h.need_still()
    h.ok("run", "-n", "one", "mkdir d; cd d; for i in {1..50}; do echo 0 >f$i; done")
    random.seed(37)
    for i in range(1, 61):
        command = h.popen("snapshot", "one", "s%d" % i)
        time.sleep(random.random() * .04)
        everything = random.random() < .5
        for pid in process.children(command.pid) if everything else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        command.kill()
        command.communicate()
        if everything:
            h("resume", "one")  # both were killed
        equal(h.ok("run", "-n", "one", "cat f%d; echo %d >f%d; pwd" % (i % 50 + 1, i, i % 50 + 1)),
              "%d\n/workspace/d\n" % (i - 50 if i >= 50 else 0), i)
    h.ok("snapshot", "one", "last")
    h.ok("up", "-q", "two", "--from", "last")
    see = "cd /workspace/d; cat f*"
    equal(h.ok("run", "-n", "two", see), h.ok("run", "-n", "one", see))
    end(h, "one", "two")
    h.ok("snapshot", "rm", *stored(h))
    equal(layers(h), [])


def stale(h):
    """A command that was killed when the names were exchanged, but not the root of the box, is set right."""
    h.ok("up", "-q", "one")
    h.need_still()
    h.ok("run", "-n", "one", "echo x >f")
    storage = h.path("state", "one.own", "storage")
    os.makedirs(h.path("state", "layers", "0123456789abcdef"), 0o700)
    ref = h.path("state", "layers", "0123456789abcdef", "ref")
    os.symlink("0123456789abcdef", ref)
    os.link(ref, storage + "/below/01", follow_symlinks=False)
    os.rename(storage + "/root", in_layer(h, "0123456789abcdef", ""))
    os.mkdir(storage + "/root", 0o755)
    for folder in (h.path("state", "layers"), storage + "/below", storage + "/root"):
        for path in [folder] + [os.path.join(a, n) for a, b, c in os.walk(folder) for n in b + c]:
            if h.uid and os.lstat(path).st_uid == 0:
                os.lchown(path, h.uid, h.uid)
    h.ok("run", "-n", "one", "echo y >>f")
    h.ok("snapshot", "one", "s")
    h.ok("run", "-n", "one", "echo z >>f")
    equal(("0123456789abcdef" in layers(h), len(below(h, "one.own"))), (False, 2))
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", "cat f"), "x\ny\n")
    equal(h.ok("run", "-n", "one", "cat f"), "x\ny\nz\n")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")
    equal(layers(h), [])


def examined(h):
    """The root of a box is recognized without a file in it, which the box's processes could remove."""
    h.ok("up", "-q", "one")
    h.need_still()
    h.ok("run", "-n", "one", "sleep 1000 &")  # its directory would be lost, so there is no new layer
    top = h.path("state", "one.own", "storage", "root")
    before = os.stat(top)
    for tag in ("s", "t"):
        h.ok("snapshot", "one", tag)
    after = os.stat(top)
    equal((after.st_ino, after.st_mtime_ns), (before.st_ino, before.st_mtime_ns))
    equal(len(below(h, "one.own")), 1)
    end(h, "one")
    h.ok("snapshot", "rm", "s", "t")


def lost(h):
    """A box whose root is in neither place keeps its layers as they are."""
    h.ok("up", "-q", "one")
    h.need_still()
    h.ok("run", "-n", "one", "echo x >f")
    storage = h.path("state", "one.own", "storage")
    os.rename(storage + "/root", storage + "/elsewhere")
    os.mkdir(storage + "/root", 0o755)
    if h.uid:
        os.lchown(storage + "/root", h.uid, h.uid)
    ids = {name: os.stat(name).st_ino for name in [storage + "/root", in_layer(h, below(h, "one.own")[-1], "")]}
    h.fails(1, "the box has an unknown root", "snapshot", "one", "s")
    equal({name: os.stat(name).st_ino for name in ids}, ids)
    os.rmdir(storage + "/root")
    os.rename(storage + "/elsewhere", storage + "/root")
    h.ok("snapshot", "one", "s")
    end(h, "one")
    h.ok("snapshot", "rm", "s")


def unseen(h):
    """A layer that cannot be examined stays a layer of the box."""
    h.ok("up", "-q", "one")
    h.need_still()
    h.ok("run", "-n", "one", "echo x >f")
    layer = h.path("state", "layers", below(h, "one.own")[-1])
    os.rename(layer, layer + ".other")
    with open(layer, "w"):
        pass
    h.fails(1, "Not a directory", "snapshot", "one", "s")
    equal(len(below(h, "one.own")), 1)
    os.unlink(layer)
    os.rename(layer + ".other", layer)
    h.ok("snapshot", "one", "s")
    equal(h.ok("run", "-n", "one", "cat f"), "x\n")
    end(h, "one")
    h.ok("snapshot", "rm", "s")
    equal(layers(h), [])


def restarted(h):
    """A box that ended after its layers were joined needs the former ones no more."""
    h.ok("up", "-q", "one")
    old = h.path("state", "one.own", "storage", "below.old")
    os.mkdir(old, 0o700)
    os.symlink("0123456789abcdef", old + "/00")
    if h.uid:
        os.chown(old, h.uid, h.uid)
    pid = h.box("one")["pid"]
    os.kill(pid, signal.SIGKILL)
    equal(process.wait_gone(pid, PATIENCE), True)
    h.ok("up", "-q", "one")
    equal(os.path.lexists(old), False)
    end(h, "one")


def limited(h):
    """Files in deep directories are copied in spite of a low limit for open files."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "for i in {1..150}; do mkdir d && cd d || break; done; echo x >f; cd /workspace; "
         "sleep 1000 &")
    done = subprocess.run(["prlimit", "--nofile=100:", os.path.join(BUILD, "handrail"), "snapshot", "one", "s"],
                          env=h.env, cwd=h.path("cwd"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, **h.change)
    equal(done.returncode, 0, done.stderr)
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", "cat $(find . -name f)"), "x\n")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")


def rooted(h):
    """The box with a root directory of its own shares its files, too, and keeps what it changed of the directory's."""
    h.env["RUN_AS_OPENHANDS"] = "false"
    root, _, words = own_root_of(h)
    h.ok("up", "-q", "one", *words)
    h.ok("run", "-n", "one", "echo x >f; echo '10.1.1.1 friend' >>/etc/hosts; rm -r /home; mkdir /home; "
         "echo new >/etc/new")
    shared = h.snapshot("one", "s")
    equal(len(below(h, "one.own")), int(shared))
    h.ok("run", "-n", "one", "echo y >f; rm /etc/new")
    h.ok("up", "-q", "two", "--from", "s", *words)
    equal(h.ok("run", "-n", "two", "cat f /etc/new; grep -c friend /etc/hosts; ls -1A /home; cut -d: -f1 /etc/passwd | "
               "head -1"), "x\nnew\n1\nroot\n")
    equal(h.ok("run", "-n", "one", "cat f; ls /etc/new 2>&1 | grep -o 'No such'"), "y\nNo such\n")
    h.ok("run", "-n", "one", "rm /workspace/f; echo z >/workspace/g")
    h.snapshot("one", "t")
    h.ok("up", "-q", "three", "--from", "t", *words)
    equal(h.ok("run", "-n", "three", "ls -1 /workspace"), "g\n")
    end(h, "one", "two", "three")
    h.ok("snapshot", "rm", "s", "t")
    equal((layers(h), os.listdir(os.path.join(root, "etc")).count("new")), ([], 0))


def restored(h):
    """A state directory that was copied without its hard links loses no layer, and the unused one goes."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo first >f")
    h.ok("snapshot", "one", "s")
    for name in ("one.own", "snapshots/s"):
        for path in below_paths(h, name):
            text = os.readlink(path)
            os.unlink(path)
            os.symlink(text, path)
            os.lchown(path, h.uid, h.uid)
    made = layers(h)
    h.ok("snapshot", "one", "t")
    equal((set(made) <= set(layers(h)), h.ok("run", "-n", "one", "cat f")), (True, "first\n"))
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", "cat f"), "first\n")
    h.ok("down", "-q", "two")
    lost = h.path("state", "layers", below(h, "snapshots", "s")[0])
    os.rename(lost, h.path("away"))
    h.fails(3, lost + "/files of ", "up", "-q", "two", "--from", "s")
    os.rename(h.path("away"), lost)
    h.ok("snapshot", "rm", "s", "t")
    end(h, "one")
    equal(layers(h), [])


def linked(h):
    """More boxes lie on a layer than the file system has links for."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo first >f")
    h.ok("snapshot", "one", "s")
    made = layers(h)
    ref, links = h.path("state", "layers", made[0], "ref"), h.directory("links")
    try:
        for i in range(70000):
            os.link(ref, os.path.join(links, str(i)), follow_symlinks=False)
    except OSError as e:
        equal(e.errno, errno.EMLINK)
    h.ok("up", "-q", "two", "--from", "s")
    h.ok("snapshot", "rm", "s")
    end(h, "one")
    shutil.rmtree(links)
    h.ok("snapshot", "two", "t")
    equal((made[0] in layers(h), h.ok("run", "-n", "two", "cat f")), (True, "first\n"))
    end(h, "two")
    h.ok("snapshot", "rm", "t")
    equal(layers(h), [])


def journal(h):
    """A box whose journal an earlier version has put into its root keeps it, and no snapshot has it."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo x")
    pid, storage = h.box("one")["pid"], h.path("state", "one.own", "storage")
    os.kill(pid, signal.SIGKILL)
    equal(process.wait_gone(pid, PATIENCE), True)
    place = storage + "/root/var/lib/handrail"
    os.rmdir(place)
    os.rename(storage + "/journal", place)
    with open(place + "/mark", "w"):
        pass
    h.ok("up", "-q", "one")
    equal((os.listdir(place), os.path.exists(storage + "/journal/mark")), ([], True))
    h.ok("snapshot", "one", "s")
    h.ok("up", "-q", "two", "--from", "s")
    equal(os.path.exists(h.path("state", "two.own", "storage", "journal", "mark")), False)
    pid = h.box("one")["pid"]
    os.kill(pid, signal.SIGKILL)
    equal(process.wait_gone(pid, PATIENCE), True)
    shutil.rmtree(storage + "/journal")
    os.makedirs(h.path("elsewhere", "handrail"))
    os.chown(h.path("elsewhere", "handrail"), h.uid, h.uid)
    os.makedirs(storage + "/root/var", exist_ok=True)
    shutil.rmtree(storage + "/root/var/lib", ignore_errors=True)
    os.symlink(h.path("elsewhere"), storage + "/root/var/lib")
    h("up", "-q", "one")
    equal(os.listdir(h.path("elsewhere")), ["handrail"], "a link is not followed")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")


def counted(h):
    """The list has the size of all that a snapshot shows, with the files that it shares."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "head -c 3000000 /dev/urandom >large")
    h.ok("snapshot", "one", "s")
    h.ok("run", "-n", "one", "head -c 2000000 /dev/urandom >more")
    h.ok("snapshot", "one", "t")
    sizes = {o["tag"]: o["bytes"] for o in json.loads(h.ok("snapshot", "ls", "--json"))}
    # a paused box has no new layer
    if h("pause", "one").returncode == 0:
        made = json.loads(h.ok("snapshot", "one", "p", "--json"))
        equal((sizes["t"] <= made["bytes"] < 8000000, made["still"]), (True, True), (made, sizes))
        h.ok("snapshot", "rm", "p")
        h.ok("resume", "one")
    h.ok("run", "-n", "one", "for i in {1..260}; do mkdir d && cd d || break; done; cd /workspace")
    deep = h("snapshot", "one", "deep")
    if deep.returncode:
        equal("deeper than 240 levels" in deep.stderr, True, deep)
    else:
        listed = h("snapshot", "ls")
        equal((listed.returncode, 'the files of "deep" are not counted: ' in listed.stderr), (0, True), listed)
        equal([line.split()[-2:] for line in listed.stdout.splitlines() if line.startswith("deep ")], [["-"] * 2])
        h.ok("snapshot", "rm", "deep")
    equal((3000000 <= sizes["s"] < 4500000, 5000000 <= sizes["t"] < 7000000), (True, True), sizes)
    end(h, "one")
    h.ok("snapshot", "rm", "s", "t")


if __name__ == "__main__":
    run([shares, again, many, interrupted, unjoined, copied, branches, killed, stale, examined, lost, unseen,
         restarted, limited, rooted, restored, linked, journal, counted], made=Sharers)
