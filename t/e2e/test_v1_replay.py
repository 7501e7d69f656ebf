#!/usr/bin/env python3
"""The recorded answers of the agent server of OpenHands V1 (t/corpus/v1), and ours to the same requests."""

import ctypes
import io
import json
import os
import pwd
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import threading
import time
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.supervised import SRCDIR, Server, need_entrance, need_root, run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_v1 import IDENTITY, KEY, V1  # noqa: E402

PIDFD_GETFD = 438
DATES = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0200", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+0200"}


def lines(name):
    with open(os.path.join(SRCDIR, "t", "corpus", "v1", name)) as f:
        return [json.loads(line) for line in f]


def members(body):
    """The members of a compressed tar archive."""
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as t:
        return sorted([m.name, m.mode, t.extractfile(m).read().decode("latin1") if m.isfile() else None]
                      for m in t.getmembers())


def of_archive(a, top):
    """The headers of an archive, where "@" is the directory of the script or its name."""
    wanted = {k.lower(): v for k, v in a.headers.items() if k.lower() in ("content-type", "content-disposition")
              or k.lower().startswith("x-archive-")}
    return {k: v.replace(quote(top, safe=""), "@").replace(os.path.basename(top), "@") for k, v in wanted.items()}


def compare(c, a, answer):
    """Compares an answer with the record, or with the improved one: its status and, if they are recorded, its JSON as
    `answer` masks it and its text. Returns the record."""
    wanted = c.get("improved", c)
    equal(a.status, wanted["status"], (c, a))
    if "answer" in wanted:
        equal(answer(a.json()), wanted["answer"], c)
    if "text" in wanted:
        equal(a.body.decode(), wanted["text"], c)
    return wanted


def replay(s, name, least):
    """Makes each state in a directory of its own, which the lines call "@", and sends the requests of its lines."""
    cases = lines(name)
    equal(len(cases) >= least, True, len(cases))
    for c in cases:
        if "script" in c:
            top = os.path.join(s.work_dir, c["state"])
            os.mkdir(top)
            subprocess.run(["bash", "-ec", c["script"]], cwd=top, env=dict(os.environ, **IDENTITY, **DATES), check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run(["chown", "-Rh", "--reference=.", c["state"]], cwd=s.work_dir, check=True)
        body = json.dumps(c["body"]) if "body" in c else None
        target = c["target"].replace("@", quote(top))
        a = s.upload(target, c["file"].encode()) if "file" in c else s.ask(c["method"], target, body)
        wanted = compare(c, a, lambda got: json.loads(json.dumps(got).replace(top, "@")))
        if "headers" in wanted:
            equal(of_archive(a, top), wanted["headers"], c["target"])
        if "members" in wanted:
            got = json.dumps(members(a.body))
            equal(json.loads(got.replace(c["state"], "@") if "path=@&" in c["target"] else got), wanted["members"],
                  c["target"])


class Player:
    """Plays lines of bash.jsonl. "start": the command gets this name and runs to its end. {NAME} is its id, with dashes
    if the server uses them, {NAME.hex} the id without, {NAME.0} that of its first output, {NAME.time} its time, {next}
    the id of the next page."""

    def __init__(self, ask):
        self.ask, self.names = ask, {"next": ""}

    def fill(self, text):
        for name, value in self.names.items():
            text = text.replace("{%s}" % name, value)
        return text

    def masked(self, answer):
        """Ids by their names; times are only checked to be there."""
        text = json.dumps(answer)
        if isinstance(answer, dict) and "items" in answer:
            self.names["next"] = answer["next_page_id"] or ""
            text = json.dumps(dict(answer, next_page_id=bool(answer["next_page_id"])))
        for name, value in sorted(self.names.items(), key=lambda x: len(x[0])):
            if value and name != "next" and not name.endswith(".time"):
                text = text.replace('"%s"' % value, '"{%s}"' % name.replace(".hex", ""))
        return json.loads(re.sub(r'"timestamp": "[-0-9]{10}T[:.0-9]{8,15}Z"', '"timestamp": "T"', text))

    def play(self, c):
        body = self.fill(json.dumps(c["body"])) if "body" in c else None
        a = self.ask(c["method"], self.fill(c["target"]), body)
        answer = a.json()
        if "start" in c:
            name, id = c["start"], answer["id"]
            self.names.update({name: id, name + ".hex": id.replace("-", ""), name + ".time": answer["timestamp"]})
            output = []
            while not output:
                output = self.ask("GET", "/api/bash/bash_events/search?command_id__eq=" + id).json()["items"]
            self.names[name + ".0"] = output[0]["id"]
            before = time.time() + 0.002  # times here have milliseconds
            while time.time() < before:
                pass
        return a, self.masked(answer)


def bash():
    with V1() as s:
        p = Player(s.ask)
        cases = lines("bash.jsonl")
        equal(len(cases) > 90, True, len(cases))
        for c in cases:
            a, answer = p.play(c)
            compare(c, a, lambda got: answer)


def directories():
    with V1() as s:
        replay(s, "directories.jsonl", 50)
        a = s.ask("GET", "/api/file/search_subdirs?path=%s%%00" % s.work_dir)
        equal(a.status, 404, a)
        run_dir, kept = s.run_dir, sorted(os.listdir(s.run_dir))
        os.symlink(run_dir, s.work_dir + "/to-run")
        for path in (run_dir, run_dir + "/shell", s.work_dir + "/to-run", s.work_dir + "/new/../to-run/shell"):
            for method, target in (("POST", "create_directory?path=%s/made/deep"), ("GET", "search_subdirs?path=%s")):
                a = s.ask(method, "/api/file/" + target % path)
                equal(a.status, 403, (path, a))
        equal(sorted(os.listdir(run_dir)), kept)
        equal(os.path.exists(run_dir + "/shell/made"), False)


class Rooted(V1):
    """Root's, with a shell that is nobody's."""

    def __init__(self):
        Server.__init__(self, name="nobody", env={"SESSION_API_KEY": KEY, "RUNTIME_USERNAME": "nobody", "USER": "root"},
                        args=["--listen", "127.0.0.1"], settings={"openhands_v1": True})


def account():
    """A directory is the shell's account's, and is made where that account may make it."""
    need_root()
    with Rooted() as s:
        os.mkdir(s.top + "/closed", 0o700)
        shutil.chown(s.work_dir, "nobody")
        os.symlink(s.top + "/closed", s.work_dir + "/link")
        os.lchown(s.work_dir + "/link", pwd.getpwnam("nobody").pw_uid, -1)
        make = "/api/file/create_directory?path=%s/"
        equal(s.ask("POST", make % s.work_dir + "a/b").json(), {"success": True})
        a = s.execute("cd a/b && touch f && stat -c %U . && id -un").json()
        equal((a["exit_code"], a["stdout"]), (0, "nobody\nnobody\n"), a)
        with open(s.top + "/closed/file", "w"):
            pass
        for path in (s.top + "/new", s.top + "/closed/new", s.work_dir + "/link/new", s.top + "/closed/file"):
            a = s.ask("POST", "/api/file/create_directory?path=" + path)
            equal((a.status, a.json()["detail"].startswith("Permission denied: ")), (403, True), a)
        equal(os.listdir(s.top + "/closed"), ["file"])
        a = s.execute("echo no", cwd=s.top + "/closed").json()
        equal((a["exit_code"], a["stdout"], "[Errno 13] Permission denied" in a["stderr"]), (-1, None, True), a)
        a = s.ask("GET", "/api/file/search_subdirs?path=%s/link" % s.work_dir)
        equal((a.status, "Permission denied" in a.json()["detail"]), (403, True), a)
        equal(s.ask("GET", "/api/file/home").json()["home"], pwd.getpwnam("nobody").pw_dir)


def home():
    with V1() as s:
        where = s.execute("echo ~").json()["stdout"].rstrip("\n")
        a = s.ask("GET", "/api/file/home?include_hidden=true").json()
        equal((a["home"], a["locations"]), (where, [{"label": "/", "path": "/"}]), a)
        listed = s.ask("GET", "/api/file/search_subdirs?include_hidden=true&limit=50&path=" + quote(where)).json()
        equal([(x["label"], x["path"]) for x in a["favorites"]], [(x["name"], x["path"]) for x in listed["items"]])


def transfer():
    with V1() as s:
        replay(s, "transfer.jsonl", 50)


def errors():
    """All errors of a request's parameters or its body, and paths with a slash too many."""
    cases = lines("errors.jsonl")
    equal(len(cases) > 130, True, len(cases))
    with V1() as s:
        for c in cases:
            a = s.ask(c["method"], c["target"], c.get("text_body", "").encode(), c.get("type", "application/json"))
            compare(c, a, lambda got: got)
            equal(a.headers.get("Allow"), c.get("allow"), c)
            if "location" in c:
                equal(a.headers["Location"].split("//", 1)[1].split("/", 1)[1], c["location"][1:], c)


def ranges():
    """Parts of files. "{etag}" and "{date}" are those of the file's whole answer."""
    cases = lines("ranges.jsonl")
    equal(len(cases) > 60, True, len(cases))
    with V1() as s:
        for c in cases:
            path = os.path.join(s.work_dir, c["file"])
            if not os.path.exists(path):
                with open(path, "w") as f:
                    f.write("0123456789" * (c["size"] // 10))
                whole = s.ask("GET", "/api/file/download?path=" + path).headers
            send = {k.replace("-", "_"): v.replace("{etag}", whole["ETag"]).replace("{date}", whole["Last-Modified"])
                    for k, v in c["send"].items()}
            a = s.ask("GET", "/api/file/download?path=" + path, **send)
            got = {k.lower(): v for k, v in a.headers.items()}
            boundary = re.search(r"boundary=(\w{26})$", got.get("content-type", ""))
            hide = (lambda text: text.replace(boundary.group(1), "BOUNDARY")) if boundary else str
            equal((a.status, hide(got.get("content-type", "")), hide(a.body.decode())),
                  (c["status"], c["type"], c["text"]), c)
            equal({k: got[k] for k in ("content-range", "accept-ranges", "content-disposition", "content-length")
                   if k in got}, c["headers"], c)
            valid = (whole["ETag"], whole["Last-Modified"]) if c["validators"][0] else (None, None)
            equal((got.get("etag"), got.get("last-modified")), valid, c)


def commits():
    with V1() as s:
        replay(s, "commits.jsonl", 60)


def changes():
    with V1() as s:
        replay(s, "changes.jsonl", 110)
        for target in ("changes?path=%splaces/r", "diff?path=%splaces/r/d/x", "commits?path=%splaces/r"):
            a, there = (s.ask("GET", "/api/git/" + target % at).json() for at in ("", s.work_dir + "/"))
            equal(a == there and str(a) not in ("[]", ""), True, (target, a, there))
        sha = s.ask("GET", "/api/git/commits?path=places/r").json()["commits"][0]["sha"]
        for more in ("", "&commit=" + sha):
            equal(s.ask("GET", "/api/git/diff?path=places/r" + more).json(), {"modified": "", "original": ""}, more)


def archive():
    with V1() as s:
        replay(s, "archive.jsonl", 90)


def secrets_in_archives():
    """No archive has a password, and neither the settings of git nor patterns change its form."""
    with V1() as s:
        s.execute("git init -q r; cd r; git config user.email a@b; git config user.name a; echo one >f; git add f; "
                  "git commit -qm m; git remote add origin ssh://u:hunter2@host/r; echo p:hunter2 >.git-credentials; "
                  "echo two >f; git config diff.noprefix true; git config color.ui always; "
                  "git config diff.external /bin/false; mkdir sub; cp .git-credentials f sub/")
        at = "/api/file/archive?path=%s/r" % s.work_dir
        for target in (at + "&format=tar.gz&use_default_excludes=false", at + "/.git&format=tar.gz"):
            found = members(s.ask("GET", target).body)
            equal([m for m in found if "hunter2" in (m[2] or "")], [], target)
            equal(any(m[0].endswith("HEAD") for m in found), True, target)
        a = s.ask("GET", at + "&base_ref=HEAD")
        equal(("hunter2" in repr(a.headers), b"hunter2" in a.body), (False, False), a.body)
        equal(a.headers["X-Archive-Repo-Remote"], quote("ssh://****@host/r", safe=""))
        found = (b"--- a/f\n+++ b/f\n" in a.body, b"+++ b/sub/f\n" in a.body, b"\x1b" in a.body)
        equal(found, (True, True, False), a.body)
        equal([m[0] for m in members(s.ask("GET", at + "&format=tar.gz&exclude=--ref=x").body)],
              ["r", "r/archive_manifest.json", "r/f", "r/sub", "r/sub/f"])


def time_limits(s):
    """The seconds after which the workers give up the sockets that they read."""
    found = set()
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in process.descendants(s.pid):
        if "handrail-worker" not in process.command_line(pid):
            continue
        of = os.pidfd_open(pid)
        for fd in range(64):
            copy = libc.syscall(PIDFD_GETFD, of, fd, 0)
            if copy >= 0 and stat.S_ISSOCK(os.fstat(copy).st_mode):
                with socket.socket(fileno=copy) as c:
                    found.add(struct.unpack("qq", c.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16))[0])
            elif copy >= 0:
                os.close(copy)
        os.close(of)
    return found


def archive_of_a_git_that_waits():
    """It holds its worker for five minutes at most; nobody waits for them here."""
    need_root()
    with V1() as s:
        s.execute("git init -q r; cd r; rm .git/HEAD; mkfifo .git/HEAD")
        head = s.work_dir + "/r/.git/HEAD"
        asked = threading.Thread(target=s.ask, args=("GET", "/api/file/archive?path=%s/r" % s.work_dir))
        asked.start()
        try:
            s.until("git waits", lambda: any(process.command_line(p).startswith("git ")
                                             for p in process.descendants(s.pid)))
            equal(300 in time_limits(s), True)
        finally:
            os.rename(head, head + "2")  # the next command of git finds none
            with open(head + "2", "w"):
                asked.join()


def large_archive():
    """An archive is sent while it is packed, with the rights of the shell's account."""
    need_root()
    need_entrance()  # to handrail-archives.so
    with Rooted() as s:
        shutil.chown(s.work_dir, "nobody")
        s.execute("mkdir d; head -c 40000000 /dev/urandom >d/big; : >d/%s" % ("n" * 200))
        with open(s.work_dir + "/d/closed", "w") as f:
            f.write("1")
        os.chmod(s.work_dir + "/d/closed", 0o600)
        with open(s.work_dir + "/d/big", "rb") as f:
            big = f.read()
        target = "/api/file/archive?format=tar.gz&path=" + s.work_dir
        a = s.ask("GET", target + "/d")
        with tarfile.open(fileobj=io.BytesIO(a.body), mode="r:gz") as t:
            equal(sorted(t.getnames()), ["d", "d/archive_manifest.json", "d/big", "d/" + "n" * 200])
            equal(t.extractfile("d/big").read() == big, True)
        os.chmod(s.work_dir + "/d", 0o700)
        os.chown(s.work_dir + "/d", 0, 0)
        equal(s.ask("GET", target + "/d/x").status, 404)
        with tarfile.open(fileobj=io.BytesIO(s.ask("GET", target).body), mode="r:gz") as t:
            equal([n for n in t.getnames() if "/d" in n], [])
        equal(s.ask("GET", target + "&exclude=a" * 187).status, 200)
        equal([s.ask("GET", target + more).status for more in ("&exclude=a" * 188, "&exclude=%00", "&exclude=" +
                                                               "a" * 5000)], [422] * 3)
        equal(s.ask("GET", target, key="x").status, 401)


def of_cors(a):
    names = [k for k in a.headers if k.lower() == "vary" or k.lower().startswith("access-control-")]
    return {k.lower(): a.headers[k] for k in names}


def cors():
    """What a browser's page of another origin may read, and its question before that, which needs no key."""
    cases = lines("cors.jsonl")
    equal(len(cases) > 100, True, len(cases))
    starts = [i for i, c in enumerate(cases) if "env" in c] + [len(cases)]
    for begin, end in zip(starts, starts[1:]):
        with V1(env=cases[begin]["env"]) as s:
            for c in cases[begin:end]:
                a = s.ask(c["method"], c["target"], json.dumps(c["body"]) if "body" in c else None,
                          key=KEY if c["key"] else None, **c["headers"])
                wanted = c.get("improved", c)
                equal((a.status, of_cors(a)), (wanted["status"], wanted.get("answer", c["answer"])), c)
                if "text" in wanted:
                    equal(a.body.decode(), wanted["text"], c)


def cors_elsewhere():
    here = {"Origin": "http://localhost:3000"}
    allowed = {"vary": "Origin", "access-control-allow-origin": here["Origin"],
               "access-control-allow-credentials": "true"}
    with V1(address_requests_per_minute=1, address_burst=1) as s:
        # nginx counts in the time that the start took, too
        s.until("one too many", lambda: s.ask("GET", "/api/file/home", **here).status == 429)
        a = s.ask("GET", "/api/file/home", **here)
        equal((a.status, of_cors(a)), (429, allowed))
    with V1(openhands_v1=False) as s:
        for path in ("/alive", "/api/file/home"):
            equal(of_cors(s.ask("GET", path, **here)), {}, path)
    with V1(cors_origins="https://one.example, box.example [::1] fd00::9") as s:
        # paths that are not V1's, also behind one of them
        for path, status in (("/handrail/v1/sessions", 200), ("/api/..%2fhandrail/v1/sessions", 404)):
            a = s.ask("GET", path, **here)
            equal((a.status, of_cors(a)), (status, {}), path)
            a = s.ask("OPTIONS", path, key=None, Access_Control_Request_Method="GET", **here)
            equal((a.status, of_cors(a)), (403, {}), path)
        for origin, good in (("https://one.example", True), ("http://one.example", False),
                             ("https://two.example", False), ("http://box.example:80", True),
                             ("https://BOX.example", True), ("http://box1example", False),
                             ("http://a.box.example", False), ("http://[fd00::9]:1", True),
                             ("http://[fd00::99]", False)):
            a = s.ask("POST", "/api/bash/execute_bash_command", '{"command": "echo"}', Origin=origin)
            got = of_cors(a).get("access-control-allow-origin")
            equal((a.status, got), (200, origin) if good else (403, None), origin)
        s.write_settings({"openhands_v1": True, "cors_origins": "https://two.example"})
        s.reload()
        got = [s.ask("GET", "/api/file/home", Origin="https://%s.example" % n).status for n in ("one", "two")]
        equal(got, [403, 200])
    for bad in ("http://a{", "a;b", "https://x\"", "null://" + "a" * 300):
        s = V1.__new__(V1)
        Server.__init__(s, ready=None, env={"SESSION_API_KEY": KEY}, args=["--listen", "127.0.0.1"],
                        settings={"openhands_v1": True, "cors_origins": bad})
        with s:
            s.start(ready=False)
            equal((s.wait() != 0, "cors_origins" in s.log()), (True, True), s.log())


def table():
    """doc/openhands.md has each of the 177 routes once, and handrail answers those of its own rows and no others."""
    with open(os.path.join(SRCDIR, "t", "corpus", "v1", "routes")) as f:
        routes = [line.split() for line in f]
    with open(os.path.join(SRCDIR, "doc", "openhands.md")) as f:
        section = f.read().split("\n## Which routes")[1].split("\n## ")[0]
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")]
    equal((len(routes), len(rows) > 5), (177, True))
    count = {i: 0 for i in range(len(rows))}
    with V1() as s:
        for method, path in routes:
            here = [i for i, row in enumerate(rows) for name in re.findall("`([^`]+)`", row[0])
                    if path == name or (name != "/" and name.endswith("/") and (path + "/").startswith(name))]
            equal(len(here), 1, path)
            count[here[0]] += 1
            target = re.sub("{[^}]*}", "x", path)
            if rows[here[0]][2] == "handrail":  # a path that is served knows its methods
                a = s.ask("PUT", target, "")
                equal((a.status, a.headers.get("Allow", "").isalpha()), (405, True), (target, a))
                equal(s.ask(method, target).status == 405, False, target)
            else:
                equal(s.ask(method, target).status, 404, target)
    for i, row in enumerate(rows):
        equal(count[i], int(row[1]), row)


if __name__ == "__main__":
    sys.exit(run_tests([bash, directories, account, home, transfer, errors, ranges, commits, changes, archive,
                        secrets_in_archives, archive_of_a_git_that_waits, large_archive, cors, cors_elsewhere, table]))
