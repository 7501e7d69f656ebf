#!/usr/bin/env python3
"""Snapshots as files: what comes back from one, that hostile files are refused, and that nothing is left of killed and
failed commands. As root each case is done twice, by root and by another account."""

import fcntl
import hashlib
import io
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE  # noqa: E402
from lib.hostbox import end, run, stored  # noqa: E402
from lib.tap import equal  # noqa: E402

MAKE = ("echo first >/workspace/f; mkdir -p ~/d/e; echo deep >~/d/e/f; ln /workspace/f ~/link; "
        "ln -s /etc/passwd ~/d/to; mkfifo ~/d/pipe; chmod 751 ~/d/e/f; echo o >$'/workspace/\\377\\n.x'; "
        "truncate -s 5M ~/holes; echo end >>~/holes; truncate -s 12T ~/huge; echo huge >>~/huge; "
        "touch -d @1000000000 ~/d/e/f; touch -d @1000000001 ~/d; "
        "echo own >/usr/local/bin/own; rm -rf /usr/local/share; mkdir /usr/local/share; "
        "echo new >/usr/local/share/new; echo '127.0.0.1 more' >>/etc/hosts")
# each start writes .bashrc
SEE = ("cd /; for p in workspace/* $(find ~ -mindepth 1 ! -name .gitconfig | sort) usr/local/bin/own usr/local/share "
       "etc/hosts; do stat -c '%n %F %a %u %g %h %Y %s' \"$p\" | "
       "sed '/ directory .*/s/ [0-9]*$//; /bashrc /s/ [0-9]* \\([0-9]*\\)$/ \\1/'; done; "
       "cat workspace/f ~/d/e/f ~/link usr/local/bin/own etc/hosts; readlink ~/d/to; ls usr/local/share; "
       "ls etc/shadow 2>&1; test /workspace/f -ef ~/link && echo same; sha256sum <~/holes; tail -c 5 ~/huge; "
       "test $(stat -c %b ~/holes) -lt 1000 && echo sparse; true")
XATTR = "import os; os.setxattr('/workspace/f', 'user.note', b'\\0x'); os.setxattr('/workspace', 'user.dir', b'y')"
SEE_XATTR = "import os; print([os.getxattr('/workspace/f', 'user.note'), os.getxattr('/workspace', 'user.dir')])"


def python(h, name, text):
    return h.ok("run", "-n", name, "python3 -c \"%s\"" % text.replace("\\", "\\\\"))


def trip(h, more=""):
    """A snapshot that was a file starts a box with the same files as the first one. Nothing reads the holes of a file,
    which can be larger than any disk."""
    h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", MAKE + more)
    python(h, "one", XATTR)
    before, noted = h.ok("run", "-n", "one", SEE), python(h, "one", SEE_XATTR)
    equal([word in before for word in ("\nsame\n", "\nsparse\n", "\nhuge\n", "127.0.0.1 more", " 751 ")], [True] * 5,
          before)
    h.ok("snapshot", "one", "s")
    one = json.loads(h.ok("snapshot", "ls", "--json"))[0]
    file = h.path("cwd", "s.tar")
    h.ok("snapshot", "export", "s", "s.tar")
    equal(os.stat(file).st_mode & 0o777, 0o600)
    h.fails(1, "File exists", "snapshot", "export", "s", "s.tar")
    h.ok("snapshot", "export", "s", "again.tar")
    with open(file, "rb") as a, open(h.path("cwd", "again.tar"), "rb") as b:
        equal(a.read() == b.read(), True, "the same snapshot is the same file")
    h.fails(1, 'there is a snapshot "s" already', "snapshot", "import", "s.tar", "s")
    h.ok("snapshot", "rm", "s")
    equal(h.ok("snapshot", "import", "s.tar", "back"), "back\n")
    equal(stored(h), ["back"])
    two = json.loads(h.ok("snapshot", "ls", "--json"))[0]
    equal([two[k] == one[k] for k in ("sandbox", "created", "still")] + [two["tag"], two["files"] > 20],
          [True] * 3 + ["back", True], (one, two))
    h.ok("up", "-q", "two", "--from", "back")
    equal(h.ok("run", "-n", "two", SEE), before)
    equal(python(h, "two", SEE_XATTR), noted)
    h.ok("run", "-n", "two", "echo other >/workspace/f; echo x >/usr/local/share/z; rm /usr/local/bin/own")
    end(h, "one", "two")
    h.ok("snapshot", "rm", "back")
    equal(stored(h), [])
    equal(sorted(os.listdir(h.path("cwd"))), ["again.tar", "s.tar"])


def pipes(h):
    """A snapshot goes from one command to the other without a file."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "head -c 3000000 /dev/urandom >/workspace/f")
    h.ok("snapshot", "one", "s")
    words = [os.path.join(BUILD, "handrail"), "snapshot"]
    more = dict(h.change, env=h.env, cwd=h.path("cwd"))
    one = subprocess.Popen(words + ["export", "s", "-"], stdout=subprocess.PIPE, **more)
    two = subprocess.run(words + ["import", "-", "t"], stdin=one.stdout, stdout=subprocess.PIPE, **more)
    one.stdout.close()
    equal((one.wait(PATIENCE), two.returncode, two.stdout), (0, 0, b"t\n"))
    h.ok("up", "-q", "two", "--from", "t")
    equal(*[h.ok("run", "-n", name, "sha256sum /workspace/f") for name in ("one", "two")])
    one = subprocess.Popen(words + ["export", "s", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    one.stdout.read(1)
    one.stdout.close()
    equal((one.stderr.read(), one.wait(PATIENCE)), (b"handrail: write the file: Broken pipe\n", 1))
    one.stderr.close()
    end(h, "one", "two")
    h.ok("snapshot", "rm", "s", "t")


def ids(h):
    """Files of a user's subordinate ids keep their owners."""
    h.give_ids()
    trip(h, "; chown 100:101 ~/d/e/f; chown -h 7:8 ~/d/to; chown 7:7 ~/d; chmod 0 ~/d/e")


def layout(h):
    """The file is an image in the layout of OCI, and its layers have the forms of images."""
    h.env["RUN_AS_OPENHANDS"] = "false"
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", MAKE)
    h.ok("snapshot", "one", "s")
    end(h, "one")
    h.ok("snapshot", "export", "s", "s.tar")
    files = parts(h.path("cwd", "s.tar"))
    equal(json.loads(files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
    listed = json.loads(files["index.json"])["manifests"]
    equal((len(listed), listed[0]["annotations"]["org.opencontainers.image.ref.name"]), (1, "s"))
    image = json.loads(blob(files, listed[0]))
    config, = [json.loads(blob(files, image["config"]))]
    equal((config["rootfs"]["diff_ids"], config["os"], {layer["mediaType"] for layer in image["layers"]}),
          ([layer["digest"] for layer in image["layers"]], "linux", {"application/vnd.oci.image.layer.v1.tar"}))
    equal((len(image["layers"]), len(config["history"])), (2, 2), "the files of the root, and the other changes")
    equal("which are not in this image" in config["history"][0]["comment"], True)
    equal(json.loads(files["manifest.json"])[0]["RepoTags"], ["handrail-box:s"])
    all_of = {}
    for layer in image["layers"]:
        with tarfile.open(fileobj=io.BytesIO(blob(files, layer))) as tar:
            equal(len({m.name for m in tar}), len(tar.getmembers()), "each name is there once")
            all_of.update((m.name, m) for m in tar)
    equal([all_of[n].type for n in ("usr/local/bin/own", "usr/local/share/new", "workspace")],
          [tarfile.REGTYPE] * 2 + [tarfile.DIRTYPE])
    equal(("usr/local/share/.wh..wh..opq" in all_of, "etc/.wh.shadow" in all_of), (True, True))
    equal([m.name for m in all_of.values() if m.isdev() and not m.isfifo()], [])
    equal([m.name for m in all_of.values() if m.name.startswith(("/", "layers", "var/lib/handrail/"))], [])
    h.ok("snapshot", "rm", "s")


def parts(path):
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def blob(files, descriptor):
    data = files["blobs/sha256/" + descriptor["digest"].split(":")[1]]
    equal((hashlib.sha256(data).hexdigest(), len(data)), (descriptor["digest"].split(":")[1], descriptor["size"]))
    return data


def entry(name, kind=tarfile.REGTYPE, data=b"", **more):
    m = tarfile.TarInfo(name)
    m.type, m.size = kind, len(data)
    for key, value in more.items():
        setattr(m, key, value)
    return m, data


def tar(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for member, data in entries:
            t.addfile(member, io.BytesIO(data))
    return out.getvalue()


def image(*layers, labels=None, change=None, ids=None):
    """The bytes of an image of these layers, the lowest one first; `change` edits the files, and
    `ids` is the number of layers that its configuration lists."""
    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        files["blobs/sha256/" + digest] = data
        return {"digest": "sha256:" + digest, "size": len(data)}

    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    listed = [put(layer) for layer in layers]
    labels = {"handrail.snapshot": "x", "handrail.snapshot.sandbox": "one"} if labels is None else labels
    config = put(json.dumps({"config": {"Labels": labels},
                             "rootfs": {"diff_ids": [x["digest"] for x in listed[:ids]]}}).encode())
    manifest = put(json.dumps({"config": config, "layers": listed}).encode())
    files["index.json"] = json.dumps({"manifests": [manifest]}).encode()
    if change:
        change(files, listed[-1])
    return tar([entry(name, data=data) for name, data in files.items()])


def hostile(h):
    """Whatever is wrong with a file, one line reports it, and nothing is made."""
    h.file("kept", "victim")
    victim, below = h.path("victim"), "below an entry that is not a directory"
    good = [entry("workspace", tarfile.DIRTYPE, mode=0o755), entry("workspace/f", data=b"x")]
    layers = [
        ("leads out", [entry("../f", data=b"x")]), ("leads out", [entry("workspace/../../f", data=b"x")]),
        ("leads out", [entry("/etc/f", data=b"x")]), ("leads out", [entry("a//b", data=b"x")]),
        ("too deep", [entry("/".join(["d"] * 250), tarfile.DIRTYPE)]),
        (below, [entry("l", tarfile.SYMTYPE, linkname=h.top), entry("l/victim", data=b"x")]),
        (below, [entry("usr/l", tarfile.SYMTYPE, linkname="/"), entry("usr/l/x", data=b"x")]),
        ("is there twice", [entry("l", tarfile.SYMTYPE, linkname=victim), entry("l", data=b"x")]),
        ("is there twice", good + [entry("workspace", data=b"x")]),
        ("link to no earlier file", [entry("l", tarfile.LNKTYPE, linkname="victim")]),
        ("link to no earlier file", good + [entry("l", tarfile.LNKTYPE, linkname="workspace")]),
        ("leads out", [entry("l", tarfile.LNKTYPE, linkname=victim)]),
        ("leads out", [entry("l", tarfile.LNKTYPE, linkname="../../../victim")]),
        (below, [entry("s", tarfile.SYMTYPE, linkname=h.top), entry("l", tarfile.LNKTYPE, linkname="s/victim")]),
        ("device", [entry("dev/sda", tarfile.BLKTYPE, devmajor=8)]), ("device", [entry("usr/x", tarfile.CHRTYPE)]),
        ("marks no name", [entry("usr/.wh...")]), ("marks no name", [entry("usr/.wh..wh.aufs")]),
        ("marks no name", [entry("etc/.wh.")]), ("no mark", [entry("etc/.wh.x", data=b"x")]),
        ("is there twice", [entry("etc/.wh.x"), entry("etc/x", data=b"x")])]
    files = [(why, image(tar(entries))) for why, entries in layers]
    low = good + [entry("l", tarfile.SYMTYPE, linkname=h.top), entry("usr/l", tarfile.SYMTYPE, linkname=h.top)]
    files += [(why, image(tar(low), tar(entries))) for why, entries in [
        (below, [entry("l/.wh.victim")]), (below, [entry("l/.wh..wh..opq")]), (below, [entry("usr/l/.wh.victim")]),
        (below, [entry("l/victim", data=b"x")]), (below, [entry("l/victim", tarfile.DIRTYPE)]),
        ("leads out", [entry("../.wh.victim")]), ("leads out", [entry("workspace/../../.wh..wh..opq")]),
        ("marks no name", [entry("workspace/.wh...")]), ("marks no name", [entry("workspace/.wh.")]),
        ("no mark", [entry("workspace/.wh.f", data=b"x")]), ("is there twice", [entry("workspace/f", data=b"x")] * 2),
        ("is there twice", [entry("workspace", data=b"x"), entry("workspace", tarfile.DIRTYPE)]),
        ("link to no earlier file",
         [entry("workspace/.wh.f"), entry("x", tarfile.LNKTYPE, linkname="workspace/f")]),
        ("link to no earlier file", [entry("x", tarfile.LNKTYPE, linkname="x")])]]
    files += [("its layers are not", image(*[tar(good)] * n)) for n in (0, 57)]
    whole = image(tar(good))

    def damage(files, top):
        files["blobs/sha256/" + top["digest"].split(":")[1]] += b"\0"

    def lose(files, top):
        del files["blobs/sha256/" + top["digest"].split(":")[1]]

    def put(name, data=b"x"):
        return lambda files, top: files.update({name: data})

    files += [("has the digest", image(tar(good), change=damage)), ("is missing", image(tar(good), change=lose)),
              ("no entry \"../x\"", image(tar(good), change=put("../x"))),
              ("no entry", image(tar(good), change=put("blobs/sha256/../../x"))),
              ("its layers are not", image(tar(good), tar([]), ids=1)), ("its layers are not", image(tar(good), ids=0)),
              ("not JSON", image(tar(good), change=put("index.json"))),
              ("does not have one image", image(tar(good), change=put("index.json", b"[]"))),
              ("has no digest", image(tar(good), change=put("index.json", b'{"manifests": [{"digest": "../x"}]}'))),
              ("has not made it", image(tar(good), labels={})),
              ("has not made it", image(tar(good), labels={"handrail.snapshot": "\x1b[2J"})),
              ("has not made it", image(tar(good), labels={"handrail.snapshot": "\x9b2J"})),
              ("has not made it", image(tar(good), labels={"handrail.snapshot": "", "handrail.snapshot.root": "\n"})),
              ("layer is damaged", image(tar(good)[:700])), ("is cut", whole[:1000]), ("is cut", whole[:2048]),
              ("is cut or damaged", b"no archive" * 1000), ("is cut", b"")]
    for why, data in files:
        with open(h.path("cwd", "x.tar"), "wb") as f:
            f.write(data)
        done = h("snapshot", "import", "x.tar", "t")
        equal((done.returncode, done.stdout, why in done.stderr, done.stderr.count("\n")), (1, "", True, 1),
              (why, done.stderr))
        equal(stored(h), [], why)
    with open(victim) as f:
        equal(f.read(), "kept")
    h.fails(3, "No such file", "snapshot", "import", "none.tar", "t")
    for name in (".new", "../x", "a/b"):
        h.fails(2, "invalid name of a snapshot", "snapshot", "import", "x.tar", name)
        h.fails(2, "invalid name of a snapshot", "snapshot", "export", name, "y.tar")
    h.fails(3, 'there is no snapshot "t"', "snapshot", "export", "t", "y.tar")
    equal(os.listdir(h.path("cwd")), ["x.tar"])


def harmless(h):
    """Bits and attributes that mean something to a program outside are not taken."""
    lists = struct.pack("<I" + "HHI" * 3, 2, *[x for tag in (1, 4, 32) for x in (tag, 7, 0xffffffff)])
    layer = tar([entry("workspace", tarfile.DIRTYPE, mode=0o2777, uid=os.geteuid()),
                 entry("listed", tarfile.DIRTYPE, mode=0o755, pax_headers={
                     "SCHILY.xattr.system.posix_acl_default": lists.decode("utf-8", "surrogateescape")}),
                 entry("listed/d", tarfile.DIRTYPE, mode=0o700), entry("listed/f", data=b"x", mode=0o600),
                 entry("workspace/su", data=b"x", mode=0o6755),
                 entry("workspace/f", data=b"x", mode=0o644, pax_headers={
                     "SCHILY.xattr.user.a": "1", "SCHILY.xattr.user.overlay.redirect": "/etc",
                     "SCHILY.xattr.trusted.overlay.redirect": "/etc", "SCHILY.xattr.security.capability": "1"}),
                 entry("usr/.wh.games"), entry("home/.wh.none"), entry("etc/.wh..wh..opq"),
                 entry("etc/only", data=b"x")])
    with open(h.path("cwd", "x.tar"), "wb") as f:
        f.write(image(layer))
    h.ok("snapshot", "import", "x.tar", "t")
    found = []
    for folder, _, names in os.walk(h.path("state", "snapshots", "t", "storage")):
        for path in [folder] + [os.path.join(folder, n) for n in names]:
            found += [os.path.basename(path)] * ((os.stat(path, follow_symlinks=False).st_mode & 0o6000) != 0)
            found += [n for n in os.listxattr(path, follow_symlinks=False) if "opaque" not in n and "selinux" not in n]
    equal(sorted(found), ["system.posix_acl_default", "user.a", "workspace"])
    h.ok("up", "-q", "one", "--from", "t")
    equal(h.ok("run", "-n", "one", "stat -c '%a' /workspace/su; test -e /usr/games || echo gone; cat /etc/only"),
          "755\ngone\nx\n")
    end(h, "one")
    h.ok("snapshot", "rm", "t")
    with open(h.path("cwd", "x.tar"), "wb") as f:
        f.write(image(layer, labels={"handrail.snapshot": "x", "handrail.snapshot.root": "/\xe4"}))
    h.ok("snapshot", "import", "x.tar", "t")
    equal([s["root"] for s in json.loads(h.ok("snapshot", "ls", "--json"))], ["/\xe4"])
    h.ok("snapshot", "rm", "t")


def over(h):
    """A layer removes and replaces entries of those below it, in any order, and its directories give the attributes."""
    lists = struct.pack("<I" + "HHI" * 3, 2, *[x for tag in (1, 4, 32) for x in (tag, 7, 0xffffffff)])
    low = tar([entry("workspace", tarfile.DIRTYPE, mode=0o700, pax_headers={
                   "SCHILY.xattr.user.low": "1", "SCHILY.xattr.user.both": "1",
                   "SCHILY.xattr.system.posix_acl_default": lists.decode("utf-8", "surrogateescape")})] +
              [entry("workspace/" + name, data=b"low", mode=0o6644)
               for name in ("kept", "gone", "file", "x/y/z", "d/old")] +
              [entry("workspace/l", tarfile.SYMTYPE, linkname="kept"), entry("etc/.wh.x"), entry("usr/a/b", data=b"x"),
               entry("workspace/two", tarfile.LNKTYPE, linkname="workspace/gone"),
               entry("workspace/was", tarfile.DIRTYPE, mode=0o755), entry("etc/y", data=b"x"),
               entry("workspace/d", tarfile.DIRTYPE, mode=0o755)])
    top = tar([entry("workspace/d/new", data=b"top", mode=0o600), entry("workspace/d/.wh..wh..opq"),
               entry("workspace/.wh.gone"), entry("workspace/file", tarfile.DIRTYPE, mode=0o711),
               entry("workspace/file/in", data=b"top"), entry("workspace/l", data=b"top"), entry("workspace/.wh.x"),
               entry("workspace/was", tarfile.SYMTYPE, linkname="/none"), entry("workspace/.wh.none"),
               entry("none/.wh.none"), entry("workspace/far", tarfile.LNKTYPE, linkname="workspace/kept"),
               entry("workspace", tarfile.DIRTYPE, mode=0o751, pax_headers={"SCHILY.xattr.user.both": "2"}),
               entry("etc/x", tarfile.DIRTYPE, mode=0o755), entry("etc/.wh.y"), entry("usr/a/.wh..wh..opq")])
    with open(h.path("cwd", "x.tar"), "wb") as f:
        f.write(image(low, top))
    h.ok("snapshot", "import", "x.tar", "t")
    storage = h.path("state", "snapshots", "t", "storage")
    place, found = os.path.join(storage, "root", "workspace"), {}
    for folder, folders, names in os.walk(place):
        for path in [os.path.join(folder, n) for n in folders + names]:
            st = os.lstat(path)
            lists = [n for n in os.listxattr(path, follow_symlinks=False) if "acl" in n]
            equal((st.st_mode & 0o6000, lists), (0, []), path)
            if stat.S_ISLNK(st.st_mode):
                about = os.readlink(path)
            elif stat.S_ISDIR(st.st_mode):
                about = oct(st.st_mode & 0o777)
            else:
                with open(path) as f:
                    about = f.read()
            found[os.path.relpath(path, place)] = about
    equal(found, {"kept": "low", "far": "low", "two": "low", "file": "0o711", "file/in": "top", "l": "top",
                  "d": "0o755", "d/new": "top", "was": "/none"})
    noted = [(n, os.getxattr(place, n)) for n in os.listxattr(place) if "selinux" not in n]
    equal((noted, os.stat(place).st_mode & 0o777), ([("user.both", b"2")], 0o751))
    upper, = [p for p in (storage + "/layers/host/upper/etc", storage + "/layers/etc/upper") if os.path.isdir(p)]
    equal([sorted(os.listdir(upper)), os.stat(upper + "/y").st_rdev, os.path.isdir(upper + "/x")],
          [["x", "y"], 0, True])
    equal([n for n in os.listxattr(upper + "/x") if "opaque" in n],
          ["trusted.overlay.opaque" if os.geteuid() == h.uid == 0 else "user.overlay.opaque"])
    h.ok("up", "-q", "one", "--from", "t")
    equal(h.ok("run", "-n", "one", "ls -A /etc/x /usr/a; ls /etc/y 2>&1; cat /workspace/d/*"),
          "/etc/x:\n\n/usr/a:\nls: cannot access '/etc/y': No such file or directory\ntop\n")
    end(h, "one")
    h.ok("snapshot", "rm", "t")


def worker(command):
    """The program that reads or writes the file; None once there is none to come."""
    while command.poll() is None:
        for pid in process.descendants(command.pid):
            if "handrail-layer" in process.command_line(pid):
                return pid
    return None


def waits(h):
    """A command waits for the lock of its snapshot, and for no other one, and says so."""
    layer = tar([entry("workspace", tarfile.DIRTYPE, mode=0o755)])
    with open(h.path("cwd", "x.tar"), "wb") as f:
        f.write(image(layer))
    h.ok("snapshot", "import", "x.tar", "s")
    for argv in (["export", "s", "t.tar"], ["export", "s", "-"], ["rm", "s"]):
        held = os.open(h.path("state", "snapshots", "s"), os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            h.ok("snapshot", "import", "x.tar", "t")
            h.ok("snapshot", "rm", "t")
            command = h.popen("snapshot", *argv)
            equal("waiting for it" in command.stderr.readline(), True, argv)
        finally:
            os.close(held)
        command.communicate(timeout=PATIENCE)
        equal(command.returncode, 0, argv)
    equal(stored(h), [])


def killed(h):
    """Whatever is killed, only whole snapshots are listed, and the next command removes the rest."""
    h.ok("up", "-q", "one")
    h.ok("run", "-n", "one", "mkdir -p ~/many; cd ~/many; for i in {1..1500}; do echo $i >$i; done")
    h.ok("snapshot", "one", "s")
    end(h, "one")
    h.ok("snapshot", "export", "s", "s.tar")
    for i in range(16):
        command = h.popen("snapshot", *[["import", "s.tar", "k"], ["export", "s", "k.tar"]][i % 2])
        pid = worker(command)
        time.sleep(i // 4 * 0.02)  # the instant of the kill, not a wait for an event
        for victim in ([command.pid], [pid])[i // 2 % 2]:
            if victim is not None:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        command.communicate(timeout=PATIENCE)
        if i % 2:
            whole = os.path.exists(h.path("cwd", "k.tar"))
            equal(command.returncode != 0 or whole, True)
            if whole:
                h.ok("snapshot", "import", "k.tar", "copy")
                h.ok("snapshot", "rm", "copy")
                os.unlink(h.path("cwd", "k.tar"))
        elif "k" in h.ok("snapshot", "ls", "-q").split():
            h.ok("snapshot", "rm", "k")
        equal(sorted(os.listdir(h.path("cwd"))), ["s.tar"])
    h.ok("snapshot", "import", "s.tar", "last")
    equal(stored(h), ["last", "s"])
    equal(sorted(os.listdir(h.path("state", "snapshots", "s"))), ["snapshot.json", "storage"])
    h.ok("up", "-q", "two", "--from", "last")
    equal(h.ok("run", "-n", "two", "cat ~/many/* | wc -l"), "1500\n")
    end(h, "two")
    h.ok("snapshot", "rm", "s", "last")


def full(h):
    """A file that the disk has no room for is refused, and a full disk leaves no snapshot."""
    if os.geteuid() != 0:
        return
    big = image(tar([entry("workspace/f", data=os.urandom(3000000))]))
    with open(h.path("cwd", "big.tar"), "wb") as f:
        f.write(big)
    os.mkdir(h.path("state"))
    for size, why in (("2m", "the disk has"), ("5m", "the disk has"), ("20m", None)):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=0700,uid=%d,gid=%d" % (size, h.uid, h.uid), "small",
                        h.path("state")], check=True)
        try:
            if why:
                h.fails(1, why, "snapshot", "import", "big.tar", "t")
            else:
                h.ok("snapshot", "import", "big.tar", "t")
            equal(stored(h), [] if why else ["t"])
        finally:
            subprocess.run(["umount", "-l", h.path("state")], check=True)


CASES = [trip, pipes, ids, layout, hostile, harmless, over, waits, killed, full]


if __name__ == "__main__":
    sys.exit(run(CASES, not_for_root=(ids,)))
