#!/usr/bin/env python3
"""Programs as back-ends: one of the test's, with its faults, and the example over ssh with a real sshd."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process, standin  # noqa: E402
from lib.host import BUILD, PATIENCE, SRC, Host  # noqa: E402
from lib.supervised import free_port  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402

KEY = "the-key-of-the-test"


class PlayHost(Host):
    """A user with the program "play" in a directory of back-ends."""

    def __init__(self, can=(), hello=None, **settings):
        super().__init__(RUNTIME="play", PLAY_KEY=KEY, E2B_API_KEY="somebody-elses")
        self.work = self.path("work")
        self.dir = self.path("backends")
        os.mkdir(self.dir)
        os.mkdir(self.path("play"))
        self.program("play")
        self.env.update(OH_RUNTIME_PLUGIN_PATH=self.dir, WORKSPACE_MOUNT_PATH_IN_SANDBOX=self.work,
                        PLAY_TOP=self.path("play"), PLAY_CAN=json.dumps(list(can)), PLAY_HELLO=json.dumps(hello or {}),
                        PLAY_ENVIRONMENT='["PLAY_TOP","PLAY_CAN","PLAY_HELLO"]', PLAY_SETTINGS=json.dumps(settings))

    def program(self, name, mode=0o755, text=None):
        path = os.path.join(self.dir, "handrail-backend-" + name)
        with open(path, "w") as f:
            f.write(text or "#!/bin/sh\nexec '%s' '%s'\n" % (
                sys.executable, os.path.join(SRC, "t/e2e/lib/playback.py")))
        os.chmod(path, mode)
        return path

    def boxes(self):
        d = self.path("play", "boxes")
        return [n for n in os.listdir(d) if not n.endswith(".json")] if os.path.exists(d) else []

    def asked(self):
        with open(self.path("play", "asked")) as f:
            return f.read().split()


def life():
    with PlayHost() as h:
        done = h("up", "-e", "GIVEN=a 'b'")
        equal(done.returncode, 0, done.stderr)
        equal("Each command runs in a new shell" in done.stderr, True, "what is lost is said: " + done.stderr)
        for command, status in (("true", 0), ("exit 42", 42), ("kill -9 $$", 137)):
            equal(h("run", command).returncode, status, command)
        done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN")
        equal(sorted(done.stdout.splitlines()), sorted(["out", "err", h.work, "a 'b'"]), done.stderr)
        h.ok("write", "sub/f.txt", input="one\ntwo\n")
        h.ok("edit", h.work + "/sub/f.txt", "two", "2")
        equal(h.ok("read", "sub/f.txt"), "one\n2\n")
        equal(h("read", "nothing").returncode != 0, True, "a file that is not there")
        with open(h.path("cwd", "big"), "wb") as f:
            f.write(bytes(range(256)) * 4096 * 3)
        h.ok("put", "big", h.work + "/")
        h.ok("get", "big", h.path("cwd", "back"))
        equal(subprocess.run(["cmp", h.path("cwd", "big"), h.work + "/big"]).returncode, 0, "3 MB in pieces")
        equal(subprocess.run(["cmp", h.path("cwd", "big"), h.path("cwd", "back")]).returncode, 0, "a file is one here")
        h.ok("get", "sub", "back-sub")
        equal(os.listdir(h.path("cwd", "back-sub")), ["f.txt"], "a directory is one, too")
        h.ok("run", "ln -s sub/f.txt link; ln -s sub away; mkdir -p twice/twice")
        for path, to in (("link", "linked"), (h.work + "/link", "linked2")):
            h.ok("get", path, h.path("cwd", to))
            with open(h.path("cwd", to)) as f:
                equal(f.read(), "one\n2\n", "a link to a file is that file")
        for path, inside in (("away", ["f.txt"]), ("twice", ["twice"])):
            h.ok("get", path, h.path("cwd", "got-" + path))
            equal(os.listdir(h.path("cwd", "got-" + path)), inside, "a link to a directory, and one of empty ones")
        h.ok("run", "rm -r link away twice")
        h.fails(3, "there is no file or directory nothing in the sandbox", "get", "nothing")
        h.fails(3, "there is no file or directory nothing in the sandbox", "ls", "nothing")
        equal(h.ok("ls", "sub/f.txt"), h.work + "/sub/f.txt\n", "a file")
        equal(h.ok("run", "wc -c <big").strip(), str(3 << 20))
        equal(sorted(h.ok("ls").splitlines()), ["big", "sub/"])
        h.fails(1, "play runtime does not support pause: its program does not say that it can", "pause")
        h.fails(1, "play runtime does not support a terminal", "sh", "true")
        h.fails(1, "play runtime does not support stats", "top")
        h.ok("down")
        equal(h.boxes(), [], "it is ended")


def abilities():
    with PlayHost(can=("pause", "resume", "stats", "shell", "wait", "keep", "of a later version")) as h:
        h.ok("up", "-q")
        equal(h.ok("sh", "sh", "-c", "echo in $IN").strip(), "in " + h.boxes()[0], "its words are the program's")
        equal(h("sh", "sh", "-c", "exit 7").returncode, 7)
        h.ok("pause")
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "paused")
        h.ok("resume")
        equal(json.loads(h.ok("top", "--json"))["mem_bytes"], 256)
        equal([op in h.asked() for op in ("wait", "keep")], [True, True], "it is asked for what it says it can")


def strays():
    """Killed in the middle of a create: no second sandbox is made, and none is forgotten."""
    with PlayHost(fault={"op": "create", "do": "die", "after": True}) as h:
        done = h("up")
        equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
        equal("was found by its label" in done.stderr, True, done.stderr)
        os.unlink(h.path("state", "default.json"))
        found = json.loads(h.ok("ps", "--all", "--json"))
        equal([(f["id"], f["stray"]) for f in found], [(h.boxes()[0], True)])
        h.ok("down", "--all")
        equal(h.boxes(), [])
    with PlayHost(fault={"op": "create", "do": "silent", "after": True}) as h:
        os.mkfifo(h.path("play", "silent"))
        p = h.popen("up")
        with open(h.path("play", "silent")) as f:
            equal((f.read(), len(h.boxes())), ("create", 1), "it has made one and does not say so")
        os.kill(p.pid, signal.SIGKILL)
        p.communicate()
        done = h("up")
        equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
        equal("whose making was interrupted: it is ended" in done.stderr, True, done.stderr)


def ended_in_a_command():
    """It is not run again; the next command has a program again."""
    with PlayHost(fault={"op": "exec", "do": "die", "after": True}) as h:
        h.env["PLAY_SETTINGS"] = "{}"
        h.ok("up", "-q")
        h.env["PLAY_SETTINGS"] = json.dumps({"fault": {"op": "exec", "do": "die", "after": True}})
        done = h("run", "echo x >>%s" % h.path("play", "times"))
        said = done.stdout + done.stderr
        equal("it ended with status 137 and did not answer \"exec\"; its last output: these are my last words" in said,
              True, said)
        equal("\x1b" in said, False, "nothing of it is printed as it is")
        with open(h.path("play", "times")) as f:
            equal(f.read(), "x\n", "once")
        equal(h.ok("run", "echo again"), "again\n")


# what is wrong with one line is t/unit/test_program.c's
WRONG = (
    ("create", "garbage", "back-end play: the program: its answer is not JSON"),
    ("create", '{"id":99,"ok":{}}', "the program answered request 99, but request "),
    ("create", '{"id":ID,"ok":{}}', 'back-end play: the program: the answer to "create" has no "id"'),
    ("create", '{"id":ID,"out":"eA=="}', 'has an unexpected event'),
    ("exec", '{"id":ID,"data":"eA=="}', 'has invalid output'),
    ("exec", '{"id":ID,"ok":{"code":256}}', '"code" of the answer to "exec" must be from 0 to 255, not 256'),
)


def wrong_answers():
    """Each is told, with the field's name, and leaves nothing."""
    with PlayHost() as h:
        for op, text, why in WRONG:
            h.env["PLAY_SETTINGS"] = json.dumps({"fault": {"op": op, "do": "say", "text": text, "always": True}})
            done = h("up")
            equal((done.returncode != 0, why in done.stderr, h.boxes()), (True, True, []),
                  "%s: %r" % (text, done.stderr))
        h.env["PLAY_SETTINGS"] = json.dumps({"fault": {"op": "create", "do": "endless", "always": True}})
        done = h("up")
        equal((done.returncode != 0, "has more than 1048576 bytes" in done.stderr), (True, True), done.stderr)
        h.env["PLAY_SETTINGS"] = json.dumps(
            {"fault": {"op": "create", "do": "error", "code": "denied", "message": "no\x1b[31m money", "always": True}})
        h.fails(1, "no\\x1b[31m money", "up")
        equal(os.listdir(h.path("state")), [], "nothing is recorded")


def slow():
    with PlayHost() as h:
        h.ok("up", "-q")
        done = h("run", "-t", "3", "echo begun; sleep 1000 & echo $! >%s; wait" % h.path("play", "pid"))
        equal("timed out after 3.0 seconds" in done.stdout + done.stderr, True, done.stdout + done.stderr)
        with open(h.path("play", "pid")) as f:
            equal(process.wait_gone(int(f.read()), PATIENCE), True, "what it started is ended with it")
        equal("cancel" in h.asked(), True, "it is told")
        h.env["PLAY_SETTINGS"] = json.dumps({"fault": {"op": "look", "do": "silent", "always": True}})
        h.env["PLAY_TIMEOUT"] = "1"
        h.fails(4, "it did not answer \"look\" within 1000 ms", "run", "true")
        h.env["PLAY_SETTINGS"] = "{}"
        del h.env["PLAY_TIMEOUT"]
        equal(h.ok("run", "echo x"), "x\n")


START = """#!/bin/sh
export SU_TO_USER=false HANDRAIL_LIBEXECDIR='%s' HANDRAIL_DATADIR='%s/conf'
exec '%s/handraild' --listen 127.0.0.1 --run-dir '%s' --state-dir '%s' "$@"
"""


class Front(standin.StandIn):
    """The way to the server in a sandbox, for those who send the header of its "publish"."""

    def answer(self, r):
        if not r.headers.get("x-play-box", "").startswith("box"):
            return 401, {}, {"message": "no x-play-box"}
        return self.forward(r)


def a_server():
    """A server of ours in its sandboxes: the program starts it, and says where it is."""
    with PlayHost(can=("server", "pause", "resume")) as h, Front(h.path("tmp")) as front:
        front.port = free_port()
        me = pwd.getpwuid(os.geteuid())
        h.env.update(RUNTIME_USERNAME=me.pw_name, RUNTIME_UID=str(me.pw_uid), PLAY_PORT=str(front.port),
                     PLAY_URL=front.url, SANDBOX_RUNTIME_CONTAINER_IMAGE="an-image",
                     PLAY_ENVIRONMENT='["PLAY_TOP","PLAY_CAN","PLAY_HELLO","PLAY_PORT","PLAY_URL"]')
        with open(h.path("play", "handraild"), "w") as f:
            f.write(START % (BUILD, SRC, BUILD, h.path("server"), h.path("server-state")))
        os.chmod(f.name, 0o755)
        done = h("up")
        equal(done.returncode, 0, done.stderr)
        equal("runs in a new shell" in done.stderr, False, "nothing is lost: " + done.stderr)
        h.ok("run", "cd /; X='a  b'")
        equal(h.ok("run", 'echo "$X"; pwd'), "a  b\n/\n", "a shell that lasts")
        h.ok("write", h.work + "/f.txt", input="one\n")
        equal(h.ok("run", "cat %s/f.txt" % h.work), "one\n")
        with open(h.path("state", "default.json")) as f:
            equal(json.load(f)["backend"]["url"], front.url, "it is asked at the address that was told")
        equal([op in h.asked() for op in ("launch", "publish", "exec")], [True, True, True])
        h.ok("pause")
        h.ok("resume")
        equal(h.ok("run", "echo again"), "again\n", "also after a pause that ended it")
        h.ok("down")
        equal(h.boxes(), [], "it is ended")
        equal(os.listdir(h.path("state")), [])
        # what it says of the way there is checked before it is asked
        for said, why in (({"url": "http://elsewhere.example"}, "http:// is for this machine only"),
                          ({"url": 5}, '"url" of the answer to "publish" is a number'),
                          ({"header": "X: y\r\nZ: z"}, '"header" of the answer to "publish"')):
            h.env["PLAY_SETTINGS"] = json.dumps({"publish": said})
            done = h("up")
            equal((done.returncode != 0, why in done.stderr), (True, True), done.stderr)
            equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "it is ended: %s" % said)


def no_server():
    """One that cannot have a server says so before it costs."""
    with PlayHost() as h:
        h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"] = "an-image"
        h.fails(1, "play runtime does not support a server in its sandboxes (sandbox.runtime_container_image)", "up")
        del h.env["SANDBOX_RUNTIME_CONTAINER_IMAGE"]
        h.env["SANDBOX_PAYLOAD"] = h.path("payload.tar")
        with open(h.path("payload.tar"), "w") as f:
            f.write("x")
        h.fails(1, "play runtime does not support a server in its sandboxes (sandbox.payload)", "up")
        equal(("create" in h.asked(), os.listdir(h.path("state"))), (False, []), "nothing was made")


def names_that_lead_out():
    """What find(1) of the sandbox says is in a directory makes no file elsewhere, and empties none."""
    with PlayHost() as h:
        victim, beside = h.path("cwd", "victim"), h.path("cwd", "made")
        with open(victim, "w") as f:
            f.write("mine")
        os.mkdir(h.path("lies"))
        with open(h.path("lies", "find"), "w") as f:
            f.write("#!/bin/sh\n>%s.asked\nprintf 'f%%s\\0f%%s\\0d%%s\\0' '%s' '../../../../../..%s' '%s'\n" % (
                victim, victim, victim, beside))
        os.chmod(h.path("lies", "find"), 0o755)
        with open(h.path("play", ".profile"), "w") as f:
            f.write("PATH=%s:$PATH\n" % h.path("lies"))
        h.ok("up", "-q")
        h.ok("run", "mkdir dir")
        fault = {"op": "get", "do": "error", "code": "failed", "message": "no file", "always": True}
        h.env["PLAY_SETTINGS"] = json.dumps({"fault": fault})
        equal(h("read", h.work + "/dir").returncode != 0, True, "it is a directory")
        equal(os.path.exists(victim + ".asked"), True, "what is in it was asked for")
        with open(victim) as f:
            equal((f.read(), os.path.exists(beside)), ("mine", False))
        h.env["PLAY_SETTINGS"] = "{}"


def nothing_is_inherited():
    """What whoever started handrail has open is not the program's, nor a command's of its "shell"."""
    with PlayHost(can=("shell",)) as h, open(h.path("secret"), "w+") as f:
        os.set_inheritable(f.fileno(), True)
        h.ok("up", "-q", pass_fds=(f.fileno(),))
        with open(h.path("play", "environment")) as seen:
            fds = json.load(seen)["fds"]
        equal(os.path.realpath(h.dir) in fds["3"], True, "3 is its directory")
        equal(h.path("secret") in fds.values(), False)
        equal("/secret" in h.ok("sh", "ls", "-l", "/proc/self/fd/", pass_fds=(f.fileno(),)), False)


def refused_at_open():
    """A program that cannot begin says nothing of the sandbox: it and its record stay, and a start leaves none."""
    with PlayHost(fault={"op": "open", "do": "error", "code": "invalid", "message": "no host",
                         "always": True}) as h:
        done = h("up")
        equal((done.returncode, done.stderr), (1, "handrail: back-end play: no host\n"))
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "nothing was made, so nothing is recorded")
        done = h("doctor")
        equal((done.returncode, "back-end play: no host" in done.stdout), (1, True), done.stdout)
    with PlayHost() as h:
        equal(os.path.join(h.dir, "handrail-backend-play") in h.ok("doctor"), True, "it answers hello and open")
        h.ok("up", "-q")
        for code in ("not-found", "gone", "failed", "invalid"):
            fault = {"op": "open", "do": "error", "code": code, "message": "no such account", "always": True}
            h.env["PLAY_SETTINGS"] = json.dumps({"fault": fault})
            h.fails(1, "back-end play: no such account", "down")
            done = h("ps")
            equal(("unknown" in done.stdout, "no such account" in done.stderr), (True, True), code + str(done))
            equal((len(h.boxes()), os.listdir(h.path("state"))), (1, ["default.json"]), code)
        dirs = h.env.pop("OH_RUNTIME_PLUGIN_PATH")
        done = h("ps", "-s", "core.runtime=local")
        equal(("unknown" in done.stdout, "Runtime play not supported" in done.stderr), (True, True), str(done))
        h.env["OH_RUNTIME_PLUGIN_PATH"] = dirs
        h.env["PLAY_SETTINGS"] = "{}"
        h.ok("down")
        equal(h.boxes(), [])


def settings_of_a_program():
    """They reach it from each source, by each name of it, and no command calls its section unknown."""
    with PlayHost() as h:
        program = os.path.join(h.dir, "handrail-backend-play")
        told = {"fault": {"op": "create", "do": "error", "code": "denied", "message": "it was told", "always": True}}
        del h.env["PLAY_SETTINGS"], h.env["RUNTIME"]
        for kind in ("play", program):
            h.fails(1, "it was told", "up", "-r", kind, "--set", "play.settings=" + json.dumps(told))
            h.fails(1, 'play.settings must be an object in JSON, not: {a = 1}', "up", "-r", kind, "--set",
                    "play.settings={a = 1}")
        with open(h.path("cwd", "config.toml"), "w") as f:
            f.write("[core]\n[play]\nsettings = {fault = {op = 'create', do = 'error', code = 'denied', "
                    "message = 'it was told', always = true}}\n[plya]\n")
        h.fails(1, "it was told", "up", "-r", "play")
        for argv in (("ps",), ("backends",), ("doctor", "play")):
            done = h(*argv)
            equal(("Unknown section [play]" in done.stderr, "Unknown section [plya]" in done.stderr), (False, True),
                  "%s: %s" % (argv, done.stderr))


def not_supported():
    """The program's own word for what it cannot do does not make the record one of another place."""
    with PlayHost() as h:
        h.ok("up", "-q")
        h.env["PLAY_SETTINGS"] = json.dumps({"fault": {
            "op": "look", "do": "error", "code": "unsupported", "message": "no such call", "always": True}})
        done = h("down")
        equal((done.returncode, h.boxes(), os.listdir(h.path("state"))), (0, [], []), done.stderr)


def secrets():
    with PlayHost(can=("pause",)) as h:
        h.env["PLAY_CREDENTIALS"] = '["PLAY_KEY"]'
        done = h("up")
        equal(done.returncode, 0, done.stderr)
        with open(h.path("play", "environment")) as f:
            seen = json.load(f)
        equal(seen["credentials"], {"PLAY_KEY": KEY})
        equal([n for n, v in seen["env"].items() if KEY in v or n.startswith("E2B")], [], "none is in its environment")
        equal(KEY in " ".join(seen["argv"]), False)
        equal(("a word with" in done.stderr, KEY in done.stderr), (True, False), done.stderr)
        with open(h.path("state", "default.json")) as f:
            equal(KEY in f.read(), False, "nor in the record")
        refusal = {"do": "error", "code": "failed", "message": "no\n" + "x" * 380 + KEY, "always": True}
        for op, fault, *argv in (
                ("exec", refusal, "run", "true"), ("pause", refusal, "pause"), ("get", refusal, "read", "f"),
                ("end", refusal, "down"),
                ("exec", {"do": "die", "words": KEY + " was wrong", "always": True}, "run", "true"),
                ("exec", {"do": "say", "text": '{"id":ID,"ok":{"code":0,"note":"with %s"}}' % KEY}, "run", "true")):
            h.env["PLAY_SETTINGS"] = json.dumps({"fault": dict(fault, op=op)})
            done = h(*argv)
            said = done.stdout + done.stderr
            equal((KEY[:8] in said, "***" in said), (False, True), "%s: %s" % (argv, said))
        h.env["PLAY_SETTINGS"] = "{}"
        del h.env["PLAY_KEY"]
        h.fails(1, "PLAY_KEY environment variable is required for play runtime", "run", "true")
        h.env["PLAY_KEY"] = KEY


def listed():
    with PlayHost() as h:
        mark = h.path("ran")
        bad = "#!/bin/sh\ntouch %s\n" % mark
        h.program("loose", 0o777, bad)
        h.program("plain", 0o644)
        h.program("Bad.name", 0o755, bad)
        h.program("sandbox", 0o755, bad)
        h.program("mute", 0o755, "#!/bin/sh\nexit 3\n")
        h.program("old", text="#!/bin/sh\nread x; echo '{\"id\":1,\"ok\":{\"protocol\":7,\"can\":[]}}'; read x\n")
        # "environment" is of the settings of one kind: what is only listed gets none
        h.program("good", text="""#!/bin/sh
read x; echo '{"id":1,"ok":{"protocol":1,"can":[]}}'; read x
""")
        rows = {r["what"]: r for r in json.loads(h.ok("backends", "--json"))}
        equal((rows["good"]["ok"], rows["good"]["text"]), (True, os.path.join(h.dir, "handrail-backend-good")), rows)
        for name, why in (("loose", "others may write it"), ("plain", "is not executable"),
                          ("Bad.name", "must be 1 to 32 of"), ("sandbox", "must be 1 to 32 of"),
                          ("mute", "it ended with status 3"),
                          ("old", "speaks version 7 of the protocol, handrail speaks 1")):
            equal((rows[name]["ok"], why in rows[name]["text"]), (False, True), "%s: %s" % (name, rows[name]))
        equal(os.path.exists(mark), False, "what is not trusted is not run")
        h.fails(1, "others may write it", "up", "-r", "loose")
        h.fails(1, "speaks version 7", "up", "-r", "old")


# ---- the example ----

@contextlib.contextmanager
def sshd(h):
    """A server of the test's own, at loopback, for this account and one key."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
    if program is None or shutil.which("ssh") is None:
        raise Skip("there is no sshd: install openssh-server and openssh-client")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", h.path(name)], check=True)
    if os.geteuid() == 0:
        with open("/etc/shadow") as f:
            if any(line.startswith("root:!") for line in f):
                raise Skip("root's account is locked, sshd lets nobody in: \"usermod -p '*' root\", or another user")
        # it stays: another sshd may have come to use it meanwhile
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    for _ in range(5):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with open(h.path("sshd_config"), "w") as f:
            f.write("ListenAddress 127.0.0.1\nPort %d\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\n"
                    "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME=%s\n" %
                    (port, h.path("host"), h.path("user.pub"), h.path("home")))
        p = subprocess.Popen([program, "-D", "-e", "-f", h.path("sshd_config")], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
        said = ""
        for line in p.stderr:
            said += line
            if "Server listening" in line or "annot bind" in line:
                break
        if "Server listening" in said:
            break
        p.kill()
        p.communicate()
    else:
        raise Skip("sshd does not start here: " + said)
    try:
        with open(h.path("host.pub")) as key, open(h.path("known"), "w") as f:
            f.write("[127.0.0.1]:%d %s" % (port, key.read()))
        yield {"host": "127.0.0.1", "dir": h.path("there"),
               "options": ["-F", "none", "-p", str(port), "-l", pwd.getpwuid(os.geteuid()).pw_name,
                           "-i", h.path("user"), "-oIdentitiesOnly=yes", "-oUserKnownHostsFile=" + h.path("known"),
                           "-oStrictHostKeyChecking=yes"]}
    finally:
        p.terminate()
        p.communicate()


def over_ssh():
    with Host(RUNTIME="ssh") as h:
        os.mkdir(h.path("backends"))
        shutil.copy(os.path.join(SRC, "contrib/handrail-backend-ssh"), h.path("backends"))
        with sshd(h) as settings:
            own = "[user]\n\tname = me\n[alias]\n\tmine = status\n"
            with open(h.path("home", ".gitconfig"), "w") as f:
                f.write(own)
            h.env.update(OH_RUNTIME_PLUGIN_PATH=h.path("backends"), SSH_SETTINGS=json.dumps(settings),
                         WORKSPACE_MOUNT_PATH_IN_SANDBOX=h.path("work"))
            h.fails(1, "set core.workspace_mount_path_in_sandbox", "up", "-q", "-s",
                    "core.workspace_mount_path_in_sandbox=/proc/work")
            equal(os.listdir(h.path("there")), [])
            h.ok("up", "-q", "-e", "GIVEN=a 'b'")
            equal(len(os.listdir(h.path("there"))), 2, "a directory and its labels")
            done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN; exit 7")
            equal((done.returncode, sorted(done.stdout.splitlines())),
                  (7, sorted(["out", "err", h.path("work"), "a 'b'"])), done.stderr)
            equal(h.ok("run", "git config user.name; git config alias.mine"), "openhands\nstatus\n")
            with open(h.path("home", ".gitconfig")) as f:
                equal(f.read(), own, "the account is somebody's: its settings of git stay")
            h.ok("write", "sub/f.txt", input="one\ntwo\n")
            h.ok("edit", h.path("work") + "/sub/f.txt", "two", "2")
            equal(h.ok("read", "sub/f.txt"), "one\n2\n")
            equal(h("read", "nothing").returncode != 0, True)
            equal(h.ok("sh", "sh", "-c", "echo $HANDRAIL_SANDBOX >of; pwd").strip(), h.path("work"), "a shell there")
            h.ok("run", "sleep 1000 >/dev/null 2>&1 & echo $! >pid")
            with open(h.path("work", "pid")) as f:
                pid = int(f.read())
            os.unlink(h.path("state", "default.json"))
            equal([f["stray"] for f in json.loads(h.ok("ps", "--all", "--json"))], [True], "found by its label")
            h.ok("down", "--all")
            equal(process.wait_gone(pid, PATIENCE), True, "with all that runs in it")
            equal(os.listdir(h.path("there")), [])


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, abilities, strays, ended_in_a_command, wrong_answers, slow, a_server, no_server,
                 names_that_lead_out, nothing_is_inherited, refused_at_open, settings_of_a_program, not_supported,
                 secrets, listed, over_ssh):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
