#!/usr/bin/env python3
"""The kind e2b against a stand-in that runs its commands: its life, its actions, its faults, and what it costs."""

import json
import os
import select
import signal
import stat
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process, standin  # noqa: E402
from lib.host import PATIENCE, Host  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402

KEY = "key-of-the-test"


class CloudHost(Host):
    """A user with an account at a stand-in."""

    provider, kind = standin.E2B, "e2b"

    def __init__(self, **env):
        super().__init__(RUNTIME=self.kind, **env)
        self.work = self.path("work")
        self.at = self.provider(self.path("tmp"))
        self.at.key = KEY
        self.env.update(self.account(), WORKSPACE_MOUNT_PATH_IN_SANDBOX=self.work)

    def account(self):
        return {"E2B_API_KEY": KEY, "E2B_API_URL": self.at.url, "E2B_SANDBOX_URL": self.at.url}

    def __exit__(self, *unused):
        super().__exit__(*unused)
        self.at.__exit__()

    def boxes(self):
        return sorted(self.at.boxes)

    def obs(self, *argv):
        return json.loads(self.ok(*argv))


def life():
    with CloudHost() as h:
        said = h("up")
        equal(said.returncode, 0, said.stderr)
        equal("each command runs in a new shell" in said.stderr, True, "what is lost is said: " + said.stderr)
        equal(h.boxes(), ["box1"])
        equal(h.at.boxes["box1"]["metadata"]["handrail_sid"], "default", "its label")
        equal(stat.S_IMODE(os.stat(h.path("state", "default.json")).st_mode), 0o600, "the record is the user's alone")
        h.ok("up", "-q")
        equal(h.boxes(), ["box1"], "it is found again")
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "running")
        h.ok("pause")
        h.ok("pause")  # again, which the service refuses
        equal(json.loads(h.ok("ps", "--json"))[0]["state"], "paused")
        equal("gone or paused" in h("run", "true").stdout + h("run", "true").stderr, True, "paused")
        h.ok("resume")
        equal(h.ok("run", "echo again"), "again\n")
        equal(json.loads(h.ok("top", "--json"))["mem_bytes"], 256)
        h.ok("down")
        equal(h.boxes(), [], "it is ended")
        equal(os.listdir(h.path("state")), [], "and nothing is recorded")
        h.fails(3, "E2B has no sandbox \"default\"", "down")


def actions():
    with CloudHost() as h:
        h.ok("up", "-q", "-e", "GIVEN=a 'b'")
        for command, status in (("true", 0), ("exit 42", 42), ("nosuchcommand", 127), ("kill -9 $$", 137)):
            equal(h("run", command).returncode, status, command)
        done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN")
        equal(sorted(done.stdout.splitlines()), sorted(["out", "err", h.work, "a 'b'"]), "streams, place, variable")
        h.ok("write", "sub/f.txt", input="one\ntwo\n")
        equal(h.ok("read", "sub/f.txt"), "one\ntwo\n")
        equal(h.ok("run", "cat sub/f.txt"), "one\ntwo\n", "where commands see it")
        o = h.obs("edit", "--json", h.work + "/sub/f.txt", "two", "2")
        equal("tmp/handrail-mirror" in json.dumps(o), False, o["content"])
        equal(h.work + "/sub/f.txt" in o["content"], True, o["content"])
        equal(h.ok("read", "sub/f.txt"), "one\n2\n", "edited")
        equal(h("read", "nothing.txt").returncode != 0, True, "a file that is not there")
        with open(h.path("cwd", "a program"), "w") as f:
            f.write("#!/bin/sh\necho ran\n")
        os.chmod(h.path("cwd", "a program"), 0o755)
        h.ok("put", "a program", h.work + "/")
        equal(h.ok("run", "'./a program'"), "ran\n", "what is executable stays so")
        h.ok("run", "mkdir -p modes/shut && echo x >modes/shut/f && chmod 640 modes/shut/f && "
                    "cp 'a program' modes/ && chmod 604 \"$(mktemp modes/aXXXXXX)\"")
        h.ok("get", "modes", h.path("cwd", "modes back"))
        equal(sorted(stat.S_IMODE(os.stat(os.path.join(d, n)).st_mode)
                     for d, _, fs in os.walk(h.path("cwd", "modes back")) for n in fs),
              [0o604, 0o640, 0o755], "and what comes back has its mode")
        h.ok("get", "a program", h.path("cwd", "program back"))
        equal(stat.S_IMODE(os.stat(h.path("cwd", "program back")).st_mode), 0o755, "a single one, too")
        h.ok("run", "rm -r modes")
        equal(h.ok("ls").split("\n")[:2], ["a program", "sub/"])
        os.makedirs(h.path("cwd", "tree/it's empty"))
        h.ok("put", "tree", "sub")
        equal(h.ok("ls", "sub/tree"), "it's empty/\n", "an empty directory")
        h.ok("get", "sub/tree", h.path("cwd", "tree back"))
        equal(os.listdir(h.path("cwd", "tree back")), ["it's empty"], "and back")
        h.ok("get", "sub/tree/it's empty", h.path("cwd", "nothing"))
        equal(os.listdir(h.path("cwd", "nothing")), [], "itself")
        h.ok("run", "rm -r sub/tree")
        for i in range(1400):  # more than one argument of a shell can name
            os.makedirs(h.path("cwd", "many/%s%04d" % ("long-" * 20, i)))
        h.ok("put", "many", "sub")
        equal(h.ok("run", "ls sub/many | wc -l; rm -r sub/many"), "1400\n", "many empty ones")
        h.ok("get", "sub", h.path("cwd", "back"))
        found = [os.path.join(d, f) for d, _, fs in os.walk(h.path("cwd", "back")) for f in fs]
        equal([open(f).read() for f in found], ["one\n2\n"], "copied back")
        equal(os.listdir(h.path("tmp")), [n for n in os.listdir(h.path("tmp")) if not n.startswith("handrail-")],
              "no copies are left on this machine")


def cut_while_it_prints():
    """However often its stream is cut: it is followed for as long as each one brings something."""
    with CloudHost() as h:
        h.ok("up", "-q")
        h.at.fault("POST", "Process/Start$", cut=2)
        h.at.fault("POST", "Process/Connect$", times=30, cut=2)
        done = h("run", "head -c 60000 /dev/zero | tr '\\0' x; exit 3")
        equal((done.returncode, done.stdout.count("x") > 20000, h.at.count("POST", "/process.Process/Connect") > 30),
              (3, True, True), done.stderr)


def cells():
    """Their status is what the interpreter says, with a traceback and without one."""
    rule = "-" * 75 + "\nValueError      Traceback (most recent call last)\nValueError: bad"
    with CloudHost() as h:
        h.ok("up", "-q")
        for n, (said, status, printed) in enumerate((
                ([{"type": "stdout", "text": "hi\n"}, {"type": "result", "text": "42"}], 0, "hi\n42\n"),
                ([{"type": "error", "name": "ValueError", "value": "bad", "traceback": rule}], 1, rule + "\n"),
                ([{"type": "stdout", "text": "hi"}, {"type": "error", "name": "ValueError", "value": "bad"},
                  {"type": "number_of_executions", "execution_count": 1}], 1, "hi\nValueError: bad\n"),
                ([{"type": "error", "name": "ValueError", "value": "", "traceback": ""}], 1, "ValueError: \n"),
                ([{"type": "stdout", "text": "caf\udce9\n"}, {"type": "result", "text": "1"}], 0, "caf\ufffd\n1\n"),
                ([{"type": "error", "name": "SystemExit", "value": "0"}], 0, "SystemExit: 0\n"),
                ([{"type": "error", "name": "SystemExit", "value": "3"}], 1, "SystemExit: 3\n"))):
            h.at.cells[str(n)] = said
            done = h("py", str(n))
            equal((done.returncode, done.stdout), (status, printed), "%s: %s" % (said, done.stderr))


def not_utf8():
    """A byte that is no UTF-8 in an event of a command's stream."""
    with CloudHost() as h:
        h.ok("up", "-q")
        h.at.last_words = "caf\udce9"
        done = h("run", "echo out; exit 3")
        equal((done.returncode, done.stdout), (3, "out\n"), done.stderr)


def time_limits():
    with CloudHost() as h:
        h.ok("up", "-q")
        done = h("run", "-t", "1", "echo begun; sleep 1000 & echo $! >%s/pid; wait" % h.path("tmp"))
        equal("timed out after 1.0 seconds" in done.stdout + done.stderr or done.returncode != 0, True, done.stdout)
        with open(h.path("tmp", "pid")) as f:
            equal(process.wait_gone(int(f.read()), PATIENCE), True, "what it started is ended with it")
        equal(max(b["timeout"] for b in h.at.boxes.values()) >= 300, True, "it lives on while it is used")


def begun(h, command):
    """`handrail run` of a command that has begun, and the number of its shell; {} tells it."""
    name = h.path("tmp", "begun")
    if not os.path.exists(name):
        os.mkfifo(name)
    p = h.popen("run", command.format("echo $$ >%s" % name))
    with open(name) as f:
        return p, int(f.read())


def interrupted(h):
    """An interrupt ends the command; a second one ends what goes on after it, whatever that has started."""
    for again, command, status in ((False, "{0}; sleep 1000; echo not reached", 130),
                                   (True, "trap '{0}' INT; {0}; sleep 1000; sleep 1000; echo not reached", 137)):
        p, shell = begun(h, command)
        if again:
            # bash keeps a signal that comes while it starts a program until that has ended
            end = time.monotonic() + PATIENCE
            while not any("sleep" in process.command_line(c) for c in process.children(shell)):
                equal(time.monotonic() < end, True, "the command goes on")
                time.sleep(0.01)
            told = os.open(h.path("tmp", "begun"), os.O_RDONLY | os.O_NONBLOCK)
        p.send_signal(signal.SIGINT)
        if again:
            equal(select.select([told], [], [], PATIENCE)[0], [told], "the trap runs")
            equal(int(os.read(told, 100)), shell, "it was interrupted")
            os.close(told)
            p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        equal(process.wait_gone(shell, PATIENCE), True, "it is ended: " + err)
        equal((p.returncode, "not reached" in out), (status, False), (command, out, err))
    equal(h.ok("run", "echo goes on"), "goes on\n")


def interrupts():
    with CloudHost() as h:
        h.ok("up", "-q")
        interrupted(h)
        # where the signal cannot be sent that is said, and a third one leaves
        p, shell = begun(h, "{}; exec sleep 1000")
        h.at.fault("GET", "^/sandboxes/", times=1000, status=401)
        p.send_signal(signal.SIGINT)
        for _ in range(2):
            equal("the command was not interrupted: " in p.stderr.readline(), True)
            p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        equal((p.returncode, "may still run in the sandbox" in err), (-signal.SIGINT, True), err)
        equal(process.has_ended(shell), False, "as was said")


def limits_and_faults():
    with CloudHost() as h:
        h.at.fault("POST", "^/v2/sandboxes$", status=429, headers={"Retry-After": "1"})
        h.at.fault("GET", "^/sandboxes/", times=2, status=503)
        h.ok("up", "-q")
        equal((h.boxes(), h.at.count("POST", "/v2/sandboxes")), (["box1"], 2), "429 is waited for")
        equal(h.ok("run", "echo x"), "x\n", "503s are asked again")
        # a command that got no answer is not sent again
        h.at.fault("POST", "Process/Start", after=False)
        before = h.at.count("POST", "/process.Process/Start")
        done = h("run", "echo never")
        equal(h.at.count("POST", "/process.Process/Start") - before, 1, "sent once: " + done.stderr)
        equal(done.returncode != 0, True)
        # cut after the second event: joined, and told
        h.at.fault("POST", "Process/Start", cut=2)
        done = h("run", "echo one; read -t 1 < <(sleep 5); echo two; exit 5")
        equal((done.returncode, "one" in done.stdout, "and was restored" in done.stdout), (5, True, True), done.stdout)
        # cut again and again: as often as it has to be joined
        h.at.fault("POST", "Process/Start", cut=1)
        h.at.fault("POST", "Process/Connect", times=6, cut=1)
        before = h.at.count("POST", "/process.Process/Start")
        done = h("run", "read -t 1 < <(sleep 5); exit 6")
        equal((done.returncode, "broke and was restored" in done.stdout), (6, True), done.stdout)
        equal(h.at.count("POST", "/process.Process/Start") - before, 1, "and run once")
        # an expired key is told by its name, not by its text
        h.env["E2B_API_KEY"] = "another-key-xyz"
        done = h("ps", "--all")
        equal((done.returncode, "401" in done.stderr, "another-key-xyz" in done.stderr + done.stdout),
              (1, True, False), done.stderr)
        h.env["E2B_API_KEY"] = KEY


def lost_answers():
    """It was made, and the answer got lost: found by its label, not made again."""
    with CloudHost() as h:
        h.at.fault("POST", "^/v2/sandboxes$", after=True)
        done = h("up")
        equal((done.returncode, h.boxes()), (0, ["box1"]), done.stderr)
        equal("found by its label" in done.stderr, True, done.stderr)
        equal(h.at.count("POST", "/v2/sandboxes"), 1)
        equal(h.ok("run", "echo x"), "x\n")
        h.ok("down")
        equal(h.boxes(), [])
        # and where it cannot be ended at once its record stays
        h.at.fault("POST", "Process/Start", times=9, status=400)
        h.at.fault("DELETE", "^/sandboxes/", times=1, status=500)
        done = h("up")
        equal((done.returncode, len(h.boxes()), "handrail down" in done.stderr), (1, 1, True), done.stderr)
        h.at.faults.clear()
        h.ok("down")
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []), "the record led to it")
        # of a record that cannot be asked about no second one is made
        h.ok("up", "-q")
        h.at.fault("GET", "^/sandboxes/", times=99, status=500)
        h.fails(1, "no new one is made", "up")
        equal(len(h.boxes()), 1)


def killed_makers():
    """kill -9 while it is made: the next command says so, and ends it."""
    with CloudHost() as h:
        gate = os.path.join(h.top, "gate")
        os.mkfifo(gate)
        make, held = h.at.create, []

        def slow(q):
            answer = make(q)
            with open(gate, "w") as f:
                f.write("made\n")
            held.append(q)
            return answer

        h.at.create = slow
        p = h.popen("up", "-q")
        with open(gate) as f:
            f.read()
        p.send_signal(signal.SIGKILL)
        p.communicate()
        h.at.create = make
        equal(len(h.boxes()), 1, "it was made")
        equal(json.loads(h.ok("ps", "--json"))[0]["sid"], "default", "and is named")
        done = h("up")
        equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
        equal("whose making was interrupted" in done.stderr, True, done.stderr)


def strays():
    with CloudHost() as h:
        h.ok("up", "-q", "-n", "one")
        h.ok("up", "-q", "-n", "two")
        h.at.create({"templateID": "x", "metadata": {}})
        others = {"handrail_sid": "three", "handrail_run": "r", "handrail_owner": "o"}
        h.at.create({"templateID": "x", "metadata": others})
        os.unlink(h.path("state", "two.json"))
        listed = {s["sid"]: s for s in json.loads(h.ok("ps", "-r", "e2b", "--all", "--json"))}
        equal(sorted(listed), ["one", "three", "two"])
        equal((listed["two"]["stray"], listed["two"]["ours"], listed["three"]["ours"]), (True, True, False))
        equal("not recorded here: box2" in h.ok("ps", "--all"), True)
        h.ok("down", "--all", "-r", "e2b")
        equal(h.boxes(), ["box3", "box4"], "what others made stays")


def older_routes():
    with CloudHost() as h:
        h.at.old = True
        h.ok("up", "-q")
        equal([s for s in h.at.seen if s.endswith("sandboxes") and s.startswith("POST")],
              ["POST /v2/sandboxes", "POST /sandboxes"])
        equal(h.ok("run", "echo x"), "x\n")
        h.ok("pause")
        h.ok("resume")
        equal(h.ok("run", "echo y"), "y\n")


def secrets():
    """The key is in no file but the one that holds it, and in no error."""
    with CloudHost() as h:
        del h.env["E2B_API_KEY"]
        h.fails(1, "E2B_API_KEY environment variable is required for E2B runtime", "up")
        with open(h.path("key"), "w") as f:
            f.write(KEY + "\n")
        h.env["E2B_API_KEY_FILE"] = h.path("key")
        h.ok("up", "-q")
        equal(KEY in open(h.path("state", "default.json")).read(), False, "not in the record")
        h.at.key = "other"
        done = h("ps", "--all")
        equal((done.returncode, KEY in done.stderr + done.stdout), (1, False), done.stderr)
        h.at.key = KEY
        equal("secret-of-envd" in h.ok("ps", "--json"), False)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, actions, cut_while_it_prints, cells, not_utf8, time_limits, interrupts, limits_and_faults,
                 lost_answers,
                 killed_makers, strays, older_routes, secrets):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
