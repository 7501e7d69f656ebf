#!/usr/bin/env python3
"""Files in and out through nginx: what arrives, what is refused, what is left when it goes wrong."""

import contextlib
import errno
import io
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import urllib.parse
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.forms import BOUNDARY, archive, download, part, raw_archive, upload  # noqa: E402
from lib.supervised import (  # noqa: E402
    ONE_WORKER_EACH, PATIENCE, ROOT, Libexec, Server, beside, need_root, run_tests, wait_all_up)
from lib.tap import Skip, equal  # noqa: E402

MB = 1 << 20


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def tree(top):
    """Every path below top: what it is."""
    found = {}
    for folder, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            found[os.path.relpath(path, top)] = os.readlink(path) if stat.S_ISLNK(st.st_mode) else \
                read(path) if stat.S_ISREG(st.st_mode) else stat.S_IFMT(st.st_mode)
    return found


def detail(answer, status, text):
    equal((answer.status, answer.headers["Content-Type"]), (status, "application/json"), repr(answer))
    got = answer.json()["detail"]
    equal(text in got, True, "%r in %r" % (text, got))


# ---- forms ----

def forms():
    with Server() as s:
        w = s.work_dir
        for name in ("a.txt", "with blank", "ünï 文.txt", "q\"uote\\back.txt", "%41%2e", "-rf", "a\tb",
                     "x" * 255):
            a = upload(s, w, name, b"data of " + name.encode())
            equal((a.status, a.json()), (200, {"filename": name, "destination": w, "recursive": False}))
            equal(read(w, name), b"data of " + name.encode(), name)
        # as other clients write names
        body = b'--B\r\nContent-Disposition: form-data; name="file"; filename*=utf-8\'\'%C3%A4.txt' \
               b'\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--\r\n'
        post = lambda body, kind, query="": s.request(  # noqa: E731
            "POST", "/upload_file?destination=" + urllib.parse.quote(w) + query, body,
            {"Content-Type": kind})
        equal(post(body, "multipart/form-data; boundary=B").json()["filename"], "ä.txt")
        body = b'--B\r\nContent-Disposition: form-data; name="file"; filename="\xe4.txt"\r\n\r\nx\r\n--B--'
        equal(post(body, 'multipart/form-data; boundary="B"').json()["filename"], "ä.txt")
        equal(read(w, "ä.txt"), b"x")
        missing = "[{'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required', 'input': None}]"
        for body, kind in ((b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cut\"\r\n\r\nhalf",
                            "multipart/form-data; boundary=B"),
                           (b"--B--", "multipart/form-data; boundary=B"),
                           (b"", "multipart/form-data; boundary=B"),
                           (b"x", "text/plain"), (b"other=1", "application/x-www-form-urlencoded")):
            a = post(body, kind)
            equal((a.status, a.json()["errors"]), (422, missing), body)
        a = post(b"file=a+b%21", "application/x-www-form-urlencoded", "&recursive=2")
        equal(a.json()["errors"], "[{'type': 'bool_parsing', 'loc': ('query', 'recursive'), 'msg': 'Input "
              "should be a valid boolean, unable to interpret input', 'input': '2'}, {'type': 'value_error', "
              "'loc': ('body', 'file'), 'msg': \"Value error, Expected UploadFile, received: <class 'str'>\", "
              "'input': 'a b!', 'ctx': {'error': ValueError(\"Expected UploadFile, received: <class "
              "'str'>\")}}]")
        parsing = "There was an error parsing the body"
        one = b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\nx\r\n'
        for body, text in ((b"no boundary", parsing), (b"--B\r\nbad header\r\n\r\n\r\n--B--", parsing),
                           (b"--B\r\nA: b\r\n\r\nx\r\n--B--",
                            'The Content-Disposition header field "name" must be provided.'),
                           (one % b"f" * 1001 + b"--B--", "Too many fields. Maximum number of fields is 1000."),
                           ((one % b'f"; filename="n') * 1001 + b"--B--",
                            "Too many files. Maximum number of files is 1000."),
                           (b'--B\r\nContent-Disposition: form-data; name="f"\r\n\r\n' + b"x" * (MB + 1) + b"\r\n--B--",
                            "Part exceeded maximum size of 1024KB.")):
            equal((post(body, "multipart/form-data; boundary=B").status,
                   post(body, "multipart/form-data; boundary=B").json()),
                  (400, {"detail": text}), body[:60])
        equal(post(b"x", "multipart/form-data").json(), {"detail": "Missing boundary in multipart."})
        # the last part of the name counts, and each is received whole before
        a = upload(s, w, "two", b"2", more=part("file", b"1", "one") + part("file", b"t") + part("x", b"y", "z"))
        equal((a.status, read(w, "two"), os.path.exists(os.path.join(w, "one"))), (200, b"2", False))
        # chunked, and in small pieces
        pieces = part("file", bytes(range(256)) * 1000, "chunked") + b"--%s--\r\n" % BOUNDARY.encode()
        step = 777
        data = b"".join(b"%x\r\n%s\r\n" % (len(pieces[i:i + step]), pieces[i:i + step])
                        for i in range(0, len(pieces), step)) + b"0\r\n\r\n"
        out = s.raw(b"POST /upload_file?destination=%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-"
                    b"Encoding: chunked\r\nContent-Type: multipart/form-data; boundary=%s\r\n\r\n%s"
                    % (w.encode(), BOUNDARY.encode(), data))
        equal(out.startswith(b"HTTP/1.1 200 "), True, out[:300])
        equal(read(w, "chunked"), bytes(range(256)) * 1000)


# ---- names and archives that want out ----

def planted(w):
    """What stands ready in the destination and outside of it."""
    top = os.path.dirname(w)
    out, dest = os.path.join(top, "out"), os.path.join(w, "dest")
    os.makedirs(out)
    os.makedirs(os.path.join(dest, "sub"))
    for path, text in ((out + "/secret", "secret"), (dest + "/old", "old"), (top + "/beside", "beside")):
        with open(path, "w") as f:
            f.write(text)
    os.symlink(out, dest + "/away")
    os.symlink("../../out", dest + "/up")
    os.symlink("../../out/secret", dest + "/leaf")
    os.symlink("/etc/passwd", dest + "/passwd")
    os.symlink("loop", dest + "/loop")
    os.symlink(os.path.join(out, "new"), dest + "/dangling")
    os.mkfifo(dest + "/fifo")
    return dest, out


NAMES = ["../../beside", "../../out/new", "../../../../../../etc/handrail-test", "/etc/handrail-test",
         "//etc/handrail-test", "/proc/self/cwd/x", "sub/../../../out/new", "away/new", "away/secret",
         "up/new", "up/../beside", "leaf", "passwd", "loop", "loop/x", "dangling", "fifo",
         "sub/../../dest/../../out/new", "..", "../..", "sub", ".", "", "sub/", "old/x", "none/x",
         "away", "a\0b", "../../out", "x" * 256]


def names_that_leave():
    with Server() as s:
        dest, out = planted(s.work_dir)
        before = tree_of(s)
        for name in NAMES:
            a = upload(s, dest, name, b"evil")
            equal(a.status, 500, "%r: %r" % (name, a))
            a.json()["detail"]
            equal(tree_of(s), before, name)
        detail(upload(s, dest, "away/new", b"evil"), 500,
               "400: The name leads out of the destination: '%s/away/new'" % dest)
        # what stays beneath the destination is followed, and the workspace is the client's own
        os.symlink("sub", dest + "/in")
        os.symlink("old", dest + "/link")
        equal(upload(s, dest, "in/a", b"1").status, 200)
        equal(upload(s, dest, "link", b"2").status, 200)
        equal(upload(s, dest, "../up.txt", b"3").status, 200)
        equal((read(dest, "sub/a"), read(dest, "old"), os.readlink(dest + "/link"), read(s.work_dir, "up.txt")),
              (b"1", b"2", "old", b"3"))


def tree_of(s):
    """The tree without what the server itself keeps there."""
    return {k: v for k, v in tree(s.top).items() if not k.startswith("run/")}


def hostile():
    """(what, archive, beginning of the error or None where names are left out, as the contract says)"""
    zeros = b"\0" * (8 * MB)
    link = 0o120777
    yield "dot dot", archive(("../evil", "x"), ("ok", "k")), None
    yield "dot dot inside", archive(("sub/../../evil", "x"), ("ok", "k")), None
    yield "many dots", archive(("../" * 50 + "etc/handrail-test", "x"), ("ok", "k")), None
    yield "absolute", archive(("/etc/handrail-test", "x"), ("ok", "k")), None
    yield "two slashes", raw_archive((b"//etc/handrail-test", b"x"), (b"ok", b"k")), None
    yield "dots at the end", archive(("sub/..", "x"), ("ok", "k")), None
    yield "a directory above", archive(("../evil/", ""), ("ok", "k")), None
    yield "backslashes", archive(("..\\..\\evil", "x"), ("ok", "k")), None
    yield "other name in the directory", raw_archive((b"../../evil", b"x", b"good"), (b"ok", b"k")), None
    yield "good name in the directory", raw_archive((b"good", b"x", b"../../evil"), (b"ok", b"k")), None
    yield "through a link out", archive(("ok", "k"), ("away/evil", "x")), "400: "
    yield "through a relative link", archive(("ok", "k"), ("up/evil", "x")), "400: "
    yield "onto a link to a secret", archive(("ok", "k"), ("leaf", "x")), "400: "
    yield "onto a link to a system file", archive(("ok", "k"), ("passwd", "x")), "400: "
    yield "a directory for a link", archive(("ok", "k"), ("away/", "")), "400: "
    yield "onto a dangling link", archive(("ok", "k"), ("dangling", "x")), "400: "
    yield "onto a loop", archive(("ok", "k"), ("loop", "x")), "400: "
    yield "below a loop", archive(("ok", "k"), ("loop/x", "x")), "400: "
    yield "own link, then through it", archive(("l", "../../out", link), ("l/evil", "x")), "[Errno 20]"
    yield "own link to root", archive(("l", "/", link), ("l/etc/handrail-test", "x")), "[Errno 20]"
    yield "own link, then itself", archive(("l", "../../out/secret", link), ("l", "x")), None
    yield "link with dots in its name", archive(("../l", "/etc", link), ("ok", "k")), None
    yield "character device", archive(("ok", "k"), ("dev", "", 0o020666)), "400: "
    yield "block device", archive(("ok", "k"), ("dev", "", 0o060666)), "400: "
    yield "fifo", archive(("ok", "k"), ("data", "", 0o010666)), None
    yield "no type of file at all", archive(("ok", "k"), ("odd", "", 0o160644)), "400: "
    yield "socket", archive(("ok", "k"), ("sock", "", 0o140666)), "400: "
    yield "onto a fifo", archive(("ok", "k"), ("fifo", "x")), "[Errno 22]"
    yield "file for a directory", archive(("ok", "k"), ("sub", "x")), "[Errno 21]"
    yield "directory for a file", archive(("ok", "k"), ("old/x", "x")), "[Errno 17]"
    yield "file and directory at once", archive(("d", "x"), ("d/e", "y")), "[Errno 20]"
    yield "long name", archive(("ok", "k"), ("n" * 300, "x")), "[Errno 36]"
    yield "long path", archive(("ok", "k"), ("/".join(["d" * 200] * 30), "x")), "[Errno 36]"
    yield "deep path", archive(("ok", "k"), ("/".join(["d"] * 1000), "x")), "[Errno 40]"
    yield "not UTF-8", raw_archive((b"ok", b"k"), (b"\xff\xfe", b"x")), "any"
    yield "a bomb", archive(*[("f%d" % i, zeros) for i in range(4)], method=zipfile.ZIP_DEFLATED), \
        "The archive holds more than 20000000 bytes"
    yield "many entries", archive(*[("f%d" % i, "") for i in range(600)]), \
        "The archive holds more than 500 entries"
    whole = archive(("ok", "k"), ("data", b"0123456789" * 10))
    yield "bad sum", whole.replace(b"01234567890123", b"01234x67890123"), "Bad CRC-32 for file 'data'"
    yield "cut", whole[:40] + whole[90:], "any"
    yield "no start", b"\0" * 60 + whole[60:], "any"
    flags = bytearray(archive(("ok", "k"), ("data", b"x" * 20)))
    for at in (flags.index(b"PK\3\4", 5) + 6, flags.index(b"PK\1\2", flags.index(b"PK\1\2") + 1) + 8):
        flags[at] |= 1
    yield "encrypted", bytes(flags), "File 'data' is encrypted, password required for extraction"
    yield "unknown method", whole.replace(b"PK\3\4\x14\0\0\0\0\0", b"PK\3\4\x14\0\0\0\x63\0").replace(
        b"PK\1\2\x14\3\x14\0\0\0\0\0", b"PK\1\2\x14\3\x14\0\0\0\x63\0"), "any"
    yield "wrong count", whole[:-14] + b"\xff\xff" + whole[-12:], "maybe"
    yield "start far away", whole[:-6] + b"\xff\xff\xff\x7f" + whole[-2:], "any"


def archives_that_leave():
    tried = 0
    with Server(settings={"unpack_max_bytes": 20000000, "unpack_max_entries": 500}) as s:
        dest, _ = planted(s.work_dir)
        clean = tree_of(s)
        for what, data, error in hostile():
            for recursive in ("true", None):
                a = upload(s, dest, "h.zip", data, recursive)
                after = tree_of(s)
                inside = {k: v for k, v in after.items() if not k.startswith("work/dest/")}
                equal(inside, {k: v for k, v in clean.items() if not k.startswith("work/dest/")},
                      "%s: outside" % what)
                equal(os.path.exists("/etc/handrail-test"), False, what)
                tried += 1
                if error is None or (error == "maybe" and a.status == 200):
                    equal(a.status, 200, "%s: %r" % (what, a))
                    new = sorted(set(after) - set(clean))
                    equal(set(new) <= {"work/dest/ok", "work/dest/l", "work/dest/good", "work/dest/data"}, True,
                          "%s: %r" % (what, new))
                    for name in new:
                        equal(stat.S_ISREG(os.lstat(os.path.join(s.top, name)).st_mode), True, what)
                        os.unlink(os.path.join(s.top, name))
                    continue
                equal(a.status in (500, 413), True, "%s: %r" % (what, a))
                text = a.json()["detail"]
                equal(error in ("any", "maybe") or text.startswith(error), True, "%s: %s" % (what, text))
                equal(after, clean, what)
    equal(tried >= 60, True, tried)


def link_race():
    """Somebody in the sandbox swaps a directory for a link while files are uploaded into it."""
    with Server() as s:
        dest, out = planted(s.work_dir)
        spare, swapped = os.path.join(dest, "spare"), os.path.join(dest, "swap")
        os.mkdir(swapped)

        def swap():
            try:
                os.rename(swapped, spare)
                os.symlink("../../out", swapped)
                os.unlink(swapped)
                os.rename(spare, swapped)
            except OSError:  # an archive has made the directory meanwhile
                shutil.rmtree(spare, ignore_errors=True)
                os.makedirs(swapped, exist_ok=True)
        counts = {}
        with beside(swap):
            zipped = archive(("swap/evil", "x"), ("swap/d/evil", "x"))
            for i in range(150):
                for a in (upload(s, dest, "swap/evil", b"x"), upload(s, dest, "e.zip", zipped)):
                    counts[a.status] = counts.get(a.status, 0) + 1
                equal(os.listdir(out), ["secret"], "round %d" % i)
        equal(set(counts) <= {200, 500}, True, counts)
        equal(counts.get(200, 0) > 0, True, counts)
        left = [n for n in os.listdir(dest) if n.startswith(".handrail")]
        equal(left, [])


# ---- whole or not at all ----

def mode_owner_and_links_stay():
    with Server() as s:
        path = os.path.join(s.work_dir, "f")
        with open(path, "w") as f:
            f.write("old")
        os.chmod(path, 0o751)
        if ROOT:
            os.chown(path, 12345, 23456)
        st = os.stat(path)
        equal(upload(s, s.work_dir, "f", b"new").status, 200)
        now = os.stat(path)
        equal((stat.S_IMODE(now.st_mode), now.st_uid, now.st_gid), (0o751, st.st_uid, st.st_gid))
        os.link(path, path + ".hard")
        equal(upload(s, s.work_dir, "f", b"newer").status, 200)
        equal(read(path + ".hard"), b"newer")
        equal(upload(s, s.work_dir, "z.zip", archive(("f", "zip", 0o100600))).status, 200)
        equal((read(path), stat.S_IMODE(os.stat(path).st_mode)), (b"zip", 0o751))
        # as large as they come, each reader sees one or the other
        with open(path, "wb") as f:
            f.write(b"a" * 300000)
        seen = set()

        def watch():
            data = read(path)
            seen.add((len(data), data[:1], data[-1:]))
        os.unlink(path + ".hard")
        with beside(watch):
            for i in range(60):
                upload(s, s.work_dir, "f", (b"b" if i % 2 else b"a") * 300000)
        equal(seen <= {(300000, b"a", b"a"), (300000, b"b", b"b")}, True, seen)


def access_list():
    """Nobody reads and writes, too; as the kernel stores it."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for tag, bits, who in (
        (1, 6, 2**32 - 1), (2, 6, 65534), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)))


def attributes_stay():
    """An access list and another attribute: they are the file's, not its text's."""
    names, rights = ("user.one", "system.posix_acl_access"), access_list()
    with Server() as s:
        path = os.path.join(s.work_dir, "f")
        for what in (lambda: upload(s, s.work_dir, "f", b"text"),
                     lambda: upload(s, s.work_dir, "z.zip", archive(("f", "text"))),
                     lambda: s.request("POST", "/execute_action", json.dumps(
                         {"action": {"action": "write", "args": {"path": path, "content": "text"}}}),
                         {"Content-Type": "application/json"})):
            with open(path, "w") as f:
                f.write("old")
            try:
                for name in names:
                    os.setxattr(path, name, rights)
            except OSError as e:
                if e.errno != errno.ENOTSUP:
                    raise
                raise Skip("%s has no attributes; set TMPDIR to a directory of ext4, xfs or btrfs" % s.work_dir)
            equal(what().status, 200)
            equal(read(path).rstrip(), b"text")
            equal([os.getxattr(path, name) for name in names], [rights] * 2)
            os.unlink(path)


def broken_off():
    """The client leaves in the middle: of the request, of the archive, of the answer."""
    with Server() as s:
        w = s.work_dir
        before = tree(w)
        for name in ("cut", "cut.zip"):
            with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
                head = part("file", b"x" * (3 * MB), name)
                c.sendall(b"POST /upload_file?destination=%s/new HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n"
                          b"Content-Type: multipart/form-data; boundary=%s\r\n\r\n%s"
                          % (w.encode(), BOUNDARY.encode(), head))
                s.until("a worker has it", lambda: s.pool("files")["busy"] == 1)
            s.until("the worker is free", lambda: s.pool("files")["busy"] == 0)
            equal(tree(w), before, name)
        with open(os.path.join(w, "big"), "wb") as f:
            f.truncate(200 * MB)
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c:
            c.sendall(b"GET /download_files?path=%s HTTP/1.1\r\nHost: a\r\n\r\n" % w.encode())
            equal(c.recv(20)[:15], b"HTTP/1.1 200 OK")
        s.until("the worker is free", lambda: s.pool("files")["busy"] == 0)
        equal(s.get("/alive").status, 200)


@contextlib.contextmanager
def small_disk(s, size, options=""):
    """A file system of its own below the working directory."""
    need_root()
    at = os.path.join(s.work_dir, "small")
    os.makedirs(at)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d%s" % (size, options), "tmpfs", at],
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Skip("mount(8) does not work here; needs CAP_SYS_ADMIN: %s" % done.stderr.decode().strip())
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def disk_full():
    with Server() as s, small_disk(s, 2 * MB) as at:
        equal(upload(s, at, "f", b"o" * MB).status, 200)
        full = "[Errno 28] No space left on device: '%s/f'" % at
        a = upload(s, at, "f", b"n" * (4 * MB))
        equal((a.status, a.json()), (500, {"detail": full}))
        equal(tree(at), {"f": b"o" * MB})
        # an archive whose content does not fit; nothing of it stays
        data = archive(("a", b"x" * 600000), ("b/c", b"y" * 600000), method=zipfile.ZIP_DEFLATED)
        a = upload(s, at, "z.zip", data)
        equal(a.status, 500)
        equal(a.json()["detail"].startswith("[Errno 28] No space left on device: '%s/b/c'" % at), True, a)
        equal(tree(at), {"f": b"o" * MB})
        # the space is free again
        equal(upload(s, at, "g", b"n" * 700000).status, 200)
        # no names left
    with Server() as s, small_disk(s, 8 * MB, ",nr_inodes=6") as at:
        a = upload(s, at, "z.zip", archive(*[("n%d" % i, "x") for i in range(20)]))
        equal(a.status, 500)
        equal("[Errno 28] No space left on device: " in a.json()["detail"], True, a)
        equal(tree(at), {})


def read_only():
    with Server() as s, small_disk(s, 2 * MB) as at:
        equal(upload(s, at, "f", b"old").status, 200)
        subprocess.run(["mount", "-o", "remount,ro", at], check=True)
        for name, data in (("f", b"new"), ("g", b"new"), ("z.zip", archive(("f", "new")))):
            a = upload(s, at, name, data)
            equal(a.status, 500)
            equal("[Errno 30] Read-only file system: '" in a.json()["detail"], True, a)
        a = upload(s, at + "/new/dir", "g", b"x")
        equal(a.json(), {"detail": "[Errno 30] Read-only file system: '%s/new'" % at})
        subprocess.run(["mount", "-o", "remount,rw", at], check=True)
        equal(tree(at), {"f": b"old"})


def no_permission():
    need_root()
    with Server(user="nobody") as s:
        locked = os.path.join(s.work_dir, "locked")
        os.mkdir(locked, 0o755)
        for name, mode in (("mine", 0o666), ("theirs", 0o644)):
            with open(os.path.join(locked, name), "w") as f:
                f.write("old")
            os.chmod(os.path.join(locked, name), mode)
        for name, data in (("new", b"x"), ("theirs", b"x"), ("z.zip", archive(("a", "b")))):
            a = upload(s, locked, name, data)
            equal(a.status, 500)
            equal("[Errno 13] Permission denied: '" in a.json()["detail"], True, a)
        # in a directory that takes no file of ours, a file that is open to us
        equal(upload(s, locked, "mine", b"new").status, 200)
        equal(tree(locked), {"mine": b"new", "theirs": b"old"})
        a = upload(s, locked + "/a/b", "f", b"x")
        equal(a.json(), {"detail": "[Errno 13] Permission denied: '%s/a'" % locked})
        os.chmod(os.path.join(locked, "theirs"), 0)
        detail(download(s, locked), 500, "[Errno 13] Permission denied: '%s/theirs'" % locked)


def other_file_system_below():
    """An archive that spans two file systems."""
    with Server() as s, small_disk(s, 2 * MB) as at:
        with open(os.path.join(at, "old"), "w") as f:
            f.write("old")
        os.setxattr(os.path.join(at, "old"), "system.posix_acl_access", access_list())
        inode = os.stat(os.path.join(at, "old")).st_ino
        a = upload(s, s.work_dir, "z.zip", archive(
            ("small/old", "new"), ("small/d/e", "e"), ("small/f", "f"), ("top", "t")))
        equal((a.status, tree(at)), (200, {"old": b"new", "d": stat.S_IFDIR, "d/e": b"e", "f": b"f"}), repr(a))
        equal(os.getxattr(os.path.join(at, "old"), "system.posix_acl_access"), access_list())
        equal(os.stat(os.path.join(at, "old")).st_ino != inode, True, "another file in its place")
        equal(upload(s, s.work_dir, "small/g", b"g").status, 200)
        equal(read(at, "g"), b"g")


# ---- downloads ----

def entries(answer):
    equal(answer.status, 200, repr(answer))
    with zipfile.ZipFile(io.BytesIO(answer.body)) as z:
        equal(z.testzip(), None)
        return {i.filename: (z.read(i), i.external_attr >> 16) for i in z.infolist()}


def trees():
    with Server() as s:
        top = os.path.join(s.work_dir, "t ü")
        os.makedirs(top + "/a/b/empty")
        for name, data in (("x", b"1"), ("a/y", b""), ("a/b/z", os.urandom(100000)), ("a/文", b"u")):
            with open(os.path.join(top, name), "wb") as f:
                f.write(data)
        os.chmod(top + "/x", 0o4711)
        os.symlink("x", top + "/to-file")
        os.symlink("a", top + "/to-dir")
        os.symlink("/dev/null", top + "/to-null")
        os.mkfifo(top + "/fifo")
        a = download(s, top)
        got = entries(a)
        equal(a.headers["Content-Type"], "application/zip")
        equal(a.headers["Content-Disposition"], "attachment; filename*=utf-8''t%20%C3%BC.zip")
        equal({k: v[0] for k, v in got.items()}, {
            "x": b"1", "to-file": b"1", "a/y": b"", "a/b/z": read(top, "a/b/z"), "a/文": b"u",
            "to-null": b"", "fifo": b""})
        equal(got["x"][1], 0o104711)
        for size in (0, 1, 65527, 65528, 65529, 262144, 600000):
            with open(top + "/x", "wb") as f:
                f.write(b"s" * size)
            equal(entries(download(s, top))["x"][0], b"s" * size, size)
        os.symlink("gone", top + "/a/b/broken")
        detail(download(s, top), 500, "[Errno 2] No such file or directory: '%s/a/b/broken'" % top)
        os.unlink(top + "/a/b/broken")
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(os.path.join(top, "s"))
        detail(download(s, top), 500, "[Errno 6] No such device or address: '%s/s'" % top)
        sock.close()
        os.unlink(os.path.join(top, "s"))
        with open(os.path.join(top.encode(), b"\xff"), "w"):
            pass
        detail(download(s, top), 500, "surrogates not allowed")


def sizes_of_the_kernel():
    """Files of /proc and /sys report another size than they have."""
    paths = [p for p in ("/proc/version", "/proc/sys/vm/swappiness", "/proc/filesystems", "/sys/kernel/uevent_seqnum")
             if os.path.exists(p)]
    with Server() as s:
        os.mkdir(s.work_dir + "/t")
        for path in paths:
            os.symlink(path, s.work_dir + "/t/" + os.path.basename(path))
        got = {k: v[0] for k, v in entries(download(s, s.work_dir + "/t")).items()}
        equal(got, {os.path.basename(p): read(p) for p in paths})
        for path in paths:
            a = download(s, path, "/download_file")
            equal((a.status, a.body, a.headers["Content-Length"]), (200, read(path), str(len(read(path)))), path)
            a = download(s, path, "/download_file", Range="bytes=1-2")
            equal((a.status, a.body), (206, read(path)[1:3]), path)
            a = s.request("POST", "/execute_action", json.dumps(
                {"action": {"action": "read", "args": {"path": path}}}), {"Content-Type": "application/json"})
            equal(a.json()["content"], read(path).decode(), path)
        s.stop()


def one_file():
    """/download_file: by nginx where its account may read the file, by a worker where only the server
    may; a client cannot tell which."""
    with Server(env={"SESSION_API_KEY": "k"}, args=["--listen", "127.0.0.1"]) as s:
        os.chmod(s.work_dir, 0o755)
        data = bytes(range(256)) * 5000
        get = lambda path, **h: download(  # noqa: E731
            s, path, "/download_file", **dict(h, X_Session_API_Key="k"))
        for name, mode in (("open ü%2e?x", 0o644), ("closed ü%2e?x", 0o600)):
            path = os.path.join(s.work_dir, name)
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, mode)
            a = get(path)
            equal((a.status, a.body == data, a.headers["Content-Type"]), (200, True, "application/octet-stream"))
            equal((a.headers["Content-Length"], a.headers["Accept-Ranges"], a.headers["X-Content-Type-Options"]),
                  (str(len(data)), "bytes", "nosniff"))
            equal(a.headers["Content-Disposition"],
                  "attachment; filename*=utf-8''" + urllib.parse.quote(name))
            st = os.stat(path)
            equal(a.headers["ETag"], '"%x-%x"' % (int(st.st_mtime), st.st_size))
            tag = a.headers["ETag"]
            for ask, want in (("bytes=0-0", data[:1]), ("bytes=100-199", data[100:200]), ("bytes=-7", data[-7:]),
                              ("bytes=1279990-", data[1279990:]), ("bytes=5-99999999", data[5:])):
                a = get(path, Range=ask)
                equal((a.status, a.body == want), (206, True), "%s %s: %r" % (name, ask, a))
                equal(a.headers["Content-Range"].endswith("/%d" % len(data)), True)
            equal(get(path, Range="bytes=2000000-").status, 416, name)
            equal(get(path, Range="lines=1-2").status, 200)
            equal(get(path, If_None_Match=tag).status, 304, name)
            equal(get(path, If_None_Match='"x", W/' + tag).status, 304, name)
            equal(get(path, If_None_Match='"x"').status, 200)
            equal(get(path, Range="bytes=0-1", If_Range=tag).status, 206, name)
            equal(get(path, Range="bytes=0-1", If_Range='"other"').status, 200, name)
            a = s.request("HEAD", "/download_file?" + urllib.parse.urlencode({"path": path}),
                          headers={"X-Session-API-Key": "k"})
            equal((a.status, a.headers["Content-Length"], a.body), (200, str(len(data)), b""))
            os.symlink(path, path + ".link")
            equal(get(path + ".link").body == data, True, "through a link")
            with open(path, "wb"):
                pass
            equal((get(path).status, get(path).body), (200, b""), name)
        w = s.work_dir
        os.mkfifo(w + "/fifo")
        for path, text in ((w, "400: Path is a directory"), (w + "/none", "404: File not found"),
                           (w + "/fifo", "400: Not a regular file"), ("x", "400: Path must be an absolute path"),
                           (w + "/a\0b", "404: File not found")):
            detail(get(path), 500, text)
        auth = {"X-Session-API-Key": "k"}
        equal(s.request("GET", "/download_file", headers=auth).status, 422)
        equal(s.request("POST", "/download_file", headers=auth).status, 405)
        equal(s.get("/download_file?path=/etc/hostname").status, 403)
        # the place that nginx is sent to exists for nobody else, whatever a client sends
        for uri in ("/-/file/etc/hostname", "/-/file//etc/hostname", "/-/file", "/x/../-/file/etc/hostname"):
            a = s.request("GET", uri, headers=dict(auth, **{"X-Accel-Redirect": "/-/file/etc/hostname"}))
            equal((a.status, a.body), (404, b'{"detail":"Not Found"}'), uri)
        # a swapped directory: never another file than the one that was opened
        os.makedirs(w + "/d1")
        for n in ("d1", "."):
            with open(os.path.join(w, n, "f"), "w") as f:
                f.write("right" if n == "d1" else "wrong")

        def swap():
            os.rename(w + "/d1", w + "/d2")
            os.symlink(".", w + "/d1")
            os.unlink(w + "/d1")
            os.rename(w + "/d2", w + "/d1")
        with beside(swap):
            seen = {(a.status, a.body[:5]) for a in (get(w + "/d2/f") for _ in range(200))}
        equal(seen <= {(200, b"right"), (500, b'{"det')}, True, seen)


def late_failure():
    """What is found when the answer has begun cuts the connection: half an archive is never whole."""
    with Server() as s:
        top = os.path.join(s.work_dir, "t")
        for d in range(40):
            os.makedirs("%s/d%02d" % (top, d))
            for n in range(400):
                with open("%s/d%02d/f%d" % (top, d, n), "w") as f:
                    f.write("x" * 100)
        for d in range(40):
            os.makedirs("%s/d%02d/late" % (top, d))
            os.symlink("gone", "%s/d%02d/late/broken" % (top, d))
        out = s.raw(b"GET /download_files?path=%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % top.encode())
        head, _, body = out.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200 "):
            equal(b"\r\n0\r\n\r\n" in body[-7:], False, "the end of a chunked body")
        if head.startswith(b"HTTP/1.1 200 ") or not head:  # cut after its beginning, or before a byte went out
            equal(s.wait_log("the answer ends here: .Errno 2. No such file or directory") is not None, True)
        else:
            equal(head.startswith(b"HTTP/1.1 500 "), True, head)
        equal(s.get("/alive").status, 200)


def own_memory(pids):
    """Memory, KB, of each process at its most since it began."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError), open("/proc/%d/status" % pid) as f:
            fields = dict(line.split(":", 1) for line in f)
            if "VmHWM" in fields:
                found[pid] = int(fields["VmHWM"].split()[0])
    return found


def constant_memory():
    """A small form of t/bench: 100 MB up and down, no process grows by 4 MB. One worker does both, so
    that what it has loaded by then, and what a sanitizer keeps of what was freed, is there before."""
    with Server(settings=ONE_WORKER_EACH) as s:
        wait_all_up(s)
        source = os.path.join(s.top, "source")
        with open(source, "wb") as f:
            f.truncate(100 * MB)
        os.mkdir(s.work_dir + "/d")
        equal(upload(s, s.work_dir + "/d", "first", b"x" * 8 * MB).status, 200)
        entries(download(s, s.work_dir + "/d"))
        before = own_memory([s.pid] + process.descendants(s.pid))
        head = part("file", b"", "big")[:-2]
        tail = b"\r\n--%s--\r\n" % BOUNDARY.encode()
        with socket.create_connection(("127.0.0.1", s.port), PATIENCE) as c, open(source, "rb") as f:
            c.sendall(b"POST /upload_file?destination=%s/d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: "
                      b"close\r\nContent-Type: multipart/form-data; boundary=%s\r\n\r\n%s" % (
                          s.work_dir.encode(), len(head) + 100 * MB + len(tail), BOUNDARY.encode(), head))
            c.sendfile(f)
            c.sendall(tail)
            equal(c.recv(15), b"HTTP/1.1 200 OK")
        equal(os.path.getsize(s.work_dir + "/d/big"), 100 * MB)
        equal(len(download(s, s.work_dir + "/d").body) > 100 * MB, True)
        after = own_memory([s.pid] + process.descendants(s.pid))
        grown = {process.command_line(p): after[p] - before[p] for p in after
                 if p in before and after[p] - before[p] > 4096}
        print("# most growth: %s KB" % max(after[p] - before[p] for p in after if p in before))
        equal(grown, {})


def beside_a_command():
    """Transfers do not wait for a running command."""
    from lib.supervised import gate, marker
    with Server() as s:
        began, wait = marker(s)
        go, open_gate = gate(s)
        b = s.in_background("%s; %s" % (began, go))
        wait()
        equal(upload(s, s.work_dir, "f", b"x").status, 200)
        os.mkdir(s.work_dir + "/t")
        equal(entries(download(s, s.work_dir + "/t")), {})
        open_gate()
        b.content()


def maps_of(s):
    """How many workers have libarchive, of all of them."""
    pids = s.pids("handrail-worker")
    return sum("libarchive" in open("/proc/%d/maps" % pid).read() for pid in pids), len(pids)


def archives_by_need():
    """libarchive is in no worker but those that packed or unpacked something; without its module
    all else is answered."""
    process.need_hidden()
    with Server(settings={"files_workers": 1, "files_workers_max": 1}) as s:
        equal(upload(s, s.work_dir, "f", b"x").status, 200)
        equal(maps_of(s)[0], 0)
        equal(sorted(entries(download(s, s.work_dir))), ["f"])
        with_it, total = maps_of(s)
        equal((with_it, total > 1), (1, True))
    with Libexec() as lib:
        os.unlink(os.path.join(lib, "handrail-zip.so"))
        with Server(libexec=lib) as s:
            equal(upload(s, s.work_dir, "f", b"x").status, 200)
            for answer in (download(s, s.work_dir), upload(s, s.work_dir, "z.zip", archive(("n", "x")))):
                equal(answer.status, 500)
                equal(json.loads(answer.body)["detail"].startswith("no archives: %s/handrail-zip.so: " % lib),
                      True, answer)
            equal(os.listdir(s.work_dir), ["f"])
            equal(s.wait_log("no archives: ") is not None, True)


TESTS = [forms, names_that_leave, archives_that_leave, link_race, mode_owner_and_links_stay, attributes_stay,
         broken_off, disk_full, read_only, no_permission, other_file_system_below, trees, sizes_of_the_kernel,
         one_file,         late_failure, constant_memory, beside_a_command, archives_by_need]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
