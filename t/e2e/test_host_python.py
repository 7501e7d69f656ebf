#!/usr/bin/env python3
"""The client of contrib/python against a sandbox of the kind local. Its two harnesses, which need packages of PyPI, are
tried by hand: inspect_check.py and harbor_check.py; of Harbor's environment what is its own is tried here."""

import asyncio
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import socketserver
import subprocess
import sys
import tarfile
import threading
import types
import urllib.parse
import uuid
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import BUILD, SRC, Host  # noqa: E402
from lib.hostbox import why_none  # noqa: E402
from lib.supervised import run_tests  # noqa: E402
from lib.tap import Skip, equal  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SRC, "contrib", "python"))
from handrail_env import Branches, BusyError, HandrailError, Sandbox  # noqa: E402


class User(Host):
    """Whose environment this process has."""

    def __enter__(self):
        self.patch = mock.patch.dict(os.environ, dict(self.env, HANDRAIL=os.path.join(BUILD, "handrail")), clear=True)
        self.patch.start()
        return super().__enter__()

    def __exit__(self, *what):
        self.patch.stop()
        super().__exit__(*what)


def raises(kind, text, call, *args, **more):
    try:
        got = call(*args, **more)
    except kind as e:
        equal((type(e), text in str(e)), (kind, True), str(e))
    else:
        raise AssertionError("%s and not %s" % (got, kind.__name__))


def commands():
    with User(), Sandbox.up("local", env={"FROM_UP": "1"}) as box:
        equal(box.run("cd /usr; A=1; echo $FROM_UP"), (0, "1", "/usr"))
        equal(box.run("echo $A; false"), (1, "1", "/usr"))
        equal(len(box.run("head -c 100000 /dev/zero | tr '\\0' x").output), 100000, "whole")
        first, *lines = box.run("seq 1 30000").output.split("\n")
        equal(first, "[Previous command outputs are truncated. Showing the last %d lines of the output below.]" %
              (len(lines) + 1))
        equal((len(lines) >= 10000, lines[-1]), (True, "30000"), len(lines))
        equal(box.run("read x", timeout=0.2).exit_code, -1)
        equal(box.execute(["sh", "-c", "echo out; echo err >&2; exit 3"]), (3, "out\n", "err\n"))
        equal(box.execute(["pwd"]).stdout, box.directory + "\n", "not where the shell is")
        equal(box.execute(["pwd"], cwd="/tmp").stdout, "/tmp\n")
        equal(box.execute(["sh", "-c", 'echo "$A $B"'], env={"A": "x y", "B": "'$HOME'"}).stdout, "x y '$HOME'\n")
        odd = "x\n'y' \"$z\" `w`\\\n"
        equal(box.execute(["sh", "-c", 'printf "%s" "$A"; cat'], input="in", env={"A": odd}).stdout, odd + "in")
        equal(box.execute(["sh", "-c", "echo $PATH"], env={"PATH": "/bin"}).stdout, "/bin\n")
        raises(ValueError, "letters", box.execute, ["true"], env={"A;id": "x"})
        raises(ValueError, "null", box.execute, ["true"], env={"A": "a\0b"})
        equal(box.execute(["cat"], input="$HOME `x` '\"\\\n\u00fc"), (0, "$HOME `x` '\"\\\n\u00fc", ""))
        equal(box.execute(["cat"], input="").stdout, "")
        equal(box.execute(["od", "-An", "-tx1"], input=b"\xff\0\r\n").stdout, " ff 00 0d 0a\n")
        equal(box.execute(["sh", "-c", "kill -TERM $$"]).exit_code, 143)
        name = box.execute(["readlink", "/proc/self/fd/0"], input="x").stdout.strip()
        equal((name.startswith("/tmp/handrail-input-"), os.path.exists(name)), (True, False), "nothing is left")
        equal(box.execute(["stat", "-Lc", "%a", "/proc/self/fd/0"], input="x").stdout, "600\n", "and nobody reads it")
        raises(TimeoutError, "exceeded", box.execute, ["sleep", "600"], timeout=0.5)
        raises(PermissionError, "/etc/passwd", box.execute, ["/etc/passwd"])
        raises(FileNotFoundError, "no-such-program", box.execute, ["no-such-program"])
        raises(FileNotFoundError, "/nowhere", box.execute, ["true"], cwd="/nowhere")
        done = {}
        threads = [threading.Thread(target=lambda i=i: done.update({i: box.execute(["echo", str(i)]).stdout}))
                   for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(done, {i: "%d\n" % i for i in range(4)})


class FleetUser(User, Fleet):
    """Of a service on this machine."""


def at_a_fleet():
    """What the operator of a fleet of the kind local opens works; where it is closed the error names who opens it."""
    with FleetUser(HANDRAIL_SWEREX="true"), Sandbox.up("remote", env={"FROM_UP": "1"}) as box:
        equal(box.execute(["echo", "x"]).stdout, "x\n")
        equal(box.run("echo $FROM_UP").output, "1")
    with FleetUser() as f:
        raises(HandrailError, "no /swerex/execute: its server must be started with HANDRAIL_SWEREX=true. A fleet of "
               "the kind local", Sandbox.up, "remote")
        equal([s["state"] for s in f.sandboxes() if s["state"] not in ("stopping", "stopped")], [], "it is ended")


def busy():
    """A command that was not run is an error, and never an answer that looks like that of one which runs."""
    with User(), Sandbox.up("local") as box:
        equal(box.run("read x; echo got $x", timeout=0.2).exit_code, -1)
        for timeout in (None, 0.2, 5):
            raises(BusyError, "not run", box.run, "echo x >>ran", timeout)
        raises(FileNotFoundError, "ran", box.read, "ran")
        equal(box.execute(["echo", "beside"]).stdout, "beside\n", "what has no shell")
        equal(isinstance(BusyError(), HandrailError), True)


def the_first_error_counts():
    """What fails while it cleans up does not take the place of what went wrong."""
    with User() as h:
        box = Sandbox.up("local", "gone")
        box.down()
        try:
            box.execute(["cat"], input="x")
        except OSError as e:
            equal(e.__context__, None, "the first request's")
        else:
            raise AssertionError("it is gone")
        box = Sandbox.up("local", "here")
        calls, real = [], box._execute

        def fails(words, *more):
            calls.append(words[0])
            if words[0] == "/bin/rm":
                real(words, *more)
                raise HandrailError("the removal")
            return real(words, *more)
        with mock.patch.object(box, "_execute", fails):
            raises(FileNotFoundError, "no-such", box.execute, ["no-such"], cwd="/no-such", input="x")
            raises(HandrailError, "the removal", box.execute, ["cat"], input="x")
        equal(calls.count("/bin/rm"), 2, "it is tried")
        try:
            with box:
                box.down()
                raise KeyError("of the body")
        except KeyError:
            pass
        with open(h.path("cwd", "handrail"), "w") as f:
            f.write('#!/bin/sh\ncase $1 in up) exit 0;; *) echo "handrail: $1 failed" >&2; exit 1;; esac\n')
        os.chmod(f.name, 0o755)
        raises(HandrailError, "url failed", Sandbox.up, "local", program=f.name)


def files():
    with User() as h, Sandbox.up("local") as box:
        data = bytes(range(256)) * 5000
        for name in ("a/b/\u00fc \"&+.bin", "not-unpacked.zip", "/tmp/../" + h.path("absolute")):
            box.write(name, data)
            equal(box.read(name) == data, True, name)
        box.write("text", "one\r\ntwo")
        equal(box.read("text"), b"one\r\ntwo")
        equal((box.read("text", 3), box.read("text", 7), box.read("text", 8)), (b"one\r", b"one\r\ntwo", b"one\r\ntwo"))
        box.write("text", b"")
        equal((box.read("text"), box.read("text", 10)), (b"", b""))
        raises(FileNotFoundError, "none", box.read, "none")
        raises(IsADirectoryError, "directory", box.read, "a")
        raises(IsADirectoryError, "directory", box.write, "a", "x")
        raises(FileExistsError, "text", box.write, "text/x", "x")
        os.makedirs(h.path("tree", "sub"))
        with open(h.path("tree", "sub", "f"), "wb") as f:
            f.write(data)
        box.execute(["mkdir", "up"])
        box.put(h.path("tree"), "up")
        equal(box.read("up/tree/sub/f") == data, True)
        os.mkdir(h.path("down"))
        box.get("up/tree", h.path("down"))
        with open(h.path("down", "tree", "sub", "f"), "rb") as f:
            equal(f.read() == data, True)
        # from the shell's directory on, as of the command
        box.run("mkdir -p in && cd in")
        with open(h.path("-f"), "wb") as f:
            f.write(b"1")
        os.chmod(f.name, 0o700)
        box.put(f.name)
        box.put(f.name, "-g")
        equal(box.run("ls; stat -c %a -- -f -g").output.split(), ["-f", "-g", "700", "700"])
        box.get("-f", h.path("down"))
        equal(os.path.exists(h.path("down", "-f")), True)
        os.mkfifo(h.path("tree", "fifo"))
        raises(HandrailError, "fifo: a FIFO is not copied", box.put, h.path("tree"), "odd")


def variables():
    """What is in one is no argument of the command, since all users see those."""
    with User() as h:
        words, program = h.path("tmp", "words"), h.path("cwd", "handrail")
        with open(program, "w") as f:
            f.write('#!/bin/sh\nprintf "%%s\\n" "$@" >>%s\nexec %s "$@"\n' % (words, os.environ["HANDRAIL"]))
        os.chmod(program, 0o755)
        with Sandbox.up("local", env={"SECRET": "to be= kept", "N": 1}, program=program) as box:
            equal(box.run('echo "$SECRET" $N').output, "to be= kept 1")
            secret = uuid.uuid4().hex
            for user in [None] + ["nobody"] * (os.geteuid() == 0):
                # a child: what has been put in the place of something else no longer shows its arguments
                done = box.execute(["sh", "-c", 'echo "$SECRET"; cat /proc/[0-9]*/cmdline | tr "\\0" " "'],
                                   env={"SECRET": secret}, user=user)
                equal((done.stdout.startswith(secret), done.stdout.count(secret)), (True, 1), user)
        with open(words) as f:
            said = f.read()
        equal(("up" in said.split("\n"), "kept" in said), (True, False), said)


def sandboxes():
    """It is found by its name, the key is in no argument, and what cannot be is said."""
    with User() as h:
        box = Sandbox.up("local", "one")
        same = Sandbox.attach("one")
        equal((same.url, same.key, len(box.key) >= 32), (box.url, box.key, True))
        equal([pid for pid in process.all_pids() if box.key in process.command_line(pid)], [])
        raises(HandrailError, "Invalid API Key", Sandbox(box.url, "wrong").run, "true")
        raises(HandrailError, "Not authenticated", Sandbox(box.url, "wrong").execute, ["true"])
        box.down()
        raises(HandrailError, "one", Sandbox.attach, "one")
        Sandbox.up(name="two").down()  # of the kind that the settings name, which is local
        if os.path.exists(h.path("home", ".bashrc")):
            with open(h.path("home", ".bashrc")) as f:
                equal("SWEREX" in f.read(), False, "the user's own file")
        h.ok("up", "-q", "-n", "closed", "-p", "none")
        raises(HandrailError, "HANDRAIL_SWEREX=true", Sandbox.attach, "closed")
        raises(HandrailError, "there is no command", Sandbox.up, program=h.path("handrail"))
        raises(HandrailError, "no-such-kind", Sandbox.up, "no-such-kind")
        h.ok("down", "-q", "closed")
        with mock.patch.object(Sandbox, "execute", side_effect=HandrailError("no answer")):
            raises(HandrailError, "no answer", Sandbox.up, "local")
            equal(h.ok("ps", "--json").strip(), "[]", "nobody knows its name: it is ended")
            raises(HandrailError, "no answer", Sandbox.up, "local", "three")
        Sandbox.attach("three").down()


def branches():
    """Branches have the files and the shell of their box, `with` ends those in the list, and a snapshot the files."""
    why = why_none(os.geteuid())
    if why:
        raise Skip(why)
    with User() as h:
        with Sandbox.up("box", "one", env={"FROM_UP": "1"}) as box:
            box.run("cd /workspace; A=1; echo kept >file")
            with box.fork(3) as made:
                equal([b.run("echo $A $FROM_UP; cat file; A=%d; echo %d >file" % (i, i))
                       for i, b in enumerate(made)], [(0, "1 1\nkept", "/workspace")] * 3)
                equal([b.execute(["cat", "file"], cwd="/workspace").stdout for b in made], ["0\n", "1\n", "2\n"])
                best = made.pop(1)
            equal(sorted(h.ok("ps", "-q").split()), sorted(["one", best.name]))
            equal((best.run("echo $A").output, box.run("echo $A; cat file").output), ("1", "1\nkept"))
            best.down()
            equal([b.name for b in box.fork(2, "way")], ["way-1", "way-2"])
            raises(HandrailError, 'there is a sandbox "way-1" already', box.fork, 2, "way")
            h.ok("down", "-q", "way-1", "way-2")
            box.run("exec 7>open")
            raises(HandrailError, "open for writing", box.fork)
            with box.fork(freeze=True) as made:
                try:
                    with box.fork(freeze=True) as more:
                        more[0].down()
                        raise KeyError("of the body")
                except KeyError:
                    pass
                made[0].down()
                raises(HandrailError, made[0].name, made.down)
                made.clear()
            with mock.patch.object(Sandbox, "attach", side_effect=HandrailError("no answer")):
                raises(HandrailError, "no answer", box.fork, 2, freeze=True)
            equal(h.ok("ps", "-q").split(), ["one"], "none is left")
            equal([box.snapshot(), box.snapshot("tag")], ["one-1", "tag"])
        with Sandbox.from_snapshot("tag", env={"FROM_UP": "2"}) as box:
            equal(box.run("cat /workspace/file; echo $A$FROM_UP").output, "kept\n2")
        raises(HandrailError, 'no snapshot "other"', Sandbox.from_snapshot, "other")
        h.ok("snapshot", "rm", "-q", "one-1", "tag")
        equal(Branches().down(), None)
        with Sandbox.up("local") as box:
            raises(HandrailError, "cannot fork", box.fork)


class Foreign(http.server.BaseHTTPRequestHandler):
    """Answers as a proxy might."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self):
        status, body = self.server.answer
        if status:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + self.server.missing))
            self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *unused):
        pass


def foreign_answers():
    """What is no answer of a sandbox is an error of ours, without the words of somebody else."""
    with http.server.HTTPServer(("127.0.0.1", 0), Foreign) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        box = Sandbox("http://127.0.0.1:%d" % server.server_port, "key")
        calls = [(box.run, "true"), (box.execute, ["true"]), (box.write, "f", b"x"), (box.read, "f")]
        try:
            for status, body, missing, said in (
                    (502, b"<html>their words</html>", 0, "status 502: the answer is not a JSON object"),
                    (500, b"[" * 100000, 0, "not a JSON object"), (500, b'["their words"]', 0, "not a JSON object"),
                    (500, b"\xff\xfe", 0, "not a JSON object"), (500, b"", 0, "not a JSON object"),
                    (500, b'{"detail": "x"}', 9, "is cut"), (0, b"no HTTP\r\n\r\n", 0, "is cut, or no HTTP")):
                server.answer, server.missing = (status, body), missing
                for call, *args in calls:
                    raises(HandrailError, said, call, *args)
            for status, body in ((200, b'{"their": "words"}'), (511, b"{}"), (511, b'{"swerexception": "x"}'),
                                 (200, b'{"observation": "run", "content": "x", "extras": []}')):
                server.answer, server.missing = (status, body), 0
                for call, *args in calls[:2]:
                    raises(HandrailError, "status %d: the answer is none of handrail's" % status, call, *args)
        finally:
            server.shutdown()
            thread.join()


class Environment:
    """What the base of Harbor's environments has of which ours makes use."""

    def __init__(self, environment_dir, session_id):
        self.environment_dir, self.session_id, self.environment_name = environment_dir, session_id, "A Task"
        self.task_env_config = types.SimpleNamespace(workdir=None, docker_image=None)

    def _mount_targets(self, writable_only):
        return []

    async def ensure_dirs(self, directories):
        pass

    async def _upload_environment_dir_after_start(self):
        pass

    def _merge_env(self, env):
        return env

    def _resolve_user(self, user):
        return user


def harbor_modules():
    """Harbor, as far as its environment of ours imports it."""
    result = lambda **fields: types.SimpleNamespace(**fields)  # noqa: E731
    names = {"harbor": {}, "harbor.environments": {}, "harbor.environments.base": {
        "BaseEnvironment": Environment, "ExecResult": result}, "harbor.environments.capabilities": {
        "EnvironmentCapabilities": dict, "EnvironmentResourceCapabilities": dict}}
    modules = {name: types.ModuleType(name) for name in names}
    for name, fields in names.items():
        vars(modules[name]).update(fields)
    return mock.patch.dict(sys.modules, modules)


def harbor():
    """A start that fails or is given up leaves no sandbox; a file keeps its mode."""
    with harbor_modules(), User() as h:
        from handrail_env.harbor import Handrail
        run, one = asyncio.run, Handrail(h.path("cwd"), "one", runtime="local")
        with mock.patch.object(Sandbox, "execute", side_effect=HandrailError("no answer")):
            raises(HandrailError, "no answer", run, one.start(False))
        equal(json.loads(h.ok("ps", "--json")), [], "nobody knows its name: it is ended")
        run(one.stop(True))

        async def given_up():
            begun, go, up = asyncio.Event(), threading.Event(), Sandbox.up
            loop = asyncio.get_running_loop()

            def late(*args, **more):
                loop.call_soon_threadsafe(begun.set)
                go.wait()
                return up(*args, **more)
            with mock.patch.object(Sandbox, "up", side_effect=late):
                start = asyncio.create_task(one.start(False))
                await begun.wait()
                start.cancel()
                await asyncio.wait([start])
                stop = asyncio.create_task(one.stop(True))
                go.set()
                await stop
        run(given_up())
        equal(json.loads(h.ok("ps", "--json")), [], "what came up later is ended")

        run(one.start(False))
        for mode in (0o755, 0o600):
            with open(h.path("source"), "w") as f:
                f.write("#!/bin/sh\necho $WORD\n")
            os.chmod(h.path("source"), mode)
            run(one.upload_file(h.path("source"), h.path("up", "target")))
            equal(os.stat(h.path("up", "target")).st_mode & 0o777, mode)
        os.chmod(h.path("up", "target"), 0o700)
        done = run(one.exec(h.path("up", "target"), env={"WORD": "said"}))
        equal((done.return_code, done.stdout, done.stderr), (0, "said\n", ""))
        run(one.stop(True))
        equal(json.loads(h.ok("ps", "--json")), [])


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A Docker Engine that has the images of `there` and a registry without any, and that builds whatever it is asked
    to, or fails with the words of `broken`."""

    daemon_threads = True

    def __init__(self, path):
        self.there, self.pulled, self.built, self.broken = set(), [], [], None
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *unused):
                pass

            def answer(self):
                n = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(n)
                while self.headers.get("Transfer-Encoding") == "chunked" and n == 0:
                    size = int(self.rfile.readline(), 16)
                    body += self.rfile.read(size + 2)[:size]
                    n = size == 0
                status, said = engine.route(urllib.parse.urlsplit(self.path), body)
                text = json.dumps(said).encode() + b"\n"
                self.send_response(status)
                self.send_header("api-version", "1.41")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

        super().__init__(path, Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def route(self, url, body):
        query = urllib.parse.parse_qs(url.query)
        if url.path == "/_ping":
            return 200, "OK"
        if url.path.endswith("/images/create"):
            self.pulled.append(query["fromImage"][0])
            return 200, {"error": "no such image"}
        if url.path.endswith("/build"):
            with tarfile.open(fileobj=io.BytesIO(body)) as tar:
                name = next(n for n in tar.getnames() if n.lstrip("./") == "Dockerfile")
                base = re.search("^FROM (.*)$", tar.extractfile(name).read().decode(), re.M).group(1)
            self.built.append((base, query["t"]))
            self.there |= set(query["t"])
            return 200, {"error": self.broken} if self.broken else {"stream": "done"}
        image = re.search("/images/(.*)/json$", url.path)
        if image and urllib.parse.unquote(image.group(1)) in self.there:
            return 200, {"Config": {"Labels": {"org.openhands.runtime": "c"}}}
        return 404, {"message": "No such image"}


def harbor_images():
    """The task's image, or what its Dockerfile makes, becomes the base of a runtime image, by the command's own words
    for that."""
    user = User()
    user.env.update(DOCKER_HOST="unix://" + user.path("socket"), HANDRAIL_IMAGE_KIT=user.path("kit"),
                    PATH=user.path("bin") + ":" + user.env["PATH"], RUNTIME="remote",
                    SANDBOX_REMOTE_RUNTIME_API_URL="http://127.0.0.1:1", SANDBOX_API_KEY="k")
    subprocess.run([os.path.join(SRC, "runtime-image/mkkit"), SRC, user.path("kit")], check=True)
    for name in ("src", "t", "doc", "man", "www", "packaging"):  # a build reads them all, to no end here
        shutil.rmtree(user.path("kit", "runtime", name))
    os.mkdir(user.path("bin"))
    with open(user.path("bin", "docker"), "w") as f:
        f.write("#!/bin/sh\necho \"$*\" >>%s\ncat %s && exit\necho no luck >&2\nexit 1\n"
                % (user.path("said"), user.path("id")))
    os.chmod(user.path("bin", "docker"), 0o755)
    engine = Engine(user.path("socket"))
    folder = pathlib.Path(user.path("cwd"))
    with harbor_modules(), user, mock.patch.object(Sandbox, "up") as up:
        from handrail_env.harbor import Handrail

        def started(image=None, force=False, **more):
            one = Handrail(folder, "one", **more)
            one.task_env_config.docker_image = image
            up.reset_mock()
            asyncio.run(one.start(force))
            equal(up.call_count, 1)
            kind, name, settings = up.call_args.args
            equal((kind, name, settings[1]), ("docker", "harbor-one", "core.run_as_openhands=false"))
            return settings[0]
        try:
            for image in ("debian:12", "localhost:5000/some/image:tag"):
                engine.built, engine.pulled = [], []
                said = started(image)
                equal((len(engine.built), engine.built[0][0], len(engine.pulled) > 0), (1, image, True), engine.built)
                equal(said.split("=", 1)[1] in engine.built[0][1], True, (said, engine.built))
                equal((started(image), len(engine.built)), (said, 1), "it is found")
            equal((started(image, settings=["a=b"]), up.call_args.args[2][2:]), (said, ["a=b"]))
            with open(folder / "Dockerfile", "w") as f:
                f.write("FROM scratch\n")
            engine.built, engine.pulled, found = [], [], []
            for id in "0123456789abcdef" * 4, "f" * 64:
                base = "a-task:" + id[:12]
                with open(user.path("id"), "w") as f:
                    f.write("sha256:%s\n" % id)
                for words in ((), ("debian:12", True)):
                    found.append(started(*words))
                    with open(user.path("said")) as f:
                        equal(f.read(), "build -q %s\ntag %s %s\n" % (folder, id, base))
                    os.unlink(user.path("said"))
                equal((engine.built[-1][0], engine.pulled), (base, []), "no registry is asked")
                equal(found[-1].split("=", 1)[1] in engine.built[-1][1], True, (found, engine.built))
            equal((len(engine.built), found[0] == found[1], len(set(found))), (2, True, 2), found)
            equal(started("debian:12") in found, False, "the task's image, where nothing else is asked for")
            os.unlink(user.path("id"))
            raises(HandrailError, "no luck", started)
            engine.there, engine.broken = set(), "the disk is full"
            raises(HandrailError, "the disk is full", started, "debian:12")
        finally:
            engine.shutdown()
            engine.server_close()


def openhands():
    """Without the SDK of OpenHands the module names what to install."""
    absent = {name: None for name in ("openhands", "openhands.sdk", "openhands.tools")}
    with mock.patch.dict(sys.modules, absent):
        raises(ImportError, "pip install openhands-sdk openhands-tools", __import__, "handrail_env.openhands")


if __name__ == "__main__":
    sys.exit(run_tests([commands, at_a_fleet, busy, the_first_error_counts, files, variables, sandboxes,
                        branches, foreign_answers, harbor, harbor_images, openhands]))
