"""A stand-in for Modal, API and command router at one address: what it says is said by a model, but commands are run.
`old`: it knows only the routes of clients before 1.6."""

import itertools
import os
import re
import signal
import subprocess
import threading

from . import grpcserver, protobuf as pb, standin


class Running:
    """A command: what it prints is kept, and read from an offset on."""

    def __init__(self, argv, env, cwd, directory):
        self.p = subprocess.Popen(argv, cwd=cwd or directory, start_new_session=True, stdin=subprocess.PIPE,
                                  env=dict({"PATH": os.environ["PATH"], "HOME": directory}, **env),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.kept, self.over, self.changed = {0: [], 1: []}, {0: False, 1: False}, threading.Condition()
        self.written = 0
        for n, f in ((0, self.p.stdout), (1, self.p.stderr)):
            threading.Thread(target=self.read, args=(n, f), daemon=True).start()

    def read(self, n, f):
        while True:
            b = os.read(f.fileno(), 1 << 16)
            with self.changed:
                if b:
                    self.kept[n].append(b)
                else:
                    self.over[n] = True
                self.changed.notify_all()
            if not b:
                return f.close()

    def pieces(self, n, first):
        """(number, bytes) from the first on."""
        while True:
            with self.changed:
                while first >= len(self.kept[n]) and not self.over[n]:
                    self.changed.wait()
                if first >= len(self.kept[n]):
                    return
                b = self.kept[n][first]
            yield first, b
            first += 1

    def write(self, b, eof):
        try:
            self.p.stdin.write(b)
            self.p.stdin.flush()
        except OSError:
            pass
        self.written += len(b)
        if eof:
            self.p.stdin.close()


class Modal(grpcserver.Server):
    key, secret = "key-of-the-test", "secret-of-the-test"
    jwt, auth = "jwt-of-the-test", "auth-of-the-test"
    old, builds = False, 1
    openhands = port = None
    tunnel = "r4444.example"  # the host of port 4444

    def __init__(self, directory):
        super().__init__()
        self.dir, self.boxes, self.runs, self.numbers = directory, {}, {}, itertools.count(1)
        self.secrets, self.keys, self.made = {}, {}, 0
        self.unlisted = set()  # those that exist and that lists do not have yet
        for name in ("AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate", "ImageJoinStreaming",
                     "SecretGetOrCreate", "ContainerExec", "ContainerExecGetOutput", "ContainerExecPutInput",
                     "ContainerExecWait", "SandboxSnapshotFs"):
            self.methods[name] = self.keyed(getattr(self, name))
        self.newer = {"AuthTokenGet": self.keyed(self.AuthTokenGet),
                      "SandboxGetCommandRouterAccess": self.keyed(self.access),
                      "SandboxCreateV2": self.keyed(self.create_new, True)}
        for name in ("Wait", "GetTunnels", "Terminate", "List", "GetTaskId"):
            self.methods["Sandbox" + name] = self.keyed(getattr(self, name))
            self.newer["Sandbox" + name + "V2"] = self.keyed(getattr(self, name), True)
        self.methods["SandboxCreate"] = self.keyed(self.create_old)
        for name in ("TaskExecStart", "TaskExecStdinWrite", "TaskExecStdioRead", "TaskExecWait",
                     "TaskSnapshotFilesystem"):
            self.newer[name] = self.routed(getattr(self, name))
        self.methods.update(self.newer)

    def serving(self, port):
        """As standin.StandIn's."""
        self.openhands, self.port = os.path.join(self.dir, "openhands"), port
        standin.put_sudo(self.dir)

    @property
    def started(self):
        return [r.p for r in self.runs.values()]

    def older(self):
        self.old = True
        for name in self.newer:
            del self.methods[name]

    def __exit__(self, *unused):
        super().__exit__()
        for r in self.runs.values():
            if r.p.poll() is None:
                os.killpg(r.p.pid, signal.SIGKILL)
            r.p.wait()

    def keyed(self, method, newer=False):
        def checked(r):
            if (r.headers.get("x-modal-token-id"), r.headers.get("x-modal-token-secret")) != (self.key, self.secret):
                raise grpcserver.Status(16, "Token ID %s is not valid" % r.headers.get("x-modal-token-id"))
            if newer and r.headers.get("x-modal-auth-token") != self.auth:
                raise grpcserver.Status(16, "no auth token")
            # one that is sent again with its key counts once
            key = r.headers.get("x-idempotency-key")
            if key is not None and key in self.keys:
                yield from self.keys[key]
                return
            said = []
            for m in method(r.message()):
                said.append(m)
                yield m
            if key is not None:
                self.keys[key] = said
        return checked

    def routed(self, method):
        def checked(r):
            if r.headers.get("authorization") != "Bearer " + self.jwt:
                raise grpcserver.Status(16, "jwt expired")
            yield from method(r.message())
        return checked

    def box(self, q):
        box = self.boxes.get(pb.text(q, 1))
        if box is None:
            raise grpcserver.Status(5, "Sandbox%20not%20found")
        return box

    # ---- the API ----

    def AppGetOrCreate(self, q):
        yield pb.encode([(1, "ap-" + pb.text(q, 1))])

    def EnvironmentGetOrCreate(self, q):
        yield pb.encode([(1, "en-1"), (2, [(1, "main"), (2, [(1, "2024.10")])])])

    def ImageGetOrCreate(self, q):
        image = pb.get(q, 2)
        self.image = [b.decode() for b in pb.every(image, 6)]
        yield pb.encode([(1, "im-1")])

    def ImageJoinStreaming(self, q):
        yield pb.encode([(2, [(1, "Step 1\n")]), (3, "1-0")])
        self.builds -= 1
        if self.builds <= 0:
            yield pb.encode([(1, [(1, 1)])])

    def SecretGetOrCreate(self, q):
        name = "st-%d" % next(self.numbers)
        self.secrets[name] = pb.pairs(pb.every(q, 5))
        yield pb.encode([(1, name)])

    def AuthTokenGet(self, q):
        yield pb.encode([(1, self.auth)])

    def make(self, q):
        with self.lock:
            name = "sb-%d" % next(self.numbers)
            self.made += 1
            self.boxes[name] = {"id": name, "tags": pb.pairs(pb.every(q, 4)), "at": float(self.made),
                                "definition": pb.get(q, 2)}
        return self.boxes[name]

    def create_new(self, q):
        box = self.make(q)
        box["env"] = pb.pairs(pb.every(pb.get(pb.get(q, 6, b""), 2, b""), 1))
        yield pb.encode([(1, box["id"]), (3, "ta-" + box["id"]), (5, [(1, self.jwt), (2, self.url)])])

    def create_old(self, q):
        box = self.make(q)
        box["env"] = {}
        for s in pb.every(box["definition"], 4):
            box["env"].update(self.secrets[s.decode()])
        yield pb.encode([(1, box["id"])])

    def Wait(self, q):
        self.box(q)
        yield b""

    def GetTunnels(self, q):
        self.box(q)
        yield pb.encode([(1, [(1, 1)]), (2, [(1, self.tunnel), (2, 443), (5, 4444)])])

    def Terminate(self, q):
        del self.boxes[self.box(q)["id"]]
        for p in self.started:
            if p.poll() is None:
                p.terminate()
                p.wait()
        yield b""

    def List(self, q):
        wanted, before = pb.pairs(pb.every(q, 5)), pb.get(q, 2, ("d", 1e9))[1]
        found = [b for b in self.boxes.values() if b["at"] < before and b["id"] not in self.unlisted and
                 all(b["tags"].get(k) == v for k, v in wanted.items())]
        found.sort(key=lambda b: -b["at"])
        yield pb.encode([(1, [(1, b["id"]), (3, ("d", b["at"]))] + [(6, [(1, k), (2, v)])
                                                                    for k, v in b["tags"].items()])
                         for b in found[:2]])

    def GetTaskId(self, q):
        yield pb.encode([(1, "ta-" + self.box(q)["id"])])

    def access(self, q):
        self.box(q)
        yield pb.encode([(1, self.jwt), (2, self.url)])

    def SandboxSnapshotFs(self, q):
        self.box(q)
        yield pb.encode([(1, "im-9"), (2, [(1, 1)])])

    # ---- commands ----

    def start(self, name, task, argv, env, cwd):
        box = self.boxes.get(task[3:])
        if box is None:
            raise grpcserver.Status(5, "no such task")
        with self.lock:
            if name in self.runs:
                raise grpcserver.Status(6, "exec already exists")
            if self.openhands is not None:
                argv = [re.sub(r"\b4444\b", str(self.port), a.replace("/openhands", self.openhands)) for a in argv]
            self.runs[name] = Running(argv, dict(box["env"], **env), cwd, self.dir)

    def TaskExecStart(self, q):
        self.start(pb.text(q, 2) if pb.get(q, 2) else "", pb.text(q, 1), [b.decode() for b in pb.every(q, 3)],
                   pb.pairs(pb.every(q, 12)), pb.get(q, 7, b"").decode())
        yield b""

    def TaskExecStdinWrite(self, q):
        run, b = self.runs[pb.text(q, 2)], pb.get(q, 4, b"")
        assert pb.get(q, 3, 0) == run.written, "each byte once"
        run.write(b, pb.get(q, 5, 0))
        yield b""

    def TaskExecStdioRead(self, q):
        run, skip = self.runs[pb.text(q, 2)], pb.get(q, 3, 0)
        for _, b in run.pieces(pb.get(q, 4, 0), 0):
            if skip >= len(b):
                skip -= len(b)
                continue
            yield pb.encode([(1, b[skip:])])
            skip = 0

    def TaskExecWait(self, q):
        code = self.runs[pb.text(q, 2)].p.wait()
        yield pb.encode([(1, code)] if code >= 0 else [(2, -code)])

    def TaskSnapshotFilesystem(self, q):
        yield pb.encode([(1, "im-9")])

    def ContainerExec(self, q):
        env = {}
        for s in pb.every(q, 10):
            env.update(self.secrets[s.decode()])
        name = "ex-%d" % next(self.numbers)
        self.start(name, pb.text(q, 1), [b.decode() for b in pb.every(q, 2)], env, pb.get(q, 9, b"").decode())
        yield pb.encode([(1, name)])

    def ContainerExecGetOutput(self, q):
        run, fd = self.runs[pb.text(q, 1)], pb.get(q, 4)
        n = pb.get(q, 3, 0)
        for i, b in run.pieces(fd - 1, n):
            n = i + 1
            yield pb.encode([(1, [(1, fd), (3, b)]), (2, n)])
        yield pb.encode([(2, n + 1), (3, run.p.wait())])

    def ContainerExecPutInput(self, q):
        m = pb.get(q, 2)
        self.runs[pb.text(q, 1)].write(pb.get(m, 1, b""), pb.get(m, 3, 0))
        yield b""

    def ContainerExecWait(self, q):
        code = self.runs[pb.text(q, 1)].p.wait()
        yield pb.encode([(1, code if code >= 0 else 128 - code), (2, True)])
