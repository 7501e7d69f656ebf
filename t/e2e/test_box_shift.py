#!/usr/bin/env python3
"""handrail-box --shift: the files of a running box become a layer, and the box does not notice; other boxes lie on the
layer. As root each case is done twice, by root and by another account."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import killed_at, process  # noqa: E402
from lib.box import PATH, groups, main  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

STEP = int(os.environ.get("E2E_SHIFT_STEP", 19))  # every which system call is the last one of a process


def freezer(b):
    """A control group that the account may freeze."""
    for top, name in (("/sys/fs/cgroup/freezer", "freezer.state"), ("/sys/fs/cgroup", "cgroup.freeze")):
        try:
            path = tempfile.mkdtemp(prefix="e2e-shift-", dir=top)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, name)):
            for at in [path] + [os.path.join(path, n) for n in os.listdir(path)]:
                os.chown(at, b.uid, -1)
            return path
        os.rmdir(path)
    raise Skip("this account can make no control group that freezes processes")


class Shell:
    """A box whose first process is a bash that does what is sent to it."""

    def __init__(self, b, name="storage", below=(), **more):
        self.b, self.below, self.root = b, list(below), more.get("root")
        self.storage = os.path.join(b.top, name)
        if not os.path.exists(self.storage):
            b.directory(name)
        self.group = freezer(b)
        more.setdefault("argv", ["/bin/bash"])
        d = b.document("", storage=self.storage, **more)
        d["below"] = self.below
        self.name = d["name"]
        document = os.path.join(b.top, "%s.json" % d["name"])
        with open(document, "w") as f:
            json.dump(d, f)
        ours, theirs = socket.socketpair()
        self.p = subprocess.Popen([b.program, "--detach", str(theirs.fileno()), document], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
                                  pass_fds=[theirs.fileno()], **b.change)
        theirs.close()
        line = ours.makefile().readline()
        if not line:
            raise AssertionError(self.p.communicate(timeout=PATIENCE)[0])
        self.pid = json.loads(line)["pid"]
        with open(os.path.join(self.group, "cgroup.procs"), "w") as f:
            f.write(str(self.pid))
        ours.sendall(b"g")
        ours.close()
        equal(self.do("echo up"), ["up"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        equal(process.wait_gone(self.pid, PATIENCE), True)
        self.p.communicate()
        for g in groups(self.name) + [self.group]:
            os.rmdir(g)

    def do(self, script):
        """Lines that the script prints in the box."""
        self.p.stdin.write(script + "\necho end-of-it\n")
        self.p.stdin.flush()
        got = []
        for line in self.p.stdout:
            if line == "end-of-it\n":
                return got
            got.append(line[:-1])
        raise AssertionError("the box has ended: %r" % got)

    def layer(self):
        return tempfile.mkdtemp(prefix="layer-", dir=below(self.b, "layers"))

    def command(self, layer, to=None, *args):
        self.to = to or os.path.join(below(self.b, "copies"), os.path.basename(layer))
        return ([self.b.program, "--copy", self.storage, self.to, "--freeze", self.group, "--shift", str(self.pid),
                 layer] + [a for path in self.below for a in ("--below", path)] +
                (["--root", self.root] if self.root else []) + list(args))

    def shift(self, *args, layer=None, status=0):
        """Does it, and returns what is printed."""
        layer = layer or self.layer()
        os.chown(layer, self.b.uid, -1)
        done = subprocess.run(self.command(layer, None, *args), capture_output=True, text=True, timeout=PATIENCE,
                              cwd="/", **self.b.change)
        equal((done.returncode, done.stderr.count("\n")), (status, 1 if status else 0), done)
        said = json.loads(done.stdout) if done.stdout else {}
        files = os.path.join(layer, "files")
        equal(os.path.exists(files), bool(said.get("shifted")), done)
        if said.get("shifted"):
            self.below.insert(0, files)
        return said

    def shifted(self, *args, **more):
        said = self.shift(*args, **more)
        equal((said["shifted"], said["reason"]), (True, ""))
        return self.below[0]


def below(b, name):
    path = os.path.join(b.top, name)
    return path if os.path.exists(path) else b.directory(name)


def tree(top):
    """All of a directory, to compare: names, kinds, contents, modes."""
    found = {}
    for here, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(here, name)
            st = os.lstat(path)
            text = None
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    text = f.read()
            found[os.path.relpath(path, top)] = (st.st_mode, st.st_uid, st.st_rdev, st.st_mtime_ns, text)
    return found


def mounted(box):
    """The places of the mounts that the box sees below its root."""
    return box.do("cut -d' ' -f5 /proc/self/mountinfo | sort -u | grep -v '^/$'")


def goes_on(b):
    """The box sees its files and its mounts, can change all, and the frozen files do not change."""
    volume = b.directory("volume")
    with Shell(b, mounts=[{"source": volume, "target": "/dev-volumes/one"}]) as box:
        box.do("mkdir -p /d/e; echo one >/d/one; echo two >/d/e/two; ln -s one /d/link; chmod 1777 /d/e; cd /; x=kept")
        before = box.do("cat /proc/self/mountinfo | cut -d' ' -f5 | sort; stat -c '%a %U' /; ls -a /")
        layer = box.shifted()
        frozen = tree(layer)
        equal(box.do("cat /d/one /d/e/two /d/link; stat -c %a /d/e; echo $x; pwd; ls /.. | grep -c usr"),
              ["one", "two", "one", "1777", "kept", "/", "1"])
        equal(box.do("cat /proc/self/mountinfo | cut -d' ' -f5 | sort; stat -c '%a %U' /; ls -a /"), before)
        equal(box.do("test -x /usr/bin/env && ls -d /etc/passwd /proc/1 /run/lock; echo v >/dev-volumes/one/file; "
                     "echo x >/run/x; cat /run/x; echo n >/dev/null; test -t 0; ls /dev/pts"),
              ["/etc/passwd", "/proc/1", "/run/lock", "x", "ptmx"])
        equal(os.listdir(volume), ["file"])
        equal(box.do("echo changed >/d/one; rm /d/e/two; rmdir /d/e && echo gone; mkdir /d/e; ls -A /d/e; "
                     "echo new >/n; rm /d/link; mv /n /d/n; cat /d/one /d/n; ls /d"),
              ["gone", "changed", "new", "e", "n", "one"])
        equal(tree(layer), frozen)
        equal(sorted(os.listdir(os.path.dirname(layer))), ["files"])
        equal(os.path.exists(os.path.join(box.to, "root")), False)
        with Shell(b, "second", below=[layer]) as second:
            equal(second.do("cat /d/one /d/e/two; cat /n 2>/dev/null; rm -r /d; ls -d /d 2>/dev/null; echo 2 >/only"),
                  ["one", "two"])
            equal(second.do("test -x /usr/bin/env && ls -d /etc/passwd /proc/1"), ["/etc/passwd", "/proc/1"])
            equal(box.do("cat /d/one; ls /only 2>/dev/null"), ["changed"])
        with Shell(b, "second", below=[layer]) as second:
            equal(second.do("ls -d /d 2>/dev/null; cat /only"), ["2"])
        equal(tree(layer), frozen)
    with Shell(b, below=box.below) as again:
        equal(again.do("cat /d/one /d/n; ls /d"), ["changed", "new", "e", "n", "one"])


def places(b):
    """A process in a directory of a mount, with a descriptor there, keeps both, and the mount its number."""
    volume = b.directory("volume")
    os.mkdir(os.path.join(volume, "in"))
    with Shell(b, mounts=[{"source": volume, "target": "/w"}], directory="/w") as box:
        numbers = "cut -d' ' -f1,5 /proc/self/mountinfo | sort | grep -v ' /$'"
        before = box.do("cd in; exec 5</w; " + numbers)
        box.shifted()
        equal(box.do("pwd -P; readlink /proc/self/fd/5 /proc/$$/exe; cd ..; pwd -P; cd ..; pwd -P; ls -d usr"),
              ["/w/in", "/w", "/usr/bin/bash", "/w", "/", "usr"])
        equal(box.do("exec 5<&-; " + numbers), before)


def deep(b):
    """A box is shifted as often as there may be layers, and shows the latest state; then it is copied."""
    with Shell(b) as box:
        for i in range(40):
            box.do("echo %d >/n; echo %d >/n%d; rm -f /n%d" % (i, i, i, i - 5))
            box.shifted()
        equal(len(box.below), 40)
        box.do("echo 40 >/n")
        said = box.shift()
        equal((said["shifted"], said["reason"]), (False, "the box has 40 layers already"))
        equal(os.path.exists(os.path.join(box.to, "root/n")), True)
        equal(box.do("cat /n /n39; ls -d /n?? | wc -l"), ["40", "39", "5"])
        with Shell(b, "second", below=box.below) as second:
            equal(second.do("cat /n /n39; ls -d /n?? | wc -l; ls -d /usr/bin/env"), ["39", "39", "5",
                                                                                         "/usr/bin/env"])
        equal([n for n in os.listdir(os.path.join(box.storage, "layers/root")) if not n.startswith("work")], [])


def own_root(b):
    """A box with a root directory of its own is shifted, too; its hosts are those of its first start."""
    root = b.directory("root")
    os.chmod(root, 0o755)
    for name in ("bin", "etc", "lib", "lib64", "usr"):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), os.path.join(root, name))
            os.makedirs(os.path.join(root, os.readlink("/" + name)), exist_ok=True)
        elif name != "lib64" or os.path.isdir("/lib64"):
            os.makedirs(os.path.join(root, name), exist_ok=True)
    for name in ("bash", "cat", "ls", "rm", "stat", "mkdir"):
        program = os.path.realpath(shutil.which(name))
        libs = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split()
        for path in {w for w in libs if w.startswith("/") and not w.endswith(":")} | {program}:
            to = os.path.join(root, path[1:])
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
        if not os.path.islink("/bin"):
            shutil.copy(program, os.path.join(root, "bin", name))
    with open(os.path.join(root, "etc/given"), "w") as f:
        f.write("given\n")
    subprocess.run(["chown", "-hR", "%d:%d" % (b.uid, b.uid), root], check=True)
    with Shell(b, root=root) as box:
        box.do("echo one >/one; rm /etc/given; mkdir /etc/dir; echo mine >>/etc/hosts")
        layer = box.shifted()
        frozen = tree(layer)
        equal(box.do("cat /one; ls -d /etc/given 2>/dev/null; echo two >/one; rm -r /etc/dir; cat /one"),
              ["one", "two"])
        equal(sorted(os.listdir(os.path.join(box.to, "layers/root"))), [])
        second = box.shifted()
        with Shell(b, "second", root=root, below=[second, layer]) as other:
            equal(other.do("cat /one; ls -d /etc/given /etc/dir 2>/dev/null; cat /etc/hosts"),
                  ["two"] + box.do("cat /etc/hosts"))
        with Shell(b, "third", root=root, below=[layer]) as other:
            equal(other.do("cat /one; ls -d /etc/given /etc/dir 2>/dev/null"), ["one", "/etc/dir"])
            equal(os.path.exists(os.path.join(other.storage, "layers/root/upper/etc")), False)
        equal(tree(layer), frozen)
        equal((os.path.exists(os.path.join(root, "one")), os.listdir(os.path.join(root, "etc"))), (False, ["given"]))


def refused(b):
    """Where a process depends on the root, or another file system has the layer, nothing changes, and the copy is
    complete."""
    with Shell(b) as box:
        box.do("mkdir /d; echo one >/d/one; echo two >/d/two")
        for before, after, reason in (("exec 5>>/d/one", "exec 5>&-", "has /d/one open"),
                                      ("exec 5</d", "exec 5<&-", "has /d open"),
                                      ("cd /d", "cd /", "is in /d")):
            box.do(before)
            said = box.shift()
            equal((said["shifted"], reason in said["reason"]), (False, True), said)
            with open(os.path.join(box.to, "root/d/two")) as f:
                equal(f.read(), "two\n")
            equal(box.do(after + "; cat /d/one; echo three >/d/three; cat /d/three"), ["one", "three"])
            equal(os.listdir(os.path.join(box.storage, "root/d")).count("three"), 1)
        if os.stat("/dev/shm").st_dev != os.stat(b.top).st_dev:
            elsewhere = tempfile.mkdtemp(dir="/dev/shm")
            try:
                said = box.shift(layer=elsewhere)
                equal((said["shifted"], "Invalid cross-device link" in said["reason"], os.listdir(elsewhere)),
                      (False, True, []), said)
            finally:
                os.rmdir(elsewhere)
        taken = box.layer()
        os.chown(taken, b.uid, -1)
        with open(os.path.join(taken, "files"), "w"):
            pass
        done = subprocess.run(box.command(taken), capture_output=True, text=True, timeout=PATIENCE, cwd="/", **b.change)
        equal((done.returncode, json.loads(done.stdout)["shifted"], os.listdir(taken)), (0, False, ["files"]), done)
        box.shifted()


MAPPED = """import ctypes, os, sys
libc = ctypes.CDLL(None)
f = os.open("/m", os.O_RDWR | os.O_CREAT)
os.write(f, b"x" * 4096)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 3, 1, f, ctypes.c_long(0))
os.close(f)
print("mapped", flush=True)
sys.stdin.readline()
ctypes.memmove(at, b"y", 1)
"""


def writer(b):
    """A process that writes to a file of the root by its memory: the box has entered the new root and returns."""
    with Shell(b, env=[PATH, "PROGRAM=" + MAPPED]) as box:
        box.shifted()
        places = mounted(box)
        equal(box.do('mkfifo /run/in /run/out; python3 -c "$PROGRAM" </run/in >/run/out & exec 6>/run/in; '
                     "read x </run/out; echo $x"), ["mapped"])
        said = box.shift()
        equal((said["shifted"], "on which a file is open: Device or resource busy" in said["reason"]), (False, True),
              said)
        equal(box.do("echo >&6; wait; head -c 2 /m; echo; cut -d' ' -f5 /proc/self/mountinfo | grep -cx /"),
              ["yx", "1"])
        equal(mounted(box), places)
        with open(os.path.join(box.to, "root/m")) as f:
            equal(f.read(2), "xx")
        layer = box.shifted()
        equal(box.do("echo z >/m; cat /m"), ["z"])
        with open(os.path.join(layer, "m")) as f:
            equal(f.read(2), "yx")


def caught(b):
    """A box that cannot return from such a writer has the new root; that is an error, and no copy lacks a layer."""
    if os.uname().machine != "x86_64":
        raise Skip("the call that fails has its number on x86-64 alone")
    with Shell(b, env=[PATH, "PROGRAM=" + MAPPED]) as box:
        box.do('mkfifo /run/in /run/out; python3 -c "$PROGRAM" </run/in >/run/out & exec 6>/run/in; read x </run/out')
        places, layer = mounted(box), box.layer()
        os.chown(layer, b.uid, -1)
        done = subprocess.run(["/usr/bin/python3", killed_at.__file__, "=", "155"] + box.command(layer), cwd="/",
                              capture_output=True, text=True, timeout=PATIENCE, **b.change)
        equal((done.returncode, "on which a file is open" in done.stderr, done.stdout), (125, True, ""), done)
        box.below.insert(0, os.path.join(layer, "files"))
        equal(box.do("echo >&6; wait; head -c 2 /m; echo; echo new >/new; cut -d' ' -f5 /proc/self/mountinfo | "
                     "grep -cx /"), ["yx", "1"])
        equal((mounted(box), os.listdir(os.path.join(box.storage, "root"))), (places, ["new"]))
        box.shifted()
        equal(box.do("cat /new; echo z >/m; cat /m"), ["new", "z"])


def sizes(b):
    """--size counts the files of all layers once; --most limits only what is copied."""
    with Shell(b) as box:
        box.do("mkdir /d; for i in 1 2 3 4 5 6 7 8 9; do head -c 100000 /dev/zero | tr '\\0' x >/d/$i; done")
        for i in range(2):
            said = box.shift("--most", "800000")
            equal((said["shifted"], sorted(said)), (True, ["reason", "shifted"]), said)
            box.do("echo %d >/d/n" % i)
            done = subprocess.run([b.program, "--size", box.to] + box.below, capture_output=True, text=True, cwd="/",
                                  timeout=PATIENCE, **b.change)
            said = json.loads(done.stdout)
            equal((said["files"] > 9, 900000 < said["bytes"] < 3000000), (True, True), said)
        layer = box.layer()
        os.chown(layer, b.uid, -1)
        done = subprocess.run(box.command(layer, None, "--most", "1"), capture_output=True, text=True, cwd="/",
                              timeout=PATIENCE, **b.change)
        equal((done.returncode, json.loads(done.stdout), "more than 1 bytes" in done.stderr),
              (3, {"shifted": True, "reason": ""}, True), done)


def set_right(box, layer):
    """Exchanges the names of the top and the layer again if the box has its old root, as a caller does."""
    files, top = os.path.join(layer, "files"), os.path.join(box.storage, "root")
    if not os.path.exists(files):
        return
    box.do("echo >/probe")
    if os.path.exists(os.path.join(top, "probe")):
        box.below.insert(0, files)
    else:
        equal((os.listdir(top), os.path.exists(os.path.join(files, "probe"))), ([], True))
        os.rmdir(top)
        os.rename(files, top)
    box.do("rm /probe")


def killed_from(b, n, volume):
    """Kills at every STEPth call from the nth on, as many as one box can have layers. Returns the next n, and whether
    one was not killed."""
    last, ended = "3", False
    with Shell(b, "storage-%d" % n, mounts=[{"source": volume, "target": "/w"}]) as box:
        box.do("mkdir /d; for i in 1 2 3; do echo $i >/d/$i; done")
        places = mounted(box)
        while not ended and len(box.below) < 35:
            layer = box.layer()
            os.chown(layer, b.uid, -1)
            done = subprocess.run(["/usr/bin/python3", killed_at.__file__, "+", str(n)] + box.command(layer), cwd="/",
                                  capture_output=True, text=True, timeout=PATIENCE, **b.change)
            set_right(box, layer)
            got = box.do("cat /d/[123]; test -d /d/dir && echo dir; rm -rf /d/dir; echo %d >/d/3; cat /d/3; mkdir "
                         "/d/dir; ls -d /usr/bin/env /etc/passwd /proc/1 /w; pwd" % n)
            equal(got, ["1", "2", last] + ["dir"] * (last != "3") +
                  [str(n), "/etc/passwd", "/proc/1", "/usr/bin/env", "/w", "/"], (n, done))
            equal(mounted(box), places, (n, done))
            ended = done.returncode == 0 or "that copied files was killed" in done.stderr
            equal(ended or "that exchanges the root of the box was killed" in done.stderr, True, (n, done))
            last, n = str(n), n + STEP
        box.shifted()
        frozen = [tree(layer) for layer in box.below]
        equal(box.do("cat /d/[123]; rm /d/1; echo after >/d/2; ls -A /.. | grep -cx d"), ["1", "2", last, "1"])
        equal([tree(layer) for layer in box.below], frozen)
        equal(box.do("cut -d' ' -f5 /proc/self/mountinfo | grep -cx /"), ["1"])
    with Shell(b, "storage-%s" % box.storage.split("-")[-1], below=box.below) as again:
        equal(again.do("cat /d/[123] 2>/dev/null; test -d /d/dir && echo dir"), ["after", last, "dir"])
    return n, ended


def killed(b):
    """Whenever the process that exchanges the roots is killed, the box continues with all its files and mounts, the
    storage has them, and the next shift works."""
    volume, n, ended = b.directory("volume"), 1, False
    while not ended:
        n, ended = killed_from(b, n, volume)
    equal(n > 100, True, n)


def usage(b):
    """Options of a shift without one are refused."""
    right = ["--freeze", "/g", "--shift", "1", "/l"]
    for args in (right[2:], right[:3] + ["0", "/l"], right[:4], ["--below", "/b"], ["--root", "/r"],
                 right + ["--below", "/b"] * 41):
        done = subprocess.run([b.program, "--copy", "/a", "/b"] + args, capture_output=True, text=True,
                              timeout=PATIENCE)
        equal((done.returncode, done.stderr.startswith("usage:")), (2, True), args)
    equal(subprocess.run([b.program, "--size"], capture_output=True, timeout=PATIENCE).returncode, 2)


if __name__ == "__main__":
    if "ASAN_OPTIONS" in os.environ:  # it cannot look for leaks below ptrace
        os.environ["ASAN_OPTIONS"] += ":detect_leaks=0"
    sys.exit(main([goes_on, places, deep, own_root, refused, writer, caught, sizes, killed, usage]))
