#!/usr/bin/env python3
"""The unmodified client of OpenHands 0.62, runtime="remote", against a fleet of ours, by hand, in the build directory:

    python3.12 -m venv V && V/bin/pip install openhands-ai==0.62.0
    V/bin/python ../t/e2e/fleet_openhands.py [--local | --box | --image NAME] [TEST...]

Sandboxes are containers of the Engine in DOCKER_HOST, or, as root with docker.io, of one of its own; of an image that
is made of what this machine has, or of NAME, one of `handrail image build`. --local and --box: of these kinds, without
an Engine.
test_fleet_docker.py sends again what it once sent."""

import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading

try:
    import openhands.runtime.impl.remote.remote_runtime as client
except ModuleNotFoundError:
    client = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import dockerhost, process  # noqa: E402
from lib.fleet import Fleet  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Skip, Tap, equal, skip_all  # noqa: E402

IMAGE, KIND = dockerhost.IMAGE, "docker"


class Service(Fleet):
    def __init__(self, *options):
        self.clients = []
        if KIND != "docker":
            super().__init__(*options, kind=KIND)
            return
        # those of one's own Engine have no network of theirs
        super().__init__("--set", "sandbox.use_host_network=true", "--set", "sandbox.runtime_binding_address=127.0.0.1",
                         "--set", "core.run_as_openhands=false", *options, kind="docker",
                         DOCKER_HOST=os.environ["DOCKER_HOST"])

    def connect(self, sid, attach=False, **sandbox):
        """A client that has connected."""
        from openhands.core.config import OpenHandsConfig
        from openhands.events import EventStream
        from openhands.llm.llm_registry import LLMRegistry
        from openhands.runtime.plugins import AgentSkillsRequirement
        from openhands.storage.memory import InMemoryFileStore

        config = OpenHandsConfig(runtime="remote", run_as_openhands=False)
        for name, value in dict(
                api_key=self.key, remote_runtime_api_url="http://127.0.0.1:%d" % self.port,
                runtime_container_image=IMAGE, runtime_startup_env_vars={"GREETING": "hello world"},
                **sandbox).items():
            setattr(config.sandbox, name, value)
        c = client.RemoteRuntime(config, EventStream(sid, InMemoryFileStore()), LLMRegistry(config), sid,
                                 plugins=[AgentSkillsRequirement()], attach_to_existing=attach)
        self.clients.append(c)
        asyncio.run(c.connect())
        return c

    def __exit__(self, *unused):
        for c in self.clients:  # which close at the end of the program once more
            c._runtime_closed = True
        super().__exit__(*unused)

    def state(self, c):
        return self.call("GET", "/runtime/" + c.runtime_id)[1]["state"]


def run(c, command, exit_code=0):
    from openhands.events.action import CmdRunAction

    o = c.run_action(CmdRunAction(command))
    equal((o.observation, o.exit_code), ("run", exit_code), o)
    return o.content


def need_pause():
    if KIND == "local":
        raise Skip("the kind local cannot be paused: run it with an Engine, without --local")


def conversation():
    """Starts, runs, reads, writes, edits, moves files, and stops."""
    from openhands.events.action import FileEditAction, FileReadAction, FileWriteAction

    with Service() as f, tempfile.TemporaryDirectory() as here:
        c = f.connect("one")
        equal(run(c, 'echo "$GREETING"'), "hello world")
        equal(run(c, "cd /tmp && export A=7; false", 1), "")
        equal(run(c, "echo $A; pwd"), "7\n/tmp")
        top = run(c, "mkdir -p work/dir && cd work && pwd")
        equal(c.run_action(FileWriteAction(top + "/hello.txt", "hi\nyou\n")).observation, "write")
        equal(c.run_action(FileReadAction(top + "/hello.txt")).content, "hi\nyou\n\n", "as the original reads")
        o = c.run_action(FileEditAction(top + "/hello.txt", command="str_replace", old_str="you", new_str="they"))
        equal((o.observation, run(c, "cat hello.txt")), ("edit", "hi\nthey"), o)
        o = c.run_action(FileReadAction("/nonexistent/file"))
        equal(o.observation, "error", o)
        for name, text in (("a", b"bytes\0\n" * 500000), ("dir/b", b"b")):
            os.makedirs(os.path.dirname(os.path.join(here, "up", name)), exist_ok=True)
            with open(os.path.join(here, "up", name), "wb") as out:
                out.write(text)
        c.copy_to(os.path.join(here, "up", "a"), top)
        c.copy_to(os.path.join(here, "up"), top, recursive=True)
        equal(run(c, "stat -c '%n %s' a up/a up/dir/b"), "a 3500000\nup/a 3500000\nup/dir/b 1")
        equal(c.list_files(top), ["dir/", "up/", "a", "hello.txt"], "directories first")
        zipped = c.copy_from(top)
        shutil.unpack_archive(zipped, os.path.join(here, "down"), "zip")
        os.unlink(zipped)
        found = sorted(n for _, _, names in os.walk(os.path.join(here, "down")) for n in names)
        equal(found, ["a", "a", "b", "hello.txt"])
        c.close()
        f.until(lambda: f.state(c), lambda s: s == "stopped")


def pause_and_attach():
    """A close that pauses; the next client resumes it, one attaches to that, and a request alone wakes it as well."""
    need_pause()
    with Service("--set", "sandbox.docker_pause_mode=freeze", "--domain", "dom.example") as f:
        a = f.connect("two", keep_runtime_alive=True)
        run(a, "cd /tmp; B=8")
        a.close()
        f.until(lambda: f.state(a), lambda s: s == "paused")
        b = f.connect("two", keep_runtime_alive=True)
        equal(b.runtime_id, a.runtime_id, "the same sandbox")
        equal(run(b, "echo $GREETING $B"), "hello world 8", "and its shell, which was frozen")
        c = f.connect("two", attach=True)
        equal((c.runtime_id, run(c, "echo $GREETING")), (a.runtime_id, "hello world"))
        equal(list(c.web_hosts), ["http://work-%d-%s.dom.example:%d" % (i, c.runtime_id, f.port) for i in (1, 2)])
        c.close()
        equal(f.state(b), "running", "one that attached ends nothing")
        equal(f.call("POST", "/pause", {"runtime_id": b.runtime_id})[0], 200)
        f.until(lambda: f.state(b), lambda s: s == "paused")
        equal(run(b, "echo woken"), "woken")
        b.config.sandbox.keep_runtime_alive = False
        b.close()
        f.until(lambda: f.state(b), lambda s: s == "stopped")
        try:
            f.connect("nobodys", attach=True)
            raise AssertionError("attached to none")
        except client.AgentRuntimeNotFoundError:
            pass


class Said(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def a_resume_that_takes_long():
    """The edge answers 503 after its 30 seconds; the client asks for a resume, waits, and sends the request again. One
    that has started it would wait for itself: it sets the environment anew while its action holds the semaphore."""
    need_pause()
    if KIND == "box":
        raise Skip("a box is resumed in milliseconds, too fast to be held: run it with an Engine, without --box")
    said, stopped = Said(), threading.Event()
    with Service() as f:
        f.up("three", image=IMAGE)
        c = f.connect("three", attach=True, keep_runtime_alive=True)
        equal(f.call("POST", "/pause", {"runtime_id": c.runtime_id})[0], 200)
        f.until(lambda: f.state(c), lambda s: s == "paused")

        def hold():
            """Stops who resumes it, for longer than the edge waits."""
            helper = f.until(lambda: [p for p in process.children(f.process.pid)
                                      if "--call resume" in process.command_line(p)], bool)[0]
            os.kill(helper, signal.SIGSTOP)
            stopped.set()
            threading.Event().wait(35)
            os.kill(helper, signal.SIGCONT)

        client.logger.addHandler(said)
        t = threading.Thread(target=hold)
        t.start()
        try:
            equal(run(c, "echo at last"), "at last")
        finally:
            t.join()
            client.logger.removeHandler(said)
        equal([stopped.is_set(), any("503 response" in s for s in said.lines)], [True, True], said.lines)
        c.close()


def one_that_died():
    """What becomes of it is told, and the next connect starts another one."""
    with Service() as f:
        c = f.connect("four")
        was = c.runtime_id
        if KIND == "box":
            with open(f.path("fleet", "sandboxes", was + ".json")) as record:
                os.kill(json.load(record)["backend"]["pid"], signal.SIGKILL)
        elif KIND == "local":
            for pid in [p for p in process.all_pids() if "handraild" in process.command_line(p) and
                        "nginx" not in process.command_line(p) and f.top in process.command_line(p)]:
                os.kill(pid, signal.SIGKILL)
        else:
            dockerhost.docker("kill", "openhands-runtime-" + was)
        f.until(lambda: f.state(c), lambda s: s == "died")
        c._runtime_closed = True  # it is gone: nothing is to be stopped
        d = f.connect("four")
        equal((d.runtime_id != was, run(d, "echo $GREETING")), (True, "hello world"))
        d.close()


TESTS = [conversation, pause_and_attach, a_resume_that_takes_long, one_that_died]


def main():
    global IMAGE, KIND

    if client is None:
        skip_all("needs the package openhands-ai: see the beginning of this file")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("local", "box"):
        p.add_argument("--" + kind, action="store_const", const=kind, dest="kind", default=KIND)
    p.add_argument("--image")
    p.add_argument("tests", nargs="*", metavar="TEST")
    options = p.parse_args()
    KIND = options.kind
    process.become_subreaper()
    tap, top = Tap(), tempfile.mkdtemp(prefix="fleet-openhands-")
    try:
        if KIND == "docker":
            dockerhost.find_engine()
            IMAGE = options.image or IMAGE
            if not options.image:
                dockerhost.make_image(top)
        for test in TESTS:
            if not options.tests or test.__name__ in options.tests:
                tap.run(test.__name__.replace("_", " "), test)
    finally:
        if KIND == "docker" and not options.image:
            dockerhost.docker("rmi", "-f", dockerhost.IMAGE)
        shutil.rmtree(top, ignore_errors=True)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
