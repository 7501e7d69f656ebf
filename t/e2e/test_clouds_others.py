#!/usr/bin/env python3
"""The kinds daytona and runloop: against stand-ins that run their commands."""

import json
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process, standin  # noqa: E402
from lib.host import PATIENCE  # noqa: E402
from lib.tap import Tap, equal  # noqa: E402
from test_clouds_e2b import KEY, CloudHost, interrupted  # noqa: E402


class DaytonaHost(CloudHost):
    provider, kind = standin.Daytona, "daytona"

    def account(self):
        return {"DAYTONA_API_KEY": KEY, "DAYTONA_API_URL": self.at.url}


class RunloopHost(CloudHost):
    provider, kind = standin.Runloop, "runloop"

    def account(self):
        return {"RUNLOOP_API_KEY": KEY, "RUNLOOP_BASE_URL": self.at.url}


HOSTS = (DaytonaHost, RunloopHost)


def life():
    for kind in HOSTS:
        with kind() as h:
            done = h("up", "-e", "GIVEN=a 'b'")
            equal(done.returncode, 0, done.stderr)
            equal("each command runs in a new shell" in done.stderr, True, done.stderr)
            for command, status in (("true", 0), ("exit 42", 42), ("kill -9 $$", 137)):
                equal(h("run", command).returncode, status, command)
            done = h("run", "echo out; echo err >&2; pwd; echo $GIVEN")
            equal(sorted(done.stdout.splitlines()), sorted(["out", "err", h.work, "a 'b'"]), h.kind + done.stderr)
            files = [f for f in h.at.put if f.startswith("/tmp/.handrail-env-")]
            # Daytona's calls have a field for variables
            equal((len(set(files)), len(files)), (0, 0) if h.kind == "daytona" else (5, 5), "a file for each command")
            equal([f for f in files if os.path.exists(f)], [], "variables are in no file after the command")
            if kind is RunloopHost:
                h.at.fault("POST", "execute_async", status=400)
                equal(h("run", "echo never").returncode != 0, True)
                for p in h.at.started:
                    p.wait()
                equal([os.path.exists(f) for f in h.at.put if f not in files], [False], "nor if it does not start")
            h.ok("write", "sub/f.txt", input="one\ntwo\n")
            h.ok("edit", h.work + "/sub/f.txt", "two", "2")
            equal(h.ok("read", "sub/f.txt"), "one\n2\n")
            equal(h("read", "nothing").returncode != 0, True)
            equal(h.ok("ls").splitlines(), ["sub/"])
            h.ok("pause")
            equal(json.loads(h.ok("ps", "--json"))[0]["state"], "paused", h.kind)
            h.ok("resume")
            equal(h.ok("run", "echo again"), "again\n")
            h.ok("down")
            equal(h.boxes(), [], "it is ended")


def interrupts():
    for kind in HOSTS:
        with kind() as h:
            h.ok("up", "-q")
            interrupted(h)


def faults():
    for kind in HOSTS:
        with kind() as h:
            make = "^/sandbox$" if kind is DaytonaHost else "^/v1/devboxes$"
            h.at.fault("POST", make, after=True)
            h.at.fault("GET", "box", times=2, status=503)
            done = h("up")
            equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
            equal(h.ok("run", "echo x"), "x\n")
            before = h.path("tmp", "times")
            h.at.fault("POST", "execute", after=True)
            h("run", "echo x >>%s" % before)
            with open(before) as f:
                equal(f.read(), "x\n", "run once: " + h.kind)
            done = h("run", "-t", "1", "sleep 1000 & echo $! >%s/pid; wait" % h.path("tmp"))
            with open(h.path("tmp", "pid")) as f:
                equal(process.wait_gone(int(f.read()), PATIENCE), True, "what it started is ended with it")
            record = h.path("state", "default.json")
            with open(record) as f:
                equal(KEY in f.read(), False, "the key is in no record")
            os.unlink(record)
            equal(json.loads(h.ok("ps", "--all", "--json"))[0]["stray"], True, "found by its label")
            h.ok("down", "--all")
            equal(h.boxes(), [], h.kind)


def streams_go_on():
    """Cut in the middle of the output: the rest comes from where it was cut."""
    with RunloopHost() as h:
        h.ok("up", "-q")
        h.at.fault("GET", "stream_stdout", times=2, cut=1)
        done = h("run", "echo one; read -t 1 < <(sleep 5); echo two; read -t 1 < <(sleep 5); echo three; exit 5")
        equal((done.returncode, done.stdout), (5, "one\ntwo\nthree\n"), done.stderr)


def never_ready():
    """A service that answers at once that it has waited is not asked for ever."""
    with RunloopHost() as h:
        h.at.fault("POST", "/v1/devboxes/[^/]+/wait_for_status$", times=60, status=408)
        done = h("up", "-q")
        equal((done.returncode != 0, "does not wait for the devbox" in done.stderr), (True, True), done.stderr)
        equal(h.boxes(), [], "it is ended")


def not_utf8():
    """A byte that is no UTF-8 in an update, which counts for one where the stream goes on after it."""
    with RunloopHost() as h:
        h.ok("up", "-q")
        h.at.fault("GET", "stream_stdout", times=2, cut=1)
        done = h("run", "printf 'caf\\351 one\\n'; read -t 1 < <(sleep 5); printf 'two \\351\\n'; "
                 "read -t 1 < <(sleep 5); echo three; exit 5")
        equal((done.returncode, done.stdout), (5, "caf\ufffd one\ntwo \ufffd\nthree\n"), done.stderr)


MISSING = object()
NO_TEXT = (MISSING, 5, True, [], {}, None)
NO_NUMBER = (MISSING, "3", 1.5, True, [], {}, None, 2 ** 70)
NO_STATUS = NO_NUMBER + (2 ** 32, 2 ** 32 + 3, -2 ** 40)
# what is read of the answers to a command that ends with 3, and what it must not be; E2B leaves out what is 0
READ = {
    RunloopHost: (("/execute_async$", "execution_id", NO_TEXT + ("a\0b", "a\nb")),
                  ("/stream_stdout_updates$", "output", NO_TEXT),
                  ("/stream_stdout_updates$", "offset", NO_NUMBER + (-1, -2 ** 63)),
                  ("/wait_for_status$", "status", NO_TEXT + ("com\0pleted",)),
                  ("/wait_for_status$", "exit_status", NO_STATUS)),
    DaytonaHost: (("/process/execute$", "exitCode", NO_STATUS), ("/process/execute$", "result", NO_TEXT)),
    CloudHost: (("/Start$", "event", NO_TEXT), ("/Start$", "pid", NO_NUMBER),
                ("/Start$", "exitCode", tuple(v for v in NO_STATUS if v is not MISSING and v is not None)),
                ("/Start$", "stdout", (5, True, [], {}, "no base64!"))),
}


def edited(o, field, value):
    """Copies it with that member, wherever it is, of that value."""
    if not isinstance(o, dict):
        return o
    return {k: value if k == field else edited(v, field, value) for k, v in o.items()
            if k != field or value is not MISSING}


def wrong_answers():
    """A member that is missing, of another type or out of its range, and JSON that is cut, fail a command in words: it
    has neither another status nor less output for it."""
    for kind, fields in READ.items():
        with kind() as h:
            h.ok("up", "-q")
            good = h("run", "echo one; exit 3")
            equal((good.returncode, good.stdout), (3, "one\n"), good.stderr)
            for path, field, values in fields:
                for value in values + (b"cut",):
                    h.at.edit = lambda r, o: o if not re.search(path, r.path) or edited(o, field, MISSING) == o else \
                        json.dumps(o).encode()[:-3] if value == b"cut" else edited(o, field, value)
                    done = h("run", "echo one; exit 3")
                    what = "%s: %s of %s: %r: %d\n%s%s" % (h.kind, field, path, value, done.returncode, done.stdout,
                                                         done.stderr)
                    equal((done.returncode, h.kind in done.stderr.lower()), (1, True), what)
            h.at.edit = lambda r, o: o
            again = h("run", "echo one; exit 3")
            equal((again.returncode, again.stdout), (3, "one\n"), again.stderr)


def killed_makers():
    """kill -9 between the making and its record: the next command names it, and ends it."""
    for kind in HOSTS:
        with kind() as h:
            gate, answer, dead = os.path.join(h.top, "gate"), h.at.answer, threading.Event()
            os.mkfifo(gate)

            def held(r, h=h, answer=answer, gate=gate, dead=dead):
                said = answer(r)
                if r.method == "POST" and r.path in ("/sandbox", "/v1/devboxes"):
                    with open(gate, "w") as f:
                        f.write("made\n")
                    dead.wait()
                    return h.at.drop(r)
                return said

            h.at.answer = held
            p = h.popen("up", "-q")
            with open(gate) as f:
                f.read()
            p.send_signal(signal.SIGKILL)
            p.communicate()
            dead.set()
            h.at.answer = answer
            equal(len(h.boxes()), 1, "it was made")
            equal(json.loads(h.ok("ps", "--json"))[0]["sid"], "default", "and is named")
            done = h("up")
            equal((done.returncode, len(h.boxes()), "whose making was interrupted" in done.stderr), (0, 1, True),
                  h.kind + done.stderr)


def limits_and_keys():
    """429 is waited for as it asks, a burst of 5xx is sat out, and a key that ended is told without its text."""
    for kind in HOSTS:
        with kind() as h:
            make = "^/sandbox$" if kind is DaytonaHost else "^/v1/devboxes$"
            h.at.fault("POST", make, status=429, headers={"Retry-After": "1"})
            h.at.fault("GET", "^/sandbox/" if kind is DaytonaHost else "stream_stdout", times=2, status=502)
            h.ok("up", "-q")
            equal((len(h.boxes()), h.ok("run", "echo x")), (1, "x\n"), h.kind)
            h.at.key = "other"
            done = h("ps", "--all")
            equal((done.returncode, "401" in done.stderr, KEY in done.stderr + done.stdout), (1, True, False),
                  done.stderr)
            h.at.key = KEY


def labels_of(box):
    return next(v for v in box.values() if isinstance(v, dict) and "handrail_owner" in v)


def of_other_owners(kinds=(CloudHost,) + HOSTS):
    """A name leads to what this user of this machine has made, or to what a record here names, and to nothing else
    without --any-owner."""
    for kind in kinds:
        with kind() as h:
            h.ok("up", "-q", "-n", "mine")
            name = h.boxes()[0]
            box = h.at.boxes[name]
            os.unlink(h.path("state", "mine.json"))
            equal(h.ok("run", "-q", "-n", "mine", "echo found"), "found\n", "by its label")
            owner = labels_of(box)["handrail_owner"]
            for other in ("colleague-0", owner + "0", owner[:-1], ""):
                labels_of(box)["handrail_owner"] = other
                for words in (("down", "-n", "mine"), ("pause", "-n", "mine"), ("run", "-n", "mine", "true"),
                              ("down", "mine")):
                    done = h(*words)
                    equal((done.returncode, "--any-owner" in done.stderr, other in done.stderr, name in done.stderr),
                          (3, True, True, True), h.kind + repr((words, done.stderr)))
                equal((h.boxes(), json.loads(h.ok("ps", "--all", "--json"))[0]["state"]), ([name], "running"), h.kind)
            equal(h.ok("run", "-q", "--any-owner", "-n", "mine", "echo theirs"), "theirs\n", "who says so")
            done = h("down", "--any-owner", "-n", "mine")
            equal((done.returncode, h.boxes(), 'ended "mine": %s %s' % (h.kind, name) in done.stderr), (0, [], True),
                  h.kind + done.stderr)


def main():
    process.become_subreaper()
    tap = Tap()
    for test in (life, interrupts, faults, limits_and_keys, killed_makers, streams_go_on, never_ready, not_utf8,
                 wrong_answers,
                 of_other_owners):
        tap.run(test.__name__.replace("_", " "), test)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
