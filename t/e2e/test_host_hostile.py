#!/usr/bin/env python3
"""An Engine and a sandbox's server that answer anything: every field of every answer in turn is of another
type, or not there. handrail may fail, with a word; it may not die, nor pass on what a terminal would do."""

import copy
import http.server
import io
import json
import os
import re
import shutil
import socketserver
import stat
import struct
import subprocess
import sys
import threading
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import PATIENCE, SRC, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

ESCAPE = "\033]0;x\007"
WRONG = (None, True, 2 ** 70, "x" + ESCAPE, "x\0y", [None], {"a": None})

IMAGE = {"Id": "sha256:1", "RepoTags": ["r/x:one"], "Size": 5000000, "Created": 7,
         "Labels": {"org.openhands.runtime": "c", "org.openhands.version": "1"}}
CONTAINER = {"Id": "0123abcd", "State": {"Status": "running", "Running": True, "OOMKilled": False},
             "Config": {"Env": ["port=30001", "VSCODE_PORT=40001", "SESSION_API_KEY=k"],
                        "Labels": {"org.openhands.runtime": "c"}}}
STATS = {"cpu_stats": {"cpu_usage": {"total_usage": 9}, "system_cpu_usage": 90, "online_cpus": 2},
         "precpu_stats": {"cpu_usage": {"total_usage": 1}, "system_cpu_usage": 2},
         "memory_stats": {"usage": 9, "limit": 99, "stats": {"inactive_file": 1}}, "pids_stats": {"current": 3}}
RAN = {"observation": "run", "content": "text\n", "extras": {"metadata": {"exit_code": 3, "suffix": "\n[done]"}}}
READ = {"observation": "read", "content": "text", "extras": {"path": "a"}}


def wrong(value):
    """The value with one node of it of another type, or without one member, for each."""
    for other in WRONG:
        yield other
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            for inner in wrong(value[key]):
                whole = copy.copy(value)
                whole[key] = inner
                yield whole
            whole = copy.copy(value)
            del whole[key]
            yield whole


class Server(socketserver.ThreadingMixIn):
    daemon_threads = True

    def handle_error(self, *unused):
        """Who has enough goes before the end."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*unused)


class UnixServer(Server, socketserver.UnixStreamServer):
    pass


class TcpServer(Server, http.server.HTTPServer):
    pass


class Hostile(Host):
    """A container that is recorded, its Engine and its server. answers: what is said to requests whose path has
    this in it, (status, JSON or bytes); the first that fits. What is asked besides is answered with 404."""

    def __init__(self):
        super().__init__(RUNTIME="docker", SANDBOX_RUNTIME_CONTAINER_IMAGE="r/x:one")
        self.answers, self.asked = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while int(self.rfile.readline(), 16) > 0:
                        pass  # a body of ours is one chunk at most: see build()
                status, said = outer.route(self.path, body)
                text = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.send_header("api-version", "1.41")
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = answer

        self.servers = [UnixServer(self.path("socket"), Handler), TcpServer(("127.0.0.1", 0), Handler)]
        self.port = self.servers[1].server_address[1]
        self.env["DOCKER_HOST"] = "unix://" + self.path("socket")
        os.mkdir(self.path("state"), 0o700)
        self.record()

    def record(self):
        with open(self.path("state", "default.json"), "w") as f:
            json.dump({"sid": "default", "runtime": "docker", "url": "u", "created": 1, "backend": {
                "id": "0123abcd", "port": self.port, "vscode_port": 40001, "app_port_1": 0, "app_port_2": 0,
                "key": "k"}}, f)

    def route(self, path, body):
        self.asked.append(path)
        for part, answer in self.answers:
            if part in path:
                return answer(body) if callable(answer) else answer
        return (200, "OK") if path == "/_ping" else (404, {"message": "No such thing"})

    def __enter__(self):
        for s in self.servers:
            threading.Thread(target=s.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.answers = []
        try:
            super().__exit__()
        finally:
            for s in self.servers:
                s.shutdown()
                s.server_close()

    def survives(self, said, *words, table=False):
        """Its exit status."""
        done = self(*words)
        what = "%s on %s: %d\n%s%s" % (" ".join(words), repr(said)[:300], done.returncode, done.stdout, done.stderr)
        equal((0 <= done.returncode < 126, "Sanitizer" in done.stderr, "runtime error" in done.stderr,
               "\033" in done.stderr, table and "\033" in done.stdout), (True, False, False, False, False), what)
        if done.returncode != 0 and words[0] not in ("run", "ps"):
            equal(done.stderr.startswith("handrail: ") or words[0] == "doctor" or "preflight" in words, True,
                  what)
        if words[0] not in ("run", "read", "doctor") and "-j" in words and done.returncode == 0 and done.stdout:
            json.loads(done.stdout)
        return done.returncode


def each(path, good, *commands, status=200, wrap=None):
    """The good answer is taken by all commands, each wrong one is survived."""
    with Hostile() as h:
        for said in [good] + list(wrong(good)):
            h.answers = [(path, (status, wrap(said) if wrap else said))] + h.answers[1:]
            for words in commands:
                rc = h.survives(said, *words, table=words[0] in ("image", "ls", "ps", "top", "doctor") or
                                words[:2] == ("repo", "changes"))
                if said is good:
                    equal(rc, 3 if words[0] == "run" else 0 if status == 200 else 1, "the good one: %r" % (words,))


def errors():
    """{"message": null} ended handrail with a signal."""
    with Hostile() as h:
        for status in (404, 500):
            for said in [{"message": "some"}] + list(wrong({"message": "some"})):
                h.answers = [("/images/json", (status, said))]
                equal(h.survives(said, "image", "ls") in (1, 3), True, said)


def images():
    each("/images/json", [IMAGE], ("image", "ls"), ("image", "-j", "ls"))
    each("/images/", CONTAINER, ("image", "rm", "x"))


def versions():
    with Hostile() as h:
        for said in [{"Version": "20", "ApiVersion": "1.41"}] + list(wrong({"Version": "20", "ApiVersion": "1.41"})):
            h.answers = [("/version", (200, said)), ("/images/", (200, IMAGE))]
            h.survives(said, "doctor", "docker", table=True)


def containers():
    each("/containers/", CONTAINER, ("resume",), ("ps", "-j"))
    each("/stats", STATS, ("top", "-j"))
    with Hostile() as h:
        for said in (STATS, dict(STATS, cpu_stats={"cpu_usage": {"total_usage": 1e308}, "system_cpu_usage": 3,
                                                   "online_cpus": 1e308}),
                     dict(STATS, memory_stats={"usage": -1e308, "limit": 1e-308})):
            h.answers = [("/stats", (200, said))]
            equal((h.survives(said, "top", "-j"), h.survives(said, "top")), (0, 0), said)


def lists():
    listed = [{"Id": "0123abcd", "Names": ["/openhands-runtime-x"], "Labels": {"handrail.owner": "m-0-1-2.3"},
               "State": "created"}]
    each("/containers/json", listed, ("ps", "--all", "-r", "docker"))
    with Hostile() as h:
        text = json.dumps(listed).encode()
        for said in (text[:-1], text[:40], b"\0", text + b"x", b"{}", b"7", b""):
            h.answers = [("/containers/json", (200, said))]
            equal(h.survives(said, "ps", "--all", "-r", "docker", table=True), 1, said)


def events():
    """Lines of an Engine that tell of nothing are passed over, and those behind them are told."""
    good = {"status": "die", "Actor": {"Attributes": {"name": "openhands-runtime-default", "exitCode": "7"}}}
    last = dict(good, status="oom")
    whole = json.dumps(good).encode()
    lines = [json.dumps(x).encode() for x in [good] + list(wrong(good))]
    lines += [whole[:-9], b"\0" + whole, whole + b"\0", whole[:-1] + b",\0}", b"", b"\xff" * 9, b"[" * 100000,
              b"x" * (2 << 20)]
    for sid in ("", "../x", "a/b", "x" * 300, ".", "a b", "a\0b"):
        lines.append(whole.replace(b"runtime-default", b"runtime-" + json.dumps(sid).encode()[1:-1]))
    with Hostile() as h:
        h.answers = [("/events", (200, b"\n".join(lines + [json.dumps(last).encode(), b""])))]
        p = h.popen("events", "-j")
        try:
            told = []
            for line in p.stdout:
                told.append(json.loads(line))
                equal("\033" in line, False, line)
                if told[-1]["event"] == "oom":
                    break
        finally:
            p.kill()
            p.communicate()
        told = [t for t in told if t["event"] in ("die", "oom")]
        equal({(t["sid"], t["event"]) for t in told}, {("default", "die"), ("default", "oom")}, told)
        equal("exit status 7" in json.dumps(told[0]), True, told[0])


def preflights():
    """What is asked of an image before a sandbox is made of it: the image, the Engine, and a container's files."""
    image = dict(CONTAINER, Os="linux", Architecture="amd64", Size=5000000)
    version, made = {"Version": "20", "ApiVersion": "1.41", "Arch": "amd64"}, {"Id": "0123abcd"}
    with Hostile() as h:
        def answer(at, said):
            h.answers = [("/images/", (200, image)), ("/version", (200, version)), ("/containers/create", (201, made)),
                         ("/archive", (200, b"x")), ("/containers/handrail-preflight-", (204, b""))]
            h.answers[at] = (h.answers[at][0], (200, said))
        for at, good in enumerate((image, version, made)):
            answer(at, good)
            equal(h.survives(good, "image", "preflight", "-j", "x"), 0, "the good one")
            for said in list(wrong(good)) + [b"", json.dumps(good).encode()[:-3]]:
                answer(at, said)
                h.survives(said, "image", "preflight", "-j", "x")
                h.survives(said, "image", "preflight", "x", table=True)
        for id in ("zz", "../images/x", "0123/../../y", ""):
            answer(2, {"Id": id})
            equal(h.survives(id, "image", "preflight", "-j", "x"), 1)
            new, old = [re.search(r"handrail-preflight-[0-9a-f]{16}\b", p)[0] for p in h.asked[-2:]]
            equal((old, "create" in h.asked[-1]), (new, False), "what may be there is removed")
        odd = [p for p in h.asked if "/containers/" in p and
               not re.search("/containers/(create|[0-9a-f]+|handrail-preflight-[0-9a-f]{16})[/?]", p)]
        equal(odd, [], "an id is hexadecimal, or none")
        # neither the archive nor its headers are read: that there is one is enough
        for said in (b"", b"\0" * 1024, bytes(range(256))):
            answer(3, said)
            equal(h.survives(said, "image", "preflight", "-j", "x"), 0)
        for said in [{"message": "some"}] + list(wrong({"message": "some"})):
            answer(3, said)
            h.answers[3] = ("/archive", (500, said))
            equal(h.survives(said, "image", "preflight", "-j", "x"), 1)


def logs():
    frame = b"\1\0\0\0\0\0\0\4one\n"
    with Hostile() as h:
        for said in (frame, frame[:5], frame * 3 + b"\2\0\0\0\xff\xff\xff\xffx", b"plain", b"", bytes(range(256))):
            h.answers = [("/logs", (200, said))]
            h.survives(said, "logs")


def pulls():
    """A line of each kind, with each member of another type; after it no image is there either."""
    lines = ({"status": "Downloading", "id": "a", "progressDetail": {"current": 1, "total": 2}},
             {"error": "some", "errorDetail": {"message": "some"}})
    with Hostile() as h:
        os.unlink(h.path("state", "default.json"))
        h.env["SANDBOX_VSCODE_PORT"] = "40001"
        for line in lines:
            for said in [line] + list(wrong(line)):
                h.answers = [("/images/create", (200, json.dumps(said).encode() + b"\n")),
                             ("/containers/create", (404, {"message": "No such image: r/x:one"}))]
                h.survives(said, "up")


def pull_of_one_tag():
    """An Engine pulls all tags of a name that has none."""
    for image, asked in (("r/x", "r%2Fx&tag=latest"), ("r:5000/x", "r%3A5000%2Fx&tag=latest"), ("r/x:1", "r%2Fx%3A1"),
                         ("r/x@sha256:0", "r%2Fx%40sha256%3A0")):
        with Hostile() as h:
            os.unlink(h.path("state", "default.json"))
            h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = image
            h.answers = [("/images/create", (200, {"error": "enough"})),
                         ("/containers/create", (404, {"message": "No such image: x"}))]
            h.fails(3, "enough", "up")
            equal([a.split("fromImage=")[1] for a in h.asked if "/images/create" in a], [asked])


def ports_that_are_taken():
    """The Engine, or the log of a server, names a port of the container that another program took: three containers
    are made in all, each with other ports. A name that is taken is no port, nor is a longer number."""
    bridge = "failed to bind host port for 0.0.0.0:%d:172.17.0.2:%d/tcp: address already in use"
    uvicorn = b"[Errno 98] error while attempting to bind on address ('0.0.0.0', %d): address already in use\n"
    gone, runs = {"State": {"Running": False}}, {"State": {"Running": True}}
    for name, said, state, count in (
            ("port", "Bind for 0.0.0.0:%d failed: port is already allocated", gone, 3),
            ("port", b"address 0.0.0.0:%d is already in use\n", gone, 3),
            ("port", b"%s\n" % (b"x" * 290) * 20 + uvicorn, gone, 3),
            ("port", uvicorn, runs, 1),
            ("port", b"address 0.0.0.0:1%d0 is already in use\n", gone, 1),
            ("VSCODE_PORT", bridge, gone, 3),
            ("APP_PORT_2", "listen tcp4 0.0.0.0:%d: bind: address already in use", gone, 3),
            (None, "Conflict. The container name \"x\" is already in use by container \"y\"", gone, 1)):
        tried = []

        def create(body):
            tried.append(dict(e.split("=", 1) for e in json.loads(body)["Env"]).get(name))
            return (201, {"Id": "0123abcd"}) if name else (409, {"message": said})

        def start(_):
            return (204, b"") if isinstance(said, bytes) else (500, {"message": said.replace("%d", tried[-1])})

        def logs(_):
            text = said.replace(b"%d", tried[-1].encode())
            return 200, struct.pack(">BxxxI", 2, len(text)) + text

        with Hostile() as h:
            os.unlink(h.path("state", "default.json"))
            h.answers = [("/containers/create", create), ("/start", start), ("/logs", logs),
                         ("0123abcd/json", (200, state)), ("/containers/0123abcd", (204, b""))]
            done = h("up")
            reports = re.findall(r"another program took port (\d+) before", done.stderr)
            equal((done.returncode != 0, len(tried), reports), (True, count, tried[:2] if count > 1 else []),
                  done.stderr)
            equal(len(set(tried)), len(tried), tried)


def with_kit(h):
    h.env["HANDRAIL_IMAGE_KIT"] = h.path("kit")
    subprocess.run([os.path.join(SRC, "runtime-image/mkkit"), SRC, h.path("kit")], check=True)
    for name in ("src", "t", "doc", "man", "www", "packaging"):  # a build reads them all, to no end here
        shutil.rmtree(h.path("kit", "runtime", name))


def builds():
    lines = ({"stream": "step\n"}, {"status": "some"}, {"error": "some"})
    with Hostile() as h:
        with_kit(h)
        for line in lines:
            for said in [line] + list(wrong(line)):
                # the base is not here, and its registry says this
                h.answers = [("/images/create", (200, json.dumps(said).encode() + b"\n"))]
                h.survives(said, "image", "build", "-b", "x:1", "-d")
        for said in wrong(CONTAINER):
            h.answers = [("/images/", (200, said))]
            h.survives(said, "image", "build", "-b", "x:1", "-d")


def many_arguments_of_a_build():
    """None of them is left out."""
    with Hostile() as h:
        with_kit(h)
        args = ["--add-host=h%d:10.0.0.1" % i for i in range(33)]
        h.env["SANDBOX_RUNTIME_EXTRA_BUILD_ARGS"] = json.dumps(args[:32])
        equal("at most" in h("image", "build", "-b", "x:1", "-d").stderr, False)
        h.env["SANDBOX_RUNTIME_EXTRA_BUILD_ARGS"] = json.dumps(args)
        h.fails(1, "at most 32 entries", "image", "build", "-b", "x:1", "-d")


def observations():
    each("/execute_action", RAN, ("run", "x"), ("run", "-j", "x"))
    each("/execute_action", READ, ("read", "a"))


def answers_of_the_server():
    each("/list_files", ["a", "b/"], ("ls",))
    page = {"path": "/x", "entries": [{"name": "a", "type": "file"}], "next": None, "unnamed": 0}
    each("/handrail/v1/files", page, ("ls", "/x"))
    with Hostile() as h:
        h.answers = [("/handrail/v1/files", (200, dict(page, next="a")))]
        h.fails(1, "is not a page of names", "ls", "/x")
        h.answers = [("/handrail/v1/files", (403, {"detail": "[Errno 13] Permission denied: '/x'"})),
                     ("/list_files", (200, []))]
        h.fails(1, "handrail: Permission denied: '/x'", "ls", "/x")
        # servers that are older: without names of any bytes, and without pages
        h.answers = [("/handrail/v1/files", (200, dict(page, entries=[{"name": "a%41"}], unnamed=2)))]
        done = h("ls", "/x")
        equal((done.returncode, done.stdout, "2 names" in done.stderr), (0, "a%41\n", True), done)
        h.answers = [("/list_files", (200, []))]
        done = h("ls", "/x")
        equal((done.returncode, done.stdout, "cannot list it" in done.stderr), (0, "", True), done)
        h.answers = [("/handrail/v1/stat", (200, {"type": None})), ("/list_files", (200, []))]
        h.fails(3, "there is no file or directory /x in the sandbox", "ls", "/x")
    with Hostile() as h:
        # neither a success nor a failure without a word
        for path, said, words in (
                ("/execute_action", b"{}", ("run", "x")),
                ("/execute_action", b'{"observation":7,"content":"x"}', ("run", "x")),
                ("/execute_action", b'{"content":"x"}', ("read", "a")), ("/list_files", b"[", ("ls",))):
            h.answers = [(path, (200, said))]
            h.fails(1, "the server's", *words)
    each("/vscode/connection_token", {"token": "t"}, ("url", "-j"), ("url",))
    with Hostile() as h:
        for said in [{"detail": "some"}] + list(wrong({"detail": "some"})):
            h.answers = [("/", (500, said))]
            h.survives(said, "run", "x")


def nothing_else_runs():
    """A command that has not reached its shell yet is not said to wait for another one."""
    for commands, said in (([], False), ([{"id": 7, "state": "running", "key": "x:other:1", "length": 3}], True)):
        looked = threading.Event()

        def output(_, looked=looked):
            looked.set()
            return 200, b""

        def action(_, looked=looked):
            return (200, RAN) if looked.wait(PATIENCE) else (500, {"detail": "nobody looked"})

        with Hostile() as h:
            h.answers = [("/handrail/v1/session", (200, {"output": {"end": 0}})),
                         ("/handrail/v1/commands", (200, {"commands": commands})),
                         ("/handrail/v1/output", output), ("/execute_action", action)]
            done = h("run", "x")
            equal((done.returncode, "another command runs" in done.stderr), (3, said), done.stderr)


def not_utf8():
    """One byte of another program's text that is no UTF-8 takes neither the text nor what comes with it along."""
    latin, shown = b"caf\xe9", "caf\ufffd"
    with Hostile() as h:
        h.answers = [("/images/json", (500, b'{"message":"%s"}' % latin))]
        h.fails(1, shown, "image", "ls")
        h.answers = [("/images/json", (200, json.dumps([IMAGE]).encode().replace(b"}}]", b',"by":"%s"}}]' % latin)))]
        equal("one" in h.ok("image", "ls"), True)
        h.answers = [("/execute_action", (200, json.dumps(RAN).encode().replace(b"text", latin)))]
        equal((h("run", "x").stdout, h("run", "x").returncode), (shown + "\n", 3))
        h.answers = [("/execute_action", (500, b'{"detail":"%s"}' % latin))]
        h.fails(1, shown, "run", "x")
        h.answers = [("/list_files", (200, b'["%s"]' % latin))]
        equal(h.ok("ls"), shown + "\n")
        h.answers = [("/vscode/connection_token", (200, b'{"token":"t","by":"%s"}' % latin))]
        equal("tkn=t" in h.ok("url"), True)
    with Hostile() as h:
        os.unlink(h.path("state", "default.json"))
        h.env["SANDBOX_VSCODE_PORT"] = "40001"
        h.answers = [("/images/create", (200, b'{"error":"%s"}\n' % latin)),
                     ("/containers/create", (404, {"message": "No such image: r/x:one"}))]
        h.fails(3, shown, "up")
        with_kit(h)
        equal(shown in h("image", "build", "-b", "x:1", "-d").stderr, True)


def git_views():
    """JSON in a text in JSON."""
    def in_text(said):
        return dict(RAN, content=json.dumps(said), extras={"metadata": {"exit_code": 0}})

    each("/execute_action", [{"status": "M", "path": "a"}], ("repo", "changes"), ("repo", "changes", "-j"),
         wrap=in_text)
    each("/execute_action", {"original": "a", "modified": "a"}, ("repo", "diff", "a"), wrap=in_text)


def archives():
    """Directories and plain files come out of one, without what gives rights."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as z:
        for name, mode, content in (
                ("plain", stat.S_IFREG | 0o644, "1"), ("program", stat.S_IFREG | 0o6755, "2"),
                ("link", stat.S_IFLNK | 0o777, "/etc/passwd"), ("up", stat.S_IFLNK | 0o777, ".."),
                ("up/escaped", stat.S_IFREG | 0o644, "3"), ("../escaped", stat.S_IFREG | 0o644, "4"),
                ("/tmp/escaped", stat.S_IFREG | 0o644, "5"), ("fifo", stat.S_IFIFO | 0o644, ""),
                ("device", stat.S_IFCHR | 0o644, ""), ("folder/", stat.S_IFDIR | 0o2777, "")):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            # Info-ZIP's owner: root
            info.extra = b"ux\x0b\x00\x01\x04" + bytes(4) + b"\x04" + bytes(4)
            z.writestr(info, content)
    with Hostile() as h:
        h.answers = [("/download_files", (200, raw.getvalue()))]
        h.ok("get", "/x", h.path("out"))
        found = {}
        for top, folders, files in os.walk(h.path("out")):
            for name in folders + files:
                path = os.path.join(top, name)
                equal(os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)), False, path)
                found[os.path.relpath(path, h.path("out"))] = stat.filemode(os.lstat(path).st_mode)
        found.pop("fifo", None)  # libarchive may take it for a plain file
        equal(found, {"plain": "-rw-r--r--", "program": "-rwxr-xr-x", "folder": "drwxrwxrwx", "up": "drwxr-xr-x",
                      "up/escaped": "-rw-r--r--"})
        equal(os.path.exists(h.path("escaped")) or os.path.exists("/tmp/escaped"), False)
        for said in (b"", b"PK", raw.getvalue()[:60], raw.getvalue()[:-30], b"x" * 1000):
            h.answers = [("/download_files", (200, said))]
            h.survives(said, "get", "/x", h.path("other"))
            shutil.rmtree(h.path("other"), ignore_errors=True)


def records():
    """Damaged ones: by a full disk, another version, a hand."""
    with Hostile() as h:
        with open(h.path("state", "default.json")) as f:
            good = json.load(f)
        for said in wrong(good):
            with open(h.path("state", "default.json"), "w") as f:
                json.dump(said, f)
            h.survives(said, "ps")
            h.survives(said, "url", "-j")
        os.unlink(h.path("state", "default.json"))


def ports_of_programs():
    """What the Engine is asked to bind, and does not: ports that a client of OpenHands V1 names, and others."""
    asked = []

    def create(body):
        asked.append(json.loads(body))
        return 500, {"message": "no"}

    with Hostile() as h:
        os.unlink(h.path("state", "default.json"))
        h.answers = [("/containers/create", create), ("/images/", (200, IMAGE))]
        for value in ("12000", "65536"):
            h.env["SANDBOX_RUNTIME_STARTUP_ENV_VARS"] = json.dumps({"WORKER_1": value})
            equal(h("up").returncode, 1)
            env = dict(e.split("=", 1) for e in asked[-1]["Env"])
            first, second = env["APP_PORT_1"], env["APP_PORT_2"]
            bound = asked[-1]["HostConfig"]["PortBindings"]
            inside = value if value == "12000" else first
            equal((bound[inside + "/tcp"][0]["HostPort"], bound[second + "/tcp"][0]["HostPort"]), (first, second))
            equal((sorted(asked[-1]["ExposedPorts"]), len(bound)), (sorted(bound), 3))
        # one that is published already keeps its publication
        h.env["SANDBOX_RUNTIME_STARTUP_ENV_VARS"] = json.dumps({"WORKER_1": "12000", "WORKER_2": "12000"})
        equal(h("up").returncode, 1)
        env = dict(e.split("=", 1) for e in asked[-1]["Env"])
        bound = asked[-1]["HostConfig"]["PortBindings"]
        first, second = env["APP_PORT_1"], env["APP_PORT_2"]
        equal((len(bound), bound["12000/tcp"][0]["HostPort"], bound[second + "/tcp"][0]["HostPort"]),
              (3, first, second))


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (errors, images, versions, containers, lists, events, preflights, logs, pulls, pull_of_one_tag,
                 ports_that_are_taken, builds, many_arguments_of_a_build, observations, answers_of_the_server,
                 nothing_else_runs, not_utf8, git_views, archives, records, ports_of_programs):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
