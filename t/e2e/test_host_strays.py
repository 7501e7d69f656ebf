#!/usr/bin/env python3
"""Containers that an Engine makes and nobody hears of: who asked for one was killed, or the answer was cut. None is
left, and none of somebody else's is touched. Those that wait in a pool outlive an Engine that fails. The Engine is a
stand-in, which makes nothing."""

import http.server
import json
import os
import signal
import socketserver
import struct
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.apiserver import Stub  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

PREFIX = "openhands-runtime-"
LABEL = "handrail.owner"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, *unused):
        """Who was killed reads no answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*unused)


class Engine:
    """how: what becomes of the next creates: "refused", "cut" (made, without an answer), "lost" (never made), or
    "late": made when somebody listens for it."""

    def __init__(self, path):
        self.how, self.there, self.late, self.asked, self.made = "late", {}, {}, threading.Event(), 0
        self.streams, self.again = 0, threading.Event()
        self.bodies, self.listened, self.lock, self.changed = [], [], threading.Lock(), threading.Event()
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                at = urllib.parse.urlsplit(self.path)
                query = {k: v[0] for k, v in urllib.parse.parse_qs(at.query).items()}
                said = engine.route(self.command, at.path, query, body)
                if said is None:
                    self.close_connection = True
                    return
                text = said[1] if isinstance(said[1], bytes) else b"" if said[0] == 204 else \
                    json.dumps(said[1]).encode()
                self.send_response(said[0])
                self.send_header("api-version", "1.41")
                if said[0] != 204:
                    self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = answer

        self.server = Server(path, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def make(self, name, labels):
        self.made += 1
        self.there[name] = {"Id": "%064x" % self.made, "Names": ["/" + name], "State": "created", "Labels": labels}

    def route(self, method, path, query, body):
        with self.lock:
            what = path.split("/containers/")[-1].split("/")
            if path == "/_ping":
                return 200, "OK"
            if path.endswith("/events"):
                return self.events(query)
            if path.endswith("/containers/json"):
                label = json.loads(query["filters"])["label"][0]
                return 200, [c for c in self.there.values() if label in c["Labels"]]
            if method == "POST" and what == ["create"]:
                return self.create(query["name"], json.loads(body))
            if method == "DELETE":
                for name, c in list(self.there.items()):
                    if what[0] in (name, c["Id"]):
                        del self.there[name]
                        self.changed.set()
                        return 204, None
            return 404, {"message": "No such container"}

    def create(self, name, body):
        self.bodies.append(body)
        if self.how == "refused":
            return 400, {"message": "no such thing is made"}
        if self.how == "cut":
            self.make(name, body["Labels"])
        if self.how == "late":
            self.late[name] = body["Labels"]
            self.asked.set()
            self.lock.release()
            self.hold.wait(PATIENCE)
            self.lock.acquire()
        return None

    hold = threading.Event()  # never set: who asks is killed

    def events(self, query):
        filters = json.loads(query["filters"])
        if "create" not in filters.get("event", []):
            self.streams += 1
            if self.streams == 2:
                self.again.set()
            return 200, {}
        self.listened.append((filters["container"], float(query["until"]) - float(query["since"])))
        for name in filters["container"]:
            if name in self.late:
                self.make(name, self.late.pop(name))
                return 200, {"status": "create", "Actor": {"Attributes": {"name": name}}}
        return 200, ""


class Pool(Engine):
    """Its containers are made, started, paused and renamed; their server is a stub. fault(method, what, container):
    an answer in place of the right one, "cut": none; None: the right one."""

    def __init__(self, path):
        super().__init__(path)
        self.stubs, self.fault = [], lambda *unused: None

    def close(self):
        super().close()
        for stub in self.stubs:
            stub.end()

    def route(self, method, path, query, body):
        name, _, what = path.split("/containers/")[-1].partition("/")
        with self.lock:
            c = next((c for n, c in self.there.items() if name in (n, c["Id"])), None)
            said = self.fault(method, what, c) if c is not None else None
            if said is not None:
                return said if said != "cut" else None
            if c is not None:
                return self.one(method, what, c, query)
        return super().route(method, path, query, body)

    def create(self, name, body):
        self.make(name, body["Labels"])
        c = self.there[name]
        c["Env"] = body["Env"]
        self.stubs.append(Stub(int(next(e for e in c["Env"] if e.startswith("port="))[5:])))
        return 201, {"Id": c["Id"]}

    def one(self, method, what, c, query):
        states = {"start": "running", "unpause": "running", "pause": "paused", "stop": "exited"}
        if method == "DELETE":
            del self.there[c["Names"][0][1:]]
        elif what == "json":
            return 200, {"Id": c["Id"], "Name": c["Names"][0], "Config": {"Env": c["Env"], "Labels": c["Labels"]},
                         "State": {"Status": c["State"], "Running": c["State"] == "running"}}
        elif what == "logs":
            line = b"handraild ready: listening on x\n"
            return 200, b"\1\0\0\0" + struct.pack(">I", len(line)) + line
        elif what == "rename":
            if query["name"] in self.there:
                return 409, {"message": "the name is in use"}
            del self.there[c["Names"][0][1:]]
            c["Names"] = ["/" + query["name"]]
            self.there[query["name"]] = c
        else:
            c["State"] = states[what]
        return 204, None


def around(make, engine_of=Engine):
    """A user or a service, and the Engine."""
    def decorator(test):
        def run():
            h = make()
            engine = engine_of(h.path("socket"))
            h.env["DOCKER_HOST"] = "unix://" + h.path("socket")
            try:
                with h:
                    test(h, engine)
            finally:
                engine.close()
        run.__name__ = test.__name__
        return run
    return decorator


def user():
    return Host(RUNTIME="docker", SANDBOX_RUNTIME_CONTAINER_IMAGE="r/x:one")


def service():
    return Fleet("--image", "r/x:one", kind="docker")


def records(h):
    return [n for n in os.listdir(h.path("state")) if n.endswith(".json")]


@around(user)
def killed(h, engine):
    """It is made when nobody is left who asked for it, after its end was asked for."""
    up = h.popen("up", "-n", "x")
    equal(engine.asked.wait(PATIENCE), True, "it is asked for")
    up.kill()
    up.communicate()
    equal(records(h), ["x.json"], "a record leads to it")
    h.ok("down", "-n", "x")
    equal((engine.listened, engine.late, engine.there), ([([PREFIX + "x"], 10.0)], {}, {}), "it is waited for")
    equal(records(h), [])


@around(user)
def a_stream_that_ends(h, engine):
    """As when the Engine is started anew: who waits for events listens again."""
    engine.how = "cut"
    h.fails(1, "", "up", "-n", "x")
    record = h.record("x")
    del record["begun"]  # as of one that has come up
    with open(h.path("state", "x.json"), "w") as f:
        json.dump(record, f)
    events = h.popen("events")
    try:
        equal(engine.again.wait(PATIENCE), True)
    finally:
        events.kill()
        events.communicate()
    h.ok("down", "-n", "x")


@around(user)
def an_answer_that_is_cut(h, engine):
    engine.how = "cut"
    h.fails(1, "", "up", "-n", "x")
    equal((list(engine.there), records(h)), ([PREFIX + "x"], ["x.json"]))
    h.ok("down", "-n", "x")
    equal((engine.there, engine.listened, records(h)), ({}, [], []), "it was there: nothing to wait for")
    engine.how = "lost"
    h.fails(1, "", "up", "-n", "x")
    h.ok("down", "-n", "x")
    equal((len(engine.listened), records(h)), (1, []), "the Engine says when it is late enough")


@around(user)
def refused(h, engine):
    """There is nothing to find then, and nothing recorded."""
    engine.how = "refused"
    h.env["SANDBOX_DOCKER_RUNTIME_KWARGS"] = '{"labels": {"own": "label", "%s": "forged"}}' % LABEL
    h.fails(1, "no such thing is made", "up", "-n", "x")
    equal((records(h), sorted(engine.bodies[-1]["Labels"])), ([], [LABEL, "own"]), "labels of the user stay")
    label = engine.bodies[-1]["Labels"][LABEL]
    os.rename(h.path("state"), h.path("before"))
    h.fails(1, "no such thing is made", "up", "-n", "x")
    equal(len({"forged", label, engine.bodies[-1]["Labels"][LABEL]}), 3, "another directory of that name")
    h.env["SANDBOX_DOCKER_RUNTIME_KWARGS"] = '{"labels": ["own"]}'
    h.fails(1, "no such thing is made", "up", "-n", "x")
    equal(engine.bodies[-1]["Labels"], ["own"], "the Engine's to refuse")


@around(user)
def gpus(h, engine):
    """As the original's client asks an Engine for them; other kinds say that they have none."""
    engine.how = "refused"
    for named, count, ids in ((None, -1, []), ("0,2", 0, ["0", "2"]), ("0, 2,", 0, ["0", " 2"]), ("", -1, [])):
        more = ["-s", "sandbox.cuda_visible_devices=" + named] if named is not None else []
        done = h("up", "-s", "sandbox.enable_gpu=true", *more)
        equal(engine.bodies[-1]["HostConfig"]["DeviceRequests"],
              [{"Driver": "", "Count": count, "DeviceIDs": ids, "Capabilities": [["gpu"]], "Options": {}}])
        equal("has no effect" in done.stderr, False, done.stderr)
    done = h("up", "-s", "sandbox.cuda_visible_devices=0")
    equal(("DeviceRequests" in engine.bodies[-1]["HostConfig"], "set sandbox.enable_gpu too" in done.stderr),
          (False, True), done.stderr)
    for key, value in (("enable_gpu", "true"), ("cuda_visible_devices", "0"), ("use_host_network", "true"),
                       ("additional_networks", "['n']"), ("docker_runtime_kwargs", "{'init': True}")):
        done = h("up", "-r", "cli", "-n", "c", "-s", "sandbox.%s=%s" % (key, value))
        equal('sandbox.%s is set but has no effect: the back-end cli does not support it' % key in done.stderr, True,
              done.stderr)
        h.ok("down", "-n", "c")


@around(user)
def listed(h, engine):
    """By the label: those that this state directory made, or its pool; the others are only shown."""
    engine.how = "refused"
    h.fails(1, "", "up", "-n", "x")
    label = engine.bodies[-1]["Labels"][LABEL]
    engine.make(PREFIX + "stray", {LABEL: label})
    h.fails(1, "", "pool", "1")
    engine.make(PREFIX + "warm-1", engine.bodies[-1]["Labels"])
    equal(engine.bodies[-1]["Labels"] != {LABEL: label}, True)
    others = [PREFIX + "service", PREFIX + "longer", "renamed", PREFIX + "unlabelled"]
    engine.make(others[0], {LABEL: label[:-1] + chr(ord(label[-1]) ^ 1)})
    engine.make(others[1], {LABEL: label + "2"})
    engine.make(others[2], {LABEL: label})
    engine.make(others[3], {"other": label})
    rows = json.loads(h.ok("ps", "--all", "--json"))
    equal(sorted((r["sid"], r["stray"], r["ours"], r["state"]) for r in rows), [
        ("longer", True, False, "created"), ("service", True, False, "created"), ("stray", True, True, "created"),
        ("warm-1", True, True, "created")])
    with open(h.path("state", "stray.json"), "w") as f:
        json.dump({"sid": "stray", "runtime": "local", "created": 1, "backend": {}}, f)
    equal([r["sid"] for r in json.loads(h.ok("ps", "--all", "--json")) if r.get("ours")], ["warm-1"], "it is recorded")
    os.unlink(h.path("state", "stray.json"))
    h.ok("down", "--all")
    equal(sorted(engine.there), sorted(others))


@around(user)
def no_engine(h, engine):
    """Where nobody asked for that kind there need be none."""
    h.env["DOCKER_HOST"] = "unix://" + h.path("nowhere")
    for words in (("ps", "--all"), ("down", "--all")):
        h.ok(*words)
        h.fails(1, "there is no Docker Engine", *words, "-r", "docker")


def helpers(f):
    return [pid for pid in process.all_pids() if "--call" in process.command_line(pid).split() and
            f.dir in process.command_line(pid)]


@around(service)
def of_a_service(f, engine):
    """Its helper is killed, and the service; neither leaves one, and those of others stay."""
    status, o = f.call("POST", "/start", {"session_id": "s"})
    equal((status, engine.asked.wait(PATIENCE)), (200, True))
    equal(len(engine.late), 1, "the Engine is at it")
    for pid in helpers(f):
        os.kill(pid, signal.SIGKILL)
    equal(engine.changed.wait(PATIENCE), True, "made late, and removed")
    equal((engine.late, engine.there), ({}, {}))
    f.until(lambda: f.call("GET", "/runtime/" + o["runtime_id"])[1]["state"], lambda s: s == "died")
    f.kill()
    label = engine.bodies[-1]["Labels"][LABEL]
    engine.make(PREFIX + "5" * 32, {LABEL: label})
    engine.make(PREFIX + "6" * 32, {LABEL: label[:-1] + chr(ord(label[-1]) ^ 1)})
    engine.make(PREFIX + "mine", {})
    engine.changed.clear()
    f.start()
    equal(engine.changed.wait(PATIENCE), True, "the one that nobody knows goes")
    f.settled()
    equal(sorted(engine.there), [PREFIX + "6" * 32, PREFIX + "mine"])


def kept(h, engine):
    """What waits: records of the pool, and names and states of its containers."""
    return (sorted(n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")),
            sorted((n, c["Id"], c["State"]) for n, c in engine.there.items() if n.startswith(PREFIX + "warm-")))


@around(user, Pool)
def waiting(h, engine):
    """No container of a pool is ended by an Engine that refuses a request, or does not answer."""
    h.ok("up", "-n", "keep")
    h.ok("pool", "2")
    was = kept(h, engine)
    equal(([s for _, _, s in was[1]], len(was[0])), (["paused"] * 2, 2), "they wait")
    for what, said, status in (
            ("rename", (409, {"message": "a refusal"}), 0), ("rename", (500, {"message": "a refusal"}), 0),
            ("rename", "cut", 1), ("unpause", (500, {"message": "a refusal"}), 0), ("unpause", "cut", 1),
            ("json", (500, {"message": "a refusal"}), 0), ("json", "cut", 1)):
        def fault(method, asked, c):
            # one of another name is asked about as well
            return said if asked == what and c["Id"] in [i for _, i, _ in was[1]] else None
        engine.fault = fault
        done = h("up")
        engine.fault = lambda *unused: None
        equal((min(done.returncode, 1), done.stderr.count("is not taken: "), kept(h, engine)),
              (status, 1 if status else 2, was), "%s: %s\n%s" % (what, said, done.stderr))
        equal(("a refusal" in done.stderr) != bool(status), True, done.stderr)
        if not status:
            equal(h.record()["backend"]["id"] in [i for _, i, _ in was[1]], False, "another one is made")
            h.ok("down", "default")
        equal(records(h), ["keep.json"], "there is no other record")
    h.ok("up")
    equal((len(kept(h, engine)[1]), h.record()["backend"]["id"] in [i for _, i, _ in was[1]]), (1, True), "then it is")


@around(user, Pool)
def open_ports(h, engine):
    """Whoever starts a container that other machines reach is told what to set."""
    said = "set sandbox.runtime_binding_address to 127.0.0.1"
    equal(said in h("up").stderr, True)
    for i, words in enumerate((("-q",), ("-s", "sandbox.runtime_binding_address=127.0.0.1"),
                               ("-s", "sandbox.use_host_network=true"))):
        done = h("up", "-n", "other-%d" % i, *words)
        equal((done.returncode, said in done.stderr), (0, False), done.stderr)
    equal(said in h("up").stderr, False, "one that is there")
    h.ok("down", "--all")


@around(user, Pool)
def renamed_without_an_answer(h, engine):
    """The container is the one that was taken where the Engine can be asked, and waits on where it cannot."""
    h.ok("up", "-n", "keep")
    h.ok("pool", "2")
    ids = [i for _, i, _ in kept(h, engine)[1]]

    def lose(silent):
        def fault(method, what, c):
            if what == "rename" and c["Id"] in ids and c["Names"][0][1:].startswith(PREFIX + "warm-"):
                engine.one(method, what, c, {"name": PREFIX + "default"})
                return "cut"
            return "cut" if what == "json" and silent and c["Id"] in ids else None
        engine.fault = fault
    lose(False)
    h.ok("up")
    first = h.record()["backend"]["id"]
    equal((first in ids, engine.there[PREFIX + "default"]["Id"], len(kept(h, engine)[1])), (True, first, 1), "taken")
    h.ok("down", "default")
    lose(True)
    h.fails(1, "is not taken: ", "up")
    equal((len(kept(h, engine)[0]), records(h)), (1, ["keep.json"]), "its record is the pool's")
    engine.fault = lambda *unused: None
    h.ok("up")
    second = h.record()["backend"]["id"]
    equal((second in ids, second != first, kept(h, engine)), (True, True, ([], [])), "it is taken by its id")
    h.ok("down", "--all")
    equal(engine.there, {}, "nothing is left")


@around(user, Pool)
def died_while_it_waited(h, engine):
    """A container that has exited and cannot be started is removed, and another one is made."""
    h.ok("up", "-n", "keep")
    h.ok("pool", "1")
    (name, id, _), = kept(h, engine)[1]
    engine.there[name]["State"] = "exited"
    engine.fault = lambda method, what, c: (500, {"message": "no"}) if what == "start" and c["Id"] == id else None
    done = h("up")
    equal((done.returncode, "is not taken: no" in done.stderr), (0, True), done.stderr)
    equal((kept(h, engine), sorted(engine.there)), (([], []), [PREFIX + "default", PREFIX + "keep"]), "it is removed")
    equal(engine.there[PREFIX + "default"]["Id"] != id, True)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (killed, an_answer_that_is_cut, a_stream_that_ends, refused, gpus, listed, no_engine, of_a_service,
                 waiting, open_ports, renamed_without_an_answer, died_while_it_waited):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
