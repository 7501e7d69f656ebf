#!/usr/bin/env python3
"""Faults that each provider can have, against stand-ins that run commands: nothing is made or run twice, nothing that
costs is forgotten, and what is not known is said. What else there is of them: doc/clouds.md, "Faults"."""

import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import grpcserver  # noqa: E402
from lib.tap import Skip, Tap, equal  # noqa: E402
from lib import process  # noqa: E402
from test_clouds_e2b import KEY, CloudHost  # noqa: E402
from test_clouds_modal import PYTHON, ModalHost  # noqa: E402
from test_clouds_others import DaytonaHost, RunloopHost  # noqa: E402

MAKE = {"e2b": "^/v2/sandboxes$", "daytona": "^/sandbox$", "runloop": "^/v1/devboxes$"}


class Old(ModalHost):
    """Modal, with its older routes."""

    def __init__(self, **env):
        super().__init__(**env)
        self.at.older()


HOSTS = (("e2b", CloudHost), ("daytona", DaytonaHost), ("runloop", RunloopHost), ("modal", ModalHost),
         ("modal, older routes", Old))


def fault(h, status=None, after=False, times=1, headers=None):
    """Of the request that makes a sandbox: status None: it gets no answer."""
    if not isinstance(h, ModalHost):
        return h.at.fault("POST", MAKE[h.kind], status=status, after=after, times=times, headers=headers)
    what = "SandboxCreate$" if isinstance(h, Old) else "SandboxCreateV2$"
    if status is None:
        return h.at.fault(what, "drop", after=after, times=times)
    return h.at.fault(what, "http", after=after, times=times, status=status,
                      headers={k.lower(): v for k, v in (headers or {}).items()})


def made(h):
    """How often it was asked for one."""
    if isinstance(h, ModalHost):
        return h.at.count("SandboxCreate" if isinstance(h, Old) else "SandboxCreateV2")
    return h.at.count("POST", MAKE[h.kind][1:-1])


def limited(kind):
    """429 and 503 are waited out as they ask for, also by a date; one of a clock that is far off does not count."""
    with kind() as h:
        fault(h, 429, headers={"Retry-After": "1"})
        fault(h, 503, headers={"Retry-After": "Thu, 31 Dec 2099 23:59:59 GMT"})
        fault(h, 503, headers={"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"})
        begun = time.monotonic()
        h.ok("up", "-q")
        equal((made(h), len(h.boxes()), time.monotonic() - begun >= 1), (4, 1, True), "made once, and waited for")
        equal(h.ok("run", "echo x"), "x\n")


def timed_out(kind):
    """A create that is answered 504 after it has succeeded: that one is used."""
    with kind() as h:
        fault(h, 504, after=True)
        done = h("up")
        equal((done.returncode, len(h.boxes())), (0, 1), done.stderr)
        # a provider that knows requests by keys of theirs is asked again, another is looked through
        equal(h.kind in ("runloop", "modal") or "found by its label" in done.stderr, True, done.stderr)
        equal(h.ok("run", "echo x"), "x\n")
        h.ok("down")
        equal((h.boxes(), os.listdir(h.path("state"))), ([], []))


def not_listed_yet(kind):
    """Lost, and not in the list yet: its record stays, and the next command finds and ends it."""
    with kind() as h:
        h.at.unlisted.update(("box1", "sb-1", "dbx_1"))
        # Runloop is not asked again, too; Modal is, with a key, and answers so each time
        fault(h, 504, after=True, times=99 if h.kind == "modal" else 1, headers={"x-should-retry": "false"})
        done = h("up")
        equal((done.returncode != 0, h.kind == "modal" or made(h) == 1, len(h.boxes())), (True, True, 1), done.stderr)
        equal("may exist, and is not listed yet" in done.stderr and "handrail down" in done.stderr, True, done.stderr)
        equal(json.loads(h.ok("ps", "--json"))[0]["sid"], "default", "it is recorded")
        h.at.faults.clear()
        h.at.unlisted.clear()
        done = h("down")
        equal((done.returncode, h.boxes(), os.listdir(h.path("state"))), (0, [], []), done.stderr)


def lost_command(kind):
    """A command whose answer is lost has been run once, and what is not known of it is said."""
    with kind() as h:
        h.ok("up", "-q")
        if h.kind == "e2b":
            h.at.fault("POST", "Process/Start", cut=1)
            h.at.fault("POST", "Process/Connect", times=9, status=404)
            why = "how it ended is not known"
        elif h.kind == "daytona":
            h.at.fault("POST", "process/execute", after=True)
            why = "keeps no copy"
        elif h.kind == "runloop":
            h.at.fault("POST", "execute_async", after=True)  # it has a key: it is asked again
            why = None
        else:
            h.at.fault("ContainerExec$" if isinstance(h, Old) else "TaskExecStart$", "reset", after=True)
            why = "Failed to execute" if isinstance(h, Old) else None
        mark = h.path("tmp", "times")
        done = h("run", "echo x >>%s" % mark)
        for r in list(h.at.runs.values()) if isinstance(h, ModalHost) else []:
            r.p.wait()  # the client, which was cut off, does not wait for it
        for p in getattr(h.at, "started", []):
            p.wait()
        with open(mark) as f:
            equal(f.read(), "x\n", "run once: " + done.stdout + done.stderr)
        said = done.stdout + done.stderr
        equal((done.returncode == 0, why is None or why in said), (why is None, True), said)


def killed(kind):
    """kill -9 between the making and its record: the next command names it and ends it."""
    with kind() as h:
        gate, dead = os.path.join(h.top, "gate"), threading.Event()
        os.mkfifo(gate)

        def hold():
            with open(gate, "w") as f:
                f.write("made\n")
            dead.wait()

        undo = held(h, hold)
        p = h.popen("up", "-q")
        with open(gate) as f:
            f.read()
        p.send_signal(signal.SIGKILL)
        p.communicate()
        dead.set()
        undo()
        equal(len(h.boxes()), 1, "it was made")
        equal(json.loads(h.ok("ps", "--json"))[0]["sid"], "default", "and is named")
        done = h("up")
        equal((done.returncode, len(h.boxes()), "whose making was interrupted" in done.stderr), (0, 1, True),
              done.stderr)


def held(h, hold):
    """What makes a sandbox calls hold() before it answers; what is given undoes that."""
    if isinstance(h, ModalHost):
        name = "SandboxCreate" if isinstance(h, Old) else "SandboxCreateV2"
        method = h.at.methods[name]

        def one(r):
            said = list(method(r))
            hold()
            return iter(said)

        h.at.methods[name] = one
        return lambda: h.at.methods.update({name: method})
    answer = h.at.answer

    def other(r):
        said = answer(r)
        if r.method == "POST" and r.path == MAKE[h.kind][1:-1]:
            hold()
            return h.at.drop(r)
        return said

    h.at.answer = other
    return lambda: setattr(h.at, "answer", answer)


def ended_key(kind):
    """A key that has ended: it is said without its text, nothing is forgotten, and with a good one all goes on."""
    with kind() as h:
        h.ok("up", "-q")
        h.at.key = "another"
        for argv in (("run", "true"), ("ps", "--all"), ("down",), ("up", "-n", "two")):
            done = h(*argv)
            said = done.stdout + done.stderr
            if argv[0] == "run" and done.returncode == 0:
                continue  # E2B's daemon and Modal's router have a token of their own
            advice = "check MODAL_TOKEN_ID" if h.kind == "modal" else "check that its API key is valid"
            equal((done.returncode != 0, advice in said, KEY in said), (True, True, False),
                  "%s: %s" % (argv, said))
        equal(len(h.boxes()), 1, "it is there, and no second one is made")
        h.at.key = KEY
        equal(h.ok("run", "echo again"), "again\n")
        h.ok("down")
        equal((h.boxes(), [n for n in os.listdir(h.path("state")) if n == "default.json"]), ([], []))


# Tested in test_clouds_e2b.py and test_clouds_others.py; the code is the same, and it waits for seconds.
ELSEWHERE = {killed: (CloudHost, DaytonaHost, RunloopHost), not_listed_yet: (DaytonaHost, Old)}
TESTS = (limited, timed_out, not_listed_yet, lost_command, killed, ended_key)


def main():
    # Debian's packages are those of Debian's Python
    if grpcserver.missing and os.path.exists(PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(PYTHON):
        os.execv(PYTHON, [PYTHON] + sys.argv)
    process.become_subreaper()
    tap = Tap()
    for test in TESTS:
        for name, kind in HOSTS:
            if kind in ELSEWHERE.get(test, ()):
                continue
            tap.run("%s: %s" % (test.__name__.replace("_", " "), name), here, test, kind)
    return tap.done()


def here(test, kind):
    if issubclass(kind, ModalHost) and grpcserver.missing:
        raise Skip(grpcserver.missing)
    test(kind)


if __name__ == "__main__":
    sys.exit(main())
