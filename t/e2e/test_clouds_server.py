#!/usr/bin/env python3
"""The kinds of providers with a server of ours in the sandbox: the payload is carried into one whose image knows
nothing of us, and the sandbox does actions over the provider's address."""

import io
import json
import os
import pwd
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.host import BUILD, SRC  # noqa: E402
from lib.supervised import free_port  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_clouds_e2b import CloudHost  # noqa: E402
from test_clouds_others import DaytonaHost, RunloopHost  # noqa: E402

# in place of the one that packaging/payload makes: it starts the programs of the build
START = """#!/bin/sh
printf %%s "$HANDRAIL_VIEWER_URL_FILE" >'%s'
export SU_TO_USER=false HANDRAIL_LIBEXECDIR='%s' HANDRAIL_DATADIR='%s/conf' HANDRAIL_VIEWER_URL_FILE=
exec '%s/handraild' --listen 127.0.0.1 --run-dir '%s' --state-dir '%s' "$@"
"""


def start_of(h):
    """What starts the server; viewer-url-file gets the name that the sandbox's command has given."""
    return START % (h.path("viewer-url-file"), BUILD, SRC, BUILD, h.path("server"), h.path("server-state"))


def serving(h, directory=False):
    """With a payload, as a directory or as an archive of one."""
    me = pwd.getpwuid(os.geteuid())
    h.at.serving(free_port())
    h.env.update(RUNTIME_USERNAME=me.pw_name, RUNTIME_UID=str(me.pw_uid),
                 SANDBOX_PAYLOAD=h.path("payload" if directory else "payload.tar.gz"))
    text = start_of(h).encode()
    if directory:
        os.makedirs(h.path("payload", "libexec", "handrail"))
        os.makedirs(h.path("payload", "micromamba", "bin"))
        with open(h.path("payload", "libexec", "handrail", "shim"), "wb") as f:
            f.write(text)
        os.chmod(f.name, 0o755)
        # links to files, as there is one in it
        os.symlink("shim", h.path("payload", "libexec", "handrail", "start"))
        os.symlink("../../libexec/handrail/shim", h.path("payload", "micromamba", "bin", "micromamba"))
        return
    with tarfile.open(h.path("payload.tar.gz"), "w:gz") as t:
        i = tarfile.TarInfo("./libexec/handrail/start")
        i.size, i.mode = len(text), 0o755
        t.addfile(i, io.BytesIO(text))


def life(kind):
    with kind() as h:
        serving(h, directory=h.kind == "daytona")
        done = h("up")
        equal(done.returncode, 0, done.stderr)
        equal("runs in a new shell" in done.stderr, False, "nothing is lost: " + done.stderr)
        h.ok("run", "cd /; X='a  b'")
        equal(h.ok("run", 'echo "$X"; pwd'), "a  b\n/\n", "a shell that lasts")
        h.ok("write", h.work + "/f.txt", input="one\n")
        equal(h.ok("run", "cat %s/f.txt" % h.work), "one\n")
        with open(h.path("state", "default.json")) as f:
            record = json.load(f)["backend"]
        for s in h.at.started:
            equal(record["key"] in " ".join(s.args), False, "the session's key is in no command line")
        equal([n for n in os.listdir("/tmp") if record["run"] in n], [], "and neither it nor the archive is left")
        equal(os.path.isfile(h.path("tmp", ".gitconfig")), True, "git's identity is in the sandbox's home alone")
        if h.kind != "modal":
            h.ok("pause")
            h.ok("resume")
            equal(h.ok("run", "echo again"), "again\n", "also after a pause that ended it")
        h.ok("down")
        equal((h.boxes(), [s.args for s in h.at.started if s.poll() is None]), ([], []), "it is ended")


def packed(h, script):
    """A payload whose start is that script."""
    with tarfile.open(h.path("payload.tar.gz"), "w:gz") as t:
        i = tarfile.TarInfo("./libexec/handrail/start")
        i.size, i.mode = len(script), 0o755
        t.addfile(i, io.BytesIO(script.encode()))


def fails(h, text, *argv):
    done = h(*argv)
    equal((done.returncode, text in done.stderr), (1, True), done.stderr)
    return done.stderr


def failed_start(kind):
    """The reason and the status of a start that fails are in the error, and no time is spent on waiting for it."""
    with kind() as h:
        serving(h)
        h.at.tunnel = "127.0.0.1"
        packed(h, "#!/bin/sh\necho 'to stdout'\nprintf 'useradd: UID 1000 is not unique' >&2\nexit 3\n")
        said = fails(h, "the server's start in the sandbox ended with status 3: ", "up")
        equal("to stdout useradd: UID 1000 is not unique" in said, True, said)
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "it is ended, and nothing is recorded")
        packed(h, "#!/bin/sh\nfor i in $(seq 400); do echo line $i; done\nkill -9 $$\n")
        said = fails(h, "the server's start in the sandbox ended with status 137: ", "up")
        equal("line 1" in said, True, "what it printed at first: " + said)
        packed(h, "#!/bin/sh\nexit 0\n")
        h.fails(1, "ended with status 0: it printed nothing", "up")
        del h.env["SANDBOX_PAYLOAD"]
        h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = "im-1" if h.kind == "modal" else "template"
        said = fails(h, "the server's start in the sandbox ended with status 127: ", "up")
        equal("handraild: command not found" in said and "sandbox.payload" in said, True, said)
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "it is ended, and nothing is recorded")


def failed_restart():
    """Also after a pause."""
    with CloudHost() as h:
        serving(h)
        h.ok("up")
        h.ok("pause")
        h.at.end_programs()
        with open(os.path.join(h.at.openhands, "libexec/handrail/start"), "w") as f:
            f.write("#!/bin/sh\necho no room >&2\nexit 4\n")
        h.fails(1, "the server's start in the sandbox ended with status 4: no room", "resume")
        h.ok("down")


def off_path():
    """In an image of "handrail image build" handraild is not on PATH."""
    with CloudHost() as h:
        serving(h)
        del h.env["SANDBOX_PAYLOAD"]
        h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = "template"
        os.makedirs(os.path.join(h.at.openhands, "sbin"))
        with open(os.path.join(h.at.openhands, "sbin/handraild"), "w") as f:
            f.write(start_of(h))
        os.chmod(f.name, 0o755)
        h.ok("up", "-q")
        h.ok("run", "cd /; X=1")
        equal(h.ok("run", "echo $X; pwd"), "1\n/\n")
        with open(h.path("viewer-url-file")) as f:
            equal(f.read(), "/tmp/oh-server-url", "where clients of the file viewer look for its address")
        h.ok("down")
        equal([s.args for s in h.at.started if s.poll() is None], [], "and it is ended")


def refused():
    """What cannot be carried there costs nothing, or is ended."""
    with CloudHost() as h:
        serving(h)
        h.env["SANDBOX_PAYLOAD"] = h.path("nothing")
        h.fails(1, "sandbox.payload: ", "up")
        h.env["SANDBOX_PAYLOAD"] = h.path("home")
        h.fails(1, 'is neither a directory that "packaging/payload DIR" made', "up")
        equal(h.boxes(), [], "nothing was made")
        with open(h.path("payload.tar.gz"), "w") as f:
            f.write("no archive")
        h.env["SANDBOX_PAYLOAD"] = f.name
        h.fails(1, "the payload cannot be unpacked to /openhands", "up")
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "it is ended, and nothing is recorded")


def main():
    process.become_subreaper()
    tap = Tap()
    for kind in (CloudHost, DaytonaHost, RunloopHost):
        tap.run("a server in a sandbox of " + kind.kind, life, kind)
    for kind in (CloudHost, DaytonaHost, RunloopHost):
        tap.run("a start that fails in a sandbox of " + kind.kind, failed_start, kind)
    tap.run("failed_restart", failed_restart)
    tap.run("off_path", off_path)
    tap.run("refused", refused)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
