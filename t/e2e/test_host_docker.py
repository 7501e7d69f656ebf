#!/usr/bin/env python3
"""Sandboxes of the kind "docker" and builds of images, with a real Engine: the one of DOCKER_HOST, or for
root one that is started for this test (docker-engine)."""

import contextlib
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.dockerhost import IMAGE, DockerHost, docker, find_engine, make_image  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

def life_of_a_container():
    with DockerHost() as h:
        h.ok("up", "-e", "GREETING=it's \"me\"")
        equal(h.ok("run", "echo \"$GREETING\"; cd /tmp"), "it's \"me\"\n", "a variable")
        equal(h.ok("run", "pwd"), "/tmp\n", "the same shell from a second process")
        equal(h("run", "exit 3; false").returncode != 0, True, "status")
        listed = json.loads(h.ok("ps", "--json"))[0]
        equal((listed["state"], listed["image"], listed["idle"] >= 0, listed["memory_bytes"] > 0,
               listed["cpu_percent"] >= 0), ("running", IMAGE, True, True, True), "state and use")
        equal(h("sh", "test", "-e", "/openhands/sbin/handraild").returncode, 0, "a program in it")
        with open(h.path("cwd", "file"), "w") as f:
            f.write("content\n")
        h.ok("put", "file", "/tmp/in/")
        equal(h.ok("run", "cat /tmp/in/file"), "content\n", "copied in")
        h.ok("get", "/tmp/in", "out")
        with open(h.path("cwd", "out", "file")) as f:
            equal(f.read(), "content\n", "copied out")
        equal("ready: listening" in h.ok("logs"), True, "log")
        equal(json.loads(h.ok("top", "--json"))["pids"] > 1, True, "use")
        ports = [int(e.split("=")[1]) for e in h.inspect()["Config"]["Env"] if e.startswith("APP_PORT_")]
        urls = json.loads(h.ok("url", "--json"))
        equal((urls["vscode"], urls["web_hosts"]), (None, {"http://localhost:%d" % p: p for p in ports}), "addresses")
        h.ok("down")
        equal(docker("inspect", "openhands-runtime-" + h.name).returncode, 1, "the container is gone")
        done = h("up", "-q", "--run", "git config --global user.name; (exit 3)")
        equal((done.returncode, done.stdout, done.stderr), (3, "openhands\n", ""), "another, and its first command")
        h.ok("down")
        equal(os.listdir(h.path("state")), [], "and its record")


def git_views():
    """In an image that has nothing at the path that clients ask for, and then in one that has."""
    with DockerHost() as h:
        h.ok("up")
        h.ok("run", "cd /workspace && git init -q . && echo x >a")
        want = [{"status": "A", "path": "a"}]
        equal(json.loads(h.ok("repo", "changes", "--json")), want, "given the helper")
        equal(json.loads(h.ok("repo", "diff", "--json", "a")), {"original": "", "modified": "x"}, "given the helper")
        with open(os.path.join(SRC, "runtime-image/python3.sh.in")) as f:
            text = f.read().replace("@prefix@", "/openhands")
        with open(h.path("cwd", "python3"), "w") as f:
            f.write(text)
        h.ok("put", "python3", "/usr/bin")
        h.ok("run", "chmod 755 /usr/bin/python3; rm /usr/bin/mktemp")
        equal(json.loads(h.ok("repo", "changes", "--json")), want, "its own")
        equal(json.loads(h.ok("repo", "diff", "--json", "a")), {"original": "", "modified": "x"}, "its own")


def create_request():
    """What the Engine was asked for is what an unmodified client asks for."""
    with DockerHost(SANDBOX_VOLUMES="/tmp:/mnt/t:ro,volume:%s:/cache" % ("v%d" % os.getpid())) as h:
        h.ok("up", "-e", "a=b", "-p", "agent_skills", "-p", "jupyter")
        c = h.inspect()
        port = [e for e in c["Config"]["Env"] if e.startswith("port=")][0][5:]
        equal(c["Config"]["Cmd"], "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m "
              "openhands.runtime.action_execution_server".split() + [port, "--working-dir", "/workspace", "--plugins",
              "agent_skills", "jupyter", "--username", "root", "--user-id", "0"])
        names = [e.split("=")[0] for e in c["Config"]["Env"]]
        equal(names[:8], ["a", "port", "PYTHONUNBUFFERED", "VSCODE_PORT", "APP_PORT_1", "APP_PORT_2",
                          "OPENHANDS_SESSION_ID", "PIP_BREAK_SYSTEM_PACKAGES"], "environment")
        equal((c["Config"]["WorkingDir"].rstrip("/"), c["Config"]["Entrypoint"] or []), ("/openhands/code", []))
        equal(sorted(c["HostConfig"]["Binds"]), ["/tmp:/mnt/t:ro", "v%d:/cache:rw" % os.getpid()], "binds")
        equal(c["HostConfig"]["NetworkMode"], "host", "network")
    docker("volume", "rm", "v%d" % os.getpid())


def pause_and_resume():
    for mode, state in (("stop", "exited"), ("freeze", "paused")):
        with DockerHost(SANDBOX_DOCKER_PAUSE_MODE=mode) as h:
            h.ok("up", "-e", "KEPT=yes")
            h.ok("pause")
            equal(h.inspect()["State"]["Status"], state, mode)
            h.ok("resume")
            equal(h.ok("run", "echo $KEPT"), "yes\n", mode + ": a variable that stays")
            h.ok("stop")
            equal(h.inspect()["State"]["Status"], "exited", mode + ": stop is what docker's is")
            h.ok("start")
            equal(h.ok("run", "echo $KEPT"), "yes\n", mode + ": it goes on")


def closing():
    """A program that closes its sandbox stops that container only, and none that is to be kept alive."""
    program = [os.path.join(BUILD, "t/host/program"), "docker", '{"action": "run", "args": {"command": "true"}}']
    name = "openhands-runtime-program"
    with DockerHost() as h:
        h.ok("up")
        try:
            for keep, state in (("true", "running"), ("false", "exited")):
                done = subprocess.run(program, env=dict(h.env, SANDBOX_KEEP_RUNTIME_ALIVE=keep), cwd=h.path("cwd"),
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                equal(done.returncode, 0, done.stderr)
                equal(json.loads(docker("inspect", name).stdout)[0]["State"]["Status"], state, "kept alive: " + keep)
        finally:
            docker("rm", "-f", name)
        equal(h.inspect()["State"]["Status"], "running", "another one")


def log_stream():
    """A program follows a container's log by its own wish, or with DEBUG_RUNTIME, which hides what is secret."""
    for debug, word, text in (
            ({}, "reloaded", "1 lines, the first reloaded\n1 after it was stopped\nagain\n"),
            ({"DEBUG_RUNTIME": "true"}, "reloaded", "reloaded\n"),
            ({"DEBUG_RUNTIME": "true", "GITHUB_TOKEN": "reloaded"}, "******", "******\n")):
        with DockerHost() as h:
            done = subprocess.run([os.path.join(BUILD, "t/host/streamer"), "docker", h.path("state"),
                                   "kill -HUP 1", word, "1"],
                                  env=dict(h.env, **debug), cwd=h.path("cwd"), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE, universal_newlines=True)
            equal((done.returncode, done.stdout), (0, "before: the sandbox is not connected\n" + text), done.stderr)
            equal(docker("inspect", "openhands-runtime-streamer").returncode, 1, "it is gone")
            equal("Error streaming" in done.stderr, False, done.stderr)


def pool():
    """One that waits is a frozen container, which takes the name of the sandbox it becomes."""
    with DockerHost() as h:
        h.ok("pool", "1")
        names = [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")]
        with open(h.path("state", "warm", names[0])) as f:
            record = json.load(f)
        warm = "openhands-runtime-" + record["sid"]
        c = json.loads(docker("inspect", warm).stdout)[0]
        equal((c["Id"], c["State"]["Status"]), (record["backend"]["id"], "paused"), "it waits")
        h.ok("up", "-e", "X=it's")
        equal((h.inspect()["Id"], h.inspect()["State"]["Status"]), (c["Id"], "running"), "the same one")
        equal(docker("inspect", warm).returncode, 1, "under its new name only")
        equal(h.ok("run", "echo $X"), "it's\n", "a variable")
        h.ok("pool", "1")
        h.ok("down")
        left = docker("ps", "-aq", "--filter", "name=openhands-runtime-warm-").stdout.decode().split()
        equal(left, [], "with the last sandbox all end")


def pool_with_a_dead_one():
    """One that cannot go on gives the name back and is removed; another is made."""
    with DockerHost() as h:
        h.ok("pool", "1")
        names = [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")]
        with open(h.path("state", "warm", names[0])) as f:
            backend = json.load(f)["backend"]
        equal(docker("kill", backend["id"]).returncode, 0, "it dies")
        with socket.socket() as taken:  # so that it does not come back
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("0.0.0.0", backend["port"]))
            taken.listen()
            h.ok("up")
        equal(h.inspect()["Id"] != backend["id"], True, "another one")
        equal(h.record(h.name)["sid"], h.name, "which is recorded")
        equal(docker("inspect", backend["id"]).returncode, 1, "the dead one is removed")
        equal(h.ok("run", "echo hi"), "hi\n", "it answers")


def pool_with_a_killed_taker():
    """Its record has moved, and nobody is there to finish it: "down" knows it by its record."""
    for renamed in (False, True):
        with DockerHost() as h:
            h.ok("pool", "1")
            names = [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")]
            os.rename(h.path("state", "warm", names[0]), h.path("state", h.name + ".json"))
            id = h.record(h.name)["backend"]["id"]
            if renamed:
                docker("rename", id, "openhands-runtime-" + h.name)
            h.fails(5, "is not ready yet", "run", "true")
            h.ok("down")
            equal(docker("inspect", id).returncode, 1, "it is removed")
            equal([n for n in os.listdir(h.path("state", "warm")) if not n.startswith(".")], [], "and forgotten")


def limits_are_enforced():
    with DockerHost(SANDBOX_LIMITS_PROFILE="standard", SANDBOX_LIMITS_MEM_LIMIT="128m", SANDBOX_LIMITS_PIDS="100",
                    SANDBOX_LIMITS_ULIMIT_NOFILE="700",
                    SANDBOX_DOCKER_RUNTIME_KWARGS="{'cpu_quota': 50000, 'shm_size': '1m'}") as h:
        h.ok("up")
        c = h.inspect()["HostConfig"]
        equal([c[k] for k in ("Memory", "MemorySwap", "CpuPeriod", "CpuQuota", "PidsLimit", "ShmSize")],
              [128 << 20, 128 << 20, 100000, 50000, 100, 1 << 20], "limits")
        equal(json.loads(h.ok("top", "--json"))["mem_limit_bytes"], 128 << 20, "as the Engine sees it")
        equal(h.ok("run", "ulimit -n"), "700\n", "open files")
        # more than there is: the program dies, the server does not
        done = h("run", "-t", "60", "dd if=/dev/zero of=/dev/null bs=300M count=1; echo after $?")
        equal("after 137" in done.stdout or "after 1" in done.stdout, True, done.stdout + done.stderr)
        equal(h.ok("run", "echo alive"), "alive\n", "the sandbox lives")


def wrong_values():
    with DockerHost() as h:
        for key, value, text in (
                ("sandbox.limits.cpu_quota", "10", "Invalid value for sandbox.limits.cpu_quota: 10"),
                ("sandbox.limits.mem_limit", "much", "Invalid value for sandbox.limits.mem_limit: much"),
                ("sandbox.security.devices", "['/etc/passwd']", "Invalid value for sandbox.security.devices"),
                ("sandbox.security.network_mode", "none", "Invalid value for sandbox.security.network_mode"),
                ("sandbox.docker_runtime_kwargs", "{'nothing': 1}", "unexpected keyword argument 'nothing'"),
                ("sandbox.docker_runtime_kwargs", "{'mem_limit': '4x'}", "mem_limit: must be a number with")):
            h.fails(1, text, "up", "-s", "%s=%s" % (key, value))
        done = h("up", "-s", "sandbox.runtime_container_image=handrail-no-such-image:1")
        equal(done.returncode in (1, 3, 5), True, done.stderr)
        equal(docker("inspect", "openhands-runtime-" + h.name).returncode, 1, "nothing was left")


def killed_container():
    with DockerHost() as h:
        h.ok("up")
        docker("kill", "openhands-runtime-" + h.name)
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "exited", "state")
        equal(h("run", "true").returncode, 5, "its server does not answer")
        h.ok("up")
        equal(h.ok("run", "echo again"), "again\n", "started again")


def there():
    return docker("ps", "-aq", "--no-trunc", "--filter", "name=openhands-runtime-t%d" % os.getpid(),
                  universal_newlines=True).stdout.split()


def only_what_was_made_is_removed():
    """A container that was found by its name, also a stopped one, is not removed where it cannot be set up."""
    with DockerHost() as h:
        h.ok("up")
        h.ok("run", "rm -f ~/.bashrc && mkdir ~/.bashrc")
        was = there()
        for again in (lambda: None, lambda: docker("stop", "-t", "1", was[0])):
            os.unlink(h.path("state", h.name + ".json"))
            again()
            h.env["SANDBOX_ENV_X"] = "1"
            done = h("up")
            equal((done.returncode > 0, ".bashrc" in done.stderr, there()), (True, True, was), done.stderr)
            h.env.pop("SANDBOX_ENV_X")
            h.fails(1, "--env counts only for a new one", "up", "-e", "A=1")
            h.ok("up")
            equal((there(), h.ok("run", "echo well")), (was, "well\n"), "it is as it was")


def of_other_owners():
    """A container of the name that another client or user has made is neither used nor removed."""
    with DockerHost() as h:
        name = "openhands-runtime-" + h.name
        for label, shown in ((("--label", "handrail.owner=other-1-1-1.1"), '"other-1-1-1.1"'), ((), "missing")):
            equal(docker("create", "--name", name, *label, IMAGE, "true").returncode, 0)
            was = there()
            h.fails(1, "the container %s is not yours: its label handrail.owner is %s" % (name, shown), "up")
            equal((h("down").returncode, there()), (3, was), "it is left alone")
            docker("rm", "-f", name)
        h.ok("up")
        record = h.record(h.name)
        docker("rm", "-f", name)
        equal(docker("create", "--name", name, IMAGE, "true").returncode, 0)
        was = there()
        for words in (("pause",), ("logs",), ("top",), ("resume",)):
            equal((h(*words).returncode > 0, there()), (True, was), "another one of the name: " + words[0])
        h.fails(1, "is not yours", "up")
        h.ok("down")
        equal(there(), was, "the end of a recorded one is not that of another one of its name")
        docker("rm", "-f", name)
        h.ok("up")
        with open(h.path("state", h.name + ".json")) as f:
            text = f.read()
        equal(record["backend"]["id"] != h.record(h.name)["backend"]["id"], True)
        equal("handrail.owner" in text, False)
        os.unlink(h.path("state", h.name + ".json"))
        h.ok("up", "--any-owner")


def start_that_fails():
    with DockerHost(SANDBOX_RUNTIME_STARTUP_ENV_VARS="{'NO_CHANGE_TIMEOUT_SECONDS': 'x'}") as h:
        done = h("up")
        equal((done.returncode, "has exited" in done.stderr), (5, True), done.stderr)
        equal(docker("inspect", "openhands-runtime-" + h.name).returncode, 1, "nothing was left")


def started(name, since):
    """The id of the container, when it is started."""
    told = subprocess.Popen(["docker", "events", "--since", "%.6f" % since, "--filter", "event=start", "--filter",
                             "container=openhands-runtime-" + name, "--format", "{{.ID}}"], stdout=subprocess.PIPE,
                            universal_newlines=True)
    container = told.stdout.readline().strip()
    told.kill()
    told.communicate()
    equal(container != "", True, "it is told of")
    return container


def taken_port():
    """Another program takes the server's port between its choice and the server's start: the sandbox gets another."""
    engine, took = os.environ["DOCKER_HOST"][len("unix://"):], []

    def carry(a, b):
        with contextlib.suppress(ConnectionError):
            for data in iter(lambda: a.recv(1 << 16), b""):
                port = re.search(rb'"port=(\d+)"', data)
                if port and not took:
                    took.append(socket.create_server(("127.0.0.1", int(port.group(1)))))
                b.sendall(data)
        with contextlib.suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.socket(socket.AF_UNIX) as to:
                to.connect(engine)
                back = threading.Thread(target=carry, args=(to, self.request))
                back.start()
                carry(self.request, to)
                back.join()

    with tempfile.TemporaryDirectory(prefix="e2e-engine-") as top:
        at = os.path.join(top, "socket")
        with socketserver.ThreadingUnixStreamServer(at, Handler) as proxy:
            proxy.daemon_threads = True
            threading.Thread(target=proxy.serve_forever).start()
            try:
                with DockerHost(DOCKER_HOST="unix://" + at) as h:
                    done = h("up")
                    assert len(took) == 1, done.stderr
                    report = "another program took port %d " % took[0].getsockname()[1]
                    equal((done.returncode, report in done.stderr), (0, True), done.stderr)
                    equal(h.ok("run", "echo on"), "on\n")
            finally:
                proxy.shutdown()
                for listener in took:
                    listener.close()


def start_that_is_killed():
    """A container that is not ready is known by its record: "down" removes it, "up" makes another."""
    image = IMAGE + "-slow"
    with DockerHost(SANDBOX_RUNTIME_CONTAINER_IMAGE=image) as h:
        with open(h.path("cwd", "Dockerfile"), "w") as f:
            f.write("FROM %s\nCOPY never /openhands/micromamba/bin/micromamba\n" % IMAGE)
        with open(h.path("cwd", "never"), "w") as f:
            f.write("#!/bin/sh\nexec tail -f /dev/null\n")
        os.chmod(h.path("cwd", "never"), 0o755)
        done = docker("build", "-q", "-t", image, h.path("cwd"), env=dict(os.environ, DOCKER_BUILDKIT="0"))
        equal(done.returncode, 0, done.stderr)
        os.mkdir(h.path("state"), 0o700)
        for end in ("down", "up"):
            h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = image
            begun = time.time()
            p = h.popen("up", "-n", h.name)
            container = started(h.name, begun)
            p.kill()
            p.communicate()
            h.fails(5, "its start was interrupted", "run", "true")
            h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = IMAGE
            h.ok(end)
            equal(docker("inspect", container).returncode, 1, "removed by " + end)
        equal(h.ok("run", "echo hi"), "hi\n", "another one")
        h.ok("down")
        docker("rmi", "-f", image)


def images_of_others():
    """One without our programs has those of a payload; what an image lacks is said without running it."""
    bare = IMAGE + "-bare"
    with DockerHost(SANDBOX_RUNTIME_CONTAINER_IMAGE="") as h:
        root, payload = h.path("root"), h.path("root", "openhands")
        os.mkdir(root)
        made = docker("create", IMAGE, "x").stdout.decode().strip()
        subprocess.run("docker export %s | tar -xC %s" % (made, root), shell=True, check=True)
        docker("rm", made)
        os.rename(payload, h.path("payload"))
        os.mkdir(payload)
        with open(h.path("payload", "bin", "bash"), "w") as f:
            f.write("#!/bin/sh\necho payload \"$@\"\n")
        os.chmod(h.path("payload", "bin", "bash"), 0o755)
        subprocess.run("tar -C %s -c . | docker import --change 'ENV SU_TO_USER=false LC_ALL=C.UTF-8 PATH=/usr/bin "
                       "HANDRAIL_LIBEXECDIR=/openhands/libexec/handrail HANDRAIL_DATADIR=/openhands/conf' - %s"
                       % (root, bare), shell=True, check=True, stdout=subprocess.DEVNULL)
        h.fails(1, "is not a directory that", "up", "-i", bare, "--payload", h.path("root"))
        h.fails(3, 'lacks handrail\'s programs; "handrail image preflight %s" prints' % bare, "up", "-q", "-i", bare)
        equal(docker("ps", "-aq", "--filter", "name=" + h.name).stdout, b"", "nothing was left")

        def preflight(*argv):
            done = h("image", "preflight", "-j", *argv)
            return done.returncode, {x["what"]: (x["ok"], x["text"]) for x in json.loads(done.stdout)}

        status, all_ok = preflight(IMAGE)
        equal((status, all_ok["programs"][0], all_ok["bash"]), (0, True, (True, "/bin/bash")), all_ok)
        status, lacks = preflight(bare)
        equal((status, sorted(w for w in lacks if not lacks[w][0])), (1, ["programs"]), lacks)
        equal("--payload DIR" in lacks["programs"][1], True, "what mends it")
        status, mended = preflight("--payload", h.path("payload"), bare)
        equal((status, mended["programs"]),
              (0, (True, "none of handrail's; those of %s are mounted" % h.path("payload"))))
        equal((all_ok["git"][0], mended["libc"][1][:5], "no useradd" in mended["accounts"][1]), (True, "glibc", True))
        h.fails(1, "nothing-such:1 is not on this machine and cannot be pulled: ", "image", "preflight",
                "127.0.0.1:1/nothing-such:1")
        equal(docker("ps", "-aq", "--filter", "name=handrail-preflight").stdout, b"", "nothing was left")
        h.ok("up", "-q", "-i", bare, "--payload", h.path("payload"))
        equal(h("run", "echo x >/openhands/x; echo hi").stdout.split("\n")[1:], ["hi", ""], "read-only, and alive")
        equal(json.loads(h.ok("ps", "-j"))[0]["image"], bare, "its image")
        equal((h.ok("sh"), h.ok("sh", "bash", "-l")), ("payload\n", "payload -l\n"), "the image need have no bash")
        h.ok("down")
        docker("rmi", "-f", bare)


def no_engine():
    with DockerHost(DOCKER_HOST="unix:///nonexistent/docker.sock") as h:
        done = h("up")
        equal("there is no Docker Engine that can be used. Nobody answers at /nonexistent/docker.sock." in done.stderr,
              True, done.stderr)
    with DockerHost(DOCKER_HOST="nonsense") as h:
        h.fails(1, "DOCKER_HOST must be an address such as unix:///run/docker.sock, not: nonsense", "up")


def elsewhere():
    """A recorded sandbox is looked for at its Engine alone, and at none that does not answer."""
    first = "unix:///nonexistent/first.sock"
    with DockerHost(DOCKER_HOST="tcp://127.0.0.1:1") as h:
        os.mkdir(h.path("state"), 0o700)
        record = h.path("state", h.name + ".json")
        with open(record, "w") as f:
            json.dump({"runtime": "docker", "sid": h.name, "created": 1, "url": "http://127.0.0.1:1", "backend": {
                "id": "ab" * 32, "port": 1, "engine": first}}, f)
        os.chmod(record, 0o600)
        for words in (("up",), ("run", "true"), ("pause",), ("resume",), ("logs",), ("ps",), ("down",)):
            done = h(*words)
            equal((done.returncode > 0, first in done.stderr, "tcp://127.0.0.1:1" in done.stderr), (True,) * 3,
                  "%s: %s" % (words[0], done.stderr))
            equal(os.path.exists(record), True, "its record stays")
        h.env["DOCKER_HOST"] = first
        done = h("ps", "--json")
        states = [r["state"] for r in json.loads(done.stdout)]
        equal((done.returncode, states, "/nonexistent/first.sock" in done.stderr), (1, ["unknown"], True),
              "an Engine that does not answer knows no state: " + done.stderr)
        os.unlink(record)


TEMPLATE = """FROM @from@
LABEL org.openhands.runtime="c" test.from="@from@"
@if scratch versioned
LABEL test.deps="yes"
@end
COPY ./code/runtime /source
"""


def four_branches():
    """The decision tree with the Engine's own images; the recipe is a short one."""
    repo = "handrail-test-repo-%d" % os.getpid()
    with DockerHost(OH_RUNTIME_RUNTIME_IMAGE_REPO=repo) as h:
        kit = h.path("kit")
        h.env["HANDRAIL_IMAGE_KIT"] = kit
        subprocess.run([os.path.join(SRC, "runtime-image/mkkit"), SRC, kit], check=True)
        with open(os.path.join(kit, "Dockerfile.in"), "w") as f:
            f.write(TEMPLATE)

        def build(*argv):
            done = h("image", "build", "--no-pull", "-b", IMAGE, *argv)
            equal(done.returncode, 0, done.stderr)
            return done.stdout.strip(), done.stderr

        def names():
            return sorted(docker("images", "--format", "{{.Repository}}:{{.Tag}}", repo).stdout.decode().split())

        def edit(name, text):
            with open(os.path.join(kit, name), "a") as f:
                f.write(text)

        dry, _ = build("--dry-run")
        equal(names(), [], "a dry run makes nothing")
        v1 = build("--dry-run", "--for", "openhands-v1")[0]
        equal(v1.replace("-openhands-v1_", "_"), dry, "another version")
        h.fails(2, "only openhands-v1", "image", "build", "--for", "x", "-b", IMAGE)
        first, log = build()
        equal((first, "SCRATCH, on " + IMAGE in log, len(names())), (dry, True, 3), "from scratch: three names")
        again, log = build()
        equal((again, log), (first, ""), "it exists: nothing happens")
        edit("runtime/src/base/err.c", "/* changed */\n")
        second, log = build()
        lock = first.rsplit("_", 1)[0]
        equal((second != first, "LOCK, on " + lock in log, len(names())), (True, True, 4), "the source only")
        edit("deps.conf", "# changed\n")
        third, log = build()
        equal(("VERSIONED, on %s:oh_v" % repo in log, third not in (first, second), len(names())), (True, True, 6),
              "dependencies and source")
        done = h("image", "build", "--no-pull", "--force", "--retag", "-b", IMAGE)
        equal((done.returncode, "SCRATCH" in done.stderr), (0, True), done.stderr)
        equal(sorted(x["name"] for x in json.loads(h.ok("images", "--json")) if x["name"].startswith(repo)),
              names(), "listed")
        label = docker("inspect", "--format", "{{index .Config.Labels \"test.from\"}}", third).stdout.decode().strip()
        equal(label, IMAGE, "rebuilt under its name")
        dangling = docker("images", "-q", "--no-trunc", "--filter", "dangling=true", "--filter", "label=test.from")
        left = [x["id"] for x in json.loads(h.ok("images", "--json")) if x["name"] == ""]
        equal((len(left) > 0, sorted(left)), (True, sorted(set(dangling.stdout.decode().split()))),
              "the one that had it has none, and is listed")
        for image in left:
            h.ok("image", "rm", image)
        equal([x for x in json.loads(h.ok("images", "--json")) if x["name"] == ""], [], "removed")
        with open(os.path.join(kit, "Dockerfile.in"), "w") as f:
            f.write(TEMPLATE + "RUN printf 'one\\ntw' >&2; printf 'o\\n' >&2; exit 3\n")
        edit("deps.conf", "# again\n")
        done = h("image", "build", "--no-pull", "-b", IMAGE)
        lines = done.stderr.splitlines()
        equal((done.returncode, "one" in lines, "two" in lines, "x1b" in done.stderr), (1, True, True, False),
              "what a step wrote, line by line: " + done.stderr)
        h.fails(1, "returned a non-zero code: 3", "image", "build", "--no-pull", "-q", "-b", IMAGE)
        docker("rmi", "-f", *names())


def main():
    find_engine()
    tap = Tap()
    top = tempfile.mkdtemp(prefix="e2e-image-")
    try:
        make_image(top)
    finally:
        shutil.rmtree(top)
    try:
        for test in (life_of_a_container, git_views, create_request, pause_and_resume, closing, log_stream, pool,
                     pool_with_a_dead_one, pool_with_a_killed_taker, limits_are_enforced, wrong_values,
                     killed_container, only_what_was_made_is_removed, of_other_owners, start_that_fails,
                     taken_port, start_that_is_killed,
                     images_of_others, no_engine, elsewhere, four_branches):
            tap.run(test.__name__.replace("_", " "), test)
    finally:
        docker("rmi", "-f", IMAGE)
    return tap.done()


sys.exit(main())
