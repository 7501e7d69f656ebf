#!/usr/bin/env python3
"""Boxes whose files are on btrfs, where a snapshot and a fork share the blocks of the disk. Root mounts an image,
and each case is done twice, by root and by another account."""

import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_host_fork as forks  # noqa: E402
import test_host_snapshot as plain  # noqa: E402
from lib import process  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.hostbox import Boxes, end, run, stored  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

SUBVOL_CREATE, SNAP_CREATE_V2 = 0x5000940E, 0x50009417


class OnBtrfs(Boxes):
    """A user whose state directory is on a file system of its own."""

    def __init__(self, uid, **env):
        Boxes.__init__(self, uid, **env)
        image, self.state = self.path("image"), self.directory("state")
        os.close(os.open(image, os.O_CREAT | os.O_WRONLY, 0o600))
        os.truncate(image, 1 << 30)
        subprocess.run(["mkfs.btrfs", "-q", image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop", image, self.state], check=True)
        os.chown(self.state, uid, uid)
        os.chmod(self.state, 0o700)

    def __exit__(self, *unused):
        self("down", "--all", "-q")
        subprocess.run(["umount", self.state], check=True)
        Boxes.__exit__(self, *unused)

    def left(self, *boxes):
        return [f for f in Boxes.left(self, *boxes) if f.split()[4:5] != [self.state]]

    def subvolumes(self):
        return subprocess.run(["btrfs", "subvolume", "list", self.state], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout.splitlines()


def counted(h, tag):
    """The names in a snapshot, and the bytes of their files, with 512 for each name."""
    names = bytes = 0
    for top, directories, files in os.walk(h.path("state", "snapshots", tag, "storage")):
        for name in directories + files:
            st = os.lstat(os.path.join(top, name))
            names += 1
            bytes += st.st_blocks * 512 // (1 if stat.S_ISDIR(st.st_mode) else st.st_nlink) + 512
    return names, bytes


def attributes(h):
    """Extended attributes, which are in no block of a file, count where the table of the file system is read."""
    if h.uid != 0:
        return  # only root can read that
    h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "touch /workspace/{1..300}")
    before = json.loads(h.ok("snapshot", "one", "s", "--json"))
    h.ok("run", "-n", "one", "cd /workspace; python3 -c 'import os\nfor i in range(1, 301): "
         "os.setxattr(str(i), \"user.x\", b\"x\" * 3000)'")
    after = json.loads(h.ok("snapshot", "one", "t", "--json"))
    equal((after["files"], after["bytes"] - before["bytes"] > 900000), (before["files"], True), (before, after))
    end(h, "one")
    h.ok("snapshot", "rm", "s", "t")


def shared(h):
    """Snapshots and forks share the files, and nothing of them is left."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "echo first >/workspace/f; mkdir many; touch many/{1..260}; V=kept; ln f many/link; "
         "ln -s f many/to; truncate -s 1G many/holes; head -c 300000 /dev/urandom >many/large")
    made = json.loads(h.ok("snapshot", "one", "s", "--json"))
    equal((made["files"], 0 <= made["bytes"] - counted(h, "s")[1] < 10000), (counted(h, "s")[0], True),
          (made, counted(h, "s")))
    equal((made["tag"], 260 < made["files"] < 1000, made["still"]), ("s", True, h.uid == 0), made)
    storage = h.path("state", "snapshots", "s", "storage")
    equal([os.path.lexists(storage + name) for name in ("/root/var/lib/handrail", "/journal")], [False] * 2)
    h.ok("run", "-n", "one", "echo second >/workspace/f")
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("fork", "-q", "one", "one", "--count", "2").split(), ["one-1", "one-2"])
    equal([h.ok("run", "-n", n, "cat /workspace/f; echo $V") for n in ("two", "one-1", "one-2")],
          ["first\n\n", "second\nkept\n", "second\nkept\n"])
    h.ok("run", "-n", "one-1", "echo third >/workspace/f")
    equal([h.ok("run", "-n", n, "cat /workspace/f") for n in ("one", "one-2")], ["second\n"] * 2)
    equal(len(h.subvolumes()), 5)
    h.ok("run", "-n", "one", "for i in {1..270}; do mkdir d && cd d || break; done; cd /workspace")
    if h.uid == 0:
        h.ok("snapshot", "one", "deep")
        h.ok("snapshot", "rm", "deep")
    else:  # the directories are walked to count their files
        h.fails(1, "deeper than 240 levels", "snapshot", "one", "deep", "--json")
    equal((stored(h), len(h.subvolumes())), (["s"], 5))
    equal(h.ok("fork", "-q", "one", "deep"), "deep\n")  # a copy would be refused
    end(h, "one", "two", "one-1", "one-2", "deep")
    h.ok("snapshot", "rm", "s")
    equal((h.subvolumes(), stored(h)), ([], []))


def links(h):
    """A snapshot removes the journal from itself, and nothing at a place to which the box's links lead."""
    h.env["RUN_AS_OPENHANDS"] = "false"
    victim = h.directory("victim")
    h.directory("victim", "handrail")
    h.file("stays", "victim", "handrail", "f")
    h.ok("up", "-q", "one")
    # the server makes the journal's directory again where /var/lib is missing
    h.ok("run", "-n", "one", "mv /var/lib /var/other && until ln -sT %s /var/lib; do rm -r /var/lib; done" % victim)
    h.ok("snapshot", "one", "s")
    equal(os.listdir(os.path.join(victim, "handrail")), ["f"])
    equal(os.readlink(h.path("state", "snapshots", "s", "storage", "root", "var", "lib")), victim)
    h.ok("run", "-n", "one", "rm /var/lib && mv /var/other /var/lib")
    end(h, "one")
    h.ok("snapshot", "rm", "s")


def inside(h):
    """A box makes no subvolumes, and one that is there is copied with the rest."""
    h.ok("up", "-q", "one")
    said = h.ok("run", "-n", "one", "python3 -c 'import fcntl, os\nfd = os.open(\"/workspace\", 0)\nfor r in (%d, %d):"
                "\n try: fcntl.ioctl(fd, r, bytes(1024))\n except OSError as e: print(e.strerror)'" %
                (SUBVOL_CREATE, SNAP_CREATE_V2))
    equal(said, "Operation not permitted\n" * 2)
    storage = h.path("state", "one.own", "storage", "root", "workspace")
    for v in (storage + "/v", storage + "/w"):  # the files of both have the same number
        subprocess.run(["btrfs", "-q", "subvolume", "create", v], check=True, stdout=subprocess.DEVNULL)
        with open(v + "/f", "w") as f:
            f.write("in %s\n" % v[-1])
        os.link(v + "/f", v + "/g")
        os.chown(v, h.uid, h.uid)
        os.chown(v + "/f", h.uid, h.uid)
        os.chmod(v, 0o755)
    h.ok("snapshot", "one", "s")
    h.ok("up", "-q", "two", "--from", "s")
    equal(h.ok("run", "-n", "two", "cat v/f v/g w/f w/g; stat -c %h v/f w/f"), "in v\nin v\nin w\nin w\n2\n2\n")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s")
    equal(h.subvolumes(), [])


def killed(h):
    """A "down" that was killed leaves nothing after the next command."""
    h.ok("up", "-q", "one")
    h.ok("snapshot", "one", "s")
    pid = h.box("one")["pid"]
    storage = h.path("state", "one.own", "storage")
    os.rename(storage, storage + ".old")  # as the killed command has left it
    h.ok("down", "-q", "one")
    equal((process.wait_gone(pid, PATIENCE), len(h.subvolumes())), (True, 1))
    os.rename(h.path("state", "snapshots", "s"), h.path("state", "snapshots", ".gone"))
    h.ok("up", "-q", "one")
    h.ok("snapshot", "one", "t")
    equal(stored(h), ["t"])
    end(h, "one")
    h.ok("snapshot", "rm", "t")
    equal(h.subvolumes(), [])


def forks_killed(h):
    """Nor does a fork that was killed."""
    forks.killed(h)
    equal(h.subvolumes(), [])


CASES = [shared, attributes, links, inside, killed, forks_killed, plain.life, plain.layers, plain.kept, plain.ids]


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("needs root, to mount an image")
    if not os.access("/usr/sbin/mkfs.btrfs", os.X_OK):
        skip_all("there is no mkfs.btrfs (package btrfs-progs)")
    if "MOUNTED_ALONE" not in os.environ:  # the mounts end with the test
        os.execvpe("unshare", ["unshare", "-m", sys.executable] + sys.argv, dict(os.environ, MOUNTED_ALONE="1"))
    sys.exit(run(CASES, not_for_root=(plain.ids,), made=OnBtrfs))
