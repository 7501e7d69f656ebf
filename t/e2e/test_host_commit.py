#!/usr/bin/env python3
"""Snapshots of containers, with a real Engine: the one of DOCKER_HOST, or for root one that is started for this test
(docker-engine)."""

import json
import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.box import allowed  # noqa: E402
from lib.dockerhost import IMAGE, DockerHost, docker, find_engine, make_image  # noqa: E402
from lib.host import PATIENCE, Host  # noqa: E402
from lib.hostbox import Boxes  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402
from test_host_stack import STEPS, export, stack, view  # noqa: E402


class Engine(DockerHost):
    """A user whose commands about snapshots name no sandbox."""

    def __call__(self, command, *argv, **more):
        if command == "snapshot" and argv and argv[0] in ("ls", "rm"):
            return Host.__call__(self, command, *argv, **more)
        return super().__call__(command, *argv, **more)


SECRET = "e2e-secret-of-the-user"


BEFORE = set()


def listed():
    done = docker("images", "-a", "--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}")
    return set(done.stdout.decode().splitlines())


def images():
    """The names of all images that the tests have made, with untagged ones."""
    return sorted(line.split()[1] for line in listed() - BEFORE)


def saved(image):
    """The bytes of an image: of its records, and of its layers."""
    found = [b"", b""]
    with tempfile.TemporaryDirectory() as top:
        equal(docker("save", "-o", os.path.join(top, "x.tar"), image).returncode, 0)
        with tarfile.open(os.path.join(top, "x.tar")) as tar:
            for m in tar.getmembers():
                if m.isfile():
                    data = tar.extractfile(m).read()
                    found[not data.startswith((b"{", b"["))] += data
    return found


def other(h, name):
    """Another sandbox of the same user."""
    class Other:
        def __enter__(self):
            self.first, h.name = h.name, name
            return h

        def __exit__(self, *_):
            h("down", "-q")
            h.name = self.first
    return Other()


def life():
    """Another container starts with the files of the first one, and has none of its variables and keys."""
    with Engine() as h:
        h.ok("up", "-q", "-e", "OWN_TOKEN=" + SECRET)
        h.ok("run", "mkdir -p /workspace && echo first >/workspace/f && rm /usr/bin/tail; export OTHER=x")
        key = [e[16:] for e in h.inspect()["Config"]["Env"] if e.startswith("SESSION_API_KEY=")]
        one = json.loads(h.ok("snapshot", "s.1", "--json"))
        equal((one["tag"], one["sandbox"], one["backend"], one["image"], one["bytes"] > 0, one["still"]),
              ("s.1", h.name, "docker", "handrail-snapshot:s.1", True, True))
        equal(h.ok("run", "echo second >/workspace/f; echo $OWN_TOKEN"), SECRET + "\n", "it runs on")
        equal(images(), ["handrail-snapshot:s.1"], "the commit is gone")
        config = json.loads(docker("inspect", "handrail-snapshot:s.1").stdout)[0]
        base = json.loads(docker("inspect", IMAGE).stdout)[0]["Config"]
        labels = config["Config"].pop("Labels")
        equal((config["Config"]["Env"], config["Config"]["Cmd"]), (base["Env"], base["Cmd"]))
        equal([labels["handrail.snapshot" + n] for n in ("", ".sandbox", ".backend")], ["s.1", h.name, "docker"])
        equal(abs(int(labels["handrail.snapshot.created"]) - one["created"]), 0)
        records, layers = saved("handrail-snapshot:s.1")
        equal((SECRET.encode() in records, len(layers) > 1000000), (False, True))
        equal([k.encode() in records + layers for k in key], [False])
        for name in ("a:1", "z:1"):  # an Engine lists all names of an image together, in order
            docker("tag", "handrail-snapshot:s.1", name)
        equal(json.loads(h.ok("snapshot", "ls", "--json")), [one])
        docker("rmi", "a:1", "z:1")
        line = h.ok("snapshot", "ls").splitlines()[1].split()
        equal(line[:3] + line[4:5], ["s.1", h.name, "docker", "-"])
        h.fails(1, 'there is a snapshot "s.1" already', "snapshot", "s.1")
        with other(h, h.name + "b"):
            h.ok("up", "-q", "--from", "s.1")
            equal(h.ok("run", "cat /workspace/f; ls /usr/bin/tail 2>&1 | wc -l; echo \"$OTHER.\""),
                  "first\n1\n.\n")
            equal(h.inspect()["Config"]["Image"], "handrail-snapshot:s.1")
            equal(h.ok("snapshot"), h.name + "-1\n", "of a container that came from one")
            equal(images(), ["handrail-snapshot:s.1", "handrail-snapshot:%s-1" % h.name])
            h.ok("down")
            h.ok("snapshot", "rm", h.name + "-1", "s.1")
        equal(images(), [])
        equal(h.ok("run", "cat /workspace/f"), "second\n")
        h.ok("down")


def states():
    """A container may be frozen or stopped, and stays so."""
    for mode, state in (("stop", "exited"), ("freeze", "paused")):
        with Engine(SANDBOX_DOCKER_PAUSE_MODE=mode) as h:
            h.ok("up", "-q")
            h.ok("run", "mkdir -p /workspace && echo %s >/workspace/f" % mode)
            h.ok("pause")
            h.ok("snapshot", mode)
            equal(h.inspect()["State"]["Status"], state)
            with other(h, h.name + "b"):
                h.ok("up", "-q", "--from", mode)
                equal(h.ok("run", "cat /workspace/f"), mode + "\n")
            h.ok("down")
            h.ok("snapshot", "rm", mode)
            equal(images(), [])


def refusals():
    """Images that "handrail snapshot" has not made are neither used nor removed, nor are those of another user."""
    with Engine() as h:
        h.ok("up", "-q")
        docker("tag", IMAGE, "handrail-snapshot:plain")
        for label in ("handrail.owner=somebody", "handrail.owner="):
            label += " handrail.snapshot=theirs handrail.snapshot.backend=docker"
            done = docker("build", "-q", "-t", "handrail-snapshot:theirs", "-",
                          input=("FROM %s\nLABEL %s\n" % (IMAGE, label)).encode())
            equal(done.returncode, 0, done.stderr)
            for tag in ("plain", "theirs"):
                h.fails(3, "was not made by", "snapshot", "rm", tag)
                h.fails(3, "was not made by", "up", "-q", "--from", tag)
                h.fails(1, "already", "snapshot", tag)
            equal(json.loads(h.ok("snapshot", "ls", "--json")), [])
            equal(images(), ["handrail-snapshot:plain", "handrail-snapshot:theirs"])
            docker("rmi", "handrail-snapshot:theirs")
        docker("rmi", "handrail-snapshot:plain")
        h.fails(3, 'there is no snapshot "none"', "snapshot", "rm", "none")
        h.fails(3, 'there is no snapshot "none"', "up", "-q", "--from", "none")
        for name in (".new", "../x", "a/b", "a:b"):
            h.fails(2, "invalid name of a snapshot", "snapshot", "--", name)
        for command in (("snapshot",), ("up", "-q", "--from")):
            h.fails(2, "at most 128 characters", *command, "x" * 129)
        h.fails(1, "cannot fork", "fork", "x")
        h.ok("down")
        equal(images(), [])


def leftovers():
    """The commit of a killed command, which has secrets, is removed by the next one."""
    with Engine() as h:
        h.ok("up", "-q", "-e", "OWN_TOKEN=" + SECRET)
        h.ok("run", "head -c 30000000 /dev/urandom >/f")
        owner = h.inspect()["Config"]["Labels"]["handrail.owner"]
        left = docker("commit", "-c", 'LABEL handrail.snapshot.unfinished="%s"' % owner, h.inspect()["Id"])
        equal((left.returncode, images()), (0, ["<none>:<none>"]))
        command = h.popen("-n", h.name, "snapshot", "k")
        command.kill()
        command.communicate(timeout=PATIENCE)
        h.ok("snapshot", "s")
        equal([n for n in images() if n != "handrail-snapshot:k"], ["handrail-snapshot:s"])
        equal(SECRET.encode() in saved("handrail-snapshot:s")[0], False)
        h("snapshot", "rm", "k")
        h.ok("snapshot", "rm", "s")
        h.ok("down")
        equal(images(), [])


def loaded():
    """The Engine takes the file of a box's snapshot, and another image takes files of it."""
    with Boxes(0) as h:
        done = h("up", "-q", "one")
        if done.returncode and not allowed(h):
            raise Skip("no box can be made here: " + done.stderr.strip())
        equal(done.returncode, 0, done.stderr)
        h.ok("run", "-n", "one", "echo first >/workspace/f; rm -f /usr/bin/tail; ln -s f /workspace/l")
        h.ok("snapshot", "one", "s")
        h.ok("down", "-q", "one")
        h.ok("snapshot", "export", "s", "s.tar")
        h.ok("snapshot", "rm", "s")
        done = docker("load", "-i", h.path("cwd", "s.tar"))
        equal((done.returncode, images()), (0, ["handrail-box:s"]), done.stderr)
        equal("which are not in this image" in docker("history", "--no-trunc", "handrail-box:s").stdout.decode(), True)
        equal(json.loads(h.ok("snapshot", "ls", "--json")), [], "it is no snapshot of a container")
        done = docker("build", "-q", "-t", "e2e-loaded", "-", input=(
            "FROM %s\nCOPY --from=handrail-box:s /workspace /copied\n" % IMAGE).encode())
        equal(done.returncode, 0, done.stderr)
        done = docker("run", "--rm", "--network", "host", "e2e-loaded", "cat", "/copied/l")
        equal((done.stdout, done.returncode), (b"first\n", 0), done.stderr)
        equal(docker("save", "-o", h.path("cwd", "again.tar"), "handrail-box:s").returncode, 0)
        docker("rmi", "e2e-loaded", "handrail-box:s")


def layered():
    """The Engine shows the files of a snapshot that lies in layers as the box does."""
    with Boxes(0) as h:
        below, layers, top = stack(h, STEPS, False, "s")
        expected = {path[2:]: about for path, about in view(h, "", *below, *layers, top)[0]}
        done = docker("load", "-i", export(h, "s", layers))
        equal((done.returncode, images()), (0, ["handrail-box:s"]), done.stderr)
        equal(len(json.loads(docker("inspect", "handrail-box:s").stdout)[0]["RootFS"]["Layers"]), len(STEPS))
        done = docker("create", "--network", "host", "handrail-box:s", "none")
        equal(done.returncode, 0, done.stderr)
        container = done.stdout.decode().strip()
        equal(docker("export", "-o", h.path("cwd", "x.tar"), container).returncode, 0)
        with tarfile.open(h.path("cwd", "x.tar")) as tar:
            made = (".dockerenv", "dev", "etc", "proc", "sys")
            found = {m.name: (m.mode & 0o7777, m.uid, m.mtime, m.isreg() and tar.extractfile(m).read())
                     for m in tar.getmembers() if m.name.split("/")[0] not in made}
        equal(sorted(found), sorted(expected))
        equal([found[n] for n in ("again", "d", "full/newer")],
              [(int(a[0], 8) & 0o7777, 0, a[3], data) for a, data in (
                  (expected["again"], False), (expected["d"], False), (expected["full/newer"], b"newer\n"))])
        docker("rm", container)
        docker("rmi", "handrail-box:s")


def main():
    find_engine()
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="e2e-image-") as top:
        make_image(top)
    BEFORE.update(listed())
    try:
        for test in (life, states, refusals, leftovers, loaded, layered):
            tap.run(test.__name__, test)
    finally:
        docker("rmi", "-f", IMAGE)
    return tap.done()


sys.exit(main())
