#!/usr/bin/env python3
"""Images that handrail-fleetd builds for its clients, with an Engine that is made up: it answers a ping, says what
images there are, and holds a build back for as long as a test wants."""

import base64
import gzip
import http.server
import io
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402


IMAGE_ID = "sha256:" + "0123456789abcdef" * 4


class Engine(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        engine = self
        self.images, self.builds, self.limits, self.gate, self.fails = {}, [], [], threading.Event(), False
        self.over = threading.Event()
        self.gate.set()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def say(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path = urllib.parse.unquote(self.path).split("?")[0]
                if path.endswith("/_ping"):
                    self.say(200, b"OK")
                elif "/images/" in path and path.endswith("/json"):
                    image = engine.find(path.split("/images/")[1][:-len("/json")])
                    self.say(200 if image else 404, json.dumps(image or {"message": "No such image"}).encode())
                elif path.endswith("/events"):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.flush()
                    engine.over.wait()
                    self.close_connection = True
                else:
                    self.say(404, b"{}")

            do_HEAD = do_GET

            def do_POST(self):
                body = b""
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    while True:
                        n = int(self.rfile.readline(), 16)
                        body += self.rfile.read(n)
                        self.rfile.readline()
                        if n == 0:
                            break
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
                engine.builds.append((query["t"], body))
                engine.limits.append(query)
                engine.gate.wait()
                if select.select([self.connection], [], [], 0)[0]:  # nobody waits for it any more
                    self.close_connection = True
                    return
                if engine.fails:
                    lines = [{"stream": "Step 1/2 : FROM x\n"}, {"error": "no such base", "errorDetail": {}}]
                else:
                    lines = [{"stream": "Step 1/2 : FROM x\n"}, {"stream": "done\n"}]
                    for name in query["t"]:
                        engine.images[name] = {"Created": "2026-01-01T00:00:00Z", "Size": len(body), "Id": IMAGE_ID}
                self.say(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines))

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.gate.set()
        self.over.set()
        self.shutdown()
        self.server_close()

    def find(self, what):
        """By a name, or by digits that an id begins with."""
        name = what[len("docker.io/"):] if what.startswith("docker.io/") else what
        return self.images.get(name) or next((i for i in self.images.values() if i["Id"].startswith(what) or
                                              i["Id"].startswith("sha256:" + what)), None)

    def handle_error(self, *unused):
        pass  # a helper that was killed


class Builder(Fleet):
    def __init__(self, engine, *options):
        super().__init__("--registry-prefix", "reg.example/fleet/", "--builds", *options, kind="docker",
                         DOCKER_HOST="tcp://127.0.0.1:%d" % engine.server_address[1])

    def prefix(self, key=None):
        return self.call("GET", "/registry_prefix", key=key)[1]["registry_prefix"]

    def status(self, build, key=None, logs=""):
        return self.call("GET", "/build_status?build_id=%s%s" % (build, logs), key=key)

    def until_over(self, build, key=None):
        return self.until(lambda: self.status(build, key)[1], lambda s: s["status"] not in ("QUEUED", "WORKING"))

    def begin(self, key, body, length=1000000):
        """A request of which more is to come."""
        s = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        s.sendall(("POST /build HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\nContent-Length: %d\r\nContent-Type: "
                   "multipart/form-data; boundary=bOuNd\r\n\r\n" % (key, length)).encode() + body)
        return s

    def build(self, *names, key=None, context=None, **headers):
        return self.call("POST", "/build", form(names, context), key=key,
                         Content_Type="multipart/form-data; boundary=bOuNd", **headers)


def folder(dockerfile="FROM scratch\n", name="./Dockerfile", compress=True):
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w") as tar:
        about = tarfile.TarInfo(name)
        about.size = len(dockerfile)
        tar.addfile(about, io.BytesIO(dockerfile.encode()))
    return gzip.compress(to.getvalue(), mtime=0) if compress else to.getvalue()


def form(names, context=None):
    """As the original's client sends it."""
    body = b'--bOuNd\r\nContent-Disposition: form-data; name="context"; filename="context.tar.gz"\r\n' \
           b"Content-Type: application/x-tar\r\n\r\n" + (base64.b64encode(folder()) if context is None else context)
    for n, name in enumerate(names):
        body += b'\r\n--bOuNd\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s' % (
            b"tags" if n else b"target_image", name.encode())
    return body + b"\r\n--bOuNd--\r\n"


def what_a_client_does():
    with Engine() as engine, Builder(engine, "--memory-mb", "1024", "--cpu-percent", "150") as f:
        prefix = f.prefix()
        target, tag = prefix + "/runtime:source", prefix + "/runtime:lock"
        equal(f.call("GET", "/image_exists?image=" + target)[1], {"exists": False})
        status, answer = f.build(target, tag)
        equal(status, 200, repr(answer))
        s = f.until_over(answer["build_id"])
        equal((s["status"], s["image"], s["error"]), ("SUCCESS", target, None))
        equal(engine.builds, [([target, tag], folder())], "the folder itself")
        equal(f.call("GET", "/image_exists?image=" + target)[1]["exists"], True)
        equal(f.status(answer["build_id"], logs="&logs=true")[1]["log"], "Step 1/2 : FROM x\ndone\n")
        # a tar as it is, whose first bytes are letters of base64
        tar = folder(name="Dockerfile", compress=False)
        plain = f.until_over(f.build(prefix + "/runtime:p", context=tar)[1]["build_id"])
        equal((plain["status"], engine.builds[-1][1]), ("SUCCESS", tar))
        equal([engine.limits[-1].get(n) for n in ("memory", "cpuperiod", "cpuquota")],
              [["1073741824"], ["100000"], ["150000"]])
        engine.fails = True
        failed = f.until_over(f.build(prefix + "/runtime:b")[1]["build_id"])
        equal((failed["status"], failed["error"]), ("FAILURE", "no such base"))
        left = {n: os.listdir(f.path("fleet", "builds", n)) for n in os.listdir(f.path("fleet", "builds"))}
        equal(sorted(map(sorted, left.values())), [["build.json", "log"]] * 3, "no folder is kept")
        for wrong, want in ((form([target], b"?"), 400), (form([]), 400), (form([target] + ["x"] * 20), 400),
                            (form([target.split(":")[0]]), 400), (form([prefix + "/a b:c"]), 400), (b"", 400),
                            (form([target], b""), 400), (form(["other/runtime:b"]), 400), (b"--bOuNd", 400)):
            equal(f.call("POST", "/build", wrong, Content_Type="multipart/form-data; boundary=bOuNd")[0], want,
                  repr(wrong[-60:]))
        equal(f.call("POST", "/build", b"{}", Content_Type="application/json")[0], 400)
        equal(len(os.listdir(f.path("fleet", "builds"))), 3, "nothing is left of these")


def tenants():
    """What one key builds no other one sees, starts or replaces."""
    with Engine() as engine, Builder(engine) as f:
        a, b, reader = f.make_key("a"), f.make_key("b"), f.make_key("r", scope="read")
        mine = f.prefix(a) + "/runtime:x"
        equal(f.prefix(a) == f.prefix(b), False)
        build = f.build(mine, key=a)[1]["build_id"]
        equal(f.until_over(build, a)["status"], "SUCCESS")
        equal(f.status(build, b)[0], 404)
        for key, want in ((b, 400), (reader, 403), ("", 401), ("x", 401)):
            equal(f.build(mine, key=key)[0], want)
        for name in (mine, "docker.io/" + mine):
            equal(f.call("GET", "/image_exists?image=" + name, key=b)[1], {"exists": False}, name)
            equal(f.call("POST", "/start", {"session_id": "s", "image": name}, key=b)[0], 400, name)
        equal(f.call("GET", "/image_exists?image=" + mine, key=a)[1]["exists"], True)
        equal(len(engine.builds), 1)
        for name in (IMAGE_ID, IMAGE_ID[:15], IMAGE_ID[7:], IMAGE_ID[7:19], "0", "docker.io/012"):
            equal(engine.find(name) is None, name[0] == "d", "the Engine's " + name)
            for key in a, b:
                equal(f.call("GET", "/image_exists?image=" + name, key=key)[1], {"exists": False}, name)
                for odd in name, " " + name, name + "\n", "'%s'" % name:
                    equal(f.call("POST", "/start", {"session_id": "s", "image": odd}, key=key)[0], 400, odd)
        # what the operator put below the prefix himself is for everybody
        engine.images["reg.example/fleet/kali:1"] = dict(engine.images[mine])
        for name, want in (("kali:1", True), (mine.split("/")[-2][:-1] + "/runtime:x", False)):
            equal(f.call("GET", "/image_exists?image=reg.example/fleet/" + name, key=b)[1]["exists"], want, name)
        r = subprocess.run([f.env["HANDRAIL_FLEETD"], "--builds", "--registry-prefix", "r/" + "x" * 290], env=f.env,
                           stderr=subprocess.PIPE, universal_newlines=True)
        equal((r.returncode, "up to 200 bytes" in r.stderr), (2, True), r.stderr)


def joined_bounded_and_killed():
    """Who asks for what is being built joins; a full queue is told; a killed service builds on."""
    with Engine() as engine, Builder(engine) as f:
        a, b = f.make_key("a"), f.make_key("b")
        engine.gate.clear()
        names = [f.prefix(a) + "/runtime:%d" % n for n in range(5)]
        ids = [f.build(n, key=a)[1]["build_id"] for n in names[:3]]
        equal(f.build(names[0], key=a)[1]["build_id"], ids[0], "joined")
        ids.append(f.build(names[0], names[3], key=a)[1]["build_id"])
        equal(len(set(ids)), 4, "other names are another build")
        equal((f.build(names[4], key=a)[0], f.head["Retry-After"]), (429, "30"))
        other = f.build(f.prefix(b) + "/runtime:0", key=b)[1]["build_id"]
        # bodies that come slowly: two of a key, and nobody else waits for them
        slow = []
        for _ in range(2):
            slow.append(f.begin(b, b"--bOuNd"))
        f.until(lambda: len(os.listdir(f.path("fleet", "builds"))), lambda n: n == 7)
        equal(f.build(f.prefix(b) + "/runtime:1", key=b)[0], 429)
        equal(f.call("GET", "/list", key=b)[0], 200)
        for s in slow:
            s.close()
        f.until(lambda: len(os.listdir(f.path("fleet", "builds"))), lambda n: n == 5)
        f.until(lambda: engine.builds, lambda made: len(made) == 2)
        f.kill()
        engine.gate.set()
        f.start()
        equal([f.until_over(i, a)["status"] for i in ids], ["SUCCESS"] * 4)
        equal(f.until_over(other, b)["status"], "SUCCESS")
        equal(set(names[:4]) < set(engine.images), True)


def kept():
    """What is said of a key's builds others do not take away; what cannot be read now is left alone."""
    with Engine() as engine, Builder(engine) as f:
        a, b = f.make_key("a"), f.make_key("b")
        number = {key: i for i, key in f.owners.items()}
        f.kill()

        def record(build, text):
            os.mkdir(f.path("fleet", "builds", build))
            with open(f.path("fleet", "builds", build, "build.json"), "w") as out:
                out.write(text)

        for n in range(106):
            record("%032x" % n, json.dumps({"key": number[a if n else b], "created": 1 + n, "status": "FAILURE",
                                            "error": "x", "names": ["x:1"]}))
        record("d" * 32, '{"key":')
        os.mkdir(f.path("fleet", "builds", "e" * 32))
        os.makedirs(f.path("fleet", "builds", "f" * 32, "build.json"))
        f.start()
        f.until_over(f.build(f.prefix(a) + "/runtime:0", key=a)[1]["build_id"], a)
        f.until(lambda: len(os.listdir(f.path("fleet", "builds"))), lambda n: n == 102)
        equal(f.status("0" * 32, b)[1]["status"], "FAILURE")
        equal([f.status("%032x" % n, a)[0] for n in (6, 7)], [404, 200])
        equal(os.path.isdir(f.path("fleet", "builds", "f" * 32)), True)


def slow_or_revoked():
    """A body that trickles holds its place for so long alone; a key that was revoked meanwhile builds nothing."""
    with Engine() as engine, Builder(engine, "--build-upload", "1") as f:
        with f.begin(f.key, b"--bOuNd\r\nX: ") as s:
            s.settimeout(PATIENCE)
            for _ in range(int(PATIENCE * 10)):
                if select.select([s], [], [], 0.1)[0]:
                    break
                s.sendall(b"x")
            equal(s.recv(4096).split()[1], b"408")
        f.until(lambda: os.listdir(f.path("fleet", "builds")), lambda left: left == [])
    with Builder(engine) as f:
        key = f.make_key("a")
        body = form([f.prefix(key) + "/runtime:x"])
        with f.begin(key, body[:-1], len(body)) as s:
            f.until(lambda: os.listdir(f.path("fleet", "builds")), lambda left: len(left) == 1)
            number = next(i for i, k in f.owners.items() if k == key)
            equal(f.call("POST", "/handrail/v1/keys/revoke", {"id": number})[0], 200)
            s.sendall(body[-1:])
            equal(s.recv(4096).split()[1], b"401")
        f.until(lambda: os.listdir(f.path("fleet", "builds")), lambda left: left == [])
        equal(engine.builds, [])


def full_disk():
    """Nothing is taken that fills it; a build that ends on a full one gives its folder's room back."""
    if os.getuid() != 0:
        raise Skip("needs root: it mounts a small file system")
    with Engine() as engine:
        on_a_full_disk(engine, Builder(engine))


def on_a_full_disk(engine, f):
    kept = f.path("kept")
    shutil.copytree(f.dir, kept)
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m,mode=711", "none", f.dir], stderr=subprocess.PIPE,
                       universal_newlines=True)
    if r.returncode != 0:
        shutil.rmtree(f.top)
        raise Skip("no file system may be mounted here: " + r.stderr.strip())
    try:
        shutil.copytree(kept, f.dir, dirs_exist_ok=True)
        os.chmod(f.dir, 0o711)
        with f:
            names = [f.prefix() + "/runtime:%d" % n for n in range(2)]
            engine.gate.clear()
            build = f.build(names[0], context=b"\x1f\x8b" + bytes(1 << 20))[1]["build_id"]
            f.until(lambda: engine.builds, lambda made: len(made) == 1)
            with open(os.path.join(f.dir, "fill"), "wb", buffering=0) as fill:
                for room in (1 << 20, 4096):
                    try:
                        while fill.write(b"x" * room) == room:
                            pass
                    except OSError:
                        pass
            equal((f.build(names[1])[0], f.head["Retry-After"]), (503, "2"))
            equal(os.listdir(f.path("fleet", "builds")), [build])
            engine.gate.set()
            equal(f.until_over(build)["status"], "SUCCESS")
            equal(sorted(os.listdir(f.path("fleet", "builds", build))), ["build.json", "log"])
            os.unlink(os.path.join(f.dir, "fill"))
            f.kill()
            f.start()
            equal((f.status(build)[1]["status"], len(engine.builds)), ("SUCCESS", 1))
            equal(f.until_over(f.build(names[1])[1]["build_id"])["status"], "SUCCESS")
    finally:
        subprocess.run(["umount", "-l", f.dir], check=True)
        shutil.rmtree(f.top, ignore_errors=True)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (what_a_client_does, tenants, joined_bounded_and_killed, kept, slow_or_revoked, full_disk):
        if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
            tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
