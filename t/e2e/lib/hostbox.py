"""Users of the handrail command with sandboxes of the back-end "box": root's tests are root and another account."""

import os
import re
import subprocess
import time

from . import process
from .box import allowed, groups, run_each
from .host import BUILD, PATIENCE, SRC, Host
from .tap import Skip, equal

UID = 54323  # of no account


def below(command, words, awaits=None):
    """A process below a command with these words in its command line; None once none is to come: the command, or what
    awaits it, has ended. A command that neither starts one nor ends is a failure."""
    awaits = awaits or (lambda: command.poll() is None)
    deadline = time.monotonic() + PATIENCE
    while awaits():
        for pid in process.descendants(command.pid):
            if words in process.command_line(pid):
                return pid
        equal(time.monotonic() < deadline, True, "process %d has started no \"%s\"" % (command.pid, words))
    return None


def copier(command, awaits=None):
    """The launcher that copies for a command, as below() finds it."""
    return below(command, "--copy", awaits)


def stored(h):
    """The entries of the store of snapshots."""
    return sorted(os.listdir(h.path("state", "snapshots")))


def end(h, *names):
    """Ends sandboxes, of which nothing is left."""
    boxes = [h.box(name) for name in names]
    h.ok("down", "-q", *names)
    equal(h.left(*boxes), [])


class Boxes(Host):
    """The surroundings of the user of that ID."""

    def __init__(self, uid, **env):
        Host.__init__(self, RUNTIME="box", **env)
        self.uid = uid
        self.instead = None  # a directory in the place of `over`
        self.over = "/etc"
        self.change = {} if uid == os.geteuid() else dict(user=uid, group=uid, extra_groups=[])
        for name in ("", "home", "tmp", "cwd", "run"):
            os.chown(self.path(name), uid, uid)
        if "ASAN_OPTIONS" in os.environ:  # a box has none of the caller's variables
            self.env["SANDBOX_ENV_ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"]

    def popen(self, *argv, **more):
        if self.instead:
            words = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec setpriv --reuid %d '
                     '--regid %d --clear-groups "$@"' % (self.uid, self.uid), self.instead, self.over,
                     os.path.join(BUILD, "handrail")]
            return subprocess.Popen(words + list(argv), env=self.env, cwd=self.path("cwd"), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        return Host.popen(self, *argv, **dict(self.change, **more))

    def directory(self, *names):
        os.mkdir(self.path(*names), 0o755)
        os.chown(self.path(*names), self.uid, self.uid)
        return self.path(*names)

    def file(self, text, *names):
        with open(self.path(*names), "w") as f:
            f.write(text)
        os.chown(self.path(*names), self.uid, -1)

    def give_ids(self):
        """Gives the user a name and subordinate ids, in an /etc that only its commands see."""
        if not os.access("/usr/bin/newuidmap", os.X_OK):
            raise Skip("there is no newuidmap (package uidmap)")
        self.instead = self.path("etc")
        subprocess.run(["cp", "-a", "/etc", self.instead], check=True)
        with open(self.instead + "/passwd", "a") as f:
            f.write("e2e-box:x:%d:%d::%s:/bin/sh\n" % (self.uid, self.uid, self.path("home")))
        for name in ("subuid", "subgid"):
            with open(os.path.join(self.instead, name), "w") as f:
                f.write("e2e-box:1500000000:65536\n")

    def box(self, name="default"):
        return self.record(name)["backend"]

    def left(self, *boxes):
        """What is there of these boxes, which have ended."""
        found = [b[k] for b in boxes for k in ("dir", "edge") if os.path.lexists(b[k])]
        found += [g for b in boxes for g in groups(b["name"])]
        found += ["process %d" % b["pid"] for b in boxes if b["pid"] and not process.wait_gone(b["pid"], PATIENCE)]
        with open("/proc/self/mountinfo") as f:
            found += [line for line in f if self.top in line]
        return found


def own_root_of(h):
    """A directory with a system of its own, the server's program in it, and the options of a box with that root."""
    with open(os.path.join(BUILD, "Makefile")) as f:
        values = dict(re.findall(r"^(\w+) = (\S+)$", f.read(), re.M))
    sbin = values["sbindir"]
    while "$" in sbin:
        sbin = re.sub(r"\$[({](\w+)[)}]", lambda m: values[m.group(1)], sbin)
    root = h.directory("root")
    for name in ("etc", "usr", "var", "home", "root", "tmp"):
        h.directory("root", name)
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            os.symlink("usr/" + name, os.path.join(root, name))
        elif os.path.isdir("/" + name):
            raise Skip("needs a system whose /bin and /lib are links into /usr")
    h.file("root:x:0:0::/root:/bin/bash\nwww-data:x:33:33::/:/bin/false\n", "root", "etc", "passwd")
    h.file("root:x:0:\nsudo:x:27:\nwww-data:x:33:\n", "root", "etc", "group")
    os.makedirs(root + sbin)
    with open(root + sbin + "/handraild", "w") as f:
        f.write('#!/bin/sh\nexec /mnt/build/handraild "$@"\n')
    os.chmod(f.name, 0o755)
    words = ("-s", "box.root=" + root, "-s", "sandbox.volumes=/usr:/usr:ro,%s:/mnt/build:ro,%s:/mnt/source:ro" % (
        BUILD, SRC), "-e", "HANDRAIL_LIBEXECDIR=/mnt/build", "-e", "HANDRAIL_DATADIR=/mnt/source/conf")
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    return root, f.name, words


def why_none(uid):
    """Why no box can be made here for that account; None: one can."""
    with Boxes(uid) as h:
        if subprocess.run(["test", "-x", os.path.join(BUILD, "handraild")], cwd="/", **h.change).returncode:
            return "others may not enter the build directory"
        done = h("up", "-q")
        if done.returncode and not allowed(h):
            return "no box can be made here: " + done.stderr.strip()
    return None


def run(cases, not_for_root=(), made=Boxes, **more):
    """Runs the cases as each account; those of the second list as an ordinary user that root's test makes, since root
    makes the account, and the place, for it."""
    return run_each(cases, UID, why_none, made,
                    lambda case, uid: case in not_for_root and (uid == 0 or os.geteuid() != 0), **more)
