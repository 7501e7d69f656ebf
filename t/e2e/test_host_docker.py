#!/usr/bin/env python3
"""Sandboxes of the kind "docker" and builds of images, with a real Engine: the one of DOCKER_HOST, or for
root one that is started for this test (docker-engine). The image is made of what this machine has, so
that no network is needed; its containers share the host's network."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.tap import Tap, equal, skip_all  # noqa: E402
from lib.host import BUILD, SRC, Host  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "handrail-test:%d" % os.getpid()
PROGRAMS = ("bash sh cat chmod chown cp date dd dirname env getent git grep head id ln ls mkdir mv nginx nproc od "
            "ps pwd rm sed sleep stat tail test touch tr true wc").split()


def engine_answers():
    return shutil.which("docker") and docker("version", stdin=subprocess.DEVNULL).returncode == 0


def find_engine():
    """An Engine in DOCKER_HOST, or this program again below one of its own."""
    if os.environ.get("DOCKER_HOST") and engine_answers():
        return
    if os.environ.get("HANDRAIL_OWN_ENGINE"):
        skip_all("the Docker Engine that was started does not answer")
    if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
        skip_all("no Docker Engine: set DOCKER_HOST, or as root install docker.io")
    os.environ["HANDRAIL_OWN_ENGINE"] = "1"
    done = subprocess.run([os.path.join(HERE, "docker-engine"), sys.executable, os.path.abspath(__file__)],
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 77:
        skip_all("no Docker Engine: " + done.stderr.strip())
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)


def docker(*argv, **more):
    return subprocess.run(("docker",) + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def libraries(path):
    text = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout
    return [w for w in text.split() if w.startswith("/")]


def copy_into(root, path):
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


def make_image(top):
    """A root file system of the programs under test and what they need from this machine."""
    root = os.path.join(top, "root")
    for d in ("tmp", "run", "proc", "dev", "sys", "root", "etc", "var/log/nginx", "var/lib/nginx", "openhands/sbin",
              "openhands/libexec/handrail", "openhands/conf", "usr/bin"):
        os.makedirs(os.path.join(root, d))
    for link, to in (("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        os.makedirs(os.path.join(root, to), exist_ok=True)
        os.symlink(to, os.path.join(root, link))
    os.symlink("bin", os.path.join(root, "usr/sbin"))
    for name in PROGRAMS:
        path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        assert path, name + " is not on this machine"
        shutil.copy2(os.path.realpath(path), os.path.join(root, "usr/bin", name))
        for lib in libraries(path):
            copy_into(root, lib)
    for name, to in (("handraild", "openhands/sbin"), ("handrail-worker", "openhands/libexec/handrail"),
                     ("handrail-session", "openhands/libexec/handrail"),
                     ("handrail-charset.so", "openhands/libexec/handrail"),
                     ("handrail-kind.so", "openhands/libexec/handrail"),
                     ("handrail-zip.so", "openhands/libexec/handrail"),
                     ("handrail-line.so", "openhands/libexec/handrail"),
                     ("handrail-office", "openhands/libexec/handrail")):
        real = os.path.join(BUILD, ".libs", name)
        path = real if os.path.exists(real) else os.path.join(BUILD, name)
        shutil.copy2(path, os.path.join(root, to, name))
        for lib in libraries(path):
            copy_into(root, lib)
    shutil.copytree(os.path.join(SRC, "conf"), os.path.join(root, "openhands/conf"), dirs_exist_ok=True)
    nss = "/lib/x86_64-linux-gnu/libnss_files.so.2"
    if os.path.exists(nss):
        copy_into(root, nss)
    for magic in ("/usr/lib/file/magic.mgc",):
        if os.path.exists(magic):
            copy_into(root, magic)
    with open(os.path.join(root, "etc/passwd"), "w") as f:
        f.write("root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n")
    with open(os.path.join(root, "etc/group"), "w") as f:
        f.write("root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n")
    subprocess.run([os.path.join(SRC, "runtime-image/install-shims.sh"), os.path.join(root, "openhands")], check=True)
    for folder, _, names in os.walk(os.path.join(root, "openhands")):
        for name in names:  # the shims name the prefix they were installed to
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                text = f.read()
            if not os.path.islink(path) and text.startswith(b"#!") and root.encode() in text:
                with open(path, "wb") as f:
                    f.write(text.replace(root.encode(), b""))
    tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    done = docker("import", "--change", "ENV SU_TO_USER=false HANDRAIL_LIBEXECDIR=/openhands/libexec/handrail "
                  "HANDRAIL_DATADIR=/openhands/conf LC_ALL=C.UTF-8", "--change",
                  "ENV PATH=/usr/bin", "-", IMAGE, stdin=tar.stdout)
    tar.stdout.close()
    tar.wait()
    equal(done.returncode, 0, done.stderr)


class DockerHost(Host):
    def __init__(self, **env):
        super().__init__(RUNTIME="docker", SANDBOX_RUNTIME_CONTAINER_IMAGE=IMAGE, SANDBOX_USE_HOST_NETWORK="true",
                         SANDBOX_RUNTIME_BINDING_ADDRESS="127.0.0.1", RUN_AS_OPENHANDS="false",
                         DOCKER_HOST=os.environ["DOCKER_HOST"])
        # names of containers are shared with whoever else uses this Engine
        self.name = "t%d" % os.getpid()
        self.env.update(env)

    def __call__(self, command, *argv, **more):
        if command not in ("ps", "build", "image", "pool", "--help") and "--all" not in argv:
            argv = ("-n", self.name) + argv
        return super().__call__(command, *argv, **more)

    def inspect(self):
        return json.loads(docker("inspect", "openhands-runtime-" + self.name).stdout)[0]


def life_of_a_container():
    with DockerHost() as h:
        h.ok("up", "-e", "GREETING=it's \"me\"")
        equal(h.ok("run", "echo \"$GREETING\"; cd /tmp"), "it's \"me\"\n", "a variable")
        equal(h.ok("run", "pwd"), "/tmp\n", "the same shell from a second process")
        equal(h("run", "exit 3; false").returncode != 0, True, "status")
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "running", "state")
        equal(h("sh", "test", "-e", "/openhands/sbin/handraild").returncode, 0, "a program in it")
        with open(h.path("cwd", "file"), "w") as f:
            f.write("content\n")
        h.ok("put", "file", "/tmp/in")
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
        equal(os.listdir(h.path("state")), [], "and its record")


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
        equal("taking" in h.record(h.name), False, "which is recorded")
        equal(docker("inspect", backend["id"]).returncode, 1, "the dead one is removed")
        equal(h.ok("run", "echo hi"), "hi\n", "it answers")


def pool_with_a_killed_taker():
    """Taken and renamed, and nobody to finish it: "down" knows it by its record."""
    with DockerHost() as h:
        h.ok("pool", "1")
        names = [n for n in os.listdir(h.path("state", "warm")) if n.endswith(".json")]
        with open(h.path("state", "warm", names[0])) as f:
            record = json.load(f)
        for renamed in (False, True):
            with open(h.path("state", h.name + ".json"), "w") as f:
                json.dump(dict(record, sid=h.name, taking=names[0] + ".taken"), f)
            if renamed:
                os.rename(h.path("state", "warm", names[0]), h.path("state", "warm", names[0] + ".taken"))
                docker("rename", record["backend"]["id"], "openhands-runtime-" + h.name)
            h.fails(5, "is not ready yet", "run", "true")
        h.ok("down")
        equal(docker("inspect", record["backend"]["id"]).returncode, 1, "it is removed")
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
                ("sandbox.docker_runtime_kwargs", "{'mem_limit': '4x'}", "mem_limit: a size is")):
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


def start_that_fails():
    with DockerHost(SANDBOX_RUNTIME_STARTUP_ENV_VARS="{'NO_CHANGE_TIMEOUT_SECONDS': 'x'}") as h:
        done = h("up")
        equal((done.returncode, "has exited" in done.stderr), (5, True), done.stderr)
        equal(docker("inspect", "openhands-runtime-" + h.name).returncode, 1, "nothing was left")


def no_engine():
    with DockerHost(DOCKER_HOST="unix:///nonexistent/docker.sock") as h:
        done = h("up")
        equal("Launch docker client failed. Please make sure you have" in done.stderr, True, done.stderr)
    with DockerHost(DOCKER_HOST="nonsense") as h:
        h.fails(1, "DOCKER_HOST is no address: nonsense", "up")


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
            done = h("build", "--no-pull", "-b", IMAGE, *argv)
            equal(done.returncode, 0, done.stderr)
            return done.stdout.strip(), done.stderr

        def names():
            return sorted(docker("images", "--format", "{{.Repository}}:{{.Tag}}", repo).stdout.decode().split())

        def edit(name, text):
            with open(os.path.join(kit, name), "a") as f:
                f.write(text)

        dry, _ = build("--dry-run")
        equal(names(), [], "a dry run makes nothing")
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
        done = h("build", "--no-pull", "--force", "--retag", "-b", IMAGE)
        equal((done.returncode, "SCRATCH" in done.stderr), (0, True), done.stderr)
        equal(sorted(x["name"] for x in json.loads(h.ok("image", "--json")) if x["name"].startswith(repo)),
              names(), "listed")
        label = docker("inspect", "--format", "{{index .Config.Labels \"test.from\"}}", third).stdout.decode().strip()
        equal(label, IMAGE, "rebuilt under its name")
        with open(os.path.join(kit, "Dockerfile.in"), "w") as f:
            f.write(TEMPLATE + "RUN exit 3\n")
        edit("deps.conf", "# again\n")
        h.fails(1, "returned a non-zero code: 3", "build", "--no-pull", "-q", "-b", IMAGE)
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
        for test in (life_of_a_container, create_request, pause_and_resume, closing, pool, pool_with_a_dead_one,
                     pool_with_a_killed_taker, limits_are_enforced, wrong_values,
                     killed_container, start_that_fails, no_engine, four_branches):
            tap.run(test.__name__.replace("_", " "), test)
    finally:
        docker("rmi", "-f", IMAGE)
    return tap.done()


sys.exit(main())
