#!/usr/bin/env python3
"""Watchers of the dialect of E2B: the recorded conversations, and new trees, floods, limits and moves.

    test_e2b_watch.py [CASE...]"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import process  # noqa: E402
from lib.e2bworld import Sandbox  # noqa: E402
from lib.supervised import run_tests  # noqa: E402
from lib.tap import equal  # noqa: E402
from test_e2b_files import home, need_boxes, replayed  # noqa: E402

WATCHERS_MAX = 256


def recorded():
    replayed(r"^watch\.")


class Watched:
    """with Watched() as w: a server with a directory w.top and a watcher of it."""

    def __init__(self, **options):
        self.server, self.options = Sandbox(), options

    def __enter__(self):
        self.server.init()
        self.top = home(self.server) + "/watched"
        self.server.inside("mkdir -p %s/old" % self.top)
        self.id = self.server.call("CreateWatcher", path=self.top, **self.options).json()["watcherId"]
        return self

    def __exit__(self, *what):
        self.server.__exit__(*what)

    def ask(self):
        return self.server.call("GetWatcherEvents", watcherId=self.id)

    def events(self, script):
        self.server.inside("cd %s; %s" % (self.top, script))
        return [(e["name"], e["type"][len("EVENT_TYPE_"):]) for e in self.ask().json().get("events", [])]


def new_trees():
    """What is in a directory that was made a moment ago is reported, once."""
    with Watched(recursive=True) as w:
        got = w.events("mkdir -p a/b/c; touch a/b/c/f")
        created = [name for name, kind in got if kind == "CREATE"]
        equal(sorted(created), ["a", "a/b", "a/b/c", "a/b/c/f"], got)
        equal(w.events("echo x > a/b/c/f")[-1], ("a/b/c/f", "WRITE"))


def moved_trees():
    """A tree that leaves is not watched any more, one that comes back is."""
    with Watched(recursive=True) as w:
        equal(w.events("mkdir old/s; mv old ../out")[-1], ("old", "RENAME"))
        equal(w.events("touch ../out/s/x"), [])
        equal(w.events("mv ../out new")[0], ("new", "CREATE"))
        equal(w.events("touch new/s/y")[0], ("new/s/y", "CREATE"))
        # what is there when the tree is read comes in the order of the directory
        equal(("newer/s/z", "CREATE") in w.events("mv new newer; touch newer/s/z"), True)


def flat():
    with Watched() as w:
        equal(w.events("touch old/x; mkdir old/y"), [])
        equal(w.events("chmod 700 ."), [(".", "CHMOD")])


def uploads():
    """An upload shows as the same events as a program that writes the file, and not its temporary file."""
    with Watched(recursive=True) as w:
        def upload(name, text):
            kind = {"Content-Type": "application/octet-stream"}
            equal(w.server.ask("POST", "/files?path=%s/%s" % (w.top, name), text, kind).status, 200)
            return w.events(":")
        for text in (b"text", b""):
            name = "old/%d" % len(text)
            equal(upload(name, text), [(name, "CREATE"), (name, "CHMOD"), (name, "WRITE")])
            equal(upload(name, b"more"), [(name, "WRITE"), (name, "CHMOD"), (name, "WRITE")])
        equal(w.events("touch '#1' .other; chmod 600 '#1'")[-1], ("#1", "CHMOD"))
        equal(w.events("mv '#1' old/0"), [("#1", "RENAME"), ("old/0", "CREATE")])


def two_of_one():
    """Watchers of one directory get the same events, and the end of one does not end the other."""
    with Watched() as w:
        other = w.server.call("CreateWatcher", path=w.top, includeEntry=True).json()["watcherId"]
        w.server.inside("echo text > %s/f" % w.top)
        a = w.server.call("GetWatcherEvents", watcherId=other).json()["events"]
        equal((a[-1]["type"], a[-1]["entry"]["path"]), ("EVENT_TYPE_WRITE", w.top + "/f"))
        equal(w.events(":")[0], ("f", "CREATE"))
        equal(w.server.call("RemoveWatcher", watcherId=other).json(), {})
        equal(w.server.call("GetWatcherEvents", watcherId=other).status, 404)
        equal(w.events("rm f"), [("f", "REMOVE")])


def flood():
    """More events than are kept are told to be lost, once."""
    with Watched(includeEntry=True) as w:
        w.server.inside("cd %s; i=0; while [ $i -lt 40000 ]; do : > f$i; i=$((i+1)); done; find . -name 'f*' -delete"
                        % w.top)
        a = w.ask()
        equal((a.status, a.json()["code"], "lost" in a.json()["message"]), (429, "resource_exhausted", True), a)
        equal(w.events("touch z")[0], ("z", "CREATE"))


def limit():
    with Watched() as w:
        ids = [w.server.call("CreateWatcher", path=w.top).json().get("watcherId") for _ in range(WATCHERS_MAX - 1)]
        equal(all(ids), True)
        a = w.server.call("CreateWatcher", path=w.top)
        equal(a.json()["code"], "resource_exhausted", a)
        w.server.call("RemoveWatcher", watcherId=ids[0])
        equal(w.server.call("CreateWatcher", path=w.top).status, 200)


def hostile():
    """No watch by a link of procfs, and messages of wrong types are refused."""
    with Sandbox() as s:
        s.init()
        equal(s.call("CreateWatcher", path="/proc/1/cwd").status, 500)
        for body in (b"", b"[]", b'{"recursive":5}', b'{"path":{}}'):
            a = s.ask("POST", "/filesystem.Filesystem/CreateWatcher", body, {"Content-Type": "application/json"})
            equal((a.status, json.loads(a.body)["code"]), (400, "invalid_argument"), a)


TESTS = [recorded, new_trees, moved_trees, flat, uploads, two_of_one, flood, limit, hostile]

if __name__ == "__main__":
    need_boxes()
    process.become_subreaper()
    sys.exit(run_tests(TESTS))
