#!/usr/bin/env python3
"""What the actions on files, archives, downloads, uploads and the viewer of a server that is root do not
reach: processes, by whatever name, and what only root may read or write, by links of the sandbox' user."""

import concurrent.futures
import http.client
import io
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import forms, process  # noqa: E402
from lib.supervised import (  # noqa: E402
    ONE_WORKER_EACH, Server, has_given_up_rights, need_root, run_tests, wait_all_up)
from lib.tap import Skip, equal  # noqa: E402

USER = "nobody"
PACK = "handrail/v1/pack"
READERS = ("read", "view", "download_file", "download_files", PACK, "list_files", "viewer")


class Rooted(Server):
    """Root's, with a shell that is not. The key comes from a file, so that there is one to look for."""

    def __init__(self, **settings):
        super().__init__(ready=None, name=USER, env={"RUNTIME_USERNAME": USER, "USER": "root"})
        self.secret = "k3y" + os.urandom(24).hex()
        self.header = {"X-Session-API-Key": self.secret}
        self.key_file = os.path.join(self.top, "keys")
        with open(os.open(self.key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(self.secret + "\n")
        self.url_file = os.path.join(self.top, "viewer-url")
        self.write_settings(dict(ONE_WORKER_EACH, session_api_key_file=self.key_file,
                                 viewer_url_file=self.url_file, **settings))
        self.args += ["--config", self.settings_file(), "--listen", "127.0.0.1"]
        self.start(ready=False)
        equal(self.wait_log(" ready: ") is not None, True)
        wait_all_up(self, self.header)
        shutil.chown(self.work_dir, USER)
        self.roots = os.path.join(self.top, "roots")  # nobody else enters
        os.mkdir(self.roots, 0o700)
        with open(os.open(os.path.join(self.roots, "secret.txt"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write("of root alone")

    def act(self, action, **args):
        return self.request("POST", "/execute_action", json.dumps({"action": {"action": action, "args": args}}),
                            dict(self.header, **{"Content-Type": "application/json"}))

    def as_user(self, command):
        a = self.action("{ %s; } >&2; echo $?" % command, self.header)
        equal(a.json()["content"].endswith("0"), True, "%s: %r" % (command, a))

    def reached(self, path, kind, ranges=()):
        """What comes back, and whether it was refused. All of it as bytes."""
        if kind == "read":
            a = self.act("read", path=path)
            return a.body, a.json().get("observation") == "error" or a.status != 200
        if kind == "view":
            a = self.act("edit", command="view", path=path)
            listed = json.loads(a.body).get("content", "").partition("excluding hidden items:\n")[2]
            return a.body, b"ERROR" in a.body or b"error" in a.body or listed.count("\n") == 0 and bool(listed)
        if kind == "viewer":
            with open(self.url_file) as f:
                url = urllib.parse.urlsplit(f.read().strip())
            here, self.port = self.port, url.port
            try:
                a = self.get(url.path + "/view?" + urllib.parse.urlencode({"path": path}))
            finally:
                self.port = here
            return a.body, a.status != 200
        if kind == "list_files":
            a = self.request("POST", "/list_files", json.dumps({"path": path}), self.header)
            return a.body, a.body == b"[]"
        a = forms.download(self, path, "/" + kind, **self.header_args())
        body = a.body
        for start, end in ranges:
            body += forms.download(self, path, "/" + kind, Range="bytes=%d-%d" % (start, end - 1),
                                   **self.header_args()).body
        return body, a.status != 200

    def header_args(self):
        return {k.replace("-", "_"): v for k, v in self.header.items()}


def writable(pid):
    with open("/proc/%d/maps" % pid) as f:
        areas = [line.split() for line in f]
    return [tuple(int(x, 16) for x in w[0].split("-")) for w in areas if w[1].startswith("rw")]


def names_of(pid):
    """Every name that procfs has for what a process has."""
    base = "/proc/%d/" % pid
    names = [base + n for n in ("mem", "environ", "auxv", "stack", "syscall", "personality", "exe", "fd", "map_files",
                                "task/%d/mem" % pid, "task/%d/environ" % pid, "task/%d/fd" % pid)]
    for n in os.listdir(base + "fd"):
        names += [base + "fd/" + n, base + "task/%d/fd/%s" % (pid, n)]
    names += [base + "root/proc/%d/environ" % pid, base + "root/etc/shadow", base + "cwd/x"]
    names += [base + "map_files/" + n for n in os.listdir(base + "map_files")[:3]]
    return names


def no_process_is_reached():
    need_root()
    with Rooted() as s:
        ours = [s.pid] + s.pids("handrail") + s.pids("nginx") + process.descendants(s.pid)
        own = ["/proc/%s/%s" % (me, n) for me in ("self", "thread-self") for n in (
            "mem", "environ", "auxv", "fd/0", "fd/3", "fd/4", "fd/5", "root/etc/shadow", "cwd/handrail.conf", "fd")]
        own += ["/dev/fd/3", "/dev/fd/4", "/dev/stdin", "/proc/self/task/self/mem", "/proc/kcore", "/dev/mem"]
        names = own + [n for pid in set(ours) for n in names_of(pid)]
        heaps = {"/proc/%d/mem" % pid: writable(pid)[:6] for pid in set(ours)}
        for name in names:
            for kind in READERS:
                body, refused = s.reached(name, kind, heaps.get(name, ()) if kind == "download_file" else ())
                equal(s.secret.encode() in body, False, "the key by %s of %s" % (kind, name))
                if kind == "download_files":
                    refused = not (body.startswith(b"PK") and zipfile.ZipFile(io.BytesIO(body)).namelist())
                if not name.startswith("/proc/%d/" % s.popen.pid) and kind in ("list_files", PACK):
                    continue  # a directory's names are no secret where everybody may list it
                equal(refused, True, "%s of %s: %r" % (kind, name, body[:200]))
        for kind in ("read", "view", "download_file"):  # what everybody may read stays readable
            for name in ("/proc/cpuinfo", "/proc/%d/status" % s.pid, "/proc/self/status", "/proc/mounts"):
                equal(s.reached(name, kind)[1], False, "%s of %s" % (kind, name))


def no_process_is_reached_by_links():
    """The sandbox' user may name things as it likes."""
    need_root()
    with Rooted() as s:
        worker = s.workers("files")[0]
        targets = ["/proc/%d/environ" % s.pid, "/proc/%d/fd/3" % s.pid, "/proc/self/environ", "/proc/self/fd/4",
                   "/proc/%d/mem" % worker, "/dev/fd/4", "/proc/self/mem", "/proc/%d/root/etc/shadow" % s.pid]
        s.as_user("mkdir -p l && cd l && " + " && ".join(
            "ln -s %s %d.txt && ln -s %s %d.png" % (t, i, t, i) for i, t in enumerate(targets)) +
            " && ln -s /proc/self/fd fds && ln -s /proc/%d/root r" % s.pid)
        base = os.path.join(s.work_dir, "l")
        for i, target in enumerate(targets):
            for kind in READERS:
                if kind in ("list_files", "download_files"):
                    continue
                body, refused = s.reached("%s/%d.%s" % (base, i, "png" if kind == "viewer" else "txt"), kind)
                if kind == PACK and not refused:  # the link itself is no secret
                    refused = not [m for m in tarfile.open(fileobj=io.BytesIO(body)) if m.isreg() and m.size]
                equal((refused, s.secret.encode() in body), (True, False), "%s of a link to %s" % (kind, target))
        for name in ("fds/3", "fds/4", "r/etc/shadow", "r/proc/self/environ"):
            equal(s.reached(os.path.join(base, name), "download_file")[1], True, name)
        body, refused = s.reached(base, "download_files")
        equal((refused, b"root:" in body), (True, False), body[:300])
        for name in ("fds", "r/root"):
            body, _ = s.reached(os.path.join(base, name), "list_files")
            equal(body, b"[]", name)
            equal(forms.upload(s, os.path.join(base, name), "x", b"x", headers=s.header).status, 500, name)
            a = s.act("write", path=os.path.join(base, name, "x"), content="x")
            equal(a.status != 200 or a.json()["observation"] == "error", True, "write below %s: %r" % (name, a))


def another_procfs():
    """As is one that is mounted elsewhere."""
    need_root()
    with Rooted() as s:
        at = os.path.join(s.top, "p")
        os.mkdir(at)
        if subprocess.run(["mount", "-t", "proc", "proc", at], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("nothing can be mounted here: run it with CAP_SYS_ADMIN")
        try:
            worker = s.workers("files")[0]
            for name in ("self/environ", "self/mem", "self/fd/4", "%d/environ" % s.pid, "%d/fd/3" % worker,
                         "%d/mem" % s.pid):
                for kind in ("read", "view", "download_file"):
                    equal(s.reached(os.path.join(at, name), kind)[1], True, "%s of %s" % (kind, name))
            equal(s.reached(os.path.join(at, "cpuinfo"), "read")[1], False)
        finally:
            subprocess.run(["umount", at], check=True)


def the_key_file():
    """By its name, a link, another name of it, in an archive; to read and to write; after a reload."""
    need_root()
    with Rooted(action_workers_max=4) as s:  # at a reload nginx still counts the request before
        os.link(s.key_file, os.path.join(s.work_dir, "other.txt"))
        s.as_user("ln -s %s link.txt && mkdir only" % s.key_file)
        os.link(s.key_file, os.path.join(s.work_dir, "only/other.txt"))
        with open(os.path.join(s.work_dir, "only/fine.txt"), "w") as f:
            f.write("fine")
        for turn in range(2):
            for name in (s.key_file, os.path.join(s.work_dir, "other.txt"), os.path.join(s.work_dir, "link.txt")):
                for kind in ("read", "view", "download_file", "viewer"):
                    body, refused = s.reached(name, kind)
                    equal((refused, s.secret.encode() in body), (True, False), "%s of %s: %r" % (kind, name, body))
                a = s.act("write", path=name, content="mine")
                equal(a.status != 200 or a.json()["observation"] == "error", True, "write to %s: %r" % (name, a))
            body, _ = s.reached(s.work_dir, "download_files")
            equal(s.secret.encode() in body, False, "archive")
            # a refused file alone: an answer, and no connection that is broken off
            a = forms.download(s, os.path.join(s.work_dir, "only"), "/download_files", **s.header_args())
            equal((a.status, "[Errno 13]" in a.json()["detail"]), (500, True), a)
            body, refused = s.reached(os.path.join(s.work_dir, "only"), PACK)
            equal((refused, s.secret.encode() in body, b"fine" in body, b"other.txt\",\"reason" in body),
                  (False, False, True, True), "the rest, and the name of what is left out")
            with open(s.key_file) as f:
                equal(f.read(), s.secret + "\n", "as it was")
            s.send(signal.SIGHUP)
            equal(s.wait_log("reloaded", count=turn + 1) is not None, True)


def workers_have_few_rights():
    """Neither they nor what they start can trace, whatever their user."""
    need_root()
    with Rooted() as s:
        s.workers("live")  # all there
        for pid in s.pids("handrail-worker"):
            s.until("%d has given up its rights" % pid, lambda: has_given_up_rights(pid))
            with open("/proc/%d/status" % pid) as f:
                said = dict(line.split(":", 1) for line in f)
            for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
                caps = int(said[name], 16)
                for cap in (16, 17, 18, 19, 21, 22, 27, 40):  # modules, raw I/O, chroot, trace, admin, boot, nodes
                    equal(caps >> cap & 1, 0, "%s of %d: capability %d" % (name, pid, cap))
            equal(said["NoNewPrivs"].strip(), "1")


CONVERTER = """#!/bin/sh
exec 2>&1
case $(cat) in
*stop) kill -STOP $$;;
*hold) sleep 1000 >/dev/null & exec >/dev/null; wait;;
esac
id -u; id -G
grep CapEff /proc/self/status
for n in /proc/$$/fd/*; do readlink $n; done
exit 0
"""


def converters_have_the_shells_rights():
    """What reads the agent's documents is not root, has nothing of the worker, and cannot hold it up."""
    need_root()
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        program = os.path.join(top, "converter")
        with open(program, "w") as f:
            f.write(CONVERTER)
        os.chmod(program, 0o755)
        with Rooted(office_converter=program, action_workers=2, action_workers_max=2) as s:
            def convert(text):
                s.as_user("printf 'PK\\003\\004%s' >%s.docx" % (text, text))
                a = s.request("POST", "/execute_action", json.dumps({"action": {"action": "read", "args": {
                    "path": os.path.join(s.work_dir, text + ".docx"), "impl_source": "oh_aci"}}}),
                    dict(s.header, **{"Content-Type": "application/json"}), timeout=120)
                equal(a.status, 200, a)
                return a.json()["content"]
            who = pwd.getpwnam(USER)
            said = convert("x").splitlines()[1:]
            equal(said[0], str(who.pw_uid), said)
            equal("0" in said[1].split(), False, said)
            equal(said[2].split()[1].strip("0"), "", said)
            equal([line for line in said if "socket:" in line], [], "the client's connection")
            with concurrent.futures.ThreadPoolExecutor() as both:  # each takes the converter's whole time
                found = both.map(convert, ("stop", "hold"))
            for what, said in zip(("stop", "hold"), found):
                equal("/converter failed. Please use" in said, True, "%s: %s" % (what, said))
            equal(convert("x").splitlines()[1], str(who.pw_uid), "a worker is free again")


# ---- links of the sandbox' user ----

def members(body):
    return {i.filename: zipfile.ZipFile(io.BytesIO(body)).read(i) for i in zipfile.ZipFile(io.BytesIO(body)).infolist()}


def archives_and_links():
    need_root()
    with Rooted() as s:
        secret = os.path.join(s.roots, "secret.txt")
        with open(os.path.join(s.top, "public.txt"), "w") as f:
            f.write("for all")
        for name, target in (("absolute", secret), ("relative", os.path.relpath(secret, s.work_dir)),
                             ("chain", "hop"), ("shadow", "/etc/shadow")):
            s.as_user("rm -rf a && mkdir a && ln -s %s a/hop && ln -s %s a/%s" % (
                secret, target if name != "relative" else "../" + target, name))
            if name in ("absolute", "relative", "shadow"):
                s.as_user("rm a/hop")
            a = forms.download(s, os.path.join(s.work_dir, "a"), **s.header_args())
            equal((a.status, b"Permission denied" in a.body), (500, True), "%s: %r" % (name, a))
        # what the account can read is there, through its own links and through root's
        s.as_user("rm -rf a && mkdir -p a/sub && echo mine >a/own && ln -s own a/near && ln -s %s a/far && "
                  "ln -s ../own a/sub/up" % os.path.join(s.top, "public.txt"))
        os.symlink(secret, os.path.join(s.work_dir, "a", "roots"))
        shutil.copy(secret, os.path.join(s.work_dir, "a", "hidden"))
        os.chmod(os.path.join(s.work_dir, "a", "hidden"), 0o600)
        s.as_user("ln -s hidden a/inside")
        a = forms.download(s, os.path.join(s.work_dir, "a"), **s.header_args())
        equal(a.status, 200, a)
        equal(members(a.body), {"own": b"mine\n", "near": b"mine\n", "far": b"for all", "sub/up": b"mine\n",
                                "roots": b"of root alone", "hidden": b"of root alone", "inside": b"of root alone"})
        # the tree itself, and a file
        s.as_user("ln -s %s d && ln -s %s f && ln -s / top" % (s.roots, secret))
        for name in ("d", "d/secret.txt", "f", "top" + secret):
            path = os.path.join(s.work_dir, name)
            a = forms.download(s, path, "/download_file", **s.header_args())
            equal((a.status, b"of root" in a.body), (500, False), "%s: %r" % (name, a))
            a = forms.download(s, path, **s.header_args())
            equal((b"secret" in a.body, b"of root" in a.body), (False, False), "archive of %s: %r" % (name, a))
            equal(s.reached(path, "list_files")[0], b"[]", name)
        equal(forms.download(s, secret, "/download_file", **s.header_args()).body, b"of root alone", "as asked for")
        equal(members(forms.download(s, s.roots, **s.header_args()).body), {"secret.txt": b"of root alone"})
        os.symlink(s.roots, os.path.join(s.top, "by-root"))
        equal(forms.download(s, os.path.join(s.top, "by-root", "secret.txt"), "/download_file",
                             **s.header_args()).body, b"of root alone", "a link of root's")


def uploads_and_links():
    need_root()
    with Rooted() as s:
        s.as_user("ln -s %s d && mkdir own && ln -s ../own own/again && ln -s %s own/out && mkdir real && ln -s real r"
                  % (s.roots, s.roots))
        zipped = forms.archive(("in/x", "zipped"), ("y", "zipped"))
        through = forms.archive(("out/x", "zipped"))
        for where, name, data, recursive in (
                ("d", "x", b"evil", None), ("d", "secret.txt", b"evil", None), ("d/new/deep", "x", b"evil", None),
                ("d", "z.zip", zipped, "true"), ("d/new", "z.zip", zipped, "true"), ("own", "out/x", b"evil", None),
                ("own", "z.zip", through, "true"), ("own/out", "x", b"evil", None), ("d/.", "x", b"evil", None),
                ("../%s/d" % os.path.basename(s.work_dir), "x", b"evil", None)):
            a = forms.upload(s, os.path.join(s.work_dir, where), name, data, recursive, s.header)
            equal(a.status, 500, "%s %s: %r" % (where, name, a))
            equal(os.listdir(s.roots), ["secret.txt"], "%s %s" % (where, name))
            with open(os.path.join(s.roots, "secret.txt")) as f:
                equal(f.read(), "of root alone")
        s.as_user("rm own/out && ln -s %s real/f" % os.path.join(s.roots, "secret.txt"))
        equal(forms.upload(s, os.path.join(s.work_dir, "real"), "f", b"evil", None, s.header).status, 500)
        # where the account may write itself, its links lead on
        for where, name, data, recursive, made in (
                ("r", "x", b"fine", None, "real/x"), ("r/new/deep", "x", b"fine", None, "real/new/deep/x"),
                ("r", "z.zip", zipped, "true", "real/in/x"), ("own", "again/x", b"fine", None, None)):
            a = forms.upload(s, os.path.join(s.work_dir, where), name, data, recursive, s.header)
            if made is not None:
                equal(a.status, 200, "%s %s: %r" % (where, name, a))
                equal(os.path.exists(os.path.join(s.work_dir, made)), True, made)
        os.symlink(s.roots, os.path.join(s.top, "by-root"))
        equal(forms.upload(s, os.path.join(s.top, "by-root"), "new", b"fine", None, s.header).status, 200)
        with open(os.path.join(s.roots, "new"), "rb") as f:
            equal(f.read(), b"fine", "a link of root's")


def links_that_change():
    """A file becomes a link and a file again, as fast as it can, while archives are made of it."""
    need_root()
    with Rooted() as s:
        secret = os.path.join(s.roots, "secret.txt")
        s.as_user("touch go && mkdir race && echo mine >race/f")
        with open(os.path.join(s.work_dir, "race.py"), "w") as f:
            f.write("import os\nos.chdir('race')\nwhile os.path.exists('../go'):\n"
                    "    os.symlink(%r, 'n')\n    os.rename('n', 'f')\n"
                    "    with open('n', 'w') as f:\n        f.write('mine')\n    os.rename('n', 'f')\n" % secret)
        equal(s.action("python3 race.py 2>race.err &", s.header).status, 200)
        seen = set()
        for _ in range(300):
            for where in ("/download_files", "/download_file"):
                path = os.path.join(s.work_dir, "race" if where == "/download_files" else "race/f")
                try:
                    a = forms.download(s, path, where, **s.header_args())
                except (http.client.HTTPException, ConnectionError):
                    continue  # it changed in the middle of the answer, which ended there
                seen.add(a.status)
                equal(b"of root" in a.body, False, where)
        os.unlink(os.path.join(s.work_dir, "go"))
        equal(200 in seen, True, seen)


TESTS = [no_process_is_reached, no_process_is_reached_by_links, another_procfs, the_key_file,
         workers_have_few_rights, converters_have_the_shells_rights, archives_and_links, uploads_and_links,
         links_that_change]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
