#!/usr/bin/env python3
"""The files of the dialect of E2B: all recorded conversations, and what no recording has: memory, full disks, kills,
hostile names and bodies.

    test_e2b_files.py [CASE...]"""

import gzip
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import box, e2breplay, e2bworld, process  # noqa: E402
from lib.e2bworld import KEY, ROOT, Sandbox, World  # noqa: E402
from lib.supervised import PATIENCE, Skip, run_tests  # noqa: E402
from lib.tap import equal, skip_all  # noqa: E402

GROUPS = "write read get post dir stat exists mkdir remove move http sdk".split()
OCTETS = {"Content-Type": "application/octet-stream"}
BIG = 64 << 20


def need_account():
    if not ROOT:
        raise Skip("needs root, whose boxes have an account `user`")


def replayed(pattern):
    need_account()
    explained = e2breplay.explained()
    with World() as w:
        service = e2breplay.Service(w.api, w.edge, "key", w.sandbox.clean)
        found, count = [], 0
        for recorded in e2breplay.scenarios(pattern):
            count += 1
            different = e2breplay.replay(service, recorded)
            if bool(different) != (recorded["name"] in explained):
                found.append((recorded["name"], different))
    equal(found, [])
    equal(count > 0, True)


def recorded_group(group):
    def case():
        replayed(r"^%s\." % group)
    case.__name__ = "recorded_" + group
    return case


def recorded_raw():
    replayed(r"^raw\.(bad_json2|basic_unary|noserv|snake)$")


# ---- one server for anybody: root's box, or the account's own ----

def home(s):
    return "/home/user" if ROOT else s.work_dir


def upload(s, path, body, query="", **headers):
    return s.ask("POST", "/files?path=%s%s" % (path, query), body, dict(OCTETS, **headers))


def names(s, directory):
    return sorted(s.inside("ls -A %s" % directory).split())


def ordinary():
    """What an ordinary user's server does, too: paths, entries, files and their errors."""
    with Sandbox() as s:
        equal(s.init(sandboxId="a1").status, 204)
        top = home(s) + "/t"
        s.inside("mkdir -p %s" % top)
        a = s.call("MakeDir", path=top + "/a/b")
        equal((a.status, a.json()["entry"]["permissions"]), (200, "drwxr-xr-x"), a)
        a = upload(s, top + "/a/f.txt", b"text")
        equal((a.status, a.json()), (200, [{"name": "f.txt", "path": top + "/a/f.txt", "type": "file"}]), a)
        a = s.ask("GET", "/files?path=%s/a/f.txt" % top)
        equal((a.status, a.body, a.headers["Content-Type"]), (200, b"text", "text/plain; charset=utf-8"))
        epoch, later = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
        for name, value, status in (
                ("If-Unmodified-Since", epoch, 412), ("If-Unmodified-Since", later, 200),
                ("If-Unmodified-Since", "no date", 200), ("If-Modified-Since", epoch, 200),
                ("If-Modified-Since", later, 304), ("If-Match", '"x"', 412), ("If-Match", "*", 200),
                ("If-None-Match", '"x"', 200), ("If-None-Match", "*", 304)):
            equal(s.ask("GET", "/files?path=%s/a/f.txt" % top, headers={name: value}).status, status, (name, value))
        a = s.call("ListDir", path=top, depth=9)
        equal([e["path"][len(top):] for e in a.json()["entries"]], ["/a", "/a/b", "/a/f.txt"])
        equal(s.call("Move", source=top + "/a/f.txt", destination=top + "/n/g").status, 200)
        equal(s.call("Stat", path=top + "/a/f.txt").json()["code"], "not_found")
        equal(s.call("Remove", path=top + "/a").json(), {})
        equal(names(s, top), ["n"])
        if not ROOT:
            a = s.ask("GET", "/files?path=/etc/shadow")
            equal((a.status, "permission denied" in a.json()["message"]), (500, True), a)
        equal(s.ask("GET", "/envs").json(), {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "a1"})


def gate():
    with Sandbox() as s:
        for headers in ({}, {"X-Session-API-Key": "other"}):
            equal(s.request("GET", "/handrail/e2b/health", headers=headers).status, 403)
            equal(s.request("POST", "/handrail/e2b/files?path=x", b"x", dict(OCTETS, **headers)).status, 403)
        equal(s.ask("GET", "/health").status, 204)


def setup_document():
    with Sandbox() as s:
        equal(s.init(envVars={"A": "1", "E2B_SANDBOX_ID": "other"}, sandboxId="x1", templateId="base").status, 204)
        a = s.ask("GET", "/envs")
        equal((a.status, a.headers["Content-Type"], a.headers["Cache-Control"], a.body),
              (200, "application/json", "no-store",
               b'{"E2B_SANDBOX":"true","E2B_SANDBOX_ID":"x1","E2B_TEMPLATE_ID":"base","A":"1"}\n'), a)
        for bad in ({"envVars": {"A": 1}}, {"envVars": []}, {"defaultUser": 5}, {"sandboxId": "a\0b"}):
            equal(s.init(**bad).status, 400, bad)
        equal(s.ask("POST", "/init", "{").status, 400)
        equal(s.ask("GET", "/envs").json()["A"], "1")
        mode = os.stat(os.path.join(s.run_dir, "e2b.json")).st_mode & 0o777
        equal(mode, 0o640)  # of the group of the account that plugins run as
        s.init(sandboxId="x2")
        equal(s.ask("GET", "/envs").json(), {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "x2"})


def worker_memory(s):
    return max(int(line.split()[1]) for pid in s.workers("files") for line in open("/proc/%d/status" % pid)
               if line.startswith("VmHWM:"))


def memory():
    """Files of any size take constant memory, in both directions, compressed or not."""
    with Sandbox() as s:
        s.init()
        path = home(s) + "/big"
        equal(upload(s, path, b"x").status, 200)
        before = worker_memory(s)
        equal(upload(s, path, b"\0" * BIG).status, 200)
        packed = gzip.compress(b"\0" * BIG, 1)
        equal(upload(s, path, packed, **{"Content-Encoding": "gzip"}).status, 200)
        a = s.ask("GET", "/files?path=" + path)
        equal(len(a.body), BIG)
        a = s.ask("GET", "/files?path=" + path, headers={"Accept-Encoding": "gzip"})
        equal((a.headers["Content-Encoding"], gzip.decompress(a.body) == b"\0" * BIG), ("gzip", True))
        equal(worker_memory(s) - before < 8 << 10, True, "KiB more: %d" % (worker_memory(s) - before))


def open_upload(s, path, size):
    """A connection whose upload has begun, which the worker has shown by its unnamed file."""
    c = s.connect()
    c.sendall(("POST /handrail/e2b/files?path=%s HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: %s\r\nContent-Type: "
               "application/octet-stream\r\nContent-Length: %d\r\n\r\n" % (path, KEY, size)).encode())
    c.sendall(b"n" * (1 << 20))
    workers = s.workers("files")

    def writing():
        for pid in workers:
            for fd in os.listdir("/proc/%d/fd" % pid):
                try:
                    if os.stat("/proc/%d/fd/%s" % (pid, fd)).st_size >= 1 << 19 and \
                            "(deleted)" in os.readlink("/proc/%d/fd/%s" % (pid, fd)):
                        return pid
                except FileNotFoundError:
                    pass
        return None
    s.until("the upload has begun", lambda: writing() is not None)
    return c, writing()


def cut_uploads():
    """A client that leaves, and a worker that is killed, leave the old file and nothing beside it."""
    need_account()  # only root may look at what a worker has open
    with Sandbox() as s:
        s.init()
        top = home(s) + "/cut"
        s.inside("mkdir %s; echo old > %s/f" % (top, top))
        for kill in (False, True):
            c, pid = open_upload(s, top + "/f", 4 << 20)
            if kill:
                os.kill(pid, signal.SIGKILL)
                equal(process.wait_gone(pid, PATIENCE), True)
            c.close()
            equal(s.call("Stat", path=top).status, 200)
            equal((names(s, top), s.inside("cat %s/f" % top)), (["f"], "old\n"), "killed" if kill else "left")
        equal(upload(s, top + "/f", b"new").status, 200)
        equal(s.inside("cat %s/f" % top), "new")


def full_disk():
    need_account()
    with Sandbox() as s:
        s.init()
        top = "/home/user/disk"
        s.inside("mkdir -p %s; mount -t tmpfs -o size=256k none %s; cd %s; echo old > f; "
                 "head -c 9999999 /dev/zero > fill 2>/dev/null; :" % (top, top, top))
        for path in (top + "/f", top + "/new"):
            a = upload(s, path, b"x" * 300000)
            equal((a.status, a.json()["code"]), (507, 507), a)
        equal((names(s, top), s.inside("cat %s/f" % top)), (["f", "fill"], "old\n"))


def refused_bodies():
    """Bodies that are no uploads change nothing, and are answered."""
    with Sandbox() as s:
        s.init()
        top = home(s) + "/bad"
        s.inside("mkdir %s; echo old > %s/f" % (top, top))
        form = {"Content-Type": "multipart/form-data; boundary=B"}
        bomb = gzip.compress(b"x" * 1000)[:-9]
        for status, body, headers in (
                (500, b"--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhalf", form),
                (500, b"", form), (500, b"nothing like it", form),
                (500, b"--B\r\n" + b"X" * (1 << 20), form),
                (500, bomb, dict(OCTETS, **{"Content-Encoding": "gzip"})),
                (400, b"\x1f\x8b" + b"\xff" * 100, dict(OCTETS, **{"Content-Encoding": "gzip"})),
                (400, b"", dict(OCTETS, **{"Content-Encoding": "gzip"})),
                (400, b"x", {"Content-Type": "text/plain"}),
                (400, b"x", dict(OCTETS, **{"X-Metadata-K": "\xff"})),
                (400, b"x", dict(OCTETS, **{"X-Metadata-" + "k" * 247: "v"}))):
            a = s.ask("POST", "/files?path=%s/f" % top, body, headers)
            equal((a.status, a.json()["code"]), (status, status), (a, headers))
        equal((names(s, top), s.inside("cat %s/f" % top)), (["f"], "old\n"))
        for body in (b"", b"[]", b"nope", b'{"path":5}', b'{"path":"a\\u0000b"}', b"[" * 100000):
            a = s.ask("POST", "/filesystem.Filesystem/Stat", body, {"Content-Type": "application/json"})
            equal((a.status, a.json()["code"]), (400, "invalid_argument"), a)


def secrets():
    """No path leads to the server's own files or processes, and no link of the shell's account, if it is not root's, to
    what that may not read or change."""
    with Sandbox(env={"SU_TO_USER": "true", "RUNTIME_USERNAME": "user"} if ROOT else None) as s:
        s.init()
        top = home(s) + "/secrets"
        s.inside("mkdir %s; ln -s %s %s/run; ln -s /proc/1/environ %s/env" % (top, s.run_dir, top, top))
        for path in ("/proc/self/environ", "/proc/1/environ", "/proc/self/fd/0", "/proc/1/root/etc/passwd",
                     top + "/env", "/dev/zero", "/dev/mem"):
            a = s.ask("GET", "/files?path=" + path)
            equal((a.status in (404, 500), KEY.encode() in a.body), (True, False), (path, a))
        equal(s.call("Remove", path=s.run_dir).status, 500)
        equal(s.call("Move", source=s.run_dir, destination=top + "/x").status, 500)
        equal(s.call("Remove", path="/").status, 500)
        equal(s.ask("GET", "/files?path=%s/e2b.json" % s.run_dir).status, 500)
        equal(upload(s, s.run_dir + "/e2b.json", b"{}").status, 500)
        equal(upload(s, top + "/run/e2b.json", b"{}").status, 500)
        for path in (s.run_dir + "/made", top + "/run/made"):  # nothing is left of what is refused
            equal((s.call("MakeDir", path=path + "/deep").status, upload(s, path + "/deep/f", b"x").status), (500, 500))
        equal("made" in os.listdir(s.run_dir), False)
        equal(s.ask("GET", "/health").status, 204)
        if ROOT:
            s.inside("echo hidden > /root/hidden; chmod 600 /root/hidden; ln -s /root/hidden %s/l; chown -h user %s/l" %
                     (top, top))
            equal(s.ask("GET", "/files?path=/root/hidden").status, 200)
            equal(s.ask("GET", "/files?path=%s/l" % top).status, 500)
            equal(upload(s, top + "/l", b"x").status, 500)
            s.inside("ln -s /root %s/d; chown -h user %s/d" % (top, top))
            equal(upload(s, top + "/d/planted", b"x").status, 500)
            equal(upload(s, top + "/d/p/q", b"x").status, 500)
            equal(s.call("MakeDir", path=top + "/d/p").status, 500)
            equal((s.inside("cat /root/hidden"), s.inside("ls -d /root/p*", check=False).split()[:1]),
                  ("hidden\n", ["ls:"]))


def odd_names():
    """Names of any bytes come back as they were sent, or are refused."""
    with Sandbox() as s:
        s.init()
        top = home(s) + "/odd"
        for name, sent in (("a b", "a+b"), ("q\"'", "q%22%27"), ("k\u016f\u0148", "k%C5%AF%C5%88"),
                           ("line\nend", "line%0Aend")):
            a = upload(s, "%s/%s" % (top, sent), b"x")
            equal((a.status, a.json()[0]["name"]), (200, name), a)
            a = s.ask("GET", "/files?path=%s/%s" % (top, sent))
            equal((a.status, a.body), (200, b"x"), (name, a))
        equal(upload(s, top + "/" + "n" * 300, b"x").status, 500)
        equal(upload(s, top + "/a%00b", b"x").status, 400)
        for twice in ("&path=/x", "&p%61th=/x", "&%70ath=/x", "&username=a&user%6eame=b"):
            equal(upload(s, top + "/twice", b"x", twice).status, 400, twice)
        a = s.call("ListDir", path=top)
        equal(len(a.json()["entries"]), 4)
        equal(s.call("Stat", path="/" + "d/" * 5000).status in (404, 500), True)


def upgraded():
    """The setup outlives a kill of handraild's workers and an upgrade."""
    with Sandbox() as s:
        s.init(sandboxId="kept")
        s.upgrade()
        equal(s.ask("GET", "/envs").json()["E2B_SANDBOX_ID"], "kept")


TESTS = [recorded_group(g) for g in GROUPS] + [
    recorded_raw, ordinary, gate, setup_document, memory, cut_uploads, full_disk, refused_bodies, secrets, odd_names,
    upgraded]



def need_boxes():
    if not ROOT:
        return
    box.need_launcher()
    with box.Boxes(os.geteuid()) as boxes:
        reason = box.refused(boxes)
    if reason:
        skip_all(reason)


if __name__ == "__main__":
    need_boxes()
    process.become_subreaper()
    sys.exit(run_tests(TESTS))
