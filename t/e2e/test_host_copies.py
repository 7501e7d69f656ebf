#!/usr/bin/env python3
"""handrail put and get between two ends of ours: what cp -R keeps is kept, what cannot be copied is named, and no
archive leaves its place in either direction."""

import contextlib
import http.server
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.parse
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, PATIENCE, Host  # noqa: E402
from lib.supervised import ONE_WORKER_EACH, Server, beside  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402
from test_host_hostile import Hostile  # noqa: E402

NAMES = (b"plain", b"a\\b.txt", b"q\"u'o", b"line\nfeed", b"carriage\rreturn", b"\xc3\xbcn\xc3\xaf \xe6\x96\x87",
         b"latin\xff", b"-rf", b"%41", b" blank ", b"~", b"archive.zip", b"n" * 250)
LONG_AGO = 981173106789000001


def put_file(path, data=b"x", mode=None):
    with open(path, "wb") as f:
        f.write(data)
    if mode is not None:
        os.chmod(path, mode)


def planted(top):
    """A tree with one of everything that can be copied."""
    os.makedirs(os.path.join(top, "sub/empty"))
    for name in NAMES:
        put_file(os.path.join(os.fsencode(top), name), name)
    for mode in (0o755, 0o644, 0o600, 0o444, 0o711):
        put_file(os.path.join(top, "mode%o" % mode), b"%o" % mode, mode)
    for mode in (0o700, 0o555, 0o777):
        os.mkdir(os.path.join(top, "dir%o" % mode))
        put_file(os.path.join(top, "dir%o" % mode, "f"))
        os.chmod(os.path.join(top, "dir%o" % mode), mode)
    for name, to in (("link", "plain"), ("up", "../outside"), ("nowhere", "/no/such/place"), ("dirlink", "sub"),
                     ("loop", "loop")):
        os.symlink(to, os.path.join(top, name))
    put_file(os.path.join(top, "none"), b"")
    with open(os.path.join(top, "holes"), "wb") as f:
        f.truncate(80 << 20)
        f.seek(40 << 20)
        f.write(b"data")
    with open(os.path.join(top, "nothing but a hole"), "wb") as f:
        f.truncate(3 << 20)
    put_file(os.path.join(top, "zeros"), bytes(6 << 20) + b"data")
    put_file(os.path.join(top, "long"), bytes(range(256)) * 8192)
    for name in ("plain", "sub", "dir555"):
        os.utime(os.path.join(top, name), ns=(LONG_AGO, LONG_AGO))
    os.utime(os.path.join(top, "link"), ns=(LONG_AGO, LONG_AGO), follow_symlinks=False)


def tree(top):
    """{path: what it is}, with modes, times and where links lead."""
    found = {}
    top = os.fsencode(top)
    for folder, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what = hash(f.read())
            found[os.path.relpath(path, top)] = (stat.S_IFMT(st.st_mode), what, st.st_mtime_ns,
                                                 None if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode))
    return found


def workspace(h):
    return h.ok("run", "pwd").rstrip("\n")


def same(got, want, what, merged=False):
    """merged: a directory that was there keeps its own time."""
    for name in sorted(set(got) | set(want)):
        one, other = got.get(name), want.get(name)
        if merged and one and other and one[0] == stat.S_IFDIR:
            one, other = one[:2] + one[3:], other[:2] + other[3:]
        equal((name, one), (name, other), what)


def everything():
    """There and back, twice over the first copy, and no file takes more room than it did."""
    with Host() as h:
        h.ok("up", "-q")
        top = h.path("cwd", "tree")
        planted(top)
        want = tree(top)
        # over the first copy as root alone: nobody else replaces a file in a directory of mode 0555
        for more in ("", "/.")[:2 if os.geteuid() == 0 else 1]:
            h.ok("put", "tree" + more, "there")
            same(tree(os.path.join(workspace(h), "there")), want, "put", more)
            h.ok("get", "there" + more, "back")
            same(tree(h.path("cwd", "back")), want, "get", more)
        for name in ("holes", "nothing but a hole"):
            room = [os.stat(os.path.join(where, name)).st_blocks
                    for where in (top, os.path.join(workspace(h), "there"), h.path("cwd", "back"))]
            equal(max(room) <= room[0] + 64, True, (name, room))
        for where in (os.path.join(workspace(h), "there"), h.path("cwd", "back")):
            equal(os.stat(os.path.join(where, "zeros")).st_blocks <= 64, True, "written zeros become holes")
        # what is new of a file that is there
        os.chmod(os.path.join(top, "plain"), 0o750)
        put_file(os.path.join(top, "plain"), b"new")
        h.ok("put", "tree/plain", "there/plain")
        st = os.stat(os.path.join(workspace(h), "there/plain"))
        equal((stat.S_IMODE(st.st_mode), st.st_size), (0o750, 3), "mode and content")
        left = [n for n in os.listdir(os.path.join(workspace(h), "there")) + os.listdir(h.path("tmp"))
                if n.startswith((".handrail", "handrail-"))]
        equal(left, [], "temporary files")


def stays_special(h, name):
    """No copy takes the place of a FIFO, as none would of /dev/null."""
    os.mkfifo(h.path("cwd", "fifo"))
    h.fails(1, 'fifo is not a regular file; "-" writes to standard output', "get", name, "fifo")
    equal(stat.S_ISFIFO(os.lstat(h.path("cwd", "fifo")).st_mode), True)


def one_by_one():
    """A file, a link that leads nowhere, what is in a directory; into one or under another name."""
    with Host() as h:
        h.ok("up", "-q")
        put_file(h.path("cwd", "run.sh"), b"#!/bin/sh\necho ran\n", 0o755)
        os.utime(h.path("cwd", "run.sh"), ns=(LONG_AGO, LONG_AGO))
        os.symlink("run.sh", h.path("cwd", "alias"))
        os.symlink("/no/such/place", h.path("cwd", "nowhere"))
        os.makedirs(h.path("cwd", "d/e"))
        put_file(h.path("cwd", "d/e/f"))
        ws = workspace(h)
        h.ok("put", "run.sh")
        equal(h.ok("run", "./run.sh"), "ran\n", "it may be run")
        equal(os.stat(os.path.join(ws, "run.sh")).st_mtime_ns, LONG_AGO, "its time")
        h.ok("put", "alias", "copy")
        equal((os.path.islink(os.path.join(ws, "copy")), h.ok("run", "./copy")), (False, "ran\n"), "a link to a file")
        h.ok("put", "nowhere")
        equal(os.readlink(os.path.join(ws, "nowhere")), "/no/such/place", "a link to nothing")
        h.ok("put", "d/.", "content")
        equal(sorted(os.listdir(os.path.join(ws, "content"))), ["e"], "what is in it")
        h.ok("get", "run.sh", "got")
        st = os.stat(h.path("cwd", "got"))
        equal((stat.S_IMODE(st.st_mode), st.st_mtime_ns), (0o755, LONG_AGO), "mode and time")
        h.ok("get", "nowhere", "back")
        equal(os.readlink(h.path("cwd", "back")), "/no/such/place", "and back")
        h.ok("get", "/proc/self/status", "status")
        with open(h.path("cwd", "status")) as f:
            equal("Name:" in f.read(), True, "a file that does not say how long it is")
        stays_special(h, "run.sh")
        h.fails(3, "nothing", "put", "nothing")
        h.fails(3, "there is no file or directory", "get", "nothing")
        equal("500" in h.ok("logs").split("GET /handrail")[0] and "/download_file" in h.ok("logs"), False,
              "a look at what is not there is no failure of the server")


def left_out():
    """Named, with the rest copied and status 1."""
    with Host() as h:
        h.ok("up", "-q")
        ws = workspace(h)
        for top, way in ((h.path("cwd", "odd"), ("put", "odd", "there")),
                         (os.path.join(ws, "odd"), ("get", "odd", "here"))):
            os.makedirs(top + "/sub")
            os.mkfifo(top + "/sub/fi\nfo")
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(top + "/sock")
            put_file(top + "/zzz", b"last")
            if os.geteuid() != 0:
                put_file(top + "/locked", b"x", 0)
            done = h(*way)
            names = ["sock: a socket", "sub/fi\\x0afo: a FIFO"] + (["locked: Permission"] if os.geteuid() != 0 else [])
            equal((done.returncode, [n for n in names if n not in done.stderr]), (1, []), done.stderr)
            there = os.path.join(ws, "there") if way[0] == "put" else h.path("cwd", "here")
            equal((sorted(os.listdir(there)), os.listdir(there + "/sub")), (["sub", "zzz"], []), "the rest")
        # what stands in the way
        os.makedirs(h.path("cwd", "d/x"))
        put_file(h.path("cwd", "d/y"))
        put_file(h.path("cwd", "d/z"), b"z")
        os.makedirs(os.path.join(ws, "t/y"))
        put_file(os.path.join(ws, "t/x"), b"old")
        done = h("put", "d/.", "t")
        equal((done.returncode, "t/x: " in done.stderr, "t/y: " in done.stderr), (1, True, True), done.stderr)
        with open(os.path.join(ws, "t/x")) as f:
            equal((f.read(), os.path.exists(os.path.join(ws, "t/z"))), ("old", True), "the rest")
        h.fails(1, "a FIFO is not copied", "get", "odd/sub/fi\nfo", "x")
        # a file of 7 EiB, which is a hole: the file system of a sandbox may allow it
        with tempfile.TemporaryDirectory(dir="/dev/shm") as top:
            with open(top + "/huge", "w") as f:
                f.truncate(7 << 60)
            put_file(top + "/small")
            done = h("get", top, "shm")
            equal((done.returncode, "huge: it is larger than 16 TiB" in done.stderr, os.listdir(h.path("cwd", "shm"))),
                  (1, True, ["small"]), done.stderr)
        for n in range(200):
            os.mkfifo(h.path("cwd", "odd", "fifo%d" % n))
        done = h("put", "odd", "many")
        equal((done.returncode, [n for n in range(200) if "fifo%d: " % n not in done.stderr]), (1, []), "many")


def exact_bytes():
    """write takes what it is given; get prints what is there."""
    with Host() as h:
        h.ok("up", "-q")
        ws = workspace(h)
        for text in ("hi\n", "no end", "", "\n\n", "a\r\nb\r\n", "  x  ", "ünï\n"):
            h.ok("write", "dir/f.txt", input=text)
            with open(os.path.join(ws, "dir/f.txt"), newline="") as f:
                equal(f.read(), text, "write")
        os.chmod(os.path.join(ws, "dir/f.txt"), 0o751)
        put_file(h.path("cwd", "bytes"), bytes(range(256)))
        with open(h.path("cwd", "bytes"), "rb") as f:
            equal(h("write", "dir/f.txt", stdin=f).returncode, 0, "any bytes")
        with open(os.path.join(ws, "dir/f.txt"), "rb") as f:
            equal((f.read(), stat.S_IMODE(os.stat(f.name).st_mode)), (bytes(range(256)), 0o751), "its mode stays")
        p = h.popen("get", "dir/f.txt", "-")
        equal((p.stdout.buffer.read(), p.wait()), (bytes(range(256)), 0), "standard output")
        p.stdout.close()
        p.stderr.close()
        equal(os.path.exists(h.path("cwd", "-")), False, "no file of that name")
        h.fails(3, "there is no file or directory", "get", "nothing", "-")
        h.fails(1, "is a directory", "get", "dir", "-")
        with open("/dev/full", "w") as full:
            done = subprocess.run([os.path.join(BUILD, "handrail"), "get", "dir/f.txt", "-"], env=h.env,
                                  cwd=h.path("cwd"), stdout=full, stderr=subprocess.PIPE, universal_newlines=True)
        equal((done.returncode, done.stderr), (1, "handrail: write: No space left on device\n"))
        put_file(os.path.join(ws, "large"), bytes(3000000))
        p = h.popen("get", "large", "-")
        equal(len(p.stdout.buffer.read(1)), 1)
        p.stdout.close()
        equal((p.wait(PATIENCE), p.stderr.read()), (1, ""), "as | head ends it")
        p.stderr.close()
        h.fails(1, "is a directory", "write", "dir", input="x")
        h.ok("write", "x.zip", input="no archive")
        equal(h.ok("get", "x.zip", "-"), "no archive", "what only looks like an archive")


# ---- what wants to leave ----

def member(name, kind=tarfile.REGTYPE, data=b"evil", link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def stream(*members, report=b""):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in members + ((member("/-/report", data=report),) if report is not None else ()):
            t.addfile(info, io.BytesIO(data) if info.size else None)
    return out.getvalue()


TOP = member("t", tarfile.DIRTYPE, mode=0o755)


def hostile(out):
    """Archives in which something wants out, and whether the rest of it may be there."""
    for name in ("../evil", "t/../../evil", "/etc/handrail-test", "t//etc/handrail-test", "t/./../../evil", "evil",
                 "tt", "t/..", "t/.", "", "t/" + "n" * 300, "/".join(["t"] + ["d"] * 300)):
        yield stream(TOP, member(name), member("t/ok"))
    for link in (out, "../../out", "/", "."):
        yield stream(TOP, member("t/l", tarfile.SYMTYPE, link=link), member("t/l/evil"), member("t/ok"))
        yield stream(TOP, member("t/l", tarfile.SYMTYPE, link=link), member("t/l", tarfile.DIRTYPE),
                     member("t/l/evil"), member("t/ok"))
    yield stream(TOP, member("t/l", tarfile.SYMTYPE, link=out + "/secret"), member("t/l"), member("t/ok"))
    yield stream(TOP, member("t/h", tarfile.LNKTYPE, link=out + "/secret"), member("t/ok"))
    yield stream(TOP, member("t/h", tarfile.LNKTYPE, link="t/../../out/secret"), member("t/h"), member("t/ok"))
    yield stream(TOP, member("t/dev", tarfile.CHRTYPE), member("t/fifo", tarfile.FIFOTYPE), member("t/ok"))
    yield stream(TOP, member("t/away/evil"), member("t/away", tarfile.DIRTYPE, mode=0), member("t/ok"))
    yield stream(member("t", tarfile.SYMTYPE, link=out), member("t/evil"))
    yield stream(TOP, member("t/suid", mode=0o6755), member("t/ok"))


def checked(top, dest, out):
    with open(os.path.join(out, "secret")) as f:
        equal(f.read(), "secret", "a file outside")
    equal((sorted(os.listdir(out)), os.stat(out).st_mode & 0o777), (["secret"], 0o755), "outside")
    equal([os.path.exists(p) for p in (os.path.join(top, "evil"), os.path.join(os.path.dirname(top), "evil"),
                                       "/etc/handrail-test")], [False] * 3, "above")
    for folder, dirs, files in os.walk(dest):
        for name in files:
            path = os.path.join(folder, name)
            equal((os.lstat(path).st_mode & 0o6000, os.lstat(path).st_nlink), (0, 1), path)
            equal(os.path.islink(path) or os.path.isfile(path), True, path)


def archives_that_leave():
    """Into a sandbox."""
    with Server() as s:
        top, out, n = s.work_dir, os.path.join(os.path.dirname(s.work_dir), "out"), 0
        os.mkdir(out, 0o755)
        put_file(out + "/secret", b"secret")
        where = "/handrail/v1/unpack?path=" + urllib.parse.quote(top + "/dest")
        for data in hostile(out):
            os.mkdir(top + "/dest")
            os.symlink(out, top + "/dest/away")
            a = s.request("POST", where, data, {"Content-Type": "application/x-tar"})
            equal(a.status, 200, repr(a))
            checked(top, top + "/dest", out)
            n += len(a.json()["failed"])
            equal(b"t/ok" not in data or os.path.isfile(top + "/dest/ok"), True, "the rest")
            shutil.rmtree(top + "/dest")
        equal(n >= 20, True, n)
        whole = stream(TOP, member("t/ok"))
        for data, text in ((whole[:700], "damaged"), (b"x" * 2000, "damaged"), (b"", "damaged"),
                           (stream(TOP, report=None), "cut")):
            a = s.request("POST", where, data, {"Content-Type": "application/x-tar"})
            equal((a.status, text in a.json()["detail"]), (400, True), (data[:20], a.json()))
        for query, status in (("path=relative", 400), ("", 400), ("path=/a%00b", 400)):
            equal(s.request("GET", "/handrail/v1/pack?" + query).status, status)
            equal(s.request("POST", "/handrail/v1/unpack?" + query, whole).status, status)
        equal(s.request("GET", "/handrail/v1/pack?path=/no/where").status, 404)
        equal(s.request("DELETE", "/handrail/v1/pack?path=/").status, 405)
        for name, what in (("/no/where", None), (top, "directory"), (out + "/secret", "file"), ("/dev/null", "other")):
            a = s.request("GET", "/handrail/v1/stat?path=" + name)
            equal((a.status, a.json()), (200, {"type": what}), name)


def limits():
    with Server(settings={"unpack_max_bytes": 3000000, "unpack_max_entries": 50}) as s:
        where = "/handrail/v1/unpack?path=%s/dest" % s.work_dir
        for data, text in ((stream(TOP, member("t/f", data=b"x" * 4000000)), "more than 3000000 bytes"),
                           (stream(TOP, *[member("t/f%d" % i) for i in range(60)]), "more than 50 entries")):
            a = s.request("POST", where, data, {"Content-Type": "application/x-tar"})
            equal((a.status, text in a.json()["detail"]), (413, True), a)


def link_race():
    """Somebody in the sandbox swaps a directory for a link while a tree is unpacked into it."""
    with Server(settings=ONE_WORKER_EACH) as s:
        out, dest = os.path.join(os.path.dirname(s.work_dir), "out"), os.path.join(s.work_dir, "dest")
        os.mkdir(out)
        os.makedirs(dest + "/swap")
        data = stream(TOP, member("t/swap", tarfile.DIRTYPE, mode=0o755), member("t/swap/evil"),
                      member("t/swap/d", tarfile.DIRTYPE, mode=0o755), member("t/swap/d/evil"))

        def swap():
            try:
                os.rename(dest + "/swap", dest + "/spare")
                os.symlink(out, dest + "/swap")
                os.unlink(dest + "/swap")
                os.rename(dest + "/spare", dest + "/swap")
            except OSError:
                shutil.rmtree(dest + "/spare", ignore_errors=True)
                os.makedirs(dest + "/swap", exist_ok=True)
        with beside(swap):
            for i in range(200):
                a = s.request("POST", "/handrail/v1/unpack?path=" + dest, data, {"Content-Type": "application/x-tar"})
                equal(a.status, 200, a)
                equal(os.listdir(out), [], "round %d" % i)


def server_that_lies():
    """Out of a sandbox whose server is hostile."""
    with Hostile() as h:
        out = h.path("out")
        os.mkdir(out, 0o755)
        put_file(out + "/secret", b"secret")
        for data in hostile(out):
            os.mkdir(h.path("cwd", "dest"))
            os.symlink(out, h.path("cwd", "dest/away"))
            h.answers = [("/handrail/v1/stat", (200, b'{"type":"directory"}')), ("/handrail/v1/pack", (200, data))]
            done = h("get", "/x/.", "dest")
            checked(h.path("cwd"), h.path("cwd", "dest"), out)
            equal(done.returncode in (0, 1), True, done)
            shutil.rmtree(h.path("cwd", "dest"))
        for said in (b"", b"x" * 1000, stream(TOP, member("t/f"))[:700], stream(TOP, report=b"{"), stream(report=b"1")):
            h.answers = [("/handrail/v1/stat", (200, b'{"type":"directory"}')), ("/handrail/v1/pack", (200, said))]
            h.survives(said, "get", "/x", h.path("other"))
            shutil.rmtree(h.path("other"), ignore_errors=True)
        for said in (b"", b"[]", b'{"type":7}', b'{"type":"\033"}'):
            h.answers = [("/handrail/v1/stat", (200, said)), ("/handrail/v1/pack", (500, b"{}"))]
            h.survives(said, "get", "/x", h.path("other"))


def zeros():
    """A file of 20 GB with one block of data takes no time, and little room; nor do zeros that a server sends."""
    with Host() as h:
        h.ok("up", "-q")
        with open(os.path.join(workspace(h), "huge"), "wb") as f:
            f.truncate(20 << 30)
            f.seek(7 << 30)
            f.write(b"data")
            os.fchmod(f.fileno(), 0o640)
        h.ok("get", "huge", "out")
        st = os.stat(h.path("cwd", "out"))
        equal((st.st_size, st.st_blocks <= 64, stat.S_IMODE(st.st_mode)), (20 << 30, True, 0o640), st)
        with open(h.path("cwd", "out"), "rb") as f:
            f.seek(7 << 30)
            equal(f.read(4), b"data")
    with Hostile() as h:
        data = b"a" + bytes(20 << 20) + b"z"
        h.answers = [("/handrail/v1/stat", (404, {})), ("/download_file?", (200, data))]
        h.ok("get", "/x/f", "file")
        h.ok("get", "/x/f", "n" * 250)
        stays_special(h, "/x/f")
        put = io.BytesIO()
        with zipfile.ZipFile(put, "w") as z:
            z.writestr("f", data)
        h.answers = [("/handrail/v1/stat", (404, {})),
                     ("/download_file?", (400, {"detail": "400: Path is a directory"})),
                     ("/download_files", (200, put.getvalue()))]
        h.ok("get", "/x", "dir")
        for name in ("file", "dir/f"):
            with open(h.path("cwd", name), "rb") as f:
                equal((f.read() == data, os.fstat(f.fileno()).st_blocks <= 64), (True, True), name)


class Dripping(http.server.BaseHTTPRequestHandler):
    """A server that sends a byte of a body now and then, without an end."""

    def log_message(self, *unused):
        pass

    def do_GET(self):
        if self.path.startswith("/download_file?") and "Range" not in self.headers or "/download_files" in self.path:
            self.server.asked.set()
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has given up
                while not self.server.over.wait(0.5):
                    self.wfile.write(b"x")
            return
        folder, there = "%2Fdir" in self.path, "/download_file?" in self.path
        text = b'{"detail": "400: Path is a directory"}' if folder else b"x"
        self.send_response(404 if not there else 400 if folder else 206)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextlib.contextmanager
def dripping(h):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        server.over, server.asked = threading.Event(), threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        h.port = server.server_address[1]
        h.record()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()


def interrupted():
    """A copy from a server of other releases that is ended by ^C leaves no file."""
    with Hostile() as h, dripping(h) as server:
        try:
            os.close(os.open(h.path("cwd"), os.O_TMPFILE | os.O_WRONLY))
        except OSError as e:
            raise Skip("files without a name: %s; set TMPDIR to a directory of ext4, xfs or tmpfs" % e)
        copy = h.popen("get", "/x/file", "a")
        equal(server.asked.wait(PATIENCE), True, "the file was asked for")
        copy.send_signal(signal.SIGINT)
        copy.communicate(timeout=PATIENCE)
        equal((copy.returncode, os.listdir(h.path("cwd"))), (-signal.SIGINT, []))


def server_that_drips():
    """A body must have a rate; nothing is left behind otherwise. (A minute passes: the limits are real ones.)"""
    with Hostile() as h, dripping(h):
        copies = [h.popen("get", *argv) for argv in (("/x/file", "a"), ("/x/dir", "b"), ("/x/file", "-"))]
        try:
            slow = "less than 60 KiB within 60 seconds"
            for copy, words in zip(copies, (slow, "Copy operation timed out", slow)):
                said = copy.communicate(timeout=60 + PATIENCE)[1]
                equal((copy.returncode, words in said), (4, True), said)
        finally:
            for copy in copies:
                copy.kill()
                copy.communicate()
        equal(os.listdir(h.path("cwd")) + os.listdir(h.path("tmp")), [], "files left behind")


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (everything, one_by_one, left_out, exact_bytes, archives_that_leave, limits, link_race,
                 server_that_lies, zeros, interrupted, server_that_drips):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
