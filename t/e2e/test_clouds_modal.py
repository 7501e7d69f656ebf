#!/usr/bin/env python3
"""The kind modal: every recorded scenario of Modal's own clients, answers that are wrong, and its life and faults
against a stand-in that runs its commands."""

import base64
import concurrent.futures
import copy
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import clouds, grpcserver, modalservice, process  # noqa: E402
from lib import protobuf as pb  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal, skip_all  # noqa: E402
from test_clouds_e2b import CloudHost, interrupted  # noqa: E402
from test_clouds_others import of_other_owners  # noqa: E402
from test_clouds_scenarios import Mutations  # noqa: E402

PYTHON = "/usr/bin/python3"
KEY, SECRET = "key-of-the-test", "secret-of-the-test"
LINE = "echo out; echo err >&2; exit 7"


# ---- recorded scenarios ----

class Recorded(grpcserver.Server):
    """Answers each method with what was recorded of it, in order."""

    def __init__(self, calls):
        super().__init__()
        self.left = {}
        for c in calls:
            name = c["request"]["path"].rsplit("/", 1)[1]
            self.left.setdefault(name, []).append(c)
            self.methods[name] = self.one_of(name)
        # where a client had it from an earlier scenario
        for name, answer in (("AuthTokenGet", [(1, "auth")]),
                             ("EnvironmentGetOrCreate", [(2, [(2, [(1, "2024.10")])])])):
            self.methods.setdefault(name, lambda r, answer=answer: iter([pb.encode(answer)]))

    def one_of(self, name):
        def answer(r):
            if not self.left[name]:
                raise grpcserver.Status(9, "there is no more of " + name)
            said = self.left[name].pop(0)["response"]
            for m in said.get("messages", []):
                yield self.here(name, base64.b64decode(m["b64"]))
            if said["grpc_status"] != 0:
                raise grpcserver.Status(said["grpc_status"], said["grpc_message"])
        return answer

    def here(self, name, b):
        """The router is at this address."""
        if name != "SandboxCreateV2":
            return b
        return pb.encode([(n, [(m, self.url if m == 2 and isinstance(w, bytes) else w) for m, w in pb.decode(v)]
                           if n == 5 and isinstance(v, bytes) else v) for n, v in pb.decode(b)])


def player(server, old, **env):
    return clouds.Player("modal", MODAL_TOKEN_ID=KEY, MODAL_TOKEN_SECRET=SECRET, MODAL_SERVER_URL=server.url,
                         **dict({"MODAL_OLD_ROUTES": "1"} if old else {}, **env))


def tree(b, inner=()):
    """Fields, those of `inner` as messages themselves."""
    return sorted(([n, tree(v) if n in inner else v] for n, v in pb.decode(b)), key=repr)


def without(fields, *numbers):
    return [f for f in fields if f[0] not in numbers]


def alike(name, ours, theirs):
    """What differs on purpose is left out, after a look at it."""
    if name == "ImageGetOrCreate":
        mine, other = [pb.get(b, 2) for b in (ours, theirs)]
        # their first layer adds what their own client needs in it
        equal([pb.text(mine, 6)], [pb.every(other, 6)[0].decode()], "the image")
        equal(without(tree(mine), 6), without(tree(other), 6, 7), "of the image")
        return without(tree(ours), 2), without(tree(theirs), 2)
    if name in ("SandboxCreate", "SandboxCreateV2"):
        mine, other = [pb.get(b, 2) for b in (ours, theirs)]
        equal([pb.decode(p)[0][0] for p in pb.every(pb.get(mine, 20), 1)], [1], "ports")
        # entry point, layer, secret, directory, ports: of their sandbox
        equal(without(tree(mine), 1, 3, 4, 20), without(tree(other), 1, 3, 4, 8, 20), "of the sandbox")
        equal(len(pb.every(ours, 4)), 3, "labels")
        equal(*[sorted(pb.every(pb.get(pb.get(b, 6, b""), 2, b""), 1)) for b in (ours, theirs)], "variables")
        return without(tree(ours), 2, 4, 6), without(tree(theirs), 2, 4, 6)
    if name in ("ContainerExec", "TaskExecStart"):
        number = 2 if name == "ContainerExec" else 3
        equal(pb.every(ours, number)[-1], pb.every(theirs, number)[-1], "the command")
        return without(tree(ours), 2, 3), without(tree(theirs), 2, 3)
    if name in ("TaskExecStdioRead", "TaskExecWait", "TaskSnapshotFilesystem"):
        return without(tree(ours), 2), without(tree(theirs), 2)  # the name that the client makes up
    if name.startswith("SandboxWait"):
        return without(tree(ours), 2), without(tree(theirs), 2)  # how long to wait is the client's choice
    return tree(ours), tree(theirs)


# Labels are given when a sandbox is made, and no image is made of one.
LEFT_OUT = ("SandboxTagsSet", "SandboxTagsSetV2", "SandboxSnapshotFs", "TaskSnapshotFilesystem")


def scenario(s):
    tag, name = s["name"].split(".", 1)
    with Recorded(s["calls"]) as server, player(
            server, tag == "62", PLAY_ENV="port=3000 VSCODE_PORT=4445 PYTHONUNBUFFERED=1",
            MODAL_IMAGE="ghcr.io/all-hands-ai/runtime:0.62-nikolaik") as play:
        if name in ("app_lookup", "retry_unavailable"):
            equal(play("app"), {"ok": {"id": s["sdk_result"]}})
        elif name == "unauthenticated":
            got = play("app")
            equal((got["code"] != 0, "UNAUTHENTICATED: injected" in got["error"]), (True, True), got)
        elif name == "from_id":
            equal(play("state", id="sb-1", run="r").get("ok"), {})
            equal(play("look")["ok"]["state"], "running")
            for port, url in s["sdk_result"].items():
                server.left.setdefault("x", [])
                for n in list(server.left):
                    if n.startswith("SandboxGetTunnels") and not server.left[n]:
                        server.left[n] = [c for c in s["calls"] if c["request"]["path"].endswith(n)]
                equal(play("publish", port=int(port))["ok"]["url"], url)
        elif name == "list_tags":
            equal(play("list")["ok"]["list"], [], "none of them is labelled")
        else:
            play("state", run="the-run")
            got = play("create")
            equal(got, {"ok": {"id": "sb-1"}})
            after_creation(play, s, name, server)
        compare(s, server)


def after_creation(play, s, name, server):
    if name == "create_tunnels_terminate":
        if any(n.startswith("SandboxGetTunnels") for n in server.left):
            equal(play("publish", port=4445)["ok"]["url"], s["sdk_result"]["tunnels"]["4445"])
        equal(play("end"), {"ok": {}})
    elif name == "exec":
        got = play("run", line=LINE)["ok"]
        equal([got["exit"]] + [base64.b64decode(got[n]).decode() for n in ("stdout", "stderr")], s["sdk_result"])
    elif name == "poll_wait":
        equal(play("look")["ok"]["state"], "running")
        equal(play("end"), {"ok": {}})
        equal(play("look")["ok"]["state"], "gone")
    elif name == "snapshot_fs":
        equal("ok" in play("wait"), True)


def compare(s, server):
    """Each request that was recorded and is ours to make; each attempt has the number and the key of theirs."""
    ours, theirs = {}, {}
    for name, headers, message in server.seen:
        ours.setdefault(name, []).append((headers, message))
        equal(headers.get("content-type"), "application/grpc+proto")
        equal(headers.get("te"), "trailers")
    for c in s["calls"]:
        r = c["request"]
        name = r["path"].rsplit("/", 1)[1]
        theirs.setdefault(name, []).append((dict(r["metadata"]), base64.b64decode(r["messages"][0]["b64"])))
    for name, requests in theirs.items():
        if name in LEFT_OUT or (name.startswith("SandboxWait") and "list_tags" in s["name"]):
            continue
        equal(name in ours, True, "%s is asked" % name)
        for (mine, message), (other, their) in zip(ours[name], requests):
            equal(*alike(name, message, their), name)
            for header in ("x-modal-token-id", "x-modal-token-secret", "x-modal-client-type"):
                equal(header in mine, header in other, "%s of %s" % (header, name))
            for header in ("x-modal-auth-token", "authorization"):
                equal(header in mine, header in other or (header == "x-modal-auth-token" and header in mine),
                      "%s of %s" % (header, name))
            if "x-retry-attempt" in other and "TaskCommandRouter" not in name:
                equal((mine.get("x-retry-attempt"), "x-idempotency-key" in mine, "x-retry-delay" in mine),
                      (other["x-retry-attempt"], True, other["x-retry-attempt"] != "0"), name)
        if "retry" in s["name"]:
            equal(len(ours[name]), len(requests), "attempts")
            equal(len({h["x-idempotency-key"] for h, _ in ours[name]}), 1, "of one key")


# ---- answers that are wrong ----

class Answers(grpcserver.Server):
    """Each method's message as given."""

    def __init__(self, **answers):
        super().__init__()
        self.said = answers
        for name in answers:
            self.methods[name] = lambda r, name=name: iter([self.said[name]])


def changed(fields, path, other):
    """Without the field at the path of numbers, or with another there."""
    out = []
    for n, v in fields:
        if n != path[0]:
            out.append((n, v))
        elif len(path) > 1:
            out.append((n, changed(pb.decode(v) if isinstance(v, bytes) else v, path[1:], other)))
        elif other is not None:
            out.append((n, other))
    return out


def places(fields, at=(), names=()):
    """Where the fields of a recorded message are: numbers, names; of a list, those of its first entry."""
    for f in fields:
        here, named, v = at + (f["no"],), names + (f["name"],), f.get("value")
        yield here, named
        if isinstance(v, list) and v and isinstance(v[0], list):
            v = v[0]
        if isinstance(v, list) and v and isinstance(v[0], dict) and "no" in v[0]:
            yield from places(v, here, named)


def operations(s):
    name, port = s["name"].split(".", 1)[1], 4445
    known = {c["request"]["path"].rsplit("/", 1)[1] for c in s["calls"]}
    if name == "from_id":
        port = int(next(iter(s["sdk_result"])))
    tunnel = [("publish", {"port": port})] if any(n.startswith("SandboxGetTunnels") for n in known) else []
    create, look = [("create", {})], [("look", {})]
    return {"app_lookup": [("app", {})], "from_id": look + tunnel, "list_tags": [("list", {})],
            "create_tunnels_terminate": create + tunnel + [("end", {})], "image_build_stream": create,
            "exec": create + [("run", {"line": LINE})], "poll_wait": create + look + [("end", {})] + look,
            "snapshot_fs": create + [("wait", {})]}.get(name, [])


def results(s, calls):
    """What each operation gave, until one was an error."""
    tag, name = s["name"].split(".", 1)
    got = []
    with Recorded(calls) as server, player(
            server, tag == "62", PLAY_ENV="port=3000", MODAL_IMAGE="an-image") as play:
        play("state", run="r", **({"id": "sb-1"} if name in ("from_id", "list_tags") else {}))
        for op, args in operations(s):
            got.append(play(op, **args))
            if "error" in got[-1]:
                break
    return got


def each_field():
    """Each field of each recorded answer missing, and of another type: it means the same, or its name is told. Several
    at a time, since the client waits before it asks again."""
    m = Mutations("modal")
    with concurrent.futures.ThreadPoolExecutor(4) as beside:
        begun = []
        for s in clouds.scenarios("modal"):
            good = results(s, s["calls"]) if operations(s) else None
            for i, c in enumerate(s["calls"] if good else []):
                method = c["request"]["path"].rsplit("/", 1)[1]
                for j, message in enumerate(c["response"]["messages"]):
                    for at, names in places(message["fields"]):
                        for other, calls in mutated(m, s, (i, j, method, at, names)):
                            begun.append(((method, names, other), good, beside.submit(results, s, calls)))
        for what, good, found in begun:
            judge(m, what, good, found.result())
    m.done()


def mutated(m, s, where):
    """The new values of a field, and the calls with them, as far as no other recording has had them."""
    i, j, method, at, names = where
    whole = v = pb.decode(base64.b64decode(s["calls"][i]["response"]["messages"][j]["b64"]))
    for n in at:
        v = next(w for k, w in (v if isinstance(v, list) else pb.decode(v)) if k == n)
    for other in (None, 5 if isinstance(v, bytes) else "text"):
        if (method, names, other) in m.seen:
            continue
        m.seen.add((method, names, other))
        calls = copy.deepcopy(s["calls"])
        calls[i]["response"]["messages"][j]["b64"] = base64.b64encode(
            pb.encode(changed(whole, at, other))).decode()
        yield other, calls


def judge(m, what, good, got):
    method, names, other = what
    differs = [k for k in range(max(len(got), len(good))) if got[k:k + 1] != good[k:k + 1]]
    if differs:
        m.judge(method, names, "missing" if other is None else "other", good[differs[0]], got[differs[0]])
    else:
        m.judge(method, names, other, None, None)


GOOD = {
    "AppGetOrCreate": [(1, "ap")], "AuthTokenGet": [(1, "auth")],
    "EnvironmentGetOrCreate": [(2, [(2, [(1, "2024.10")])])],
    "ImageGetOrCreate": [(1, "im"), (2, [(1, 1)])], "SecretGetOrCreate": [(1, "st")],
    "SandboxGetTunnelsV2": [(1, [(1, 1)]), (2, [(1, "h.example"), (2, 443), (5, 4444)])],
    "SandboxGetTaskIdV2": [(1, "ta")], "SandboxWaitV2": [(1, [(1, 3)])],
    "SandboxListV2": [(1, [(1, "sb"), (3, ("d", 1.0))])],
    "TaskExecStart": [], "TaskExecStdioRead": [(1, "x")], "TaskExecWait": [(1, 0)],
    "SandboxGetTaskId": [(1, "ta")], "ContainerExec": [(1, "ex")],
    "ContainerExecGetOutput": [(1, [(3, "x")]), (2, 1)], "ContainerExecWait": [(1, 0), (2, True)],
}
CREATED = [(1, "sb"), (3, "ta"), (5, [(1, "jwt"), (2, "URL")])]
# Of what no recording has: what is asked about a sandbox that somebody else made.
WRONG = (
    ("run", {"line": "x"}, "SandboxGetTaskIdV2", (1,), "task_id"),
    ("run", {"line": "x"}, "SandboxGetCommandRouterAccess", (1,), "jwt"),
    ("run", {"line": "x"}, "SandboxGetCommandRouterAccess", (2,), "url"),
)
WRONG_OLD = (("run", {"line": "x", "env": {"A": "b"}}, "SecretGetOrCreate", (1,), "secret_id"),)


def wrong_answers():
    for old, cases in ((False, WRONG), (True, WRONG_OLD)):
        for op, args, method, path, name in cases:
            # missing; a text for a number and a number for a text; control characters
            with Answers(**{n: pb.encode(v) for n, v in GOOD.items()}) as server:
                access = [(1, "jwt"), (2, server.url)]
                good = dict(GOOD, SandboxCreateV2=CREATED[:2] + [(5, access)], SandboxGetCommandRouterAccess=access)
                for n in ("SandboxCreateV2", "SandboxGetCommandRouterAccess"):
                    server.methods[n] = lambda r, n=n: iter([server.said[n]])
                at = [v for n, v in good[method] if n == path[0]][0]
                for p in path[1:]:
                    at = [v for n, v in at if n == p][0]
                number = isinstance(at, (int, tuple))
                for other in (None, "text" if number else 5, ("f", 1.0)):
                    server.said = {n: pb.encode(changed(v, path, other) if n == method else v)
                                   for n, v in good.items()}
                    with player(server, old) as play:
                        play("state", run="r", **({} if op == "create" else {"id": "sb"}))
                        got = play(op, **args)
                    equal('"%s"' % name in got.get("error", ""), True,
                          "%s of %s as %r: %s" % (name, method, other, got))


def wrong_streams():
    """Frames and ends that are none."""
    for kind, text in (("nostatus", "without a status"), ("huge", "too long"), ("compressed", "compressed"),
                       ("garbage", "is not a protobuf message"), ("twice", "more than one message")):
        with Answers(AppGetOrCreate=pb.encode([(1, "ap")])) as server, player(server, False) as play:
            server.fault("AppGetOrCreate", kind, times=9)
            got = play("app")
            equal(text in got.get("error", ""), True, "%s: %s" % (kind, got))
            equal(server.count("AppGetOrCreate"), 4 if kind == "nostatus" else 1, "an answer that is none is final")
    with Answers(AppGetOrCreate=b"") as server, player(server, False) as play:
        server.fault("AppGetOrCreate", "http", status=200, headers={"content-type": "text/html"}, times=9)
        got = play("app")
        equal("does not speak gRPC" in got.get("error", ""), True, got)
    # a server of HTTP/1.1
    with clouds.Replay([{"status": 200, "headers": {}, "body": {"text": "x"}}] * 9) as server:
        with player(server, False) as play:
            equal("error" in play("app"), True)
    for status, text in ((401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED"), (429, "UNAVAILABLE"), (500, "UNKNOWN")):
        with Answers(AppGetOrCreate=b"") as server, player(server, False) as play:
            server.fault("AppGetOrCreate", "http", status=status, times=9)
            got = play("app")
            equal((text in got.get("error", ""), "HTTP status %d" % status in got["error"]), (True, True), got)
    for url in ("http://modal.example", "http://localhost:x@modal.example", "ftp://x"):
        with clouds.Player("modal", MODAL_TOKEN_ID=KEY, MODAL_TOKEN_SECRET=SECRET, MODAL_SERVER_URL=url) as play:
            equal("error" in json.loads(play.p.stdout.readline()), True, url)
            play.p.wait()
            play.p.returncode = 0


# ---- a stand-in that runs commands ----

class ModalHost(CloudHost):
    provider, kind = modalservice.Modal, "modal"

    def account(self):
        return {"MODAL_TOKEN_ID": KEY, "MODAL_TOKEN_SECRET": SECRET, "MODAL_SERVER_URL": self.at.url}


def life(old):
    with ModalHost() as h:
        if old:
            h.at.older()
        done = h("up", "-e", "GIVEN=a 'b'")
        equal(done.returncode, 0, done.stderr)
        equal("each command runs in a new shell" in done.stderr, True, done.stderr)
        equal(h.at.image, ["FROM debian:12"])
        for command, status in (("true", 0), ("exit 42", 42), ("kill -9 $$", 137), ("cat", 0)):
            equal(h("run", command).returncode, status, command)
        done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN")
        equal(sorted(done.stdout.splitlines()), sorted(["out", "err", h.work, "a 'b'"]), done.stderr)
        h.ok("write", "sub/f.txt", input="one\ntwo\n")
        h.ok("edit", h.work + "/sub/f.txt", "two", "2")
        equal(h.ok("read", "sub/f.txt"), "one\n2\n")
        equal(h("read", "nothing").returncode != 0, True)
        equal(h.ok("ls").splitlines(), ["sub/"])
        with open(h.path("cwd", "big"), "wb") as f:
            f.write(bytes(range(256)) * 20000)
        h.ok("put", "big", h.work + "/big")
        equal(h.ok("run", "wc -c <big; cksum <big").split()[:1], ["5120000"], "in pieces")
        h.ok("get", "big", h.path("cwd", "back"))
        back = h.path("cwd", "back")
        found = [os.path.join(d, f) for d, _, fs in os.walk(back) for f in fs]
        with open(found[0] if found else back, "rb") as f:
            equal(f.read() == bytes(range(256)) * 20000, True, "and back")
        equal("does not support pause" in h("pause").stderr, True, "what it cannot do is said")
        h.ok("down")
        equal(h.boxes(), [], "it is ended")


def interrupts(old):
    with ModalHost() as h:
        if old:
            h.at.older()
        h.ok("up", "-q")
        interrupted(h)


def unwaited(h):
    """A service that never waits for the end is not asked for ever."""
    done = h("run", "exit 3")
    said = done.stdout + done.stderr
    equal((done.returncode != 3, "does not wait for the command" in said), (True, True), said)
    h.at.faults.clear()


def faults(old):
    with ModalHost() as h:
        if old:
            h.at.older()
        create = "SandboxCreate$" if old else "SandboxCreateV2$"
        h.at.fault("AppGetOrCreate", "http", status=429, headers={"retry-after": "1"})
        h.at.fault("ImageGetOrCreate", "status", times=2, code=14)
        h.at.fault("EnvironmentGetOrCreate", "goaway")
        h.at.fault("ImageJoinStreaming", "cut", messages=1)
        h.at.fault(create, "drop", after=True)
        done = h("up")
        equal((done.returncode, len(h.boxes())), (0, 1), "a lost answer is looked for: " + done.stderr)
        equal("found by its label" in done.stderr, True, done.stderr)
        start, read = ("ContainerExec$", "GetOutput") if old else ("TaskExecStart", "StdioRead")
        before = h.path("tmp", "times")
        h.at.fault(start, "reset", after=True)
        done = h("run", "echo x >>%s" % before)
        for r in list(h.at.runs.values()):
            r.p.wait(PATIENCE)  # the client, which was cut off, does not wait for it with the older routes
        with open(before) as f:
            equal(f.read(), "x\n", "run once")
        equal(done.returncode == 0, not old, "and known by its name, with the newer routes: " + done.stdout)
        h.at.fault(read, "cut", messages=1, times=2)
        done = h("run", "echo one; read -t 0.3 < <(sleep 5); echo two; read -t 0.3 < <(sleep 5); echo three; exit 5")
        equal((done.returncode, done.stdout), (5, "one\ntwo\nthree\n"), "goes on where it was cut: " + done.stderr)
        done = h("run", "-t", "1", "sleep 1000 & echo $! >%s/pid; wait" % h.path("tmp"))
        with open(h.path("tmp", "pid")) as f:
            equal(process.wait_gone(int(f.read()), PATIENCE), True, "what it started is ended with it")
        if not old:
            h.at.fault("TaskExecWait", "status", code=4)
            equal(h("run", "exit 3").returncode, 3, "a wait that took too long is asked again")
            h.at.fault("TaskExecWait", "status", code=4, times=60)
            unwaited(h)
            h.at.fault("TaskExecStart", "status", code=16)
            equal(h.ok("run", "echo x"), "x\n", "a router's token that ended is renewed")
        else:
            wait, left = h.at.methods["ContainerExecWait"], iter(range(60))
            h.at.methods["ContainerExecWait"] = lambda *q: (
                wait(*q) if next(left, None) is None else iter([pb.encode([(2, False)])]))
            unwaited(h)
            h.at.methods["ContainerExecWait"] = wait
        with open(h.path("state", "default.json")) as f:
            text = f.read()
        equal([s in text for s in (KEY, SECRET, h.at.jwt, h.at.auth)], [False] * 4, "no token is in the record")
        os.unlink(h.path("state", "default.json"))
        h.at.make(pb.encode([(4, [(1, "handrail_sid"), (2, "three")]), (4, [(1, "handrail_run"), (2, "r")])]))
        h.at.make(b"")
        listed = {s["sid"]: s for s in json.loads(h.ok("ps", "--all", "--json"))}
        equal((sorted(listed), listed["default"]["stray"]), (["default", "three"], True), "found by its label")
        h.ok("down", "--all")
        equal(len(h.boxes()), 2, "what others made stays")
        name = "SandboxList" if old else "SandboxListV2"
        there, h.at.methods[name] = h.at.methods[name], lambda *q: iter([b"\x0a\0" * ((1 << 20) + 1)])
        done = h("ps", "--all")
        equal("too many entries" in done.stderr, True, "a list that would fill the memory: " + done.stderr)
        h.at.methods[name] = there
        h.at.key = "other"
        done = h("ps", "--all")
        equal((done.returncode, "check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET" in done.stderr), (1, True), done.stderr)
        equal(KEY in done.stderr + done.stdout, False, "an error has no key")


def unavailable(old):
    """A request for a sandbox is sent again where the service is not available, with the key by which the service knows
    whether it has made one."""
    with ModalHost() as h:
        if old:
            h.at.older()
        create = "SandboxCreate$" if old else "SandboxCreateV2$"
        h.at.fault(create, "status", code=14)
        h.at.fault(create, "status", code=14, after=True)
        done = h("up")
        equal((done.returncode, len(h.boxes()), "by its label" in done.stderr), (0, 1, False), done.stderr)


def failed_start(old):
    """The reason and the status of a server's start that fails are in the error, at once."""
    with ModalHost(SANDBOX_RUNTIME_CONTAINER_IMAGE="registry.example/image:1") as h:
        if old:
            h.at.older()
        h.at.serving(1)
        h.at.tunnel = "127.0.0.1"
        done = h("up")
        equal((done.returncode, "the server's start in the sandbox ended with status 127: " in done.stderr,
               "handraild: command not found" in done.stderr, "sandbox.payload" in done.stderr),
              (1, True, True, True), done.stderr)
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "it is ended, and nothing is recorded")


def main():
    # Debian's packages are those of Debian's Python
    if grpcserver.missing and os.path.exists(PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(PYTHON):
        os.execv(PYTHON, [PYTHON] + sys.argv)
    if grpcserver.missing:
        skip_all(grpcserver.missing)
    process.become_subreaper()
    tap = Tap()
    for s in clouds.scenarios("modal"):
        tap.run("modal " + s["name"], scenario, s)
    for test in (each_field, wrong_answers, wrong_streams):
        tap.run(test.__name__.replace("_", " "), test)
    for test in (life, interrupts, faults, unavailable, failed_start):
        for old in (False, True):
            tap.run("%s%s" % (test.__name__, ", older routes" if old else ""), test, old)
    tap.run("of other owners", of_other_owners, (ModalHost,))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
